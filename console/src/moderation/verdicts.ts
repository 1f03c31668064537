import { notifications } from '@mantine/notifications'
import { useSyncExternalStore } from 'react'
import { accessToken, callAny, queries } from '../api.ts'
import { done, failed } from '../parts/states.tsx'
import { type Item, textOf } from './item.ts'

export type Verdict = 'approve' | 'reject' | 'escalate'
export type Action = 'none' | 'warn' | 'mute_24h' | 'ban'
/** What a moderator adds to a verdict. */
export type Draft = { readonly note: string; readonly action: Action }

/** Seconds in which a verdict can be taken back. The API does not open an item again, so it is told only afterwards. */
export const grace = 10

type Held = {
  readonly projectId: string
  readonly id: string
  readonly route: string
  readonly body: Draft | { readonly note?: string }
  readonly timer: ReturnType<typeof setTimeout>
  readonly notice: string
  readonly onBack: () => void
}

const said: Readonly<Record<Verdict, string>> = {
  approve: 'it stays.',
  reject: 'it is removed.',
  escalate: 'it is left to somebody else.',
}
const none: readonly string[] = []
const listeners = new Set<() => void>()
/** Given and not sent, or sent and not read again yet; newest last. */
let held: readonly Held[] = []
let idsOf: ReadonlyMap<string, readonly string[]> = new Map()
/** Those that the server was told of already. */
const begun = new WeakSet<Held>()

const set = (next: readonly Held[]) => {
  held = next
  const ids = new Map<string, string[]>()
  for (const { projectId, id } of next) ids.set(projectId, [...(ids.get(projectId) ?? []), id])
  idsOf = ids
  for (const listener of listeners) listener()
}
const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

const carryOut = async (verdict: Held): Promise<void> => {
  begun.add(verdict)
  // whoever rests the pointer on a notice keeps it open, and with it an Undo that is over
  notifications.hide(verdict.notice)
  const { projectId, id, route, body } = verdict
  await callAny(`POST ${route}`, { path: { projectId, itemId: id }, body }).catch(failed)
  await queries.invalidateQueries()
  set(held.filter((one) => one !== verdict))
}

const takeBack = (verdict: Held): void => {
  if (begun.has(verdict) || !held.includes(verdict)) throw new Error('The verdict is sent, and final.')
  clearTimeout(verdict.timer)
  set(held.filter((one) => one !== verdict))
  verdict.onBack()
}

// a page that is closed says what it still had to say
addEventListener('pagehide', () => {
  for (const verdict of held)
    if (!begun.has(verdict)) {
      begun.add(verdict)
      void fetch(verdict.route.replace('{projectId}', verdict.projectId).replace('{itemId}', verdict.id), {
        method: 'POST',
        keepalive: true,
        headers: { authorization: `Bearer ${accessToken()}`, 'content-type': 'application/json' },
        body: JSON.stringify(verdict.body),
      })
    }
})

/** The items of a project on which a verdict was given that the server does not show yet. */
export const useHeld = (projectId: string): readonly string[] =>
  useSyncExternalStore(subscribe, () => idsOf.get(projectId) ?? none)

/** Gives a verdict, with some seconds in which Undo takes it back, on whatever page that is by then. */
export const give = (projectId: string, item: Item, verdict: Verdict, draft: Draft, onBack: () => void): void => {
  const note = draft.note ? { note: draft.note } : {}
  const one: Held = {
    projectId,
    id: item.id,
    route: `/v1/admin/projects/{projectId}/moderation/queue/{itemId}/${verdict}`,
    body: verdict === 'reject' ? { ...note, action: draft.action } : note,
    timer: setTimeout(() => void carryOut(one), grace * 1000),
    notice: done(`${textOf(item).slice(0, 60)}: ${said[verdict]}`, async () => takeBack(one)),
    onBack,
  }
  set([...held, one])
}

/** Takes the newest verdict back that is not sent yet. */
export const takeLastBack = (projectId: string): void => {
  const last = held.findLast((one) => one.projectId === projectId && !begun.has(one))
  if (!last) return void done('There is nothing to take back.')
  notifications.hide(last.notice)
  takeBack(last)
  done('Undone.')
}
