import { z } from 'zod'
import { type CatalogConfig, type Live, type Patience, waitOf } from '#server/providers/monetization/live.ts'
import {
  after,
  bringsBack,
  isDone,
  MissingObject,
  makesId,
  type Step,
  wordsOf,
  writeOf,
} from '#server/providers/monetization/steps.ts'
import type { Services } from '#server/services.ts'

/** A step failed for good. The message has no words of the provider, except the type of its error. */
export class WriteFailed extends Error {
  constructor(step: Step, reason: string) {
    super(`PROVIDER_WRITE_FAILED: ${wordsOf(step)}: ${reason}.`)
  }
}

const mostAttempts = 3
const mostWaits = 10
const backoffMs = 500

const errorType = (json: unknown): string => {
  const parsed = z.object({ type: z.string().regex(/^[a-z_]{1,40}$/) }).safeParse(json)
  return parsed.success ? ` ${parsed.data.type}` : ''
}
const idOf = (json: unknown): string | null => {
  const parsed = z.object({ id: z.string().min(1) }).safeParse(json)
  return parsed.success ? parsed.data.id : null
}

type Connection = {
  readonly services: Pick<Services, 'upstream'>
  readonly projectId: string
  readonly config: CatalogConfig
  /** Reads the provider anew. */
  readonly read: () => Promise<Live>
} & Patience

/** The outcome of one request: done, known not to be done with the reason, or unknown, which a look at the provider decides. */
type Outcome =
  | { readonly is: 'done'; readonly id: string | null }
  | { readonly is: 'failed' | 'unknown'; readonly reason: string }

const send = async (connection: Connection, live: Live, step: Step): Promise<Outcome> => {
  const { services, projectId, config, sleep } = connection
  const { path, params, ...write } = writeOf(live, step)
  for (let waits = 0; ; waits += 1) {
    const answer = await services.upstream.call({
      ...write,
      provider: 'revenuecat',
      projectId,
      path: `/v2/projects/{project}${path}`,
      params: { project: config.project_id, ...params },
      headers: { authorization: `Bearer ${config.secret_api_key_write}` },
      // the provider documents no idempotency key: only a look at the provider tells whether a repetition is needed
      idempotent: false,
    })
    if (answer.failure !== null) return { is: 'unknown', reason: answer.reason }
    const { status } = answer
    const reason = `status ${status}${errorType(answer.json())}`
    if (status >= 200 && status < 300) return { is: 'done', id: idOf(answer.json()) }
    if (status === 429 && waits < mostWaits) await sleep(waitOf(answer.headers))
    else if (status === 409 && step.object_type === 'store_product') return { is: 'done', id: null }
    // what is there already, or gone already, may be the effect of a request whose answer was lost
    else if (status >= 500 || [404, 409, 423].includes(status)) return { is: 'unknown', reason }
    else return { is: 'failed', reason }
  }
}

const attempt = async (connection: Connection, live: Live, step: Step): Promise<Outcome> => {
  try {
    return await send(connection, live, step)
  } catch (error) {
    if (error instanceof MissingObject) return { is: 'failed', reason: error.message }
    throw error
  }
}

/**
 * Performs a step, unless what the provider holds shows that it is done, and returns what it holds then. After an answer that does not tell the outcome
 * the provider is read before the request is repeated, so nothing is created twice. Throws WriteFailed.
 */
export const performStep = async (connection: Connection, known: Live, step: Step): Promise<Live> => {
  let live = known
  for (let made = 1; ; made += 1) {
    if (isDone(live, step)) return live
    const outcome = await attempt(connection, live, step)
    if (outcome.is === 'failed') throw new WriteFailed(step, outcome.reason)
    if (outcome.is === 'done' && !bringsBack(live, step) && (outcome.id !== null || !makesId(step)))
      return after(live, step, outcome.id ?? '')
    live = await connection.read()
    if (isDone(live, step)) return live
    if (made >= mostAttempts)
      throw new WriteFailed(step, outcome.is === 'unknown' ? outcome.reason : 'the object does not appear')
    await connection.sleep(backoffMs * 2 ** (made - 1))
  }
}
