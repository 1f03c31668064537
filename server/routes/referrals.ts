import { z } from 'zod'
import { administrator, appKey, endUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { Reward } from '#server/http/grammars.ts'
import { answer, fieldsOf } from '#server/http/interface.ts'
import { perIp, takeLimits } from '#server/http/limits.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import {
  between,
  Credential,
  data,
  IncludeUser,
  JsonObject,
  Limit,
  Offset,
  Page,
  page,
  Text,
  Time,
  Uuid,
  withUser,
} from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const MaxUses = z
  .int('must be a whole number of 1 to 2147483647, or null')
  .min(1, 'must be 1 or more')
  .max(2_147_483_647, 'must be at most 2147483647')
  .nullable()

const ReferralCode = answer('referral_code_json')
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
const Defaults = answer('referral_defaults_json')
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
const Brought = answer('referral_claim_mine_json', { state: State, claimer: Person })

/** Codes must not be found by guessing: a limit for each address. */
const lookUp = async (context: HandlerContext) => {
  const { params, request, call } = context
  await takeLimits(context, perIp('client referral', request.ip, [30, 'minute'], [500, 'day']), 'RATE_LIMITED')
  return call('referral_show', { code: params['code'] })
}

const notFound = { 404: ['NOT_FOUND'] }

const codeForm: Form = {
  Code: {
    code: ['Code', 'Letters and digits, such as `SPRING-24`.', { unset: 'One is made up' }],
    max_uses: ['Most claims', 'How many users can claim it.', { unset: 'No limit' }],
    is_active: ['Active', 'Switched off, it cannot be claimed.'],
  },
  Rewards: {
    reward_referee: ['Reward for who claims', 'What the user gets who enters the code.'],
    reward_referrer: ['Reward for who invited', 'What the owner of the code gets; promo codes have none.'],
  },
}

export const referrals = area({
  stem: 'referrals',
  title: 'Referrals',
  part: 'Economy',
  about: 'Codes by which users invite others, and their rewards.',
  codes: 'by area',
  words: {
    qualify_event: [
      'Event to qualify',
      'Who invited is rewarded when the new user sends this event.',
      { unset: 'At once' },
    ],
    qualify_within_days: ['Days to qualify', 'In how many days after the claim the event must come.'],
    share_url: ['Link to share', 'An address with `{code}` in it.'],
  },
  routes: [
    ...group('/client/referrals', endUser, [
      route('GET /me', "The caller's code to share, created at the first call, with its statistics", {
        call: 'referral_mine',
        operationId: 'getMyReferral',
        codes: 'by part',
        readOnly: false,
        replies: { 200: data(Mine) },
      }),
      route('GET /me/claims', 'Users whom the caller referred, newest first', {
        call: 'referral_claims_mine',
        operationId: 'listMyReferralClaims',
        codes: 'by part',
        query: Page,
        replies: { 200: page(Brought) },
      }),
      route('POST /claim', 'Claim a code; case, spaces and dashes do not matter', {
        call: 'referral_claim',
        operationId: 'claimReferral',
        codes: 'by part',
        description:
          '201 with the reward of the claimer, 200 for a code that the caller has claimed. One code of another user ever, each promo code once. Five tries an hour.',
        body: z.object({ code: Credential }),
        example: { code: 'spring-24' },
        replies: { 200: data(Claimed), 201: data(Claimed) },
      }),
      route('GET /:code', 'A code for an invitation screen, before sign-in', {
        handle: lookUp,
        calls: ['referral_show'],
        caller: appKey,
        codes: 'by part',
        replies: {
          200: data(z.strictObject({ valid: z.boolean(), referrer: Person.nullable(), reward_referee: JsonObject })),
        },
      }),
    ]),
    ...group('/admin/projects/:projectId/referrals', administrator, [
      ...definitions('referral_code', {
        form: codeForm,
        id: { codeId: z.string() },
        creation: z.object({
          code: Text(64, 1).optional(),
          reward_referrer: Reward.optional(),
          reward_referee: Reward.optional(),
          max_uses: MaxUses.optional(),
        }),
        fields: fieldsOf('referral_code', {
          reward_referrer: Reward,
          reward_referee: Reward,
          max_uses: MaxUses,
        }),
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
      route('PATCH /defaults', "Change the defaults of users' codes, and the conditions of a referrer's reward", {
        call: 'referral_defaults_update',
        codes: 'by part',
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
        replies: { 200: data(Defaults) },
      }),
      route('GET /:codeId/stats', 'A code and its claims, newest first', {
        call: 'referral_stats',
        stale: true,
        params: { codeId: z.string() },
        query: { ...IncludeUser, limit: Limit(1000, 200), offset: Offset },
        replies: {
          200: data(
            z.strictObject({ referral_code: ReferralCode, total_claims: z.int(), claims: z.array(withUser(Claim)) }),
          ),
        },
      }),
    ]),
  ],
})
