import type { Issue } from '../../../sdk/src/generated/schemas.ts'

const dayMs = 86_400_000

/** The reports of each of the last 30 days (UTC), oldest first. */
export const daysOf = ({ day_counts }: Pick<Issue, 'day_counts'>, now = Date.now()) =>
  Array.from({ length: 30 }, (_, n) => {
    const date = new Date(now - (29 - n) * dayMs).toISOString().slice(0, 10)
    return { date, value: day_counts[date] ?? 0 }
  })

const meanings = { debug: 'none', info: 'none', warn: 'warn', error: 'bad', fatal: 'bad' } as const

/** How bad a level is, as a colour beside its word. */
export const meaningOf = (level: string) => meanings[level as keyof typeof meanings] ?? 'none'
