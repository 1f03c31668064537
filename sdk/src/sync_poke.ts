import type { Realtime } from './realtime.ts'

type Pokes = { readonly works: Set<() => unknown>; readonly stop: () => void }
const poked = new WeakMap<Realtime, Pokes>()

/** Calls `work` when a pull would bring something, and whenever the connection is there again. Ends when its answer is called. */
export const onPoke = (realtime: Realtime, work: () => unknown): (() => void) => {
  const found = poked.get(realtime)
  const works = found?.works ?? new Set()
  const all = () => {
    for (const one of [...works]) one()
  }
  const forget = () => void poked.delete(realtime)
  const stop = found?.stop ?? realtime.subscribe('sync', { onLive: all, onEvent: all, onResync: all, onEnd: forget })
  // each call counts, also with the same function
  const own = () => work()
  works.add(own)
  poked.set(realtime, { works, stop })
  return () => {
    if (!works.delete(own) || works.size > 0 || poked.get(realtime)?.works !== works) return
    forget()
    stop()
  }
}
