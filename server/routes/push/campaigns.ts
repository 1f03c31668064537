import { z } from 'zod'
import { administrator } from '#server/http/callers.ts'
import { idempotency } from '#server/http/idempotency.ts'
import { type Declaration, type HandlerContext, type Route, route } from '#server/http/route.ts'
import { Cursor, cursorPage, Deleted, data, Limit, Moment, Page, page, Text, Uuid } from '#server/http/schemas.ts'
import {
  Campaign,
  CampaignFilter,
  campaignFields,
  Delivery,
  DeliveryFilter,
  DeliveryIds,
  Message,
  Preview,
  Scheduled,
  Stats,
} from '#server/routes/push/shapes.ts'

const campaigns = '/admin/projects/:projectId/push/campaigns' as const
const campaign = `${campaigns}/:campaignId` as const
const campaignId = { campaignId: Uuid }
const message = { title: 'Time to practise, {{display_name|friend}}', body: 'Ten minutes keep your streak alive.' }
const nobody = '00000000-0000-4000-8000-000000000000'

/** A project in production needs a real provider; in development the log takes what would be sent. */
const environment: NonNullable<Declaration['args']> = ({ resolved }) => ({
  is_production: resolved.project?.environment === 'production',
})

const move = (verb: 'cancel' | 'pause' | 'resume', summary: string) =>
  route(`POST ${campaign}/${verb}`, {
    caller: administrator,
    summary,
    params: campaignId,
    args: () => ({ verb }),
    call: 'push_campaign_move',
    replies: { 200: data(Campaign) },
    refusals: { 404: ['NOT_FOUND'], 409: ['CAMPAIGN_LOCKED'] },
    failure: 'UPDATE_FAILED',
  })

const send = (context: HandlerContext) =>
  context.call('push_send', {
    ...context.body,
    user_ids: JSON.stringify(context.body['user_ids']),
    ...idempotency(context),
    is_production: context.resolved.project?.environment === 'production',
  })

export const campaignRoutes: readonly Route[] = [
  route(`POST ${campaigns}`, {
    caller: administrator,
    summary: 'Make a campaign; at most 100 in 24 hours',
    description:
      'A draft, 201; scheduled at once with `send_at` or `send_now`, 202. Each `workflow_id` makes one campaign: a second request with it answers 409.',
    body: z.object({
      ...campaignFields,
      workflow_id: Text(255, 1).nullish(),
      send_at: Moment.nullish(),
      send_now: z.boolean('must be true or false').optional(),
    }),
    patch: true,
    example: { name: 'Practice reminder', message, audience: { all: true } },
    args: environment,
    call: 'push_campaign_create',
    replies: { 201: data(Campaign), 202: data(Scheduled) },
    refusals: { 400: ['AUDIENCE_EMPTY', 'PUSH_NOT_CONFIGURED'], 409: ['ALREADY_SCHEDULED', 'LIMIT_REACHED'] },
    failure: 'CREATE_FAILED',
  }),
  route(`GET ${campaigns}`, {
    caller: administrator,
    summary: 'Campaigns, newest first',
    query: { status: CampaignFilter, ...Page },
    call: 'push_campaigns',
    replies: { 200: page(Campaign) },
    failure: 'LIST_FAILED',
  }),
  route(`GET ${campaign}`, {
    caller: administrator,
    summary: 'A campaign with its counts',
    params: campaignId,
    call: 'push_campaign_get',
    replies: { 200: data(Campaign) },
    refusals: { 404: ['NOT_FOUND'] },
    failure: 'FETCH_FAILED',
  }),
  route(`PATCH ${campaign}`, {
    caller: administrator,
    summary: 'Change a campaign that is not sent yet',
    params: campaignId,
    body: z.object({ ...campaignFields, send_at: Moment.nullish() }).partial(),
    patch: true,
    example: { name: 'Evening reminder' },
    call: 'push_campaign_update',
    replies: { 200: data(Campaign) },
    refusals: { 400: ['AUDIENCE_EMPTY'], 404: ['NOT_FOUND'], 409: ['CAMPAIGN_LOCKED'] },
    failure: 'UPDATE_FAILED',
  }),
  route(`DELETE ${campaign}`, {
    caller: administrator,
    summary: 'Delete a campaign with its deliveries, except while it is sent',
    params: campaignId,
    call: 'push_campaign_delete',
    replies: { 200: Deleted },
    refusals: { 404: ['NOT_FOUND'], 409: ['CAMPAIGN_LOCKED'] },
    failure: 'DELETE_FAILED',
  }),
  route(`POST ${campaign}/schedule`, {
    caller: administrator,
    summary: 'Schedule a draft, at `send_at`, else at its own time, else now',
    params: campaignId,
    body: z.object({ send_at: Moment.nullish() }),
    example: { send_at: '2030-01-01T18:00:00Z' },
    args: environment,
    call: 'push_campaign_schedule',
    replies: { 202: data(Scheduled) },
    refusals: { 400: ['AUDIENCE_EMPTY', 'PUSH_NOT_CONFIGURED'], 404: ['NOT_FOUND'], 409: ['ALREADY_SCHEDULED'] },
    failure: 'UPDATE_FAILED',
  }),
  move('cancel', 'Cancel a campaign: what is not sent yet is skipped'),
  move('pause', 'Pause a campaign that is being sent'),
  move('resume', 'Resume a paused campaign'),
  route(`POST ${campaign}/duplicate`, {
    caller: administrator,
    summary: 'Copy a campaign as a draft',
    params: campaignId,
    call: 'push_campaign_duplicate',
    replies: { 201: data(Campaign) },
    refusals: { 400: ['VALIDATION_ERROR'], 404: ['NOT_FOUND'], 409: ['LIMIT_REACHED'] },
    failure: 'CREATE_FAILED',
  }),
  route(`POST ${campaign}/preview`, {
    caller: administrator,
    readOnly: true,
    summary: 'Whom a campaign would reach now, and the message as `user_id` would see it',
    params: campaignId,
    body: z.object({ user_id: Uuid.nullish() }),
    example: {},
    call: 'push_campaign_preview',
    replies: { 200: data(Preview) },
    refusals: { 404: ['NOT_FOUND', 'USER_NOT_FOUND'] },
    failure: 'FETCH_FAILED',
  }),
  route(`POST ${campaign}/test`, {
    caller: administrator,
    summary: 'Send the message of a campaign to up to 10 users now, whatever they have switched off',
    params: campaignId,
    body: z.object({ user_ids: z.array(Uuid).min(1).max(10) }),
    example: { user_ids: [nobody] },
    args: (context) => ({ ...environment(context), user_ids: JSON.stringify(context.body['user_ids']) }),
    call: 'push_campaign_test',
    replies: { 202: data(DeliveryIds) },
    refusals: { 400: ['PUSH_NOT_CONFIGURED'], 404: ['NOT_FOUND', 'USER_NOT_FOUND'] },
    failure: 'CREATE_FAILED',
  }),
  route(`GET ${campaign}/deliveries`, {
    caller: administrator,
    summary: 'Deliveries of a campaign in the order of their users',
    params: campaignId,
    query: { status: DeliveryFilter, cursor: Cursor, limit: Limit() },
    call: 'push_campaign_deliveries',
    replies: { 200: cursorPage(Delivery) },
    refusals: { 404: ['NOT_FOUND'] },
    failure: 'LIST_FAILED',
  }),
  route(`GET ${campaign}/stats`, {
    caller: administrator,
    summary: 'Counts and rates of a campaign, by variant and by hour; conversions within 24 hours',
    params: campaignId,
    call: 'push_campaign_stats',
    replies: { 200: data(Stats) },
    refusals: { 404: ['NOT_FOUND'] },
    failure: 'FETCH_FAILED',
  }),
  route('GET /admin/projects/:projectId/push/deliveries', {
    caller: administrator,
    summary: 'Deliveries of a user, those that are scheduled too, newest first',
    query: { user_id: Uuid, status: DeliveryFilter, cursor: Cursor, limit: Limit() },
    call: 'push_deliveries',
    replies: { 200: cursorPage(Delivery) },
    failure: 'LIST_FAILED',
  }),
  route('POST /admin/projects/:projectId/push/send', {
    caller: administrator,
    summary: 'Send a message to up to 100 users now',
    description: 'With `Idempotency-Key` a repeated request sends nothing and answers the same with 200.',
    body: z.object({
      user_ids: z.array(Uuid).min(1).max(100),
      message: Message,
      inbox: z.boolean('must be true or false').optional(),
    }),
    example: { user_ids: [nobody], message },
    handle: send,
    replies: { 202: data(DeliveryIds), 200: data(DeliveryIds) },
    refusals: { 400: ['PUSH_NOT_CONFIGURED'], 404: ['USER_NOT_FOUND'], 409: ['IDEMPOTENCY_CONFLICT'] },
    failure: 'CREATE_FAILED',
  }),
]
