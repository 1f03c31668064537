/** Sign-in of developers with a code by mail. */
import { randomUUID } from 'node:crypto'
import { signInTokens, visitor, withTokens } from '#server/accounts/sign_in.ts'
import { dataOf } from '#server/database/database.ts'
import { codeMac, codeOf, developerCode } from '#server/derived_codes.ts'
import { sessionHeld } from '#server/http/credentials.ts'
import { perIp, perSubject, takeLimits } from '#server/http/limits.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { sha256 } from '#server/secrets.ts'

const mailboxOf = async ({ call, body }: HandlerContext) =>
  dataOf<{ mailbox: string }>(await call('code_mailbox', { email: body['email'] }, { readOnly: true })).mailbox

/** The same steps for an address with an account and for one without: neither the response nor its duration reveals which it is (user enumeration). */
export const request = async (context: HandlerContext) => {
  const { secrets } = context.services
  const mailbox = await mailboxOf(context)
  await takeLimits(context, [
    ...perIp('developer code', context.request.ip, [5, 'minute'], [50, 'day']),
    ...perSubject('developer code', sha256(mailbox), [5, 'hour'], [20, 'day']),
  ])
  const code_id = randomUUID()
  const code_mac = codeMac(secrets, developerCode, mailbox, codeOf(secrets, developerCode, code_id))
  return context.call('code_request', { mailbox, code_id, code_mac })
}

/**
 * The code is the credential. An access token in addition means that the person who created the account proves its address: then the
 * unproved account keeps its password, sessions and tokens.
 */
export const verify = async (context: HandlerContext) => {
  const mailbox = await mailboxOf(context)
  await takeLimits(context, perIp('developer code check', context.request.ip, [20, 'minute'], [200, 'day']))
  const tokens = await signInTokens(context)
  const reply = await context.call('code_verify', {
    ...tokens.stored,
    mailbox,
    own_sid: await sessionHeld(context.request, context.services),
    code_mac: codeMac(context.services.secrets, developerCode, mailbox, context.body['code'] as string),
    ...visitor(context),
  })
  return reply.status === 200 ? withTokens(context, reply, tokens) : reply
}
