import { z } from 'zod'
import { Event, receive } from '#server/email/provider_events.ts'
import { answerPage, linkOf, unsubscribe } from '#server/email/unsubscribe.ts'
import { anyone } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { data } from '#server/http/schemas.ts'
import { htmlPage } from '#server/http/stream.ts'
import { emailWords } from '#server/routes/email/shapes.ts'

const token = { token: z.string() }
const openLink = { caller: anyone, params: token, refusals: { 404: ['NOT_FOUND'] } }

export const emailPublic = area({
  stem: 'email',
  title: 'Email',
  unversioned: true,
  words: emailWords,
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
