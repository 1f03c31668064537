/** Invites to sign up, and the waiting list. */

import { inviteHash, requestAccess } from '#server/accounts/invite_codes.ts'
import { ApiError, refusal } from '#server/errors.ts'
import { asSignIn, perIp, takeLimits } from '#server/http/limits.ts'
import type { HandlerContext } from '#server/http/route.ts'

export const redeem = async (context: HandlerContext) => {
  await takeLimits(asSignIn(context), perIp('developer redeem', context.request.ip, [10, 'minute']))
  return context.call('invite_redeem', {
    code_hash: inviteHash(context.body['invite_code'] as string),
    details: requestAccess(context.services),
  })
}

export const join = async (context: HandlerContext) => {
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
