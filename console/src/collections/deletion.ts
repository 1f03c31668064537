import { useSyncExternalStore } from 'react'
import { accessToken, callAny, queries } from '../api.ts'
import { failed } from '../parts/states.tsx'

/** Seconds in which a deletion can be taken back. The API does not restore a row for a developer, so it is asked to delete only afterwards. */
const grace = 10
type Deletion = { readonly projectId: string; readonly name: string; readonly ids: readonly string[] }

let pending: readonly Deletion[] = []
let shown: ReadonlyMap<string, readonly string[]> = new Map()
const listeners = new Set<() => void>()
const none: readonly string[] = []

const set = (next: readonly Deletion[]) => {
  pending = next
  const ids = new Map<string, string[]>()
  for (const { projectId, name, ids: some } of next) {
    const key = `${projectId} ${name}`
    ids.set(key, [...(ids.get(key) ?? []), ...some])
  }
  shown = ids
  for (const listener of listeners) listener()
}
const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

const route = (id: string) => `/v1/admin/projects/{projectId}/collections/{name}/rows/${id}`

/** Deletions that the server was asked for already. */
const begun = new WeakSet<Deletion>()

const carryOut = async (deletion: Deletion): Promise<void> => {
  if (!pending.includes(deletion)) return
  begun.add(deletion)
  const { projectId, name, ids } = deletion
  const rest = [...ids]
  const refusals: unknown[] = []
  const work = async () => {
    for (let id = rest.shift(); id !== undefined; id = rest.shift())
      await callAny(`DELETE ${route(id)}`, { path: { projectId, name } }).catch((error) => refusals.push(error))
  }
  await Promise.all([work(), work(), work(), work()])
  if (refusals.length > 0) failed(refusals[0])
  await queries.invalidateQueries({ queryKey: ['rows', projectId, name] })
  set(pending.filter((one) => one !== deletion))
}

// a page that is closed says what it still had to say
addEventListener('pagehide', () => {
  for (const { projectId, name, ids } of pending)
    for (const id of ids)
      void fetch(`/v1/admin/projects/${projectId}/collections/${name}/rows/${id}`, {
        method: 'DELETE',
        keepalive: true,
        headers: { authorization: `Bearer ${accessToken()}` },
      })
})

/** Rows that are gone for the person who looks, and can still come back. */
export const usePending = (projectId: string, name: string): readonly string[] =>
  useSyncExternalStore(subscribe, () => shown.get(`${projectId} ${name}`) ?? none)

/** Deletes rows, with some seconds in which what it answers takes that back. */
export const deleteRows = (projectId: string, name: string, ids: readonly string[]): (() => Promise<void>) => {
  const deletion: Deletion = { projectId, name, ids }
  set([...pending, deletion])
  const timer = setTimeout(() => void carryOut(deletion), grace * 1000)
  return async () => {
    if (begun.has(deletion) || !pending.includes(deletion))
      throw new Error(`A deletion can be taken back for ${grace} seconds, and these have passed.`)
    clearTimeout(timer)
    set(pending.filter((one) => one !== deletion))
  }
}
