import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { mergeRefusals } from '#server/http/interface.ts'
import { type Declaration, type Declared, type HandlerContext, route } from '#server/http/route.ts'
import {
  Cursor,
  cursorPage,
  Deleted,
  daily,
  data,
  IncludeUser,
  Limit,
  Moment,
  Page,
  page,
  Text,
  Uuid,
  withUser,
} from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'
import { CampaignFilter, DeliveryFilter, DeliveryIds, Scheduled } from '#server/routes/campaigns/shapes.ts'

type Refusals = NonNullable<Declaration['refusals']>
type Channel = {
  /** As in internal.campaign_channels. */
  readonly channel: string
  /** What a draft holds. */
  readonly fields: z.ZodRawShape
  readonly Campaign: z.ZodType
  readonly Preview: z.ZodType
  readonly Delivery: z.ZodObject
  readonly Stats: z.ZodType
  readonly example: Readonly<Record<string, unknown>>
  /** The fields of a draft with their words. */
  readonly form: Form
  /** Codes of 400 that making and changing a campaign has after its `check`, and that starting one has. */
  readonly contentCodes: readonly string[]
  readonly startCodes: readonly string[]
  readonly testSummary: string
  readonly testRefusals: Refusals
  /** Asks what only the control database knows of a draft. */
  readonly check?: (context: HandlerContext) => Promise<void>
  /** The same of a campaign that is about to be sent, or tested: refuses with startRefusals. */
  readonly checkStart?: (context: HandlerContext, campaign: Readonly<Record<string, unknown>>) => Promise<void>
  readonly startRefusals: Refusals
}

const nobody = '00000000-0000-4000-8000-000000000000'

/** The fourteen routes of the campaigns of a channel: one engine serves all. */
export const campaignRoutes = (of: Channel): readonly Declared[] => {
  const { channel, fields, Campaign, check, checkStart } = of
  const campaign = '/campaigns/:campaignId'
  type Args = NonNullable<Declaration['args']>
  const inChannel: Args = () => ({ channel })
  /** A channel may ask more of a project in production, such as a real provider. */
  const environment: Args = ({ resolved }) => ({
    channel,
    is_production: resolved.project?.environment === 'production',
  })
  /** The call of a route that takes a draft, after `check` where there is one. */
  const write = (
    call: string,
    args: Args,
    /** Of the function, where a handler calls it. */
    ofCall: Refusals,
    codes: readonly string[] = [],
  ): Pick<Declaration, 'call' | 'args' | 'handle' | 'refusals'> =>
    check
      ? {
          refusals: { ...ofCall, 400: ['AUDIENCE_EMPTY', ...of.contentCodes, ...codes] },
          handle: async (context) => {
            await check(context)
            const { campaignId: id } = context.params
            if (!id && (context.body['send_now'] || context.body['send_at'])) await checkStart?.(context, context.body)
            return context.call(call, {
              ...(id ? { campaign_id: id as string } : {}),
              patch: JSON.stringify(context.body),
              ...args(context),
            })
          },
        }
      : { call, args, ...(codes.length > 0 ? { refusals: { 400: codes } } : {}) }

  /** The call of a route that sends, after `checkStart` where there is one. */
  const start = (
    call: string,
    args: Args,
    others: Refusals,
    /** Of the function, where a handler calls it. */
    ofCall: Refusals = {},
  ): Pick<Declaration, 'call' | 'args' | 'handle' | 'refusals'> =>
    checkStart
      ? {
          refusals: mergeRefusals(mergeRefusals(of.startRefusals, ofCall), others),
          handle: async (context) => {
            const campaign_id = context.params['campaignId']
            const found = await context.call('campaign_get', { campaign_id, channel }, { readOnly: true })
            await checkStart(context, dataOf<Record<string, unknown>>(found))
            return context.call(call, { campaign_id, ...context.body, ...args(context) })
          },
        }
      : { call, args, refusals: others }

  const move = (verb: 'cancel' | 'pause' | 'resume', summary: string) =>
    route(`POST ${campaign}/${verb}`, summary, {
      call: 'campaign_move',
      args: () => ({ channel, verb }),
      replies: { 200: data(Campaign) },
    })

  return [
    route('POST /campaigns', 'Make a campaign; at most 100 in 24 hours', {
      description:
        'A draft, 201; scheduled at once with `send_at` or `send_now`, 202. Each `workflow_id` makes one campaign: a second request with it answers 409.',
      body: z.object({
        ...fields,
        workflow_id: Text(255, 1).nullish(),
        send_at: Moment.nullish(),
        send_now: z.boolean('must be true or false').optional(),
      }),
      patch: true,
      form: of.form,
      example: { audience: { all: true }, ...of.example },
      ...write(
        'campaign_create',
        environment,
        { ...of.startRefusals, 409: ['ALREADY_SCHEDULED', 'LIMIT_REACHED'] },
        of.startCodes,
      ),
      replies: { 201: data(Campaign), 202: data(Scheduled) },
    }),
    route('GET /campaigns', 'Campaigns, newest first', {
      call: 'campaigns',
      query: { status: CampaignFilter, ...Page },
      args: inChannel,
      replies: { 200: page(Campaign) },
    }),
    route(`GET ${campaign}`, 'A campaign with its counts', {
      call: 'campaign_get',
      args: inChannel,
      replies: { 200: data(Campaign) },
    }),
    route(`PATCH ${campaign}`, 'Change a campaign that is not sent yet', {
      body: z.object({ ...fields, send_at: Moment.nullish() }).partial(),
      patch: true,
      form: of.form,
      example: { name: 'Evening reminder' },
      ...write('campaign_update', inChannel, { 409: ['CAMPAIGN_LOCKED'] }),
      replies: { 200: data(Campaign) },
    }),
    route(`DELETE ${campaign}`, 'Delete a campaign with its deliveries, except while it is sent', {
      call: 'campaign_delete',
      args: inChannel,
      replies: { 200: Deleted },
    }),
    route(`POST ${campaign}/schedule`, 'Schedule a draft, at `send_at`, else at its own time, else now', {
      body: z.object({ send_at: Moment.nullish() }),
      example: { send_at: '2030-01-01T18:00:00Z' },
      ...start(
        'campaign_schedule',
        environment,
        { 400: of.startCodes },
        { 400: ['AUDIENCE_EMPTY'], 409: ['ALREADY_SCHEDULED'] },
      ),
      replies: { 202: data(Scheduled) },
      failure: 'UPDATE_FAILED',
    }),
    move('cancel', 'Cancel a campaign: what is not sent yet is skipped'),
    move('pause', 'Pause a campaign that is being sent'),
    move('resume', 'Resume a paused campaign'),
    route(`POST ${campaign}/duplicate`, 'Copy a campaign as a draft', {
      call: 'campaign_duplicate',
      args: inChannel,
      replies: { 201: data(Campaign) },
    }),
    route(`POST ${campaign}/preview`, 'Whom a campaign would reach now, and the message as `user_id` would see it', {
      call: 'campaign_preview',
      readOnly: true,
      body: z.object({ user_id: Uuid.nullish() }),
      example: {},
      args: inChannel,
      replies: { 200: data(of.Preview) },
    }),
    route(`POST ${campaign}/test`, of.testSummary, {
      body: z.object({ user_ids: z.array(Uuid).min(1).max(10) }),
      example: { user_ids: [nobody] },
      ...start(
        'campaign_test',
        (context) => ({
          ...environment(context),
          user_ids: JSON.stringify(context.body['user_ids']),
        }),
        { ...of.testRefusals, 404: ['USER_NOT_FOUND'] },
      ),
      replies: { 202: data(DeliveryIds) },
    }),
    route(`GET ${campaign}/deliveries`, 'Deliveries of a campaign in the order of their users', {
      call: 'campaign_deliveries',
      args: inChannel,
      query: { status: DeliveryFilter, ...IncludeUser, cursor: Cursor, limit: Limit() },
      replies: { 200: cursorPage(withUser(of.Delivery)) },
    }),
    route(
      `GET ${campaign}/stats`,
      'Counts and rates of a campaign, by variant and by hour; conversions within 24 hours',
      {
        call: 'campaign_stats',
        stale: true,
        args: inChannel,
        replies: { 200: data(of.Stats) },
      },
    ),
    route(`GET ${campaign}/daily`, 'What became of the deliveries of a campaign on each day', {
      call: 'campaign_daily',
      args: inChannel,
      description:
        'Both dates are included; the last 30 days by default, at most 400. Counts are by the hour: in a zone that begins its days between hours, an hour stands on the day in which it begins.',
      ...daily('sent', 'failed', 'opened', 'clicked', 'converted'),
    }),
  ]
}
