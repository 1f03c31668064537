import { setTimeout as sleep } from 'node:timers/promises'
import { dataOf, type Reply } from '#server/database/database.ts'
import type { Arguments } from '#server/database/statements.ts'
import { ApiError, refusal } from '#server/errors.ts'
import { projectIdOf } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'
import {
  type AiProvider,
  dialects,
  type Exchange,
  type ProviderError,
  type ProviderProblem,
} from '#server/providers/ai/gateway.ts'

export type Surroundings = Pick<HandlerContext, 'services' | 'resolved' | 'request'>

export const keyPurpose = (projectId: string, provider: string): string => `ai provider ${projectId} ${provider}`

const openKey = (context: Surroundings, provider: AiProvider, sealed: string): string =>
  context.services.secrets.decrypt(keyPurpose(projectIdOf(context), provider), sealed)

/** Whether the project may use the provider of development. */
export const allowsEcho = ({ resolved }: Pick<Surroundings, 'resolved'>): boolean =>
  resolved.project?.environment === 'development'

/** Whether the project's calls ignore its spend ceiling. */
export const isComped = ({ resolved }: Pick<Surroundings, 'resolved'>): boolean => resolved.project?.isComped === true

/** How often a record is tried while the database has no connection for it, and the pause after the first attempt, which doubles. */
const attempts = 5
const firstPauseMs = 200

/**
 * Records what was used, under the claims of the caller and also when the caller has hung up: a call by `context.call` is given up with its
 * client, and waits behind the user's other calls, which the user could make slow. What was used is owed: it is tried again while the database is
 * busy, and what is not recorded all the same costs its reservation. The functions called here may be repeated.
 */
export const record = async ({ services, resolved }: Surroundings, name: string, args: Arguments): Promise<Reply> => {
  const projectId = projectIdOf({ resolved })
  services.waker.written(projectId)
  for (let attempt = 1; ; attempt += 1) {
    try {
      const reply = await services.database.call(resolved.place, 'app_worker', resolved.claims, name, args, {
        failure: 'UPDATE_FAILED',
        isBooking: true,
      })
      if (reply.dueAt) services.waker.wake(projectId, reply.dueAt)
      if (reply.changed.length > 0) await services.notifier.publish(reply.changed)
      return reply
    } catch (error) {
      const isBusy = error instanceof ApiError && (error.status === 503 || error.status === 429)
      if (!isBusy || attempt === attempts) throw error
      await sleep(firstPauseMs * 2 ** (attempt - 1) * (0.5 + Math.random()))
    }
  }
}

/**
 * Admits a call of a provider by a function that reserves what it may cost, and throws what the function refuses. It is admitted before its reservation is
 * on the disk, so that the provider is called meanwhile; others wait for the same budget until it is there. What the provider answers is for nobody before
 * `reserved` has resolved.
 */
export const admit = async <T>({ call }: HandlerContext, name: string, args: Record<string, unknown>) => {
  const admitted = Promise.withResolvers<Pick<Reply, 'status' | 'body'>>()
  const stored = call(name, args, { role: 'app_worker', readOnly: false, beforeCommit: admitted.resolve })
  const reserved = stored.then(() => undefined)
  // whoever needs it awaits it later; until then its failure is nobody's
  reserved.catch(() => undefined)
  const reply = await Promise.race([admitted.promise, stored])
  if (reply.status !== 200) {
    await reserved
    const { error } = JSON.parse(reply.body) as { error: { code: string; message: string } }
    throw refusal(reply.status, error.code, error.message)
  }
  return { begun: dataOf<T>(reply), reserved }
}

/** How a call ended, as api.ai_finish takes it. */
export type Outcome = {
  readonly outcome: 'succeeded' | 'failed' | 'cancelled'
  readonly input_tokens: number
  readonly output_tokens: number
  readonly is_estimated: boolean
  readonly finish_reason?: string | null
  readonly error_code: string | null
  readonly output?: string | null
  readonly payload?: object | null
}

/** Records how a call ended that was admitted. */
export const finish = (context: Surroundings, invocation_id: string, outcome: Outcome): Promise<Reply> =>
  record(context, 'ai_finish', { invocation_id, ...outcome })

/** A signal that fires when the client hangs up. `release` ends the watch. */
export const watchClient = ({ request }: Pick<Surroundings, 'request'>) => {
  const controller = new AbortController()
  const { socket } = request.raw
  const abort = () => controller.abort()
  if (socket.destroyed) abort()
  else socket.once('close', abort)
  return { signal: controller.signal, abort, release: () => void socket.off('close', abort) }
}

export const messageOf: Readonly<Record<ProviderProblem['code'], string>> = {
  PROVIDER_FAILED: 'The AI provider did not answer this call.',
  PROVIDER_TIMEOUT: 'The AI provider did not answer in time.',
  ai_model_not_multimodal: 'This model takes no images.',
  ABORTED: 'The client went away.',
}

export const providerRefusal = ({ problem: { code, status } }: ProviderError): ApiError =>
  refusal(
    code === 'ai_model_not_multimodal' ? 422 : 502,
    code === 'ABORTED' ? 'PROVIDER_FAILED' : code,
    messageOf[code],
    status === null ? null : { provider_status: status },
  )

/** An exchange with a provider under the project's key. */
export const exchangeWith = (
  context: Surroundings,
  provider: AiProvider,
  sealed: string,
  signal: AbortSignal,
): Exchange => ({
  upstream: context.services.upstream,
  projectId: projectIdOf(context),
  dialect: dialects[provider],
  apiKey: openKey(context, provider, sealed),
  signal,
  timeoutMs: context.services.config.AI_TIMEOUT_MS,
  streamMs: context.services.config.AI_STREAM_MS,
})

/** What a call that belongs to no prompt may cost at most. */
type Bound = {
  readonly kind: 'messages' | 'embeddings'
  readonly provider: AiProvider
  readonly model: string
  readonly most_input: number
  readonly most_output: number
}

/** Admits a call that belongs to no prompt, and reserves its bound. The call is given up when the reservation cannot be stored. */
export const reserve = async (context: HandlerContext, bound: Bound, client: ReturnType<typeof watchClient>) => {
  const admitted = await admit<{ readonly id: string; readonly api_key_sealed: string }>(context, 'ai_reserve', {
    ...bound,
    prices: context.services.aiPrices,
    is_comped: isComped(context),
  })
  admitted.reserved.catch(client.abort)
  return admitted
}
