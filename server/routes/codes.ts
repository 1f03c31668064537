import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { codeMac, codeOf, developerCode } from '#server/derived_codes.ts'
import { anyone } from '#server/http/callers.ts'
import { sessionHeld } from '#server/http/credentials.ts'
import { perIp, perSubject, takeLimits } from '#server/http/limits.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { data, Email } from '#server/http/schemas.ts'
import { SignedIn, signInTokens, visitor, withTokens } from '#server/http/sign-in.ts'
import { sha256 } from '#server/secrets.ts'

const mailboxOf = async ({ call, body }: HandlerContext) =>
  dataOf<{ mailbox: string }>(await call('code_mailbox', { email: body['email'] }, { readOnly: true })).mailbox

/** The same steps for an address with an account and for one without: neither the response nor its duration reveals which it is (user enumeration). */
const request = async (context: HandlerContext) => {
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
const verify = async (context: HandlerContext) => {
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

/** Six digits, with spaces anywhere. */
const Code = z
  .string()
  .max(100, 'must be six digits')
  .transform((code) => code.replace(/\s/g, ''))
  .refine((code) => /^[0-9]{6}$/.test(code), 'must be six digits')

export const codes = area({
  stem: 'codes',
  title: 'Sign-in codes',
  part: 'People',
  about: 'Sign-in of developers with a code by mail.',
  source: 'contract',
  invalid: 'INVALID_INPUT',
  routes: [
    ...group('/auth/developer', anyone, [
      route(
        'POST /otp/request',
        'Request a sign-in code by mail; the response does not reveal whether there is an account',
        {
          handle: request,
          operationId: 'requestDeveloperCode',
          body: z.object({ email: Email }),
          example: { email: 'you@example.com' },
          replies: { 200: data(z.strictObject({ ok: z.literal(true) })) },
          refusals: { 429: ['RATE_LIMIT_EXCEEDED'] },
          failure: 'OTP_REQUEST_FAILED',
        },
      ),
      route('POST /otp/verify', 'Sign in with the code of the mail, which marks the address verified', {
        handle: verify,
        operationId: 'signInDeveloperWithCode',
        description:
          'The first proof of an address reclaims the account: its former password, sessions and personal access tokens end. They are kept if the request has an access token of the account, or comes within an hour of a sign-in from the same IP address.',
        body: z.object({ email: Email, code: Code }),
        example: { email: 'you@example.com', code: '123 456' },
        replies: { 200: SignedIn },
        refusals: { 401: ['OTP_INVALID'], 429: ['RATE_LIMIT_EXCEEDED'] },
        failure: 'OTP_VERIFY_FAILED',
      }),
    ]),
  ],
})
