import { z } from 'zod'
import { administrator, appKey, endUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { perIp, takeLimits } from '#server/http/limits.ts'
import { area, type HandlerContext, route } from '#server/http/route.ts'
import {
  between,
  Credential,
  data,
  JsonObject,
  Limit,
  Offset,
  Page,
  page,
  SmallJson,
  Text,
  Time,
  Uuid,
} from '#server/http/schemas.ts'

/** Any object; its known parts are granted: supplement 0.9. */
const Reward = SmallJson(8192)
const MaxUses = z
  .int('must be a whole number of 1 to 2147483647, or null')
  .min(1, 'must be 1 or more')
  .max(2_147_483_647, 'must be at most 2147483647')
  .nullable()

const ReferralCode = z.strictObject({
  id: Uuid,
  code: z.string(),
  reward_referrer: JsonObject,
  reward_referee: JsonObject,
  max_uses: z.int().nullable(),
  uses: z.int(),
  is_active: z.boolean(),
  app_user_id: Uuid.nullable(),
  created_at: Time,
  updated_at: Time,
})
const State = z.enum(['pending', 'rewarded', 'expired'])
const Claim = z.strictObject({
  id: Uuid,
  claimer_id: Uuid,
  claimed_at: Time,
  state: State,
  qualify_event: z.string().nullable(),
  qualify_by: Time.nullable(),
  qualified_at: Time.nullable(),
  rewarded_at: Time.nullable(),
})
const Defaults = z.strictObject({
  reward_referrer: JsonObject,
  reward_referee: JsonObject,
  max_uses: z.int().nullable(),
  qualify_event: z.string().nullable(),
  qualify_within_days: z.int().nullable(),
  share_url: z.string().nullable(),
  updated_at: Time,
})
const Person = z.strictObject({ display_name: z.string(), avatar_url: z.string().nullable() })
const Claimed = z.strictObject({
  claim: z.strictObject({ id: Uuid, code: z.string(), claimed_at: Time }),
  reward: JsonObject,
})
const Mine = z.strictObject({
  code: z.string(),
  url: z.string().nullable(),
  claims: z.int(),
  max_uses: z.int().nullable(),
  rewards_granted: z.int(),
  claimed: z.strictObject({ code: z.string(), claimed_at: Time }).nullable(),
})
const Brought = z.strictObject({
  id: Uuid,
  code: z.string(),
  state: State,
  claimed_at: Time,
  qualify_by: Time.nullable(),
  rewarded_at: Time.nullable(),
  claimer: Person,
})

/** Codes must not be found by guessing: readings.md, limit per address. */
const lookUp = async (context: HandlerContext) => {
  const { params, request, call } = context
  await takeLimits(context, perIp('client referral', request.ip, [30, 'minute'], [500, 'day']), 'RATE_LIMITED')
  return call('referral_show', { code: params['code'] })
}

const notFound = { 404: ['NOT_FOUND'] }
const referral = 'supplement' as const
const codes = '/admin/projects/:projectId/referrals' as const

export const referrals = area({
  stem: 'referrals',
  title: 'Referrals',
  part: 'Economy',
  about: 'Codes by which users invite others, and their rewards.',
  source: 'contract',
  routes: [
    route('GET /client/referrals/me', {
      operationId: 'getMyReferral',
      caller: endUser,
      source: referral,
      summary: "The caller's code to share, created at the first call, with its statistics",
      readOnly: false,
      call: 'referral_mine',
      replies: { 200: data(Mine) },
    }),
    route('GET /client/referrals/me/claims', {
      operationId: 'listMyReferralClaims',
      caller: endUser,
      source: referral,
      summary: 'Users whom the caller referred, newest first',
      query: Page,
      call: 'referral_claims_mine',
      replies: { 200: page(Brought) },
    }),
    route('POST /client/referrals/claim', {
      operationId: 'claimReferral',
      caller: endUser,
      source: referral,
      summary: 'Claim a code; case, spaces and dashes do not matter',
      description:
        '201 with the reward of the claimer, 200 for a code that the caller has claimed. One code of another user ever, each promo code once. Five tries an hour.',
      body: z.object({ code: Credential }),
      example: { code: 'spring-24' },
      call: 'referral_claim',
      replies: { 200: data(Claimed), 201: data(Claimed) },
    }),
    route('GET /client/referrals/:code', {
      caller: appKey,
      source: referral,
      summary: 'A code for an invitation screen, before sign-in',
      handle: lookUp,
      replies: {
        200: data(z.strictObject({ valid: z.boolean(), referrer: Person.nullable(), reward_referee: JsonObject })),
      },
      refusals: { 404: ['REFERRAL_NOT_FOUND'] },
    }),

    ...definitions('referral_code', {
      path: '/referrals',
      id: { codeId: z.string() },
      creation: z.object({
        code: Text(64, 1).optional(),
        reward_referrer: Reward.optional(),
        reward_referee: Reward.optional(),
        max_uses: MaxUses.optional(),
      }),
      fields: { reward_referrer: Reward, reward_referee: Reward, max_uses: MaxUses, is_active: z.boolean() },
      row: ReferralCode,
      refusals: { create: { 409: ['CONFLICT'] }, update: notFound, delete: notFound },
      example: {
        create: { code: 'SPRING-24', reward_referee: { xp: 100 }, max_uses: 500 },
        update: { is_active: false },
      },
      summaries: {
        create: 'Add a promo code; one is made up where none is sent',
        list: 'All codes, of users and of nobody, newest first',
        update: 'Change a code; claims that were made keep what they were promised',
        delete: 'Delete a code; claims stay, and what they hold is still given',
      },
    }),
    route(`PATCH ${codes}/defaults`, {
      caller: administrator,
      source: referral,
      summary: "Change the defaults of users' codes, and the conditions of a referrer's reward",
      description:
        'An empty body returns the defaults. With `qualify_event` the referrer is rewarded when the claimer sends that event within `qualify_within_days`. `share_url` contains `{code}`.',
      body: z
        .object({
          reward_referrer: Reward,
          reward_referee: Reward,
          max_uses: MaxUses,
          qualify_event: Text(255, 1).nullable(),
          qualify_within_days: between(1, 365).nullable(),
          share_url: Text(2000).nullable(),
        })
        .partial(),
      patch: true,
      example: { reward_referrer: { xp: 50 }, qualify_event: 'lesson_completed', qualify_within_days: 14 },
      call: 'referral_defaults_update',
      replies: { 200: data(Defaults) },
    }),
    route(`GET ${codes}/:codeId/stats`, {
      caller: administrator,
      stale: true,
      summary: 'A code and its claims, newest first',
      params: { codeId: z.string() },
      query: { limit: Limit(1000, 200), offset: Offset },
      call: 'referral_stats',
      replies: {
        200: data(z.strictObject({ referral_code: ReferralCode, total_claims: z.int(), claims: z.array(Claim) })),
      },
    }),
  ],
})
