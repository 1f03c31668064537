/** What a mail provider reports: delivered, bounce, complaint. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { workerOf } from '#server/email/worker.ts'
import { refusal } from '#server/errors.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { uuidPattern } from '#server/http/schemas.ts'
import type { SmtpConfig } from '#server/providers/mail.ts'
import { integrationPurpose } from '#server/providers/project_mail.ts'

export const Event = z.object({
  id: z
    .string()
    .min(1)
    .max(200)
    .regex(/^[ -~]+$/),
  type: z.enum(['delivered', 'bounce', 'complaint']),
  bounce_type: z.string().max(50).nullish(),
  address: z.string().max(254).nullish(),
  message_id: z.string().max(300).nullish(),
})

const isSigned = (secret: string, body: Buffer, given: unknown): boolean => {
  if (typeof given !== 'string' || !/^[0-9a-f]{64}$/i.test(given)) return false
  return timingSafeEqual(createHmac('sha256', secret).update(body).digest(), Buffer.from(given, 'hex'))
}

const notConfigured = () => refusal(404, 'NOT_CONFIGURED', 'This project has no mail server with a webhook_secret.')

export const receive = async ({ services, request, query, text, route: at }: HandlerContext) => {
  const projectId = query['project_id']
  if (typeof projectId !== 'string' || !uuidPattern.test(projectId))
    throw refusal(400, 'MISSING_PROJECT', 'project_id must name the project.')
  const call = await workerOf(services, projectId, at)
  const stored = call && dataOf<{ config_sealed: string } | null>(await call('email_webhook_secret', {}))
  if (!call || !stored) throw notConfigured()
  const purpose = integrationPurpose(projectId.toLowerCase(), 'smtp')
  const { webhook_secret } = JSON.parse(services.secrets.decrypt(purpose, stored.config_sealed)) as SmtpConfig
  if (!webhook_secret) throw notConfigured()
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  if (!isSigned(webhook_secret, body, request.headers['x-email-signature']))
    throw refusal(401, 'INVALID_SIGNATURE', 'X-Email-Signature must be the HMAC-SHA-256 of the body, in hexadecimal.')
  const event = Event.safeParse(JSON.parse(text))
  if (!event.success) {
    const [issue] = event.error.issues
    const field = issue?.path.join('.') ?? ''
    throw refusal(400, 'INVALID_BODY', `${field}: ${issue?.message}`, { field, reason: issue?.message })
  }
  return call('email_provider_event', { event: JSON.stringify(event.data) })
}
