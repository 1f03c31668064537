import { z } from 'zod'
import { idempotency } from '#server/http/idempotency.ts'
import { type Declared, type HandlerContext, route } from '#server/http/route.ts'
import { Cursor, cursorPage, data, Limit, Uuid } from '#server/http/schemas.ts'
import { campaignRoutes } from '#server/routes/campaigns/routes.ts'
import { DeliveryFilter, DeliveryIds, draftForm } from '#server/routes/campaigns/shapes.ts'
import { Campaign, campaignFields, Delivery, Message, Preview, Stats } from '#server/routes/push/shapes.ts'

const message = { title: 'Time to practise, {{display_name|friend}}', body: 'Ten minutes keep your streak alive.' }

const send = (context: HandlerContext) =>
  context.call('push_send', {
    ...context.body,
    user_ids: JSON.stringify(context.body['user_ids']),
    ...idempotency(context),
    is_production: context.resolved.project?.environment === 'production',
  })

export const pushCampaignRoutes: readonly Declared[] = [
  ...campaignRoutes({
    channel: 'push',
    fields: campaignFields,
    Campaign,
    Preview,
    Delivery,
    Stats,
    example: { name: 'Practice reminder', message },
    form: draftForm({
      message: ['Message', 'What devices show.'],
      variants: ['Variants', 'Messages that are tried against each other.', { default: [] }],
      inbox: ['Inbox', 'Keeps it in the inbox of the app as well.', { default: true }],
    }),
    contentCodes: [],
    startCodes: ['PUSH_NOT_CONFIGURED'],
    startRefusals: {},
    testSummary: 'Send the message of a campaign to up to 10 users now, whatever they have switched off',
    testRefusals: { 400: ['PUSH_NOT_CONFIGURED'] },
  }),
  route('GET /deliveries', 'Deliveries of a user, those that are scheduled too, newest first', {
    call: 'push_deliveries',
    query: { user_id: Uuid, status: DeliveryFilter, cursor: Cursor, limit: Limit() },
    replies: { 200: cursorPage(Delivery) },
  }),
  route('POST /send', 'Send a message to up to 100 users now', {
    handle: send,
    description: 'With `Idempotency-Key` a repeated request sends nothing and answers the same with 200.',
    body: z.object({
      user_ids: z.array(Uuid).min(1).max(100),
      message: Message,
      inbox: z.boolean('must be true or false').optional(),
    }),
    example: { user_ids: ['00000000-0000-4000-8000-000000000000'], message },
    replies: { 202: data(DeliveryIds), 200: data(DeliveryIds) },
    refusals: { 400: ['PUSH_NOT_CONFIGURED'], 404: ['USER_NOT_FOUND'], 409: ['IDEMPOTENCY_CONFLICT'] },
  }),
]
