import { notifications } from '@mantine/notifications'
import { useEffect, useRef } from 'react'
import { isTemporary } from '../api.ts'
import { done, failed } from '../parts/states.tsx'

/** Something that was done to rows, and the way back. */
type Step = { readonly back: () => Promise<unknown>; toast: string }

const isTyping = (target: EventTarget | null) =>
  target instanceof Element &&
  target.closest('input:not([type=checkbox]), textarea, select, [contenteditable], .code, [role=dialog]') !== null

/**
 * What was done on a page, newest last: Ctrl-Z takes it back step by step, and so does the Undo of each notice. Steps are taken back one after the other, in the
 * order in which they are asked for.
 */
export const useUndo = () => {
  const steps = useRef<Step[]>([])
  const last = useRef<Promise<unknown>>(Promise.resolve())
  const takeBack = (step: Step): Promise<void> => {
    steps.current = steps.current.filter((one) => one !== step)
    notifications.hide(step.toast)
    const work = last.current.then(step.back).catch((error) => {
      // a server that is away may take it back when it is there again
      if (isTemporary(error)) steps.current.push(step)
      throw error
    })
    last.current = work.catch(() => undefined)
    return work.then(() => undefined)
  }
  const undo = () => {
    const step = steps.current.at(-1)
    if (step) takeBack(step).then(() => done('Undone.'), failed)
    else done('There is nothing to take back.')
  }
  /** Says that something was done, with Undo, and remembers it. */
  const did = (said: string, back: () => Promise<unknown>) => {
    const step: Step = { back, toast: '' }
    steps.current.push(step)
    step.toast = done(said, () => takeBack(step))
  }
  const latest = useRef(undo)
  latest.current = undo
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isUndo = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === 'z'
      if (!isUndo || isTyping(event.target)) return
      event.preventDefault()
      latest.current()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
  return did
}
