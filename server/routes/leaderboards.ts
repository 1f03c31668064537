import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { administrator, endUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { Filter, Reward } from '#server/http/grammars.ts'
import { idempotency } from '#server/http/idempotency.ts'
import { answer, fieldsOf } from '#server/http/interface.ts'
import { jsonSize } from '#server/http/json.ts'
import { callControl } from '#server/http/project.ts'
import { area, group, route } from '#server/http/route.ts'
import {
  between,
  Deleted,
  daily,
  data,
  ExactNumber,
  JsonObject,
  Key,
  Page,
  page,
  Score,
  Text,
  Time,
  Uuid,
  uuidPattern,
} from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const Metadata = JsonObject.refine((value) => jsonSize(value).bytes <= 4096, 'must have at most 4096 bytes as JSON')
const Source = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.literal('manual') }),
    z.object({
      type: z.literal('event'),
      event_name: Text(255, 1),
      value_property: Text(255, 1).nullable().optional(),
      filter: Filter.nullable().optional(),
    }),
    z.object({ type: z.literal('xp') }),
    z.object({ type: z.literal('currency'), currency_code: Text(128, 1) }),
    z.object({ type: z.literal('streak'), streak_key: Text(128, 1) }),
  ],
  'type must be manual, event, xp, currency or streak',
)
const Rewards = z
  .array(z.object({ from_rank: between(1, 1_000_000), to_rank: between(1, 1_000_000), reward: Reward }))
  .max(100, 'must have at most 100 items')

/** What an administrator may set of a board, and change later. */
const Rules = fieldsOf('leaderboard', {
  source: Source,
  timezone: Text(100, 1),
  min_score: Score.nullable(),
  max_score: Score.nullable(),
  rewards: Rewards,
})
const Board = z.strictObject({
  id: Uuid,
  key: Key,
  ...Rules,
  source: JsonObject,
  min_score: ExactNumber.nullable(),
  max_score: ExactNumber.nullable(),
  starts_at: Time.nullable(),
  ends_at: Time.nullable(),
  created_at: Time,
  updated_at: Time,
})

const Run = answer('leaderboard_run_json', { status: z.enum(['open', 'closed']) })
const Shown = z.strictObject({
  id: Uuid,
  key: Key,
  name: z.string(),
  description: z.string().nullable(),
  scoring: Rules.scoring,
  sort: Rules.sort,
  period: Rules.period,
  timezone: z.string(),
  starts_at: Time.nullable(),
  ends_at: Time.nullable(),
  client_writable: z.boolean(),
  rewards: z.array(JsonObject),
  run: Run,
})
const Entry = z.strictObject({
  app_user_id: Uuid,
  score: ExactNumber,
  /** Null where the user is banned. */
  rank: z.int().nullable(),
  submissions: z.int(),
  reached_at: Time,
  metadata: JsonObject,
  /** No name where one of the two has blocked the other. */
  user: z.strictObject({ id: Uuid, display_name: z.string().nullable(), avatar_url: z.string().nullable() }),
})
const Entries = page(Entry).extend({ run: Run })

const RunKey = z.string().max(64, 'must be current, previous or the key of a run').default('current')
const Scope = z
  .string()
  .refine(
    (scope) =>
      scope === 'global' || scope === 'friends' || (scope.startsWith('group:') && uuidPattern.test(scope.slice(6))),
    'must be global, friends or group:<id>',
  )
  .default('global')
const Around = z
  .string()
  .refine((around) => around === 'me' || uuidPattern.test(around), 'must be me or the id of a user')
  .optional()
const PageLimit = z
  .string()
  .regex(/^\d{1,15}$/, 'must be a whole number of at least 1')
  .refine((text) => Number(text) >= 1, 'must be a whole number of at least 1')
  .transform((text) => Math.min(Number(text), 200))
  .optional()
  .meta({ description: 'More than 200 counts as 200.', type: 'integer', minimum: 1 })

const boardForm: Form = {
  Basics: { name: true, key: true, description: true },
  Scores: {
    source: [
      'Where scores come from',
      'Sent by your servers or apps, or taken from events, XP, a currency or a streak.',
    ],
    scoring: ['Scoring', 'How several scores of a user combine: the best, their sum, the last, or their number.'],
    sort: ['Order', 'Descending: the highest score wins. Ascending: the lowest, as for times.'],
    client_writable: ['Apps may submit', 'Otherwise only servers may send scores.'],
    min_score: ['Lowest score', 'Single scores below it are refused.', { unset: 'No bound' }],
    max_score: ['Highest score', 'Single scores above it are refused.', { unset: 'No bound' }],
    max_per_minute: ['Submissions per minute', 'How many scores a user may send in a minute.'],
  },
  Time: {
    period: ['Reset', 'A new run begins each day, week or month, or never.'],
    timezone: ['Time zone', 'Where days and weeks begin: an IANA name, such as `Europe/Berlin`.'],
    starts_at: ['Starts at', 'Scores before this moment are not accepted.', { unset: 'At once' }],
    ends_at: ['Ends at', 'Scores from this moment on are not accepted.', { unset: 'Never' }],
    keep_runs: ['Runs kept', 'How many closed runs are kept.'],
  },
  'Who takes part': { segment_id: true },
  Rewards: { rewards: ['Rewards', 'By rank, given when a run closes.'] },
  Status: { is_active: true },
}

export const leaderboards = area({
  stem: 'leaderboards',
  title: 'Leaderboards',
  part: 'Engagement',
  about: 'Ranked scores in runs, with prizes.',
  words: {
    'source.type': ['Source', 'What makes scores.'],
    'source.event_name': ['Event', 'The event that makes a score.'],
    'source.value_property': [
      'Property with the score',
      'A number among the properties of the event.',
      { unset: '1 for each event' },
    ],
    'source.filter': ['Only events that match', 'A filter on the properties of the event.'],
    'source.streak_key': ['Streak', 'The key of the streak whose length is the score.'],
    from_rank: ['From rank', 'The best rank that gets it; 1 is the first.'],
    to_rank: ['To rank', 'The last rank that gets it, included.'],
    'rewards.reward': ['Reward', 'What each of these users gets.'],
    score: ['Score', 'A number of -10^18 to 10^18; a string where it has 16 digits or more.'],
    entries: ['Entries', 'One for each user; former scores of these users are replaced.'],
  },
  routes: [
    ...group('/client/leaderboards', endUser, [
      route('GET /', 'Leaderboards that the caller may see, newest first, each with its current run', {
        call: 'leaderboards_list',
        query: Page,
        replies: { 200: page(Shown) },
      }),
      route('GET /:idOrKey', 'A page of a leaderboard, from an offset or around a user', {
        call: 'leaderboard_get',
        description:
          '`run`: `current`, `previous`, or a key such as `2026-W40`. `scope`: `global`, `friends` or `group:<id>`; ranks are ' +
          'those within it. `around`: `me` or a user, who is then in the middle; `limit` is 11 then, else 50.',
        query: { run: RunKey, scope: Scope, around: Around, limit: PageLimit, offset: Page.offset },
        replies: { 200: Entries.extend({ me: Entry.nullable() }) },
        failure: 'FETCH_FAILED',
      }),
      route('GET /:idOrKey/me', "The caller's entry", {
        call: 'leaderboard_me',
        operationId: 'getMyLeaderboardEntry',
        description: '`percentile`: the share of entries, 0 to 100, that it is at or above.',
        query: { run: RunKey },
        replies: { 200: data(Entry.extend({ percentile: z.number() })) },
      }),
      route('POST /:idOrKey/scores', 'Submit a score of the caller', {
        call: 'leaderboard_submit',
        operationId: 'submitLeaderboardScore',
        description:
          'With a server key, or where the leaderboard is `client_writable`. 201 for the first of the run, else 200; ' +
          '`previous` has the score before, and its rank among the entries of now.',
        body: z.object({ score: Score, metadata: Metadata.optional() }),
        example: { score: 4200, metadata: { level: 7 } },
        args: idempotency,
        replies: Object.fromEntries(
          [200, 201].map((status) => [
            status,
            data(
              z.strictObject({
                entry: Entry,
                previous: z.strictObject({ score: ExactNumber, rank: z.int().nullable() }).nullable(),
                improved: z.boolean(),
              }),
            ),
          ]),
        ),
      }),
    ]),
    ...group('/admin/projects/:projectId/leaderboards', administrator, [
      ...definitions('leaderboard', {
        form: boardForm,
        fields: Rules,
        row: Board,
        refusals: { update: { 409: ['LEADERBOARD_IMMUTABLE'] } },
        example: {
          create: {
            key: 'weekly-points',
            name: 'Points of the week',
            source: { type: 'event', event_name: 'lesson_completed', value_property: 'points' },
            scoring: 'sum',
            period: 'weekly',
            rewards: [{ from_rank: 1, to_rank: 3, reward: { xp: 100 } }],
          },
          update: { name: 'Points' },
        },
        summaries: {
          create: 'Define a leaderboard; at most 100',
          list: 'Leaderboards, newest first',
          get: 'A leaderboard',
          update: 'Change a leaderboard; scoring, sort and period only while there are no entries',
          delete: 'Delete a leaderboard with its runs and entries; rewards stay',
        },
      }),
      route('GET /:idOrKey/entries', 'Entries of a run, in their order', {
        call: 'leaderboard_entries',
        query: { run: RunKey, ...Page },
        replies: { 200: Entries },
      }),
      route('PUT /:idOrKey/entries/:userId', "Set a user's score in the current run, whatever the scoring", {
        call: 'leaderboard_entry_put',
        body: z.object({ score: Score, metadata: Metadata.optional() }),
        example: { score: 100 },
        replies: { 200: data(Entry), 201: data(Entry) },
      }),
      route('DELETE /:idOrKey/entries/:userId', "Take a user's entry out of the current run", {
        call: 'leaderboard_entry_delete',
        replies: { 200: Deleted },
      }),
      route(
        'POST /:idOrKey/entries/import',
        'Set the scores of up to 10,000 users in the current run, without events',
        {
          call: 'leaderboard_import',
          body: z.object({
            entries: z
              .array(z.object({ app_user_id: Uuid, score: Score, metadata: Metadata.optional() }))
              .min(1, 'must have 1 to 10000 items')
              .max(10_000, 'must have 1 to 10000 items'),
          }),
          example: { entries: [{ app_user_id: '0190a1b2-0000-7000-8000-000000000000', score: 50 }] },
          replies: {
            200: data(
              z.strictObject({
                imported: z.int(),
                failed: z.int(),
                errors: z.array(z.strictObject({ index: z.int(), code: z.string(), message: z.string() })),
              }),
            ),
          },
        },
      ),
      route('GET /:idOrKey/runs', 'Runs, newest first', {
        call: 'leaderboard_runs',
        description: '`is_frozen`: final ranks and rewards are given.',
        query: Page,
        replies: {
          200: page(Run.extend({ id: Uuid, entries: z.int(), closed_at: Time.nullable(), is_frozen: z.boolean() })),
        },
      }),
      route(
        'POST /:idOrKey/close-run',
        'Close the current run before its time; final ranks and rewards follow in the background',
        {
          call: 'leaderboard_close',
          description: 'A leaderboard of all time goes on with a new run, `all-2`; the others with their next period.',
          replies: { 200: data(Run) },
        },
      ),
      route('POST /:idOrKey/rebuild', 'Rebuild the current run from the event log', {
        description:
          'An operation, `result` `{users, entries, swapped}`. Until it ends, responses show the former run.',
        async handle(context) {
          const board = { id_or_key: context.params['idOrKey'] }
          const found = await context.call('leaderboard_rebuild_check', board, { readOnly: true })
          const args = { type: 'leaderboards.rebuild', input: { leaderboard_id: dataOf<string>(found) } }
          return callControl(context, 'operation_request', args, { failure: 'CREATE_FAILED' })
        },
        calls: ['leaderboard_rebuild_check'],
        replies: { 202: data(z.strictObject({ operation_id: Uuid, status: z.literal('queued') })) },
      }),
      route('GET /:idOrKey/daily', 'Users who entered a run of a leaderboard on each day', {
        call: 'leaderboard_daily',
        description:
          'Both dates are included; the last 30 days by default, at most 400. A board with periods has a run for each, which users enter anew.',
        ...daily('entries', 'users'),
      }),
      route('GET /:idOrKey/anomalies', 'Entries beyond six robust sigmas, by their score or by one jump', {
        call: 'leaderboard_anomalies',
        query: { run: RunKey, ...Page },
        replies: {
          200: page(
            z.strictObject({
              entry: Entry,
              reasons: z.array(z.enum(['score', 'jump'])),
              score_sigmas: z.number().nullable(),
              jump_sigmas: z.number().nullable(),
            }),
          ),
        },
      }),
    ]),
  ],
})
