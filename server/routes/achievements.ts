import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { administrator, endUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { Criteria } from '#server/http/grammars.ts'
import { answer, fieldsOf } from '#server/http/interface.ts'
import { callControl } from '#server/http/project.ts'
import { area, group, route } from '#server/http/route.ts'
import { AnyId, between, daily, data, Page, page, Time, Uuid } from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const Rules = fieldsOf('achievement', { criteria: Criteria, sort_order: between(-2_147_483_648, 2_147_483_647) })

const Shown = z.strictObject({
  id: Uuid,
  key: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  icon_url: z.string().nullable(),
  xp_reward: z.int(),
  is_hidden: z.boolean(),
  sort_order: z.int(),
  unlocked: z.boolean(),
  unlocked_at: Time.nullable(),
  progress: z.strictObject({ current: z.number(), target: z.number(), ratio: z.number().min(0).max(1) }),
  rarity: z.number().min(0).max(1),
})
const Hidden = z.strictObject({
  id: Uuid,
  key: z.string(),
  is_hidden: z.literal(true),
  unlocked: z.literal(false),
})
const Mine = z.union([Shown, Hidden])
const OfOther = z.strictObject({
  id: Uuid,
  key: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  icon_url: z.string().nullable(),
  xp_reward: z.int(),
  unlocked_at: Time,
  rarity: z.number(),
})
const Unlock = answer('user_achievement_json')
const DryRun = z.strictObject({
  users_now: z.int(),
  users_30d_ago_estimate: z.int().nullable(),
  is_estimate: z.boolean(),
  margin: z.int(),
  sample: z.array(z.strictObject({ user_id: Uuid, value: z.number() })),
  distribution: z.array(z.strictObject({ bucket: z.string(), users: z.int() })),
})

// INVALID_ID here: SQL says it, where a malformed id is a 404 otherwise
const achievementId = { achievementId: AnyId }
const ofOne = { 400: ['INVALID_ID'] }
const shared = { codes: 'by area', invalid: 'VALIDATION_ERROR', invalidBody: 'VALIDATION_ERROR' } as const

const achievementForm: Form = {
  Basics: { name: true, key: true, description: true, icon_url: true },
  'When it unlocks': {
    criteria: ['Criteria', 'A value of the user and the target that it must reach.'],
  },
  Reward: { xp_reward: ['XP', 'Points that the user gets with it, once.'] },
  Display: {
    is_hidden: ['Hidden', 'Users see it only when they have it.'],
    sort_order: ['Order', 'Lower numbers come first.'],
    is_active: true,
  },
}

const unlocks = daily('unlocked', 'users')

export const achievements = area({
  stem: 'achievements',
  title: 'Achievements',
  part: 'Engagement',
  about: 'Goals that users reach once or in tiers.',
  words: {
    ids: ['Achievements', 'The ids of the unlocked achievements that the user has seen.', { unset: 'All of them' }],
    notify: ['Notify', 'Sends webhooks and pushes for what unlocks now.', { default: false }],
  },
  routes: [
    ...group('/client', endUser, [
      route('GET /achievements', "Achievements with the caller's progress, by sort_order", {
        call: 'achievements_list',
        description: 'A hidden, locked achievement shows only its id and key. `rarity` is computed hourly.',
        query: Page,
        replies: { 200: page(Mine) },
      }),
      route('GET /achievements/unseen', 'Achievements that the caller has unlocked and not seen yet, oldest first', {
        call: 'achievements_unseen',
        operationId: 'listUnseenAchievements',
        replies: { 200: data(z.array(Shown)) },
      }),
      route('POST /achievements/seen', 'Mark achievements as seen, on every device', {
        call: 'achievements_seen',
        operationId: 'markAchievementsSeen',
        body: z.object({ ids: z.array(Uuid).min(1, 'must have 1 to 500 ids').max(500, 'must have 1 to 500 ids') }),
        example: { ids: ['0190a1b2-0000-7000-8000-000000000000'] },
        replies: { 200: data(z.strictObject({ seen: z.int() })) },
      }),
      route('GET /achievements/:idOrKey', "One achievement with the caller's progress", {
        call: 'achievement_get',
        replies: { 200: data(Mine) },
      }),
      route('GET /users/:userId/achievements', 'Achievements that another user has unlocked', {
        call: 'user_achievements',
        description: 'Not for users who are blocked, or whose property `hide_achievements` is true.',
        query: Page,
        replies: { 200: page(OfOther) },
      }),
    ]),
    ...group('/admin/projects/:projectId/achievements', administrator, [
      ...definitions('achievement', {
        form: achievementForm,
        id: achievementId,
        fields: Rules,
        refusals: { list: { 400: ['VALIDATION_ERROR'] }, get: ofOne, update: ofOne, delete: ofOne },
        shared,
        example: {
          create: {
            key: 'ten-lessons',
            name: 'Ten lessons',
            xp_reward: 50,
            criteria: { type: 'event_count', event_name: 'lesson_completed', target_value: 10 },
          },
          update: { xp_reward: 100 },
        },
        summaries: {
          create: {
            summary: 'Define an achievement; at most 500',
            description:
              '`criteria`: `{type, target_value}` with `event_count` (`event_name`, `event_filter`, `since`), `streak_length` ' +
              '(`streak_definition_id`), `xp_threshold` or `property_value` (`property_key`). Who qualifies already is unlocked in the background.',
          },
          list: 'Definitions, by sort_order',
          get: 'A definition',
          update: 'Change a definition; unlocks stay',
          delete: 'Delete a definition with its unlocks',
        },
      }),
      route('GET /daily', 'Unlocks of each day, of all achievements or of one', {
        call: 'achievements_daily',
        description: 'Both dates are included; the last 30 days by default, at most 400. Revoked unlocks do not count.',
        ...unlocks,
        query: { ...unlocks.query, achievement_id: Uuid.optional() },
      }),
      route('GET /stats', 'Unlocks of all time and of seven days, by achievement', {
        call: 'achievement_stats',
        stale: true,
        replies: {
          200: data(
            z.strictObject({
              total_unlocks: z.int(),
              unlocks_7d: z.int(),
              achievements: z.array(
                z.strictObject({
                  id: Uuid,
                  key: z.string(),
                  name: z.string(),
                  unlocks: z.int(),
                  unlocks_7d: z.int(),
                  rate: z.number(),
                }),
              ),
            }),
          ),
        },
      }),
      route('POST /dry-run', 'Preview who would unlock under criteria that are not stored yet', {
        call: 'achievement_dry_run',
        operationId: 'dryRunAchievementDraft',
        body: z.object({ criteria: Criteria }),
        example: { criteria: { type: 'xp_threshold', target_value: 1000 } },
        readOnly: true,
        replies: { 200: data(DryRun) },
      }),
      route('POST /:achievementId/grant', 'Grant an achievement, without its XP', {
        call: 'achievement_grant',
        ...shared,
        description: 'Repeated: also 201, and `unlocked_at` is unchanged.',
        params: achievementId,
        body: z.object({ app_user_id: Uuid }),
        example: { app_user_id: '0190a1b2-0000-7000-8000-000000000000' },
        replies: { 201: data(Unlock) },
        failure: 'GRANT_FAILED',
      }),
      route('POST /:achievementId/revoke', 'Revoke an unlock; XP that it paid stays', {
        call: 'achievement_revoke',
        ...shared,
        params: achievementId,
        body: z.object({ app_user_id: Uuid }),
        example: { app_user_id: '0190a1b2-0000-7000-8000-000000000000' },
        replies: { 200: data(z.strictObject({ app_user_id: Uuid, achievement_id: Uuid, revoked: z.literal(true) })) },
        failure: 'REVOKE_FAILED',
      }),
      route('POST /:achievementId/dry-run', 'Preview who would unlock under the stored criteria, or under others', {
        call: 'achievement_dry_run',
        operationId: 'dryRunAchievement',
        params: achievementId,
        body: z.object({ criteria: Criteria.optional() }),
        readOnly: true,
        replies: { 200: data(DryRun) },
        refusals: { 400: ['INVALID_ID'] },
      }),
      route('POST /:achievementId/backfill', 'Unlock for everybody who qualifies already', {
        description:
          'An operation with the result `{users, unlocked}`. Without `notify` no webhooks and no push messages are sent.',
        params: achievementId,
        body: z.object({ notify: z.boolean().optional() }),
        async handle(context) {
          const args = { achievement_id: context.params['achievementId'], ...context.body }
          const checked = await context.call('achievement_backfill_check', args, { readOnly: true })
          const started = { type: 'achievements.backfill', input: dataOf<object>(checked) }
          return callControl(context, 'operation_request', started, { failure: 'CREATE_FAILED' })
        },
        calls: ['achievement_backfill_check'],
        replies: { 202: data(z.strictObject({ operation_id: Uuid, status: z.literal('queued') })) },
      }),
      route('GET /:achievementId/users', 'Users who have an achievement, newest first', {
        call: 'achievement_users',
        params: achievementId,
        query: Page,
        replies: {
          200: page(
            Unlock.extend({
              app_users: z.strictObject({ id: Uuid, display_name: z.string(), avatar_url: z.string().nullable() }),
            }),
          ),
        },
      }),
    ]),
  ],
})
