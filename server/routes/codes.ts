import { z } from 'zod'
import { request, verify } from '#server/accounts/developer_codes.ts'
import { SignedIn } from '#server/accounts/sign_in.ts'
import { anyone } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { data, Email } from '#server/http/schemas.ts'

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
  codes: 'by area',
  invalid: 'INVALID_INPUT',
  words: {
    code: ['Code', 'Six digits from the mail.'],
  },
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
        calls: ['code_mailbox', 'code_verify'],
        operationId: 'signInDeveloperWithCode',
        description:
          'The first proof of an address reclaims the account: its former password, sessions and personal access tokens end. They are kept if the request has an access token of the account, or comes within an hour of a sign-in from the same IP address.',
        body: z.object({ email: Email, code: Code }),
        example: { email: 'you@example.com', code: '123 456' },
        replies: { 200: SignedIn },
        refusals: { 429: ['RATE_LIMIT_EXCEEDED'] },
        failure: 'OTP_VERIFY_FAILED',
      }),
    ]),
  ],
})
