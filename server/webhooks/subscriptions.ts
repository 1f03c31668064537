/** Webhooks of projects and of the control plane: their secrets, a delivery on demand, and a replay. */
import { randomBytes } from 'node:crypto'
import type { Role } from '#server/database/cluster.ts'
import { dataOf, type Reply } from '#server/database/database.ts'
import type { Arguments } from '#server/database/statements.ts'
import { refusal } from '#server/errors.ts'
import { callControl } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { isAcknowledged, type Sendable, sealSecret, sendDelivery } from '#server/providers/webhooks.ts'

const checkTarget = async ({ services }: HandlerContext, url: unknown): Promise<void> => {
  const problem = await services.outbound.checkUrl(String(url))
  if (problem) throw refusal(400, problem.code, problem.message, { field: 'target_url', reason: problem.message })
}

/** 32 random bytes, in the form that is shown and the form that is stored. */
const newSecret = ({ services }: HandlerContext) => {
  const secret = randomBytes(32).toString('hex')
  return { secret, secret_sealed: sealSecret(services.secrets, secret) }
}

/** The secret is made and shown here, once, and stored sealed. */
export const createWebhook = (call: string) => async (context: HandlerContext) => {
  await checkTarget(context, context.body['target_url'])
  const { secret, secret_sealed } = newSecret(context)
  const reply = await context.call(call, { ...context.body, secret_sealed })
  return { status: reply.status, body: JSON.stringify({ data: { ...dataOf<object>(reply), secret } }) }
}

export const rotateWebhookSecret = (call: string) => async (context: HandlerContext) => {
  const { secret, secret_sealed } = newSecret(context)
  const reply = await context.call(call, { webhook_id: context.params['webhookId'], secret_sealed })
  return { status: reply.status, body: JSON.stringify({ data: { secret } }) }
}

/** Changes a webhook by a function that takes its id under a name of its own. */
export const updateWebhook =
  (call: string, argsOf: (id: unknown) => Arguments) =>
  async (context: HandlerContext): Promise<Reply> => {
    const { body, params } = context
    if (body['target_url'] !== undefined) await checkTarget(context, body['target_url'])
    return context.call(call, { ...argsOf(params['webhookId']), patch: body })
  }

/** Sends a synthetic delivery now, as workers send real ones. The answer of SQL has the encrypted secret, which stays here. */
export const testWebhook =
  (call: string, role: { readonly role?: Role } = {}) =>
  async (context: HandlerContext) => {
    const asked = await context.call(call, { webhook_id: context.params['webhookId'] }, { ...role, readOnly: true })
    const delivery = dataOf<Sendable>(asked)
    await checkTarget(context, delivery.target_url)
    const outcome = await sendDelivery(context.services, delivery)
    const answer = {
      status_code: outcome.statusCode,
      error: outcome.error,
      duration_ms: outcome.durationMs,
      response_excerpt: outcome.responseExcerpt,
      delivered: isAcknowledged(outcome),
    }
    return { status: 200, body: JSON.stringify({ data: answer }) }
  }

/** The project's database validates the range; control stores the operation that replays it. */
export const replayRange = async (context: HandlerContext) => {
  const { statuses = ['dlq', 'failed'], ...range } = context.body
  const webhook_id = context.params['webhookId']
  const checked = dataOf<object>(
    await context.call('webhook_replay_check', { webhook_id, ...range }, { readOnly: true }),
  )
  const input = { webhook_id, statuses, ...checked }
  const reply = await callControl(context, 'webhook_replay_start', { input }, { failure: 'UPDATE_FAILED' })
  const { operation_id, type, status, progress } = dataOf<Readonly<Record<string, unknown>>>(reply)
  return { status: reply.status, body: JSON.stringify({ data: { operation_id, type, status, progress } }) }
}
