import { z } from 'zod'
import { administrator, endUser, serverAlone } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { Filter, Reward } from '#server/http/grammars.ts'
import { idempotencyKey } from '#server/http/idempotency.ts'
import { answer, fieldsOf } from '#server/http/interface.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import {
  between,
  Cursor,
  cursorPage,
  daily,
  data,
  IncludeUser,
  JsonObject,
  Key,
  Limit,
  Line,
  Moment,
  Text,
  Time,
  Uuid,
  withUser,
} from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const milliard = 1_000_000_000
/** What an administrator may set of a rule, and change later. */
const Rules = fieldsOf('xp_rule', {
  event_filter: Filter.nullable(),
  multiplier: z.number('must be a number').positive().max(1_000_000),
})
const Boosts = fieldsOf('xp_boost', {
  multiplier: z.number('must be a number of 0.1 to 100').min(0.1).max(100),
  rule_keys: z.array(Key).min(1, 'must have 1 to 200 keys').max(200, 'must have 1 to 200 keys').nullable(),
})
const Level = z.strictObject({
  level: z.int(),
  xp_required: z.int(),
  name: z.string().nullable(),
  icon_url: z.string().nullable(),
  reward: JsonObject.nullable(),
})
const LevelTable = z.object({
  levels: z
    .array(
      z.object({
        level: between(1, 1000),
        xp_required: between(0, 1_000_000_000_000_000),
        name: Line(200, 1).nullable().optional(),
        icon_url: Text(2000).nullable().optional(),
        reward: Reward.nullable().optional(),
      }),
    )
    .min(1, 'must have 1 to 1000 levels')
    .max(1000, 'must have 1 to 1000 levels')
    .optional(),
  generate: z
    .object({
      count: between(1, 1000),
      base: z.number('must be a number above 0').positive().max(milliard),
      exponent: z.number('must be a number above 0, at most 10').positive().max(10),
    })
    .optional(),
})

const Transaction = answer('xp_transaction_json', {
  source: z.enum(['event', 'achievement', 'challenge', 'league', 'reward', 'admin', 'merge']),
})
const Amount = z
  .int('must be a whole number, not 0')
  .min(-milliard)
  .max(milliard)
  .refine((amount) => amount !== 0, 'must not be 0')
/** The ledger stores the idempotency key and compares the row that it wrote, not a hash of the body. */
const idempotency = (context: Pick<HandlerContext, 'request'>) => ({ idempotency_key: idempotencyKey(context) })

const ruleForm: Form = {
  Basics: { name: true, key: true },
  'What counts': {
    event_name: ['Event', 'The event that earns XP, such as `lesson_completed`.'],
    event_filter: ['Only events that match', 'A filter on the properties of the event.', { unset: 'Every such event' }],
  },
  'How much': {
    amount: ['XP per event', 'A fixed number of points; leave it out if a property says it.'],
    amount_property: ['Property with the amount', 'A number among the properties of the event, such as `score`.'],
    multiplier: ['Times', 'The number of the property is multiplied by this and rounded down.'],
  },
  'Limits per user': {
    max_per_event: ['Most per event', 'XP that one event can earn.', { unset: 'No limit' }],
    max_per_day: ['Most per day', 'XP in a day of UTC.', { unset: 'No limit' }],
    max_total: ['Most in all', 'XP that a user can ever earn by this rule.', { unset: 'No limit' }],
    cooldown_seconds: ['Cooldown', 'Seconds after an award in which the rule earns nothing.', { unset: 'None' }],
  },
  Schedule: { starts_at: true, ends_at: true, is_active: true },
}

const boostForm: Form = {
  Basics: { name: true, multiplier: ['Times', 'All XP is multiplied by this: 2 doubles it.'] },
  'Who and what': {
    segment_id: true,
    rule_keys: ['Rules', 'The keys of the rules that it boosts.', { unset: 'All rules' }],
  },
  Schedule: {
    starts_at: ['Starts at', 'The moment from which it applies.', { unset: 'At once' }],
    ends_at: true,
    is_active: true,
  },
}

export const xp = area({
  stem: 'xp',
  title: 'XP and levels',
  part: 'Engagement',
  about: 'Experience points by rule, boosts, and the levels that they reach.',
  words: {
    since: ['Since', 'From when stored events are replayed.', { unset: '30 days ago' }],
    amount: ['XP', 'How many points; a negative number deducts.'],
    levels: ['Levels', 'The whole table; it replaces the former one.'],
    level: ['Level', 'Numbered from 1, without a gap.'],
    xp_required: ['XP needed', 'The total at which a user reaches the level; 0 for level 1.'],
    'levels.name': ['Name', 'Such as `Sprout`.'],
    'levels.reward': ['Reward', 'What a user gets on reaching it, once.'],
    generate: ['Generate', 'Makes the table by a formula, in place of a list of levels.'],
    'generate.count': ['Levels', 'How many levels.'],
    'generate.base': ['Base', 'XP of level 2; the formula is base * (level - 1) ^ exponent.'],
    'generate.exponent': ['Exponent', 'How fast it gets harder: 1 is even, 2 is steep.'],
  },
  routes: [
    ...group('/client/xp', endUser, [
      route('GET /', "The caller's XP and level", {
        call: 'xp_me',
        description: '`today` is the UTC day. `xp_to_next` is null, and `level_progress` 1, on the last level.',
        replies: {
          200: data(
            z
              .strictObject({
                total: z.int(),
                level: z.int(),
                level_name: z.string().nullable(),
                level_progress: z.number().min(0).max(1),
                xp_into_level: z.int(),
                xp_to_next: z.int().nullable(),
                today: z.int(),
                active_boosts: z.array(
                  z.strictObject({ name: z.string(), multiplier: z.number(), ends_at: Time.nullable() }),
                ),
              })
              .meta({ title: 'XpStanding' }),
          ),
        },
      }),
      route('GET /history', "The caller's ledger of XP, newest first", {
        call: 'xp_history',
        query: { cursor: Cursor, limit: Limit() },
        replies: { 200: cursorPage(Transaction) },
      }),
      route('GET /levels', 'The table of levels', {
        call: 'xp_levels_get',
        replies: { 200: data(z.array(Level)) },
        failure: 'FETCH_FAILED',
      }),
      route('POST /award', 'Give or take XP, with a server key only', {
        call: 'xp_award',
        caller: serverAlone,
        description:
          'To the user of `X-On-Behalf-Of`, or without it to `app_user_id`. `Idempotency-Key` never expires: the same ' +
          'key and body returns the first row with 200. The total never goes below 0: `amount` is the change that took effect.',
        body: z.object({ amount: Amount, reason: Text(500).nullable().optional(), app_user_id: Uuid.optional() }),
        example: { amount: 50, reason: 'bug report' },
        args: idempotency,
        replies: { 200: data(Transaction), 201: data(Transaction) },
      }),
    ]),
    ...group('/admin/projects/:projectId/xp', administrator, [
      ...definitions('xp_rule', {
        form: ruleForm,
        path: '/rules',
        fields: Rules,
        example: {
          create: { key: 'lesson', name: 'Lesson', event_name: 'lesson_completed', amount: 10, max_per_day: 100 },
          update: { max_per_day: 200 },
        },
        summaries: {
          create: {
            summary: 'Define a rule: XP for events; at most 200',
            description:
              'Either `amount`, or `amount_property`, the path of a number in the properties, which is multiplied by ' +
              '`multiplier` and rounded down. Caps reduce an award; they do not refuse it.',
          },
          list: 'Rules, newest first',
          get: 'A rule',
          update: 'Change a rule; XP already awarded stays',
          delete: 'Delete a rule; XP already awarded stays',
        },
      }),
      route('POST /rules/:idOrKey/simulate', 'Simulate a rule on stored events, writing nothing', {
        call: 'xp_rule_simulate',
        description:
          '`since`: at most 366 days ago, 30 days by default. As if nobody had had XP of it before; boosts count.',
        body: z.object({ since: Moment.optional() }),
        example: { since: '2026-11-01T00:00:00Z' },
        readOnly: true,
        replies: {
          200: data(
            z.strictObject({
              awards: z.int(),
              users: z.int(),
              total: z.int(),
              is_estimate: z.boolean(),
              margin: z.int(),
              per_user: z.strictObject({
                median: z.number().nullable(),
                p90: z.number().nullable(),
                max: z.number().nullable(),
              }),
            }),
          ),
        },
      }),
      ...definitions('xp_boost', {
        form: boostForm,
        path: '/boosts',
        fields: Boosts,
        example: {
          create: {
            name: 'Double weekend',
            multiplier: 2,
            starts_at: '2026-11-28T00:00:00Z',
            ends_at: '2026-11-30T00:00:00Z',
          },
          update: { is_active: false },
        },
        summaries: {
          create: {
            summary: 'Define a boost, which multiplies the XP of rules for a time; at most 50',
            description:
              'For all rules, or `rule_keys`. Boosts that match at once multiply; the result is rounded down.',
          },
          list: 'Boosts, newest first',
          get: 'A boost, by its id or its name',
          update: 'Change a boost',
          delete: 'Delete a boost',
        },
        refusals: { update: { 409: ['CONFLICT'] } },
      }),
      route('GET /levels', 'The table of levels', {
        call: 'xp_levels_get',
        replies: { 200: data(z.array(Level)) },
        failure: 'FETCH_FAILED',
      }),
      route('PUT /levels', 'Replace the table of levels, listed or generated', {
        call: 'xp_levels_put',
        description:
          'Levels are numbered 1, 2, 3 and so on; level 1 needs 0 XP, each further one more than the one before. `generate` ' +
          'computes `round(base * (n - 1) ^ exponent)`. Levels that users have are kept.',
        body: LevelTable,
        example: { generate: { count: 20, base: 100, exponent: 1.5 } },
        replies: { 200: data(z.array(Level)) },
      }),
      route('POST /grant', 'Give a user XP, or take it', {
        call: 'xp_grant',
        description:
          '`Idempotency-Key` never expires: the same key and body returns the first row with 200. The total never goes ' +
          'below 0: `amount` is the change that took effect.',
        body: z.object({ app_user_id: Uuid, amount: Amount, reason: Text(500).nullable().optional() }),
        example: { app_user_id: '0190a1b2-0000-7000-8000-000000000000', amount: 50, reason: 'bug report' },
        args: idempotency,
        replies: { 200: data(Transaction), 201: data(Transaction) },
      }),
      route('GET /transactions', 'The ledger of XP, of all users or of one, newest first', {
        call: 'xp_transactions',
        query: { user_id: Uuid.optional(), ...IncludeUser, cursor: Cursor, limit: Limit() },
        replies: { 200: cursorPage(withUser(Transaction)) },
      }),
      route('GET /daily', 'XP that was given on each day, and to how many users', {
        call: 'xp_daily',
        description:
          'Both dates are included; the last 30 days by default, at most 400. By the time at which it was earned; XP that was taken does not count.',
        ...daily('points', 'users'),
      }),
      route('GET /stats', 'XP of the last seven days, and users by level', {
        call: 'xp_stats',
        stale: true,
        replies: {
          200: data(
            z.strictObject({
              total_awarded_7d: z.int(),
              is_estimate: z.boolean(),
              margin: z.int(),
              by_rule: z.array(
                z.strictObject({ rule_key: z.string(), awards: z.int(), users: z.int(), total: z.int() }),
              ),
              level_distribution: z.array(z.strictObject({ level: z.int(), users: z.int() })),
            }),
          ),
        },
      }),
    ]),
  ],
})
