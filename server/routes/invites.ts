import { z } from 'zod'
import { InviteCode } from '#server/accounts/invite_codes.ts'
import { join, redeem } from '#server/accounts/invites.ts'
import { anyone, developer } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { data, Email } from '#server/http/schemas.ts'

export const invites = area({
  stem: 'invites',
  title: 'Invites and waitlist',
  part: 'Platform',
  about: 'Invitations to sign up, and the waiting list.',
  codes: 'by area',
  invalid: 'INVALID_INPUT',
  scopeArea: 'account',
  words: {
    code: ['Invite code', 'Such as `SVC-7K2M-...`.'],
    invite_code: ['Invite code', 'Such as `SVC-7K2M-...`.'],
    note: ['Note', 'What you plan to make.'],
  },
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
