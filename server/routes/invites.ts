import { z } from 'zod'
import { ApiError, refusal } from '#server/errors.ts'
import { anyone, developer } from '#server/http/callers.ts'
import { InviteCode, inviteHash, requestAccess } from '#server/http/invites.ts'
import { asSignIn, perIp, takeLimits } from '#server/http/limits.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { data, Email } from '#server/http/schemas.ts'

const redeem = async (context: HandlerContext) => {
  await takeLimits(asSignIn(context), perIp('developer redeem', context.request.ip, [10, 'minute']))
  return context.call('invite_redeem', {
    code_hash: inviteHash(context.body['invite_code'] as string),
    details: requestAccess(context.services),
  })
}

const join = async (context: HandlerContext) => {
  const { email, note } = context.body as { email: string; note?: string }
  await takeLimits(context, perIp('developer waitlist', context.request.ip, [5, 'minute'], [50, 'day']))
  try {
    return await context.call('waitlist_join', { email, note })
  } catch (error) {
    if (!(error instanceof ApiError) || error.status < 500) throw error
    // the waitlist cannot be written, but the counters above can: the client may retry
    throw refusal(503, 'WAITLIST_UNAVAILABLE', 'The waitlist is not available at the moment.', null, {
      'Retry-After': '30',
    })
  }
}

export const invites = area({
  stem: 'invites',
  title: 'Invites and waitlist',
  part: 'Platform',
  about: 'Invitations to sign up, and the waiting list.',
  source: 'contract',
  invalid: 'INVALID_INPUT',
  scopeArea: 'account',
  routes: [
    ...group('/auth/developer', developer, [
      route('POST /redeem-invite', 'Redeem an invite code, to be allowed to create projects', {
        handle: redeem,
        calls: ['invite_redeem'],
        operationId: 'redeemInvite',
        body: z.object({ invite_code: InviteCode.min(1, 'is required') }),
        example: { invite_code: 'SVC-7K2M-ABCD-EFGH-2345' },
        replies: { 200: data(z.strictObject({ can_provision: z.literal(true), redeemed: z.boolean() })) },
        refusals: { 429: ['RATE_LIMIT_EXCEEDED'] },
      }),
      route('POST /waitlist', 'Ask for access', {
        handle: join,
        calls: ['waitlist_join'],
        operationId: 'joinWaitlist',
        caller: anyone,
        body: z.object({ email: Email, note: z.string().optional() }),
        example: { email: 'you@example.com', note: 'We teach the piano.' },
        replies: { 200: data(z.strictObject({ ok: z.literal(true) })) },
        refusals: { 429: ['RATE_LIMIT_EXCEEDED'], 503: ['WAITLIST_UNAVAILABLE'] },
        failure: null,
      }),
    ]),
  ],
})
