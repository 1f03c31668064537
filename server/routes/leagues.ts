import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { Reward } from '#server/http/grammars.ts'
import { fieldsOf } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import {
  between,
  data,
  ExactNumber,
  JsonObject,
  Key,
  Line,
  Page,
  page,
  Text,
  Time,
  Uuid,
} from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const TierForm = z.object({
  key: Key,
  name: Line(200, 1).optional(),
  icon_url: Text(2000).nullable().optional(),
  promote_count: between(0, 99).optional(),
  relegate_count: between(0, 99).optional(),
})
const Tier = z.strictObject({
  key: z.string(),
  name: z.string(),
  icon_url: z.string().nullable(),
  promote_count: z.int(),
  relegate_count: z.int(),
})
const Points = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.literal('xp') }),
    z.object({
      type: z.literal('event'),
      event_name: Text(255, 1),
      value_property: Text(255, 1).nullable().optional(),
    }),
  ],
  'type must be xp or event',
)
const Rewards = z
  .array(z.object({ tier_key: Key, from_rank: between(1, 100), to_rank: between(1, 100), reward: Reward }))
  .max(100, 'must have at most 100 items')

const Rules = fieldsOf('league', {
  tiers: z.array(TierForm).min(2, 'must have 2 to 20 items').max(20, 'must have 2 to 20 items'),
  points: Points,
  timezone: Text(100, 1),
  rewards: Rewards,
})
const League = z.strictObject({
  id: Uuid,
  key: Key,
  ...Rules,
  tiers: z.array(Tier),
  points: JsonObject,
  created_at: Time,
  updated_at: Time,
})

const Zone = z.enum(['promotion', 'safe', 'relegation'])
const Shown = z.strictObject({
  id: Uuid,
  key: z.string(),
  name: z.string(),
  tiers: z.array(Tier),
  period: Rules.period,
  timezone: z.string(),
  cohort_size: z.int(),
})
const Current = z
  .strictObject({
    run_key: z.string(),
    tier: z.string(),
    points: ExactNumber,
    rank: z.int().nullable(),
    members: z.int(),
    zone: Zone.nullable(),
    starts_at: Time,
    ends_at: Time,
  })
  .nullable()
const Result = z.strictObject({
  run_key: z.string(),
  tier_from: z.string(),
  tier_to: z.string(),
  points: ExactNumber,
  rank: z.int().nullable(),
  members: z.int(),
  result: z.enum(['promoted', 'stayed', 'relegated']),
  closed_at: Time,
  seen: z.boolean(),
})
const Mine = z.strictObject({ league: Shown, current: Current, last_result: Result.nullable() })
const Competitor = z.strictObject({
  app_user_id: Uuid,
  points: ExactNumber,
  rank: z.int(),
  zone: Zone,
  reached_at: Time,
  /** No name where one of the two has blocked the other. */
  user: z.strictObject({ id: Uuid, display_name: z.string().nullable(), avatar_url: z.string().nullable() }),
})
const Run = z.strictObject({
  key: z.string(),
  status: z.enum(['open', 'closed']),
  starts_at: Time,
  ends_at: Time,
  closed_at: Time.nullable(),
  members: z.int(),
  cohorts: z.int(),
  is_settled: z.boolean(),
})
const Cohort = z.strictObject({
  id: Uuid,
  tier_key: z.string(),
  members: z.int(),
  is_filling: z.boolean(),
  created_at: Time,
  entries: z.array(
    z.strictObject({
      app_user_id: Uuid,
      points: ExactNumber,
      rank: z.int().nullable(),
      result: z.enum(['pending', 'promoted', 'stayed', 'relegated']),
    }),
  ),
})
const Stats = z.strictObject({
  run_key: z.string(),
  tiers: z.array(
    z.strictObject({
      tier_key: z.string(),
      users: z.int(),
      median_points: ExactNumber.nullable(),
      promotion_cutoff: ExactNumber.nullable(),
    }),
  ),
})

const form: Form = {
  Basics: { name: true, key: true },
  Tiers: {
    tiers: ['Tiers', 'From the lowest to the highest; users begin in the lowest.'],
    cohort_size: ['Users in a cohort', 'How many users of a tier play against each other at most.'],
    inactive_relegates: ['No points relegate', 'A member whose points are taken back to 0 is relegated in any cohort.'],
  },
  Points: {
    points: ['Where points come from', 'XP, or events that you name.'],
    min_points_to_join: ['Points to join', 'Who has gained so many in a run enters it.'],
  },
  Time: {
    period: ['Season', 'A run ends each day, week or month. Fixed once a run has members.'],
    timezone: ['Time zone', 'Where days and weeks begin: an IANA name, such as `Europe/Berlin`.'],
  },
  Rewards: { rewards: ['Rewards', 'By tier and rank, given when a run closes.'] },
  Status: { is_active: true },
}

export const leagues = area({
  stem: 'leagues',
  title: 'Leagues',
  part: 'Engagement',
  about: 'Tiers with small cohorts, promotion and relegation.',
  words: {
    'tiers.name': ['Name', 'What people read.', { unset: 'The key' }],
    'tiers.icon_url': ['Icon', 'The address of a picture.', { unset: 'None' }],
    'tiers.promote_count': ['Promoted', 'How many of a cohort go up a tier.', { default: 0 }],
    'tiers.relegate_count': ['Relegated', 'How many of a cohort go down a tier.', { default: 0 }],
    'points.type': ['Points', 'XP that is gained in the run, or events.'],
    'points.event_name': ['Event', 'The event that gives points.'],
    'points.value_property': [
      'Property with the points',
      'A number among the properties of the event.',
      { unset: '1 for each event' },
    ],
    'rewards.tier_key': ['Tier', 'The key of the tier that the run was played in.'],
    from_rank: ['From rank', 'The best rank that gets it; 1 is the first.'],
    to_rank: ['To rank', 'The last rank that gets it, included.'],
    'rewards.reward': ['Reward', 'What each of these users gets.'],
    tier_key: ['Tier', 'The key of a tier of the league.'],
    run_key: ['Run', 'The run that is meant, so that none is closed twice.', { unset: 'The open one' }],
  },
  routes: [
    ...group('/client/leagues', endUser, [
      route('GET /', "Active leagues, oldest first, with the caller's place and newest result", {
        call: 'leagues_list',
        description:
          '`current` is null until the caller has enough points to enter the run. `zone`: where closing now would take the caller.',
        replies: { 200: data(z.array(Mine)) },
      }),
      route('GET /:idOrKey', "A league with the caller's cohort in order of rank", {
        call: 'league_get',
        replies: { 200: data(Mine.extend({ cohort: z.array(Competitor) })) },
      }),
      route('POST /:idOrKey/seen', "Mark the caller's newest result as seen", {
        call: 'league_seen',
        operationId: 'markLeagueResultSeen',
        replies: { 200: data(Result.nullable()) },
      }),
      route('GET /:idOrKey/history', "The caller's results, newest first", {
        call: 'league_history',
        query: Page,
        replies: { 200: page(Result) },
      }),
    ]),
    ...group('/admin/projects/:projectId/leagues', administrator, [
      ...definitions('league', {
        form,
        fields: Rules,
        row: League,
        refusals: { update: { 409: ['LEAGUE_IMMUTABLE'] } },
        example: {
          create: {
            key: 'weekly',
            name: 'Weekly league',
            tiers: [
              { key: 'bronze', name: 'Bronze', promote_count: 10 },
              { key: 'silver', name: 'Silver', promote_count: 7, relegate_count: 5 },
              { key: 'gold', name: 'Gold', relegate_count: 5 },
            ],
            rewards: [{ tier_key: 'gold', from_rank: 1, to_rank: 3, reward: { xp: 100 } }],
          },
          update: { name: 'League of the week' },
        },
        summaries: {
          create: 'Define a league; at most 10',
          list: 'Leagues, newest first',
          get: 'A league',
          update: 'Change a league; its rules take effect with the next run',
          delete: 'Delete a league with its runs and results; rewards stay',
        },
      }),
      route('GET /:idOrKey/runs', 'Runs that have had members or were closed by hand, newest first', {
        call: 'league_runs',
        description: '`is_settled`: results, rewards and events are all there.',
        query: Page,
        replies: { 200: page(Run) },
      }),
      route('GET /:idOrKey/runs/:runKey/cohorts', 'Cohorts of a run with their members, the lowest tier first', {
        call: 'league_cohorts',
        query: { tier_key: z.string().max(128).optional(), ...Page },
        replies: { 200: page(Cohort) },
      }),
      route(
        'POST /:idOrKey/close-run',
        'Close the open run now; the next one begins at once and ends with the period',
        {
          call: 'league_close',
          operationId: 'closeLeagueRun',
          description: 'Results, rewards and events follow in the background.',
          body: z.object({ run_key: z.string().max(64).optional() }),
          example: {},
          replies: { 200: data(Run) },
        },
      ),
      route('PUT /:idOrKey/users/:userId', 'Put a user into a tier', {
        call: 'league_user_put',
        description: 'At once, with the points, where the user is in the open run; else where the next one begins.',
        body: z.object({ tier_key: z.string().max(128) }),
        example: { tier_key: 'silver' },
        replies: { 200: data(z.strictObject({ app_user_id: Uuid, tier_key: z.string() })) },
      }),
      route('GET /:idOrKey/stats', 'Users, median points and the cut-off of promotion, by tier of the open run', {
        call: 'league_stats',
        replies: { 200: data(Stats) },
      }),
    ]),
  ],
})
