import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { Reward } from '#server/http/grammars.ts'
import { callControl } from '#server/http/project.ts'
import { area, group, route } from '#server/http/route.ts'
import { between, daily, data, Limit, Line, Moment, Page, page, Text, Time, Uuid } from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const Status = z.enum(['active', 'upcoming', 'ended'], 'must be active, upcoming or ended')

const Rules = {
  name: Line(200, 1),
  description: Text(2000).nullable(),
  start_at: Moment,
  end_at: Moment,
  goal_type: z.enum(
    ['event_count', 'xp_earned', 'streak_maintained'],
    'must be event_count, xp_earned or streak_maintained',
  ),
  goal_value: between(1, 1_000_000_000_000),
  event_name: Text(255, 1).nullable(),
  reward_xp: between(0, 1_000_000_000),
  reward_achievement_id: Uuid.nullable(),
  is_active: z.boolean(),
  reward: Reward.nullable(),
  segment_id: Uuid.nullable(),
  recurrence: z.enum(['none', 'daily', 'weekly', 'monthly'], 'must be none, daily, weekly or monthly'),
  team_mode: z.enum(['none', 'group'], 'must be none or group'),
}
const Definition = z.strictObject({
  id: Uuid,
  ...Rules,
  start_at: Time,
  end_at: Time,
  parent_id: Uuid.nullable(),
  status: Status,
  created_at: Time,
  updated_at: Time,
})
const Standing = z.enum(['in_progress', 'completed', 'expired', 'left'])
const Participant = z.strictObject({
  challenge_id: Uuid,
  app_user_id: Uuid,
  joined_at: Time,
  progress: z.int(),
  goal_value: z.int(),
  status: Standing,
  completed_at: Time.nullable(),
  rank: z.int().nullable(),
  group_id: Uuid.nullable().optional(),
})
const Team = z.strictObject({ group_id: Uuid, progress: z.int(), members: z.int(), reached_at: Time.nullable() })
const Person = z.strictObject({ id: Uuid, display_name: z.string(), avatar_url: z.string().nullable() })
const Mine = Definition.extend({
  my: z
    .strictObject({
      status: Standing,
      progress: z.int(),
      ratio: z.number(),
      completed_at: Time.nullable(),
      team: Team.nullable().optional(),
    })
    .nullable(),
  participants_count: z.int(),
})

const challengeId = { challengeId: Uuid }
const shared = { codes: 'by area', invalid: 'VALIDATION_ERROR', invalidBody: 'VALIDATION_ERROR' } as const

const challengeForm: Form = {
  Basics: { name: true, description: true },
  Goal: {
    goal_type: ['Goal', 'Events of one name, XP earned, or the longest streak within the time.'],
    event_name: ['Event', 'The event that is counted; only for a number of events.'],
    goal_value: ['Target', 'How many events, how much XP, or how many periods in a row.'],
  },
  Time: {
    start_at: ['Starts at', 'What happens from this moment on counts.'],
    end_at: ['Ends at', 'What happens from this moment on counts no more.'],
    recurrence: ['Repeats', 'A new turn begins when one is over.'],
  },
  'Who takes part': {
    segment_id: true,
    team_mode: ['Teams', 'Each user alone, or groups together against the goal.'],
  },
  Rewards: {
    reward_xp: ['XP', 'Points for completing it.'],
    reward_achievement_id: ['Achievement', 'The id of an achievement that is unlocked by completing it.'],
    reward: ['Further reward', 'Currencies, items and the like for completing it.'],
  },
  Status: { is_active: true },
}

export const challenges = area({
  stem: 'challenges',
  title: 'Challenges',
  part: 'Engagement',
  about: 'Goals for a time, alone or together.',
  words: {
    group_id: ['Team', 'The group for which the user counts.', { unset: 'Their oldest group' }],
  },
  routes: [
    ...group('/client/challenges', endUser, [
      route('GET /', "Challenges of a status, with the caller's progress", {
        call: 'challenges_list',
        query: { ...Page, status: Status.default('active') },
        replies: { 200: page(Mine) },
      }),
      route('GET /:challengeId', "A challenge, with the caller's progress", {
        call: 'challenge_get',
        replies: { 200: data(Mine) },
      }),
      route(
        'POST /:challengeId/join',
        'Join a challenge, also before it starts; earlier events within its window count',
        {
          call: 'challenge_join',
          description:
            '201, or 200 for who is in already. The first event that counts joins by itself. In a challenge of teams `group_id` says for which group of theirs the caller counts, and may be sent again to change it; without it, the group that the caller is in longest.',
          body: z.object({ group_id: Uuid.optional() }),
          example: {},
          replies: { 200: data(Participant), 201: data(Participant) },
          failure: 'UPDATE_FAILED',
        },
      ),
      route('POST /:challengeId/leave', 'Leave a challenge: counting stops until the user joins again', {
        call: 'challenge_leave',
        replies: { 200: data(Participant) },
      }),
      route('GET /:challengeId/leaderboard', 'Ranking of a challenge, by progress, then by who reached it first', {
        call: 'challenge_leaderboard',
        operationId: 'getChallengeLeaderboard',
        query: { scope: z.enum(['global', 'friends'], 'must be global or friends').default('global'), limit: Limit() },
        replies: {
          200: data(
            z.array(
              z.strictObject({
                rank: z.int(),
                progress: z.int(),
                status: Standing,
                completed_at: Time.nullable(),
                user: Person.extend({ display_name: z.string().nullable() }),
              }),
            ),
          ),
        },
        failure: 'FETCH_FAILED',
      }),
    ]),
    ...group('/admin/projects/:projectId/challenges', administrator, [
      ...definitions('challenge', {
        form: challengeForm,
        id: challengeId,
        fields: Rules,
        required: ['name', 'start_at', 'end_at', 'goal_type', 'goal_value'],
        row: Definition,
        filters: { status: Status.optional() },
        refusals: { create: { 409: ['LIMIT_REACHED'] }, update: { 409: ['LIMIT_REACHED'] } },
        shared,
        example: {
          create: {
            name: 'November sprint',
            start_at: '2026-11-01T00:00:00Z',
            end_at: '2026-12-01T00:00:00Z',
            goal_type: 'event_count',
            goal_value: 20,
            event_name: 'lesson_completed',
            reward_xp: 100,
          },
          update: { goal_value: 30 },
        },
        summaries: {
          create: {
            summary: 'Define a challenge; at most 100 active or to come',
            description: '`event_name` is required for `event_count`, and rejected otherwise.',
          },
          list: 'Challenges, those that start last in front',
          get: 'A challenge',
          update: 'Change a challenge; changes that affect its count trigger a recount',
          delete: 'Delete a challenge with its participants; rewards stay',
        },
      }),
      route('GET /:challengeId/participants', 'Participants, by progress descending', {
        call: 'challenge_participants',
        ...shared,
        query: Page,
        replies: { 200: page(Participant.extend({ app_users: Person })) },
      }),
      route('GET /:challengeId/daily', 'Users who joined a challenge, and who completed it, on each day', {
        call: 'challenge_daily',
        ...shared,
        description: 'Both dates are included; the last 30 days by default, at most 400.',
        ...daily('joined', 'completed'),
      }),
      route('POST /:challengeId/simulate', 'Simulate a challenge in the preceding window of the same length', {
        call: 'challenge_simulate',
        readOnly: true,
        replies: {
          200: data(
            z.strictObject({
              expected_completions: z.int(),
              rate: z.number().nullable(),
              is_estimate: z.boolean(),
              margin: z.int(),
            }),
          ),
        },
      }),
      route('POST /:challengeId/recompute', 'Recount a challenge for all users', {
        description: 'An operation with the result `{users, changed}`.',
        async handle(context) {
          const challenge_id = context.params['challengeId']
          await context.call('definition_get', { kind: 'challenge', id_or_key: challenge_id }, { readOnly: true })
          const args = { type: 'challenges.recompute', input: { challenge_id } }
          return callControl(context, 'operation_request', args, { failure: 'CREATE_FAILED' })
        },
        replies: { 202: data(z.strictObject({ operation_id: Uuid, status: z.literal('queued') })) },
      }),
    ]),
  ],
})
