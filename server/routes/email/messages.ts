import { z } from 'zod'
import { send, sendBatch } from '#server/email/messages.ts'
import { administrator } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import {
  Cursor,
  cursorPage,
  data,
  Email,
  IncludeUser,
  JsonObject,
  Limit,
  Line,
  Moment,
  Text,
  Time,
  Uuid,
  withUser,
} from '#server/http/schemas.ts'
import { Category, emailWords, From, TemplateKey } from '#server/routes/email/shapes.ts'

const Status = z.enum(['queued', 'sent', 'delivered', 'bounced', 'complained', 'failed', 'cancelled', 'suppressed'])
const Message = z.strictObject({
  id: Uuid,
  user_id: Uuid.nullable(),
  to: z.string(),
  from: z.string().nullable(),
  reply_to: z.string().nullable(),
  subject: z.string(),
  template_key: z.string().nullable(),
  template_version: z.int().nullable(),
  locale: z.string().nullable(),
  category: z.string(),
  status: Status,
  attempts: z.int(),
  send_at: Time.nullable(),
  next_attempt_at: Time.nullable(),
  last_error: z.string().nullable(),
  sent_at: Time.nullable(),
  track: z.boolean(),
  opened_at: Time.nullable(),
  clicked_at: Time.nullable(),
  created_at: Time,
  updated_at: Time,
})
const WithEvents = Message.extend({
  headers: z.record(z.string(), z.string()),
  events: z.array(z.strictObject({ type: z.string(), at: Time, detail: z.string().optional() })),
})
const Queued = z.strictObject({ id: Uuid, status: Status })

// what a developer may add; what the server decides (sender, recipients, dates, ids, MIME, unsubscription) is not among them
const headerName = /^(X-[A-Za-z0-9-]{1,60}|List-Id|References|In-Reply-To|Importance|Feedback-ID)$/i
const isHeaderValue = (value: unknown) => typeof value === 'string' && /^[ -~]{1,500}$/.test(value)
const Headers = JsonObject.superRefine((headers, context) => {
  const fail = (message: string) => context.addIssue({ code: 'custom', message })
  const entries = Object.entries(headers)
  if (entries.length > 20) fail('must have at most 20 headers')
  else if (!entries.every(([name]) => headerName.test(name)))
    fail('must be X- headers, List-Id, References, In-Reply-To, Importance or Feedback-ID')
  else if (!entries.every(([, value]) => isHeaderValue(value)))
    fail('must have values of 1 to 500 printable ASCII characters')
})

const fields = {
  to: Email.optional(),
  user_id: Uuid.optional(),
  template_key: TemplateKey.optional(),
  variables: JsonObject.optional(),
  subject: Line(300, 1).optional(),
  html: Text(500_000, 1).optional(),
  text: Text(500_000, 1).optional(),
  from: From.optional(),
  reply_to: Email.optional(),
  headers: Headers.optional(),
  send_at: Moment.optional(),
  category: Category.optional(),
  track: z.boolean('must be true or false').optional(),
}
const Sent = z.object(fields).superRefine((sent, context) => {
  const fail = (field: string, message: string) => context.addIssue({ code: 'custom', path: [field], message })
  if ((sent.to === undefined) === (sent.user_id === undefined)) fail('to', 'is required, or user_id is; not both')
  if (sent.template_key === undefined) {
    if (sent.subject === undefined) fail('subject', 'is required without template_key')
    else if (sent.html === undefined && sent.text === undefined)
      fail('html', 'is required without template_key, or text is')
  } else if (sent.subject !== undefined || sent.html !== undefined || sent.text !== undefined)
    fail('template_key', 'must not come with subject, html or text')
})

const example = { to: 'user@example.com', subject: 'Hello', text: 'Your order is on its way.' }

export const emailMessages = area({
  stem: 'email',
  title: 'Email',
  words: emailWords,
  routes: group('/admin/projects/:projectId/email', administrator, [
    route('POST /send', 'Queue a message; ten calls a second', {
      handle: send,
      calls: ['email_send'],
      description:
        'To an address or a user, from a template or with a content of its own. `send_at` in the past means now. Takes `Idempotency-Key`.',
      body: Sent,
      words: { user_id: ['User', 'The user who gets it; or name an address.'] },
      example,
      replies: { 202: data(Queued), 200: data(Queued) },
      refusals: { 400: ['INVALID_SENDER'], 403: ['EMAIL_NOT_VERIFIED'] },
    }),
    route('POST /send-batch', 'Queue up to 100 messages, all or none', {
      handle: sendBatch,
      calls: ['email_send_batch'],
      description: 'Counts as one call of the ten a second. Suppressed messages are kept with the status `suppressed`.',
      body: z.object({
        messages: z.array(Sent).min(1, 'must have 1 to 100 messages').max(100, 'must have 1 to 100 messages'),
      }),
      example: { messages: [example] },
      replies: { 202: data(z.array(Queued)) },
      refusals: { 400: ['INVALID_SENDER'], 403: ['EMAIL_NOT_VERIFIED'] },
    }),
    route('GET /messages', 'Messages of the last 90 days, newest first', {
      call: 'email_messages',
      query: {
        cursor: Cursor,
        limit: Limit(),
        status: Status.optional(),
        user_id: Uuid.optional(),
        ...IncludeUser,
      },
      replies: { 200: cursorPage(withUser(Message)) },
    }),
    route('GET /messages/:messageId', 'A message with its events', {
      call: 'email_message_get',
      replies: { 200: data(WithEvents) },
    }),
    route('POST /messages/:messageId/cancel', 'Cancel a message while it is queued', {
      call: 'email_message_cancel',
      replies: { 200: data(Message) },
    }),
  ]),
})
