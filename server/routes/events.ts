import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { together } from '#server/events/together.ts'
import { administrator, endUserOrServer } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { idempotencyKey } from '#server/http/idempotency.ts'
import { answer } from '#server/http/interface.ts'
import { callControl } from '#server/http/project.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import {
  Cursor,
  cursorPage,
  Day,
  DayValues,
  data,
  Flag,
  IncludeUser,
  JsonObject,
  JsonText,
  Limit,
  Page,
  page,
  Text,
  Time,
  Uuid,
  withUser,
} from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'
import { sha256 } from '#server/secrets.ts'

const Event = answer('event_json', {
  properties: JsonObject,
  source: z.enum(['client', 'server', 'webhook', 'system']),
})
const Effects = z.strictObject({
  streaks: z
    .array(z.looseObject({ key: z.string(), status: z.string(), current_count: z.int(), change: z.string() }))
    .optional(),
  /** Of a batch over several users, one for each. */
  xp: z.union([JsonObject, z.array(JsonObject)]).optional(),
  achievements: z.array(JsonObject).optional(),
  challenges: z.array(JsonObject).optional(),
  leaderboards: z.array(JsonObject).optional(),
  league: z.union([JsonObject, z.array(JsonObject)]).optional(),
  currencies: z.array(JsonObject).optional(),
})
const Single = z.strictObject({
  event: Event,
  clock_adjusted: z.literal(true).optional(),
  schema_violation: z.literal(true).optional(),
  effects: Effects,
})
const Batch = z.strictObject({
  accepted: z.int(),
  duplicates: z.int(),
  rejected: z.int(),
  results: z.array(
    z.strictObject({
      index: z.int(),
      id: Uuid.optional(),
      status: z.enum(['accepted', 'duplicate', 'rejected']),
      clock_adjusted: z.literal(true).optional(),
      schema_violation: z.literal(true).optional(),
      code: z.string().optional(),
      message: z.string().optional(),
    }),
  ),
  effects: Effects.optional(),
})
const Answer = data(z.union([Single, Batch]))

const NewEvent = z.object({
  event_name: z.string().min(1).max(255),
  properties: JsonObject.optional(),
  occurred_at: z.iso.datetime({ offset: true }).optional(),
  id: Uuid.optional(),
  session_id: Uuid.optional(),
  app_user_id: Uuid.optional(),
})
const Documented = z.union([
  NewEvent.extend({ historical: z.boolean().optional() }),
  z.object({
    events: z.array(NewEvent).min(1).max(1000),
    include_effects: z.boolean().optional(),
    historical: z.boolean().optional(),
  }),
])

/** As it was sent: a number that JavaScript cannot hold arrives whole, and nothing is written out again. */
const post = (context: HandlerContext) => {
  const key = idempotencyKey(context)
  const body = context.text || '{}'
  const alone = () =>
    context.call('events_post', {
      body,
      idempotency_key: key,
      body_hash: key === undefined ? undefined : sha256(body),
    })
  return key === undefined && !/"(events|historical)"/.test(body) ? together(context, alone) : alone()
}

/** The project's database checks what is asked for, control keeps the operation: its job does the work. */
const operation =
  (
    type: 'events.delete' | 'events.replay',
    check: string,
    argsOf: (context: HandlerContext) => Record<string, unknown>,
  ) =>
  async (context: HandlerContext) => {
    const input = dataOf<object>(await context.call(check, argsOf(context), { readOnly: true }))
    const failure = type === 'events.delete' ? 'DELETE_FAILED' : 'CREATE_FAILED'
    return callControl(context, 'operation_request', { type, input }, { failure })
  }
const Started = data(z.strictObject({ operation_id: Uuid, status: z.literal('queued') }))

const FullEvent = Event.extend({
  received_at: Time,
  is_historical: z.boolean(),
  clock_adjusted: z.boolean(),
  schema_violation: z.boolean(),
})
const Status = z.enum(['active', 'blocked', 'deprecated'], 'must be active, blocked or deprecated')
const Definition = answer('event_definition_json', { schema: z.union([JsonObject, z.boolean()]).nullable() })
const Name = z.strictObject({
  event_name: z.string(),
  count_24h: z.int(),
  count_30d: z.int(),
  users_30d: z.int(),
  is_estimated: z.boolean(),
  first_seen: Time,
  last_seen: Time,
  status: Status,
  properties: z.array(z.strictObject({ path: z.string(), types: z.array(z.string()), sample: z.unknown() })),
})
const Moment = z.string().max(40, 'must be an ISO 8601 time').meta({ format: 'date-time' })

const eventForm: Form = {
  Definition: {
    description: true,
    status: ['Status', 'Blocked events are refused; deprecated ones are accepted and marked.'],
    schema: [
      'Schema of the properties',
      'A JSON Schema; an event that violates it is kept and marked.',
      { unset: 'None' },
    ],
    sample_rate: ['Share kept', 'The share of the events that stay in the log, 0 to 1; all of them count.'],
  },
}

export const events = area({
  stem: 'events',
  title: 'Events',
  part: 'Data',
  about: 'What happens in the app: events, their definitions, replay.',
  words: {
    properties: ['Properties', 'What is known of it, such as `{"lesson": 3}`; at most 32 KB.'],
    occurred_at: ['Occurred at', 'When it happened.', { unset: 'Now' }],
    id: ['Id', 'A uuid of your own: an event sent again with it counts once.', { unset: 'A new one' }],
    session_id: ['Session', 'The id of a session of the app.'],
    app_user_id: ['User', 'The id of the user; a server says it for each event.'],
    events: ['Events', 'At most 500, from a server 1000.'],
    historical: ['History', 'Imports events of any age: they count and notify nobody.', { default: false }],
    include_effects: ['Include effects', 'Whether the answer shows what each event caused.', { default: false }],
    since: ['Since', 'Events from this moment on.'],
    until: ['Until', 'Events before this moment.', { unset: 'Now' }],
    targets: ['Targets', 'What is recomputed, such as `streaks` or `xp`.', { unset: 'All of them' }],
    user_ids: ['Users', 'Only events of these.', { unset: 'All users' }],
    dry_run: ['Try only', 'Shows what would change and writes nothing.', { default: true }],
  },
  routes: [
    ...group('/client/events', endUserOrServer, [
      route('POST /', 'Record one event, or a batch, and return its effects', {
        handle: post,
        calls: ['events_post'],
        operationId: 'sendEvents',
        // SQL validates every item on its own, so that valid items of a batch are stored
        body: z.looseObject({}),
        takesText: true,
        documentedBody: Documented,
        example: { event_name: 'lesson_completed', properties: { lesson: 3 } },
        replies: { 200: Answer, 201: Answer },
        ceiling: 'events',
      }),
    ]),
    ...group('/admin/projects/:projectId/events', administrator, [
      route('GET /', 'Events of all users, newest first', {
        call: 'events_list',
        description:
          'By `occurred_at`, from `since` and before `until`. `where` is a filter on properties, as JSON. System events (`svc.*`) are shown with ' +
          '`include_system=true`, or when they are asked for by name or source. A page looks at 10,000 events at most, so under a filter it may be ' +
          'short, or empty, with a cursor to go on.',
        query: {
          event_name: z.string().optional(),
          user_id: Uuid.optional(),
          since: Moment.optional(),
          until: Moment.optional(),
          source: z
            .enum(['client', 'server', 'webhook', 'system'], 'must be client, server, webhook or system')
            .optional(),
          where: JsonText(8000).optional(),
          include_system: Flag(),
          ...IncludeUser,
          cursor: Cursor,
          limit: Limit(),
        },
        replies: { 200: cursorPage(withUser(FullEvent)) },
      }),
      route('POST /', 'Record one event, or a batch, for users', {
        handle: post,
        operationId: 'adminSendEvents',
        description: 'As `POST /client/events` with a server key: each event names its `app_user_id`.',
        body: z.looseObject({}),
        takesText: true,
        documentedBody: Documented,
        example: { event_name: 'lesson_completed', app_user_id: '0190a1b2-0000-7000-8000-000000000000' },
        replies: { 200: Answer, 201: Answer },
        refusals: {
          400: ['BATCH_TOO_LARGE', 'EVENT_BLOCKED', 'EVENT_TOO_OLD', 'RESERVED_EVENT_NAME'],
          404: ['USER_NOT_FOUND'],
          409: ['EVENT_ID_CONFLICT', 'IDEMPOTENCY_CONFLICT'],
        },
      }),
      route('DELETE /', 'Delete the events of a user, of a name, or both, before a time', {
        description:
          'An operation. The effects of the events stay, such as counters, streaks and rewards, and so do their ids, for deduplication.',
        query: { user_id: Uuid.optional(), event_name: z.string().optional(), before: Moment.optional() },
        handle: operation('events.delete', 'events_delete_check', ({ query }) => query),
        replies: { 202: Started },
      }),
      route('GET /daily', 'Events and active users of each day (UTC) on which events occurred', {
        call: 'events_daily',
        operationId: 'getDailyEvents',
        description:
          'Both dates are included; the last 30 days by default, at most 400. An active user of a day has at least one event of it. System events (`svc.*`) count ' +
          'when one is asked for by name. Counted are all events that were accepted, also those that the sample rate or a deletion has taken from the log, but none of users who were deleted.',
        query: { from: Day.optional(), to: Day.optional(), event_name: z.string().optional() },
        replies: {
          200: data(
            z.strictObject({
              from: z.string(),
              to: z.string(),
              series: z.strictObject({ events: DayValues, active_users: DayValues }),
            }),
          ),
        },
      }),
      route('GET /names', 'The names of events, with counts and property paths', {
        call: 'event_names',
        description:
          'Each name is counted on its newest 10,000 events of 30 days. Where there are more, `is_estimated` is true: the counts are then the ' +
          "database's estimate, and `users_30d` are the users of the newest 10,000. Paths come from the newest 200 events.",
        query: { include_system: Flag(), ...Page },
        replies: { 200: page(Name) },
      }),
      ...definitions('event_definition', {
        path: '/definitions',
        id: { eventName: z.string() },
        row: Definition,
        summaries: {
          list: 'Definitions of events, by name',
          get: 'The definition of an event',
          delete: 'Delete the definition of an event',
        },
      }),
      route(
        'PUT /definitions/:eventName',
        'Define an event: block or deprecate it, set its schema or its sample rate',
        {
          call: 'event_definition_put',
          form: eventForm,
          defaultsOf: 'event_definition',
          description:
            'Replaces the former definition whole. A schema that does not accept an event marks it, `schema_violation: true`; the event is stored. ' +
            'Keywords of JSON Schema that are not evaluated are refused by name. `sample_rate` is the share of the events that stay in the log; all ' +
            'of them are counted and move what they move.',
          body: z.object({
            description: Text(2000).nullable().optional(),
            status: Status.optional(),
            schema: z
              .union([JsonObject, z.boolean()], 'must be a schema: an object, or true or false')
              .nullable()
              .optional(),
            sample_rate: z.number('must be a number from 0 to 1').min(0).max(1).optional(),
          }),
          example: {
            status: 'active',
            schema: { type: 'object', required: ['lesson'], properties: { lesson: { type: 'integer' } } },
          },
          replies: { 200: data(Definition), 201: data(Definition) },
        },
      ),
      route('POST /replay', 'Replay stored events to add missing effects', {
        description:
          'An operation. Its `result` lists, for each target, what differs: `{dry_run, targets: {streaks: {users, changes, differences, truncated}}}`. ' +
          'A dry run, the default, writes nothing. Replay adds and never takes away; rewards that were given are not given again.',
        body: z.object({
          since: Moment,
          until: Moment.nullable().optional(),
          targets: z.array(z.string().max(64)).min(1, 'must have at least 1 item').max(20).nullable().optional(),
          user_ids: z
            .array(Uuid)
            .min(1, 'must have 1 to 1000 items')
            .max(1000, 'must have 1 to 1000 items')
            .nullable()
            .optional(),
          dry_run: z.boolean().optional(),
        }),
        example: { since: '2026-10-01T00:00:00Z', targets: ['streaks'] },
        handle: operation('events.replay', 'events_replay_check', ({ body }) => body),
        replies: { 202: Started },
      }),
      route('GET /:eventId', 'An event, with links to its effects', {
        call: 'event_get',
        replies: { 200: data(FullEvent.extend({ effects: z.record(z.string(), z.array(JsonObject)) })) },
      }),
    ]),
  ],
})
