import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { Filter, Reward } from '#server/http/grammars.ts'
import { fieldsOf } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import {
  between,
  Deleted,
  daily,
  data,
  IncludeUser,
  Key,
  Limit,
  Moment,
  Page,
  page,
  Time,
  Uuid,
  withUser,
} from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const Status = z.enum(['active', 'at_risk', 'frozen', 'broken'])
const CalendarDate = z.iso
  .date('must be a date such as 2026-10-03')
  // the year before 1 has another name in Postgres
  .refine((text) => !text.startsWith('0000'), 'must be a date such as 2026-10-03')
const Streak = z.strictObject({
  id: Uuid,
  streak_definition_id: Uuid,
  key: z.string(),
  name: z.string(),
  qualifying_event: z.string(),
  status: z.enum([...Status.options, 'none']),
  current_count: z.int(),
  longest_count: z.int(),
  started_on: CalendarDate.nullable(),
  last_qualified_at: Time.nullable(),
  freezes_remaining: z.int(),
  period: z.strictObject({ key: z.string(), start: Time, end: Time, deadline: Time, qualified: z.boolean() }),
  pauses: z.array(z.strictObject({ start: CalendarDate, end: CalendarDate })),
  updated_at: Time,
})

const History = z.array(
  z.strictObject({
    period_key: z.string(),
    start: Time,
    end: Time,
    status: z.enum(['qualified', 'frozen', 'paused', 'missed']),
    count: z.int(),
  }),
)

const UserOfStreak = Streak.extend({
  app_user_id: Uuid,
  app_users: z.strictObject({ id: Uuid, display_name: z.string(), avatar_url: z.string().nullable() }),
})

const Milestone = z.object({ count: between(1, 999_999), reward: Reward })

/** What an administrator may set, and change later. */
const Rules = fieldsOf('streak_definition', {
  event_filter: Filter.nullable(),
  timezone: z.string().max(100).nullable(),
  milestones: z.array(Milestone).max(100),
})
const Changes = z.object(Rules).partial()

const Definition = z.strictObject({
  id: Uuid,
  key: Key,
  ...Rules,
  at_risk_hours: z.int(),
  milestones: z.array(z.looseObject(Milestone.shape)),
  created_at: Time,
  updated_at: Time,
})

const Stats = z.strictObject({
  is_estimate: z.boolean(),
  margin: z.int(),
  active: z.int(),
  at_risk: z.int(),
  frozen: z.int(),
  broken_7d: z.int(),
  distribution: z.array(z.strictObject({ bucket: z.string(), users: z.int() })),
  freezes_used_7d: z.int(),
  saved_by_freeze: z.int(),
})

const Simulation = z.strictObject({
  is_estimate: z.boolean(),
  margin: z.int(),
  users: z.int(),
  broken_before: z.int(),
  broken_after: z.int(),
  median_length_before: z.number().nullable(),
  median_length_after: z.number().nullable(),
})

const Pause = z.object({ start: CalendarDate, end: CalendarDate })
const notFound = { 404: ['STREAK_NOT_FOUND'] }

const streakForm: Form = {
  Basics: { name: true, key: true, description: true },
  'What counts': {
    qualifying_event: ['Qualifying event', 'The event that counts, such as `lesson_completed`.'],
    event_filter: ['Only events that match', 'A filter on the properties of the event.', { unset: 'Every such event' }],
    period: ['Period', 'What must be filled without a gap: each day, week or month. Fixed once users have the streak.'],
    min_count: ['Events per period', 'How many events fill a period.'],
    allow_client_qualify: [
      'Apps may qualify',
      'An app may fill the current period without an event. A server acting for the user always may.',
    ],
  },
  Calendar: {
    timezone_mode: ['Whose time zone', 'The zone of each user, or one fixed zone for all.'],
    timezone: ['Fixed time zone', 'An IANA name, such as `Europe/Berlin`; only with a fixed zone.'],
    week_starts_on: ['Week starts on', '1 is Monday, 7 (or 0) Sunday.'],
    grace_hours: ['Grace hours', 'Hours after the end of a missed period in which it can still be filled.'],
  },
  Freezes: {
    freezes_initial: ['Freezes at the start', 'A freeze fills a missed period. How many a user has at first.'],
    freezes_max: ['Most freezes', 'How many a user can hold at once.'],
    freeze_earn_every: ['Periods for a freeze', 'Filled periods that earn one more freeze; 0: none are earned.'],
  },
  'Reminders and rewards': {
    at_risk_hours: [
      'At risk before the deadline',
      'Hours before its deadline at which an unfilled period is at risk.',
      { unset: '6 hours for a day, 24 for a week, 72 for a month' },
    ],
    restore_window_hours: ['Restore window', 'Hours in which an administrator can restore a broken streak.'],
    milestones: ['Milestones', 'Rewards for lengths, each given once per chain.'],
  },
  Status: { is_active: true },
}

export const streaks = area({
  stem: 'streaks',
  title: 'Streaks',
  part: 'Engagement',
  about: 'Repeated activity in periods, with freezes, pauses and milestones.',
  words: {
    'milestones.count': ['Length', 'The number of periods in a row, such as 30.'],
    'milestones.reward': ['Reward', 'What the user gets at this length.'],
    definition: ['Changed rules', 'The fields that would be different.', { unset: 'The rules as they are' }],
    since: ['Since', 'From when stored events are replayed; at most 366 days ago.', { unset: '30 days ago' }],
    start: ['First day', 'The first day of the pause, such as `2026-12-24`.'],
    end: ['Last day', 'The last day of the pause, included.'],
    amount: ['Freezes', 'How many freezes to give.'],
    count: ['Length', 'The length after the restore, at least that of the whole chain.', { unset: 'As it was' }],
    period_key: ['Period', 'The day, week or month, such as `2026-10-03`.', { unset: 'The current period' }],
  },
  routes: [
    ...group('/client/streaks', endUser, [
      route('GET /', "The caller's streaks", {
        call: 'streaks_list',
        codes: 'by area',
        description: '`include=all` adds those that the caller never started, with status `none`.',
        query: { include: z.literal('all', 'must be all').optional() },
        replies: { 200: data(z.array(Streak)) },
      }),
      route('GET /:idOrKey', "One of the caller's streaks with its newest periods, newest first", {
        call: 'streak_get',
        query: { history: Limit(366, 30) },
        replies: { 200: data(Streak.extend({ history: History })) },
      }),
      route('POST /:idOrKey/qualify', "Count one act for one of the caller's streaks, now", {
        call: 'streak_qualify',
        codes: 'by area',
        description: '201 when it is the first qualification of this streak ever, 200 otherwise.',
        replies: { 200: data(Streak), 201: data(Streak) },
        failure: 'QUALIFY_FAILED',
      }),
      route('PUT /:idOrKey/pause', "Pause one of the caller's streaks, both dates included", {
        call: 'streak_pause',
        operationId: 'pauseStreak',
        description:
          'At most 30 days at once and 60 in a calendar year, not in the past. The same pause again changes nothing.',
        body: Pause,
        example: { start: '2026-12-24', end: '2027-01-02' },
        replies: { 200: data(Streak) },
      }),
      route('DELETE /:idOrKey/pause', 'End the current pause and delete future ones', {
        call: 'streak_resume',
        operationId: 'resumeStreak',
        replies: { 200: Deleted },
      }),
    ]),
    ...group('/admin/projects/:projectId/streaks', administrator, [
      ...definitions('streak_definition', {
        form: streakForm,
        fields: Rules,
        row: Definition,
        refusals: { get: notFound, update: { ...notFound, 409: ['PERIOD_IMMUTABLE'] }, delete: notFound },
        example: {
          create: {
            key: 'daily',
            name: 'Daily lesson',
            qualifying_event: 'lesson_completed',
            freezes_initial: 1,
            freeze_earn_every: 7,
            milestones: [{ count: 30, reward: { freezes: [{ streak_key: 'daily', amount: 2 }] } }],
          },
          update: { grace_hours: 3 },
        },
        summaries: {
          create: 'Define a streak; at most 50',
          list: 'Definitions, newest first',
          get: 'A definition',
          update: 'Change a definition; counted periods keep the rules that they were counted under',
          delete: "Delete a definition with all users' streaks",
        },
      }),
      route('GET /:idOrKey/users', 'Users who have a streak, newest first, all or those of one status', {
        call: 'streak_users',
        query: { ...Page, status: Status.optional(), ...IncludeUser },
        replies: { 200: page(withUser(UserOfStreak)) },
      }),
      route('POST /:idOrKey/users/:userId/freezes', "Give a user freezes, up to the streak's freezes_max", {
        call: 'streak_user_freezes',
        operationId: 'grantUserStreakFreezes',
        body: z.object({ amount: between(1, 100) }),
        example: { amount: 2 },
        replies: { 200: data(Streak) },
      }),
      route('POST /:idOrKey/users/:userId/pause', "Pause a user's streak, under the same limits as users", {
        call: 'streak_user_pause',
        operationId: 'pauseUserStreak',
        body: Pause,
        example: { start: '2026-12-24', end: '2027-01-02' },
        replies: { 200: data(Streak) },
      }),
      route('POST /:idOrKey/users/:userId/restore', "Restore a user's broken streak, within its restore window", {
        call: 'streak_user_restore',
        operationId: 'restoreUserStreak',
        description:
          '`count`: the count after the restore, at least that of the whole chain; the difference is added before its start.',
        body: z.object({ count: between(1, 10_000).optional() }),
        example: { count: 120 },
        replies: { 200: data(Streak) },
      }),
      route('POST /:idOrKey/users/:userId/qualify', "Qualify a period of a user's streak, by default the current one", {
        call: 'streak_user_qualify',
        operationId: 'qualifyUserStreak',
        body: z.object({ period_key: z.string().max(20).optional() }),
        example: { period_key: '2026-10-03' },
        replies: { 200: data(Streak), 201: data(Streak) },
        failure: 'QUALIFY_FAILED',
      }),
      route('GET /:idOrKey/stats', 'Statistics of a streak', {
        call: 'streak_stats',
        stale: true,
        replies: { 200: data(Stats) },
      }),
      route('GET /:idOrKey/daily', 'Periods of a streak that were filled, and streaks that broke, on each day', {
        call: 'streak_daily',
        description:
          'Both dates are included; the last 30 days by default, at most 400. `kept` are filled periods, on the day of the act that filled them; `broken` are `svc.streak.broken` events, which imported history does not emit.',
        ...daily('kept', 'users', 'broken'),
      }),
      route('POST /:idOrKey/simulate', 'Simulate changed rules on stored events, writing nothing', {
        call: 'streak_simulate',
        description:
          '`since`: at most 366 days ago, 30 days by default. Lengths are of the longest chain of each user.',
        body: z.object({ definition: Changes.optional(), since: Moment.optional() }),
        example: { definition: { min_count: 2 }, since: '2026-10-01T00:00:00Z' },
        readOnly: true,
        replies: { 200: data(Simulation) },
      }),
    ]),
  ],
})
