import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { administrator, appOrUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { FlagRule, FlagStep } from '#server/http/grammars.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { data, Json, JsonObject, Key, Line, NotModified, Page, page, Text, Time, Uuid } from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const ValueType = z.enum(['boolean', 'string', 'number', 'json'], 'must be boolean, string, number or json')
const Step = z.strictObject({ at: Time, patch: JsonObject })
const Actor = z.strictObject({ type: z.string(), id: z.string().nullable(), label: z.string().nullable() })

const FeatureFlag = z.strictObject({
  id: Uuid,
  key: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  value_type: ValueType,
  is_enabled: z.boolean(),
  off_value: Json,
  default_value: Json,
  rules: z.array(JsonObject),
  schedule: z.array(Step),
  ramp: z.looseObject({ status: z.enum(['running', 'done', 'stopped']) }).nullable(),
  tags: z.array(z.string()),
  owner: z.string().nullable(),
  last_evaluated_at: Time.nullable(),
  created_at: Time,
  updated_at: Time,
  version: z.int(),
})
const evaluated = {
  value: Json,
  variant: z.string().nullable(),
  reason: z.enum(['off', 'override', 'rule', 'rollout', 'default']),
  rule_index: z.int().nullable(),
  version: z.int(),
}
const Answer = z.strictObject(evaluated)
const Answers = z.record(z.string(), Answer)
const Traced = z.strictObject({
  ...evaluated,
  bucket: z.int(),
  override: z.unknown(),
  trace: z.array(
    z.strictObject({
      rule_index: z.int(),
      holds: z.boolean(),
      value: Json,
      conditions: z.record(z.string(), z.boolean()),
    }),
  ),
})
const Version = answer('flag_version_json', {
  actor: Actor,
  changes: z.record(z.string(), z.array(z.unknown()).length(2)),
})
const counted = { value: Json, evaluations: z.int(), users: z.int() }
const Stats = z.strictObject({
  days: z.int(),
  evaluations: z.int(),
  users: z.int(),
  is_sampled: z.boolean(),
  values: z.array(z.strictObject(counted)),
  by_day: z.array(z.strictObject({ day: z.string(), ...counted })),
})

const fields = {
  name: Line(200, 1),
  description: Text(2000).nullable(),
  is_enabled: z.boolean(),
  off_value: Json,
  default_value: Json,
  rules: z.array(FlagRule),
  schedule: z.array(FlagStep),
  tags: z.array(z.unknown().meta({ type: 'string' })),
  owner: Text(200, 1).nullable(),
}
const Days = z
  .string()
  .regex(/^\d{1,15}$/, 'must be a whole number of days')
  .refine((text) => Number(text) >= 1, 'must be a whole number of days')
  .transform((text) => Math.min(Number(text), 90))
  .default(30)
  .meta({ description: 'More than 90 counts as 90.', type: 'integer', minimum: 1, default: 30 })

const Stale = z
  .enum(['true', 'false'], 'must be true or false')
  .transform((text) => text === 'true')
  .optional()
  .meta({ type: 'boolean' })

const notFound = { 404: ['NOT_FOUND'] }
const appHeaders = { 'X-App-Version': z.string().optional(), 'X-Platform': z.string().optional() }

/** The version and platform of the app from its headers; invalid ones count as absent. */
const appOf = ({ headers }: FastifyRequest) => {
  const named = (name: string) => {
    const value = headers[name]
    return typeof value === 'string' && /^[\x20-\x7e]{1,64}$/.test(value) ? value : undefined
  }
  return { app_version: named('x-app-version'), platform: named('x-platform') }
}

const read =
  (name: string) =>
  async ({ request, params, call }: HandlerContext) => {
    const reply = await call(name, { ...params, ...appOf(request), if_none_match: request.headers['if-none-match'] })
    return reply.status === 304 ? { ...reply, body: '' } : reply
  }

const flagForm: Form = {
  Basics: {
    name: ['Name', 'What people read in lists.', { unset: 'The key' }],
    key: true,
    description: true,
    owner: ['Owner', 'Who answers for it: a name or an address.'],
    tags: true,
  },
  Values: {
    value_type: ['Type', 'What kind of value it gives. It never changes.', { default: 'boolean' }],
    is_enabled: ['On', 'Off: every user gets the value when off.'],
    default_value: [
      'Value for everybody else',
      'What users get whom no rule matches.',
      { unset: 'False; required unless the flag is boolean' },
    ],
    off_value: [
      'Value when off',
      'What every user gets while it is off.',
      { unset: 'False, or the value for everybody else' },
    ],
  },
  'Who gets what': {
    rules: ['Rules', 'From top to bottom: the first that matches a user gives the value.'],
    schedule: ['Schedule', 'Changes at moments to come.'],
  },
}

// a GET records an evaluation, and reading a flag applies the due steps of its schedule: hence readOnly: false
export const flags = area({
  stem: 'flags',
  title: 'Feature flags',
  part: 'Data',
  about: 'Switches and variants, who gets which, and gradual release.',
  words: {
    attributes: ['Attributes', 'What the app knows of the user, such as `app_version`; filters read them.'],
    keys: ['Flags', 'The keys of the flags that are asked for.', { unset: 'All flags' }],
    version: ['Version', 'The version to go back to, such as 3.'],
    from: ['From', 'The share of users now, in percent.'],
    to: ['To', 'The share of users at the end, in percent.'],
    step: ['Step', 'By how much it rises each time, in percent.'],
    every_hours: ['Every', 'Hours from one step to the next.'],
    guardrail: [
      'Guardrail',
      '`{event_name, max_rate, min_users?}`: stops when more than this rate, 0 to 1, of the users had the event.',
    ],
    rule_index: ['Rule', 'Which rule, counted from 0.', { unset: 'The first with a percentage' }],
    value: ['Value', 'What these users get, where a new rule is made.', { unset: 'True for a boolean flag' }],
  },
  routes: [
    ...group('/client/flags', appOrUser, [
      route('GET /', 'Every flag for the caller, by its key', {
        handle: read('flags_values'),
        readOnly: false,
        description:
          'Without a user no condition on segments or percentages matches. 304 when `If-None-Match` matches the current ETag.',
        headers: { 'If-None-Match': z.string().optional(), ...appHeaders },
        replies: { 200: data(Answers), 304: NotModified },
      }),
      route('POST /evaluate', 'Flags for the caller, evaluated with attributes of the app', {
        call: 'flags_evaluate',
        reads: true,
        description: 'In filters, stored properties take precedence over `attributes`. Unknown keys are omitted.',
        headers: appHeaders,
        body: z.object({
          attributes: JsonObject.optional(),
          keys: z.array(z.string().max(128, 'must be keys')).max(500, 'must be a list of at most 500 keys').optional(),
        }),
        example: { attributes: { app_version: '2.10.0', platform: 'ios', screen: 'large' }, keys: ['new_checkout'] },
        args: ({ request }) => appOf(request),
        replies: { 200: data(Answers) },
        failure: 'FETCH_FAILED',
      }),
      route('GET /:key', 'One flag for the caller', {
        handle: read('flag_value'),
        readOnly: false,
        headers: { 'If-None-Match': z.string().optional(), ...appHeaders },
        replies: { 200: data(Answer), 304: NotModified },
        refusals: notFound,
      }),
    ]),
    ...group('/admin/projects/:projectId/flags', administrator, [
      route('POST /', 'Define a flag; at most 500', {
        form: flagForm,
        defaultsOf: 'flag',
        call: 'flag_create',
        description:
          '`default_value` is required unless the flag is boolean. Values must be of its `value_type`, without coercion.',
        body: z.object({ key: Key, value_type: ValueType.optional(), ...z.object(fields).partial().shape }),
        patch: true,
        example: {
          key: 'new_checkout',
          rules: [{ filter: { column: 'plan.tier', op: 'eq', value: 'pro' }, percentage: 20, value: true }],
        },
        replies: { 201: data(FeatureFlag) },
      }),
      route('GET /', 'Flags, newest first', {
        call: 'flags_list',
        readOnly: false,
        description: '`stale=true`: flags that were not evaluated for 30 days, or gave all users one value for 60.',
        query: { ...Page, stale: Stale },
        replies: { 200: page(FeatureFlag) },
      }),
      route('GET /:idOrKey', 'A flag', { call: 'flag_get', readOnly: false, replies: { 200: data(FeatureFlag) } }),
      route('PATCH /:idOrKey', 'Change the given fields of a flag', {
        form: flagForm,
        call: 'flag_update',
        description: '`rules` and `schedule` are replaced as a whole. New rules end a ramp.',
        body: z.object(fields).partial(),
        patch: true,
        example: { default_value: true },
        replies: { 200: data(FeatureFlag) },
      }),
      ...definitions('flag', {
        refusals: { delete: notFound },
        summaries: {
          delete: 'Delete a flag with its overrides, history and counts',
        },
      }),
      route('POST /:idOrKey/toggle', 'Switch a flag on or off', {
        call: 'flag_toggle',
        body: z.object({ is_enabled: z.boolean() }),
        example: { is_enabled: false },
        replies: { 200: data(FeatureFlag) },
      }),
      route('PUT /:idOrKey/overrides', 'Set values for individual users (overrides); at most 1000', {
        call: 'flag_overrides_put',
        description:
          'The body is `{user id: value}`; null removes an override, and others stay. Returns all overrides.',
        body: JsonObject,
        patch: true,
        example: {},
        replies: { 200: data(z.record(z.string(), Json)) },
      }),
      route('GET /:idOrKey/history', 'The versions of a flag, newest first, with their changes', {
        call: 'flag_history',
        readOnly: false,
        query: Page,
        replies: { 200: page(Version) },
      }),
      route('POST /:idOrKey/revert', 'Restore a former version of a flag as a new version', {
        call: 'flag_revert',
        body: z.object({ version: z.int('must be a version').min(1).max(2_147_483_647) }),
        example: { version: 1 },
        replies: { 200: data(FeatureFlag) },
      }),
      route('POST /:idOrKey/evaluate', 'The value that a user gets, with every condition of every rule', {
        call: 'flag_evaluate',
        operationId: 'adminEvaluateFlag',
        body: z.object({ user_id: Uuid, attributes: JsonObject.optional() }),
        example: { user_id: '00000000-0000-4000-8000-000000000000' },
        scope: 'flags:read',
        replies: { 200: data(Traced) },
        failure: 'FETCH_FAILED',
      }),
      route('GET /:idOrKey/stats', 'Evaluations and users of the last days, by value', {
        call: 'flag_stats',
        readOnly: false,
        description: 'After 10,000 evaluations on a day, one in a hundred is sampled.',
        query: { days: Days },
        replies: { 200: data(Stats) },
      }),
      route('POST /:idOrKey/ramp', 'Raise the percentage of a rule step by step', {
        call: 'flag_ramp',
        description:
          'The rule is the one at `rule_index`, else the first with a percentage, else a new last one with `value`. The steps are added to `schedule`.',
        body: z.object({
          from: z.number('must be a number from 0 to 100').min(0).max(100),
          to: z.number('must be a number from 0 to 100').min(0).max(100),
          step: z.number('must be a number from 0.01 to 100').min(0.01).max(100),
          every_hours: z.number('must be a number from 0.01 to 8760').min(0.01).max(8760),
          guardrail: JsonObject.nullish(),
          rule_index: z.int('must be a place from 0').min(0).max(49).optional(),
          value: Json.optional(),
        }),
        example: {
          from: 5,
          to: 100,
          step: 5,
          every_hours: 24,
          guardrail: { event_name: 'checkout_failed', max_rate: 0.02 },
        },
        args: ({ body }) => (body['value'] === undefined ? {} : { value: JSON.stringify(body['value']) }),
        replies: { 200: data(FeatureFlag) },
      }),
    ]),
  ],
})
