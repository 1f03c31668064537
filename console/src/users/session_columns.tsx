import type { Column } from '../parts/list.tsx'
import { When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'

/** A session in the app, as far as every list of sessions shows it. */
export type Session = {
  readonly id: string
  readonly started_at: string
  readonly ended_at: string | null
  readonly duration_seconds: number | null
}

/** Seconds as people say them. */
export const lasting = (seconds: number | null | undefined): string => {
  if (seconds === null || seconds === undefined) return '—'
  if (seconds < 60) return `${Math.round(seconds)} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** When a session began, how long it lasted, and whether it goes on, with what a list shows between. */
export const sessionColumns = <R extends Session>(between: readonly Column<R>[] = []): readonly Column<R>[] => [
  { title: 'Began', show: ({ started_at }) => <When at={started_at} /> },
  ...between,
  { title: 'Length', isNumber: true, show: ({ duration_seconds }) => lasting(duration_seconds) },
  { title: 'State', show: ({ ended_at }) => <Status value={ended_at ? 'ended' : 'open'} /> },
]
