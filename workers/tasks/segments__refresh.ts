import { dataOf } from '#server/database/database.ts'
import { outboxTask } from '#workers/task.ts'

type Step = { moved: number; is_over: boolean; is_resumed: boolean; evaluated?: number }
/** At most so many users enter or exit in one step: the WAL of a step is flushed before any commit that comes after it. */
const batch = 500
/** So many are evaluated in one step, where few of them do. */
const most = 20_000
const everyMs = 5 * 60_000
/** A step evaluates many users under rules of any cost. */
const timeoutMs = 60_000

/**
 * Evaluates a project's dynamic segments for all users, one after the other, in steps of a transaction each, and runs again in five minutes while
 * there are any. An evaluation that a killed worker left incomplete is finished, and repeated once, because of changes since it began.
 */
export const segmentsRefresh = outboxTask(
  'segments__refresh',
  async ({ services, step }) => {
    const ids = dataOf<string[]>(await step('segments_due', {}))
    for (const segment_id of ids) {
      let scanned = most
      const next = async () => {
        const found = dataOf<Step>(await step('segments_refresh', { segment_id, batch, scanned }, { timeoutMs }))
        // those beyond a batch would be evaluated at each step again, so a step evaluates about as many as fill one
        const { moved, evaluated = most } = found
        scanned = moved === 0 ? most : Math.min(most, Math.max(batch, Math.ceil((batch * evaluated) / moved)))
        return found
      }
      const first = await next()
      for (let { is_over } = first; !is_over; ) ({ is_over } = await next())
      for (let again = first.is_resumed; again; ) again = !(await next()).is_over
    }
    return ids.length === 0 ? null : new Date(services.now().getTime() + everyMs)
  },
  { urgency: 'background', atOnce: 1 },
)
