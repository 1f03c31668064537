import { createHmac, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { anyone } from '#server/http/callers.ts'
import { acceptedLocales } from '#server/http/languages.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { data, uuidPattern } from '#server/http/schemas.ts'
import { htmlPage } from '#server/http/stream.ts'
import type { SmtpConfig } from '#server/providers/mail.ts'
import {
  integrationPurpose,
  type ProjectSender,
  readUnsubscription,
  type Unsubscription,
} from '#server/providers/project_mail.ts'
import { workerOf } from '#server/routes/email/worker.ts'

const words = {
  en: [
    'Unsubscribe',
    'Do you want no more mail of this kind from',
    'Unsubscribed: you get no more mail of this kind from',
  ],
  de: [
    'Abbestellen',
    'Möchten Sie keine solchen Nachrichten mehr von',
    'Abbestellt. Sie erhalten keine solchen Nachrichten mehr von',
  ],
  es: [
    'Cancelar suscripción',
    '¿No quieres recibir más mensajes de este tipo de',
    'Suscripción cancelada. No recibirás más mensajes de este tipo de',
  ],
  fr: [
    'Se désabonner',
    'Ne plus recevoir de messages de ce type de',
    'Désabonné. Vous ne recevrez plus de messages de ce type de',
  ],
  pt: [
    'Cancelar subscrição',
    'Não quer receber mais mensagens deste tipo de',
    'Subscrição cancelada. Não receberá mais mensagens deste tipo de',
  ],
  ja: ['配信停止', '今後、この種類のメールの配信を停止しますか。送信元', '配信を停止しました。送信元'],
} as const
type Language = keyof typeof words
const isLanguage = (text: string): text is Language => Object.hasOwn(words, text)

const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`)

const pageOf = (language: Language, brand: string, isDone: boolean): string => {
  const [button, question, done] = words[language]
  const text = isDone ? `${done}: ${brand}.` : `${question}: ${brand}?`
  const form = isDone ? '' : `<form method="post"><button>${escaped(button)}</button></form>`
  return `<!doctype html><html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex"><title>${escaped(button)}</title><style>:root{color-scheme:light dark}body{font:16px/1.5 sans-serif;max-width:30rem;margin:4rem auto;padding:0 1rem}button{font:inherit;padding:.5rem 1.5rem}</style></head><body><p>${escaped(text)}</p>${form}</body></html>`
}

const answerPage = async (
  { request, services }: HandlerContext,
  { project }: Unsubscription,
  failure?: string | null,
) => {
  const isDone = failure !== undefined
  const sender = dataOf<ProjectSender | null>(
    await services.database.call(
      services.control,
      'control_worker',
      { caller: 'worker' },
      'mail_sender',
      { project_id: project },
      { readOnly: true, failure: failure ?? 'FETCH_FAILED' },
    ),
  )
  if (!sender) throw unknownLink()
  const language = acceptedLocales(request)
    .map((locale) => locale.slice(0, 2).toLowerCase())
    .find(isLanguage)
  return {
    status: 200,
    body: pageOf(language ?? 'en', sender.name, isDone),
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'",
    },
  }
}

const unknownLink = () => refusal(404, 'NOT_FOUND', 'This link is not valid.')
const linkOf = ({ params, services }: HandlerContext): Unsubscription => {
  const link = readUnsubscription(services.secrets, String(params['token']))
  if (!link) throw unknownLink()
  return link
}

const unsubscribe = async (context: HandlerContext) => {
  const at = context.route
  const link = linkOf(context)
  const call = await workerOf(context.services, link.project, at)
  if (!call) throw unknownLink()
  await call('email_unsubscribe', { address: link.address, category: link.category })
  return answerPage(context, link, at.failure)
}

const Event = z.object({
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

const receive = async ({ services, request, query, text, route: at }: HandlerContext) => {
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

const token = { token: z.string() }
const openLink = { caller: anyone, params: token, refusals: { 404: ['NOT_FOUND'] } }

export const emailPublic = area({
  stem: 'email',
  title: 'Email',
  source: 'supplement',
  unversioned: true,
  routes: [
    ...group('/u/:token', openLink, [
      route('GET /', 'The page of a link to unsubscribe, which asks and changes nothing', {
        operationId: 'showUnsubscribePage',
        replies: { 200: htmlPage() },
        handle: (context) => answerPage(context, linkOf(context)),
      }),
      route('POST /', 'Unsubscribe the address of a link from its category', {
        handle: unsubscribe,
        operationId: 'unsubscribe',
        replies: { 200: htmlPage() },
        description: 'Mail clients send `List-Unsubscribe=One-Click` (RFC 8058). Repeating it changes nothing.',
        uploads: ['application/x-www-form-urlencoded', 'multipart/form-data'],
        refusals: { 404: ['NOT_FOUND'], 503: ['TENANT_UNAVAILABLE', 'TENANT_MIGRATION_PENDING'] },
      }),
    ]),
    ...group('/webhooks', anyone, [
      route('POST /email', 'What a mail provider reports: delivered, bounce, complaint', {
        handle: receive,
        operationId: 'receiveEmailEvents',
        description:
          'Signed with `webhook_secret` of the `smtp` integration: `X-Email-Signature` is the HMAC-SHA-256 of the raw body, in hexadecimal. A repeated `id` changes nothing.',
        query: { project_id: z.string().optional() },
        body: Event,
        takesText: true,
        needsBody: true,
        example: { id: 'evt_1', type: 'bounce', bounce_type: 'hard', address: 'user@example.com', message_id: null },
        replies: { 200: data(z.strictObject({ received: z.literal(true), is_new: z.boolean() })) },
        refusals: {
          400: ['MISSING_PROJECT'],
          401: ['INVALID_SIGNATURE'],
          404: ['NOT_CONFIGURED'],
          429: ['RATE_LIMITED'],
          503: ['TENANT_MIGRATION_PENDING', 'TENANT_UNAVAILABLE'],
        },
        invalid: 'INVALID_BODY',
        ceiling: 'none',
        failure: 'WEBHOOK_PROCESSING_FAILED',
      }),
    ]),
  ],
})
