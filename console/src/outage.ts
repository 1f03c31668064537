import { lazy } from 'react'
import { isTemporary, queries, TrellisError } from './api.ts'

let isAway = false
const listeners = new Set<() => void>()

/** Whether the server can be reached, as the last answer told. */
export const outage = {
  isOn: () => isAway,
  subscribe: (listener: () => void): (() => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  },
}

const tell = (next: boolean) => {
  if (next === isAway) return
  isAway = next
  for (const listener of listeners) listener()
}

const answers = (): Promise<boolean> =>
  fetch('/health').then(
    ({ ok }) => ok,
    () => false,
  )

// a limit on requests is an answer
const isOutage = (error: unknown) => isTemporary(error) && !(error instanceof TrellisError && error.status === 429)

let waiting: Promise<void> | undefined

/** Where the server does not answer: says so, and asks until it answers again. A route that fails alone is told by what asked it. */
const whenBack = (): Promise<void> => {
  const wait = async () => {
    if (!(await answers())) {
      tell(true)
      do await new Promise((resolve) => setTimeout(resolve, 2000))
      while (isAway && !(await answers()))
      tell(false)
      await queries.invalidateQueries()
    }
    waiting = undefined
  }
  waiting ??= wait()
  return waiting
}

queries.getQueryCache().subscribe((event) => {
  if (event.type !== 'updated') return
  const { action } = event
  if (action.type === 'success') tell(false)
  else if ((action.type === 'failed' || action.type === 'error') && isOutage(action.error)) void whenBack()
})

const lastReload = 'trellis-reload'

/** Loads the page again, but not over and over: false when the page was loaded again a moment ago. */
const reload = (): boolean => {
  if (Date.now() - Number(sessionStorage.getItem(lastReload)) < 10_000) return false
  sessionStorage.setItem(lastReload, String(Date.now()))
  location.reload()
  return true
}

/**
 * Loads a part of the console. One that an outage holds back, or that a release has replaced, comes with the page, once the server answers:
 * a browser remembers a failed import for as long as the page lives.
 */
export const patiently = async <Module>(load: () => Promise<Module>): Promise<Module> => {
  try {
    return await load()
  } catch (error) {
    while (!(await answers())) await whenBack()
    if (!reload()) throw error
    return new Promise(() => undefined)
  }
}

type Lazy = Awaited<ReturnType<Parameters<typeof lazy>[0]>>['default']

/** A component of a module that is loaded when the component is first drawn. */
export const lazyPart = <Name extends string, Part extends Lazy>(load: () => Promise<Record<Name, Part>>, name: Name) =>
  lazy(async () => ({ default: (await patiently(load))[name] }))
