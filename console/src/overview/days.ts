import type { Point } from '../parts/drawn.ts'

/** The date so many days ago. */
export const dayBefore = (days: number) => new Date(Date.now() - days * 864e5).toISOString().slice(0, 10)
/** The sum of all days. */
export const sumOf = (points: readonly Point[]) => points.reduce((sum, { value }) => sum + value, 0)

/** The change from the first half of the days to the second, in per cent; the current day is in neither. */
export const changeOf = (points: readonly Point[]): number | null => {
  const whole = points.slice(0, -1)
  const half = Math.floor(whole.length / 2)
  const [before, after] = [sumOf(whole.slice(0, half)), sumOf(whole.slice(-half))]
  return before === 0 ? null : Math.round(((after - before) / before) * 100)
}
