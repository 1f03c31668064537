import { randomBytes, randomUUID } from 'node:crypto'
import { z } from 'zod'
import { appKey } from '#server/http/callers.ts'
import { acceptedArray } from '#server/http/languages.ts'
import { perIp, takeLimits } from '#server/http/limits.ts'
import { Code, type CodeScope, codeHash, newCode, Phone, sealPurpose } from '#server/http/one_time_codes.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { Credential, Email } from '#server/http/schemas.ts'
import { AuthResult, Ok, projectOf, sessionCaller, signIn } from '#server/routes/client_auth/result.ts'
import { sha256 } from '#server/secrets.ts'

/** The database counts requests by address, in the request's own transaction: over the limit nothing is sent, and the response is the same. */
const requestsPerIp = (context: HandlerContext, what: string) =>
  takeLimits(context, perIp(`client ${what}`, context.request.ip, [10, 'minute'], [200, 'day']), 'RATE_LIMITED')

type Purpose = CodeScope['purpose']
const purpose = z.enum(['sign_in', 'link', 'delete']).default('sign_in')

/** A code for an address. For the purposes that need a session, the calling session requests it. */
const requestCode = async (context: HandlerContext, channel: CodeScope['channel']) => {
  const { services, resolved, request, body, route } = context
  const { purpose } = body as { purpose: Purpose }
  const address = body[channel] as string
  const as = purpose === 'sign_in' ? resolved : await sessionCaller.resolve(request, services, route)
  await requestsPerIp(context, 'code request')
  const { projectId } = projectOf(resolved)
  const [id, code] = [randomUUID(), newCode()]
  const scope = { projectId, purpose, channel, address, userId: as.claims.userId ?? null }
  return context.call(
    'auth_code_request',
    {
      id,
      channel,
      address,
      purpose,
      secret_hash: codeHash(services.secrets, scope, code),
      sealed: services.secrets.encrypt(sealPurpose(projectId, id), code),
      locales: acceptedArray(request),
    },
    { as },
  )
}

const verifyCode = async (context: HandlerContext, channel: CodeScope['channel']) => {
  const address = context.body[channel] as string
  await takeLimits(context, perIp('client code verify', context.request.ip, [20, 'minute']), 'RATE_LIMITED')
  const { projectId } = projectOf(context.resolved)
  const scope = { projectId, purpose: 'sign_in', channel, address, userId: null } as const
  return signIn(context, 'auth_code_sign_in', {
    channel,
    address,
    secret_hash: codeHash(context.services.secrets, scope, context.body['code'] as string),
  })
}

const requestMagicLink = async (context: HandlerContext) => {
  const { services, resolved, body } = context
  await requestsPerIp(context, 'magic link')
  const [id, token] = [randomUUID(), randomBytes(32).toString('base64url')]
  return context.call('auth_magic_link_request', {
    id,
    email: body['email'],
    secret_hash: sha256(token),
    sealed: services.secrets.encrypt(sealPurpose(projectOf(resolved).projectId, id), token),
    locales: acceptedArray(context.request),
  })
}

const sessionRefusals = { 401: ['TOKEN_EXPIRED'], 403: ['SESSION_REQUIRED'] }

export const clientAuthCodes = area({
  stem: 'client_auth',
  title: 'Sign-in without a password',
  part: 'People',
  about: 'Codes by mail and text message, and magic links.',
  source: 'contract',
  invalid: 'INVALID_INPUT',
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
        replies: { 200: AuthResult, 201: AuthResult },
        refusals: { 401: ['INVALID_TOKEN'], 403: ['USER_BANNED'] },
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
        replies: { 200: AuthResult, 201: AuthResult },
        refusals: { 400: ['PROVIDER_NOT_CONFIGURED'], 401: ['OTP_INVALID'], 403: ['USER_BANNED'] },
        failure: 'OTP_VERIFY_FAILED',
      }),
    ]),
  ],
})
