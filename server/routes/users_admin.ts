import { z } from 'zod'
import { NewPassword, refuseWeak } from '#server/accounts/passwords.ts'
import { projectOf, signIn } from '#server/accounts/sessions.ts'
import { administrator } from '#server/http/callers.ts'
import { idempotency } from '#server/http/idempotency.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import {
  AnyId,
  between,
  Deleted,
  data,
  Flag,
  JsonObject,
  Line,
  Moment,
  Page,
  page,
  Text,
  Time,
  Uuid,
} from '#server/http/schemas.ts'
import { canonicalAddress } from '#server/providers/mail_address.ts'
import { AuthResult, User } from '#server/routes/client_auth/shapes.ts'

const AdminUser = z.strictObject({
  ...User.shape,
  is_banned: z.boolean(),
  muted_until: Time.nullable(),
  created_at: Time,
  updated_at: Time,
})
/** Areas add sections of their own to the view of one user. */
const WholeUser = z.looseObject({
  ...AdminUser.shape,
  streaks: z.array(
    z.looseObject({ streak_definitions: z.strictObject({ name: z.string(), qualifying_event: z.string() }) }),
  ),
  entitlements: z.array(JsonObject),
})
const Event = answer('event_json', { properties: JsonObject })

/** In its canonical form; the function refuses what is none. */
const Address = z.string().overwrite(canonicalAddress)
/** How a user signs in, where an administrator knows it: accounts that come from another system. */
const Credentials = {
  password: NewPassword.optional(),
  verify_email: z.boolean().optional(),
  verify_phone: z.boolean().optional(),
}
const NewUser = z.object({
  external_id: Text(255, 1).nullish(),
  anonymous_id: z.string().nullish(),
  email: Address.nullish(),
  phone: z.string().nullish(),
  display_name: Line(100, 1).nullish(),
  avatar_url: Text(2048, 1).nullish(),
  properties: JsonObject.nullish(),
  ...Credentials,
})
const Changes = z.object({
  display_name: Line(100, 1).optional(),
  avatar_url: Text(2048, 1).nullable().optional(),
  external_id: Text(255, 1).nullable().optional(),
  email: Address.nullable().optional(),
  phone: z.string().nullable().optional(),
  timezone: z.string().nullable().optional(),
})
const BulkItem = z.object({
  user_id: Uuid.optional(),
  external_id: z.string().optional(),
  anonymous_id: z.string().optional(),
  properties: JsonObject.optional(),
  unset_properties: z.array(z.string()).optional(),
  set: Changes.optional(),
  add_segments: z.array(z.string()).optional(),
  remove_segments: z.array(z.string()).optional(),
})
const BulkResult = z.strictObject({
  index: z.int(),
  user_id: Uuid.nullable(),
  status: z.enum(['updated', 'failed']),
  code: z.string().optional(),
  message: z.string().optional(),
})

const orders = ['created_at', 'last_seen_at', 'display_name'] as const
const Sort = z.enum(
  orders.flatMap((order) => [order, `-${order}`] as const),
  'must be created_at, last_seen_at or display_name, with - before it for descending',
)

const Cohort = z.strictObject({
  count: z.int(),
  user_ids: z.array(Uuid),
  users: z.array(z.strictObject({ id: Uuid, anonymous_id: z.string(), display_name: z.string() })),
})

const longest = { timeoutMs: 60_000 }

const cohort = (context: HandlerContext) =>
  context.call('users_cohort', { ...context.body, ...idempotency(context, 'INVALID_BODY') }, longest)

/** A session of a user, for tests. The function refuses it for projects in production, which only control knows. */
const testSession = (context: HandlerContext) =>
  signIn(context, 'user_session', {
    user_id: context.params['userId'],
    environment: projectOf(context.resolved).environment,
  })

/** Fields that the function writes, and the hash of a password, which alone it gets. */
const withPassword =
  (name: string) =>
  async ({ call, params, body, services }: HandlerContext) => {
    const { password, merge_properties, ...patch } = body as Readonly<Record<string, unknown>>
    if (password !== undefined) refuseWeak(password as string)
    return call(name, {
      ...(params['userId'] === undefined ? {} : { user_id: params['userId'] }),
      patch: JSON.stringify(patch),
      ...(merge_properties === undefined ? {} : { merge_properties }),
      ...(password === undefined ? {} : { password_hash: await services.passwords.hash(password as string) }),
    })
  }
const weak = { 400: ['WEAK_PASSWORD'] }

const ofUser = { 400: ['INVALID_USER_ID'] }
const system = { include_system: Flag().describe('Also our own events, svc.*') }

export const usersAdmin = area({
  stem: 'users',
  title: 'Users (admin)',
  codes: 'by area',
  invalid: 'INVALID_BODY',
  unavailable: 502,
  words: {
    external_id: ['External id', 'The id of the user in a system of yours.'],
    anonymous_id: ['Anonymous id', 'The id of a device: `anon_` and 32 to 128 characters.'],
    properties: ['Properties', 'Any JSON object, such as `{"plan": "pro"}`.'],
    updates: ['Changes', 'Of up to 1000 users, each by id, external id or anonymous id.'],
    'updates.id': ['User', 'The id of the user.'],
    'updates.properties': ['Properties', 'Keys are merged.'],
    unset_properties: ['Remove properties', 'The names of properties that end.'],
    set: ['Fields', 'Fields of the user that change.'],
    add_segments: ['Add to segments', 'Ids or keys of static segments.'],
    remove_segments: ['Take from segments', 'Ids or keys of static segments.'],
    count: ['Users', 'How many are made.'],
    segment_ids: ['Segments', 'The ids of static segments that they join.'],
    verify_email: [
      'Email is verified',
      'The address is known to be theirs. Otherwise it belongs to whoever proves it.',
      { unset: 'Not verified' },
    ],
    verify_phone: [
      'Phone is verified',
      'The number is known to be theirs. Otherwise it belongs to whoever proves it.',
      { unset: 'Not verified' },
    ],
    merge_properties: ['Merge properties', 'Keys are merged, a null removes its key; otherwise they are replaced.'],
    label: ['Label', 'By which you find them again.'],
    is_banned: ['Banned', 'A banned user can do nothing until it is lifted.'],
    muted_until: ['Muted until', 'Until then the user cannot write to others; null ends it.'],
  },
  routes: [
    ...group('/admin/projects/:projectId/users', administrator, [
      route('POST /', 'Create a user; with a generated anonymous id when no identity is given', {
        handle: withPassword('user_create'),
        calls: ['user_create'],
        body: NewUser,
        example: { external_id: 'customer-17', display_name: 'Ada', properties: { plan: 'pro' } },
        replies: { 201: data(AdminUser) },
        refusals: weak,
      }),
      route('GET /', 'Users, newest-active first', {
        call: 'users_list',
        description:
          '`search` finds a part of `email`, `external_id` or `display_name`; one or two of a-z and 0-9 find beginnings of these; an id, or a phone number, finds its user. ' +
          'An unknown segment has nobody. `display_name` is sorted by its characters, ignoring case.',
        query: {
          ...Page,
          search: Text(200).optional(),
          segment_id: Uuid.optional(),
          sort: Sort.default('-last_seen_at'),
          is_banned: z
            .enum(['true', 'false'], 'must be true or false')
            .transform((text) => text === 'true')
            .optional()
            .meta({ type: 'boolean' }),
          last_seen_since: Moment.optional(),
        },
        replies: { 200: page(AdminUser) },
      }),
      route('DELETE /', 'Delete the user with an anonymous id, with all of their data', {
        query: { anonymous_id: Text(200).optional() },
        handle: ({ call, query }) =>
          call('user_delete_anonymous', { anonymous_id: query['anonymous_id'] }, { readOnly: false, ...longest }),
        replies: { 200: Deleted },
      }),
      route('POST /bulk-update', 'Update up to 1000 users; each item succeeds or fails separately', {
        operationId: 'bulkUpdateUsers',
        body: z.object({ updates: z.array(z.unknown()).min(1, 'must have 1 to 1000 items') }),
        documentedBody: z.object({ updates: z.array(BulkItem).min(1).max(1000) }),
        example: {
          updates: [{ external_id: 'customer-17', properties: { plan: 'pro' }, set: { display_name: 'Ada' } }],
        },
        // another transaction may hold an address that an item wants, and wait for a user locked here: the victim of the deadlock is rolled back and retried
        handle: ({ call, body }) => call('users_bulk_update', { updates: body['updates'] }, { ...longest, retries: 5 }),
        calls: ['users_bulk_update'],
        replies: { 200: data(z.strictObject({ updated: z.int(), failed: z.int(), results: z.array(BulkResult) })) },
      }),
      route('POST /cohort', 'Create up to 1000 anonymous users that share properties', {
        handle: cohort,
        calls: ['users_cohort'],
        operationId: 'findUserCohort',
        description: '`{{index}}` in a value counts from 0. Accepts an Idempotency-Key.',
        body: z.object({
          count: between(1, 1000),
          properties: JsonObject.optional(),
          segment_ids: z.array(Uuid).optional(),
          label: Line(100, 1).optional(),
        }),
        example: { count: 2, properties: { name: 'Tester {{index}}' }, label: 'smoke' },
        replies: { 200: data(Cohort), 201: data(Cohort) },
      }),
      route('GET /:userId', 'A user, with streaks and entitlements', {
        call: 'user_get',
        params: { userId: AnyId },
        replies: { 200: data(WholeUser) },
      }),
      route(
        'PATCH /:userId',
        'Change the given fields of a user; `properties` are replaced, or merged with `merge_properties`',
        {
          handle: withPassword('user_update'),
          calls: ['user_update'],
          codes: 'by part',
          body: Changes.extend({
            properties: JsonObject.optional(),
            is_banned: z.boolean().optional(),
            muted_until: z.string().nullable().optional(),
            merge_properties: z.boolean().optional(),
            ...Credentials,
          }),
          example: { display_name: 'Ada', is_banned: false },
          replies: { 200: data(AdminUser) },
          refusals: weak,
        },
      ),
      route('DELETE /:userId', 'Delete a user with all of their data', {
        params: { userId: AnyId },
        handle: ({ call, params }) =>
          call('user_delete', { user_id: params['userId'] }, { readOnly: false, ...longest }),
        replies: { 200: Deleted },
        refusals: ofUser,
      }),
      route('GET /:userId/events', "A user's events, most recent first", {
        call: 'user_events',
        params: { userId: AnyId },
        query: { ...Page, ...system },
        replies: { 200: page(Event) },
      }),
      route('DELETE /:userId/reset', "Reset sections of a user's state; optionally delete the user", {
        operationId: 'resetUser',
        description: 'Without `sections`: all but `entitlements`, `push` and `sessions`.',
        params: { userId: AnyId },
        query: { sections: Text(1000).optional(), delete_user: Flag() },
        invalidQuery: 'INVALID_INPUT',
        handle: ({ call, params, query }) =>
          call('user_reset', { user_id: params['userId'], ...query }, { readOnly: false, ...longest }),
        replies: {
          200: data(
            z.strictObject({
              user_id: Uuid,
              reset: z.array(z.string()),
              rows_deleted: z.record(z.string(), z.int()),
              user_deleted: z.boolean(),
            }),
          ),
        },
        refusals: ofUser,
      }),
      route('POST /:userId/session', 'Sign in as a user for tests; only in projects with environment development', {
        handle: testSession,
        calls: ['user_session'],
        codes: 'by part',
        replies: { 201: AuthResult },
      }),
    ]),
  ],
})
