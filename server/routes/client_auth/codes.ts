import { z } from 'zod'
import { requestCode, requestMagicLink, verifyCode } from '#server/accounts/codes.ts'
import { Code, Phone } from '#server/accounts/one_time_codes.ts'
import { signIn } from '#server/accounts/sessions.ts'
import { appKey } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { Credential, Email } from '#server/http/schemas.ts'
import { AuthResult, authWords, Ok } from '#server/routes/client_auth/shapes.ts'
import { sha256 } from '#server/secrets.ts'

const purpose = z.enum(['sign_in', 'link', 'delete']).default('sign_in')

const sessionRefusals = { 401: ['TOKEN_EXPIRED'], 403: ['SESSION_REQUIRED'] }

export const clientAuthCodes = area({
  stem: 'client_auth',
  title: 'Sign-in without a password',
  part: 'People',
  about: 'Codes by mail and text message, and magic links.',
  codes: 'by area',
  invalid: 'INVALID_INPUT',
  words: authWords,
  routes: [
    ...group('/client/auth', appKey, [
      route('POST /magic-link/request', 'Send a sign-in link by mail (magic link)', {
        handle: requestMagicLink,
        operationId: 'requestMagicLink',
        description:
          'Returns 200 whether or not the address has an account, and also when its hourly limit is reached.',
        body: z.object({ email: Email }),
        example: { email: 'user@example.com' },
        replies: { 200: Ok },
        failure: 'OTP_REQUEST_FAILED',
      }),
      route('POST /magic-link/verify', 'Sign in with the token of a mailed link, once', {
        operationId: 'signInWithMagicLink',
        body: z.object({ token: Credential }),
        example: { token: 'q3J…' },
        handle: (context) =>
          signIn(context, 'auth_magic_link_verify', { token_hash: sha256(context.body['token'] as string) }),
        calls: ['auth_magic_link_verify'],
        replies: { 200: AuthResult, 201: AuthResult },
        failure: 'OTP_VERIFY_FAILED',
      }),
      route('POST /email/otp/request', 'Send a six-digit code by mail', {
        handle: (context) => requestCode(context, 'email'),
        operationId: 'requestEmailCode',
        description:
          'With `purpose` `link` or `delete` the request needs the Bearer of a session, for which the code is valid. Returns 200 whether or not a mail is sent.',
        body: z.object({ email: Email, purpose }),
        example: { email: 'user@example.com' },
        refusals: sessionRefusals,
        replies: { 200: Ok },
        failure: 'OTP_REQUEST_FAILED',
      }),
      route('POST /email/otp/verify', 'Sign in with a mailed code', {
        operationId: 'signInWithEmailCode',
        body: z.object({ email: Email, code: Code }),
        example: { email: 'user@example.com', code: '123456' },
        handle: (context) => verifyCode(context, 'email'),
        replies: { 200: AuthResult, 201: AuthResult },
        refusals: { 401: ['OTP_INVALID'], 403: ['USER_BANNED'] },
        failure: 'OTP_VERIFY_FAILED',
      }),
      route('POST /phone/otp/request', 'Send a six-digit code as a text message', {
        handle: (context) => requestCode(context, 'phone'),
        operationId: 'requestPhoneCode',
        description:
          'Needs the `sms` integration. With `purpose` `link` or `delete` it needs the Bearer of a session, for which the code is valid.',
        body: z.object({ phone: Phone, purpose }),
        example: { phone: '+4915112345678' },
        refusals: { ...sessionRefusals, 400: ['PROVIDER_NOT_CONFIGURED'] },
        replies: { 200: Ok },
        failure: 'OTP_REQUEST_FAILED',
      }),
      route('POST /phone/otp/verify', 'Sign in with a code from a text message', {
        operationId: 'signInWithPhoneCode',
        body: z.object({ phone: Phone, code: Code }),
        example: { phone: '+4915112345678', code: '123456' },
        handle: (context) => verifyCode(context, 'phone'),
        calls: ['auth_code_sign_in'],
        replies: { 200: AuthResult, 201: AuthResult },
        failure: 'OTP_VERIFY_FAILED',
      }),
    ]),
  ],
})
