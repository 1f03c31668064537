import { randomBytes, randomInt } from 'node:crypto'
import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { anyone, developer } from '#server/http/callers.ts'
import { asSignIn, perIp, perSubject, takeLimits } from '#server/http/limits.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { Credential, data, Line, Time } from '#server/http/schemas.ts'
import { SignedIn, signInTokens, visitor, withTokens } from '#server/http/sign-in.ts'
import { sha256 } from '#server/secrets.ts'

/** Consonants alone, as RFC 8628, 6.1 advises: no letter is taken for another one or for a digit, and no word comes out. */
const letters = 'BCDFGHJKLMNPQRSTVWXZ'
const lengthOfUserCode = 8
const lifetimeSeconds = 600
const intervalSeconds = 5

const UserCode = z.string().min(1, 'is required').max(40, 'must have at most 40 characters')

/** What is stored of a user code: 34 bits are guessed from a plain hash, so it is worth nothing without SECRETS_KEY. */
const userCodeMac = ({ services }: HandlerContext, code: string): string =>
  services.secrets.mac('device user code', code.toUpperCase().replace(/[\s-]/g, ''))

const create = async (context: HandlerContext) => {
  const { body, call, request, services } = context
  await takeLimits(context, perIp('device code', request.ip, [10, 'minute']))
  const device_code = randomBytes(32).toString('base64url')
  for (;;) {
    const code = Array.from({ length: lengthOfUserCode }, () => letters[randomInt(letters.length)]).join('')
    const stored = await call('device_grant_create', {
      device_hash: sha256(device_code),
      user_code_mac: userCodeMac(context, code),
      client_name: body['client_name'],
      ip: request.ip,
    })
    // two live grants never share a user code
    if (!dataOf<boolean>(stored)) continue
    const answer = {
      device_code,
      user_code: `${code.slice(0, 4)}-${code.slice(4)}`,
      verification_uri: `${services.publicUrl}/device`,
      expires_in: lifetimeSeconds,
      interval: intervalSeconds,
    }
    return { status: 200, body: JSON.stringify({ data: answer }) }
  }
}

const redeem = async (context: HandlerContext) => {
  await takeLimits(context, perIp('device token', context.request.ip, [120, 'minute']))
  const tokens = await signInTokens(context)
  const reply = await context.call('device_grant_redeem', {
    device_hash: sha256(context.body['device_code'] as string),
    ...tokens.stored,
    ...visitor(context),
  })
  return reply.status === 200 ? withTokens(context, reply, tokens) : reply
}

/** Guessing a user code is bounded for an account and for an address: both kinds of request count together. */
const takeGuess = (context: HandlerContext) =>
  takeLimits(asSignIn(context), [
    ...perIp('device user code', context.request.ip, [20, 'minute'], [200, 'day']),
    ...perSubject('device user code', context.resolved.developer?.developerId ?? '', [20, 'minute'], [200, 'day']),
  ])

const find = async (context: HandlerContext) => {
  await takeGuess(context)
  return context.call('device_grant_get', { user_code_mac: userCodeMac(context, context.body['user_code'] as string) })
}

const decide = async (context: HandlerContext) => {
  await takeGuess(context)
  const { user_code, approve } = context.body as { user_code: string; approve: boolean }
  return context.call('device_grant_approve', { user_code_mac: userCodeMac(context, user_code), approve })
}

const limited = { 429: ['RATE_LIMIT_EXCEEDED'] }

export const deviceGrants = area({
  stem: 'device_grants',
  title: 'Sign-in of tools',
  part: 'Platform',
  about: 'A tool without a browser shows a code, and a developer approves it at /device (RFC 8628).',
  source: 'supplement',
  scopeArea: 'account',
  routes: [
    ...group('/auth/developer', anyone, [
      route(
        'POST /device/code',
        'Start the sign-in of a tool: a code for the tool, and one that a developer enters at verification_uri',
        {
          handle: create,
          operationId: 'startDeviceSignIn',
          body: z.object({ client_name: Line(80, 1) }),
          example: { client_name: 'Command line on my laptop' },
          replies: {
            200: data(
              z.strictObject({
                device_code: z.string(),
                user_code: z.string(),
                verification_uri: z.string(),
                expires_in: z.int(),
                interval: z.int(),
              }),
            ),
          },
          refusals: limited,
          failure: 'CREATE_FAILED',
        },
      ),
      route(
        'POST /device/token',
        'Ask, once in each interval, whether the developer has approved; then the tool is signed in',
        {
          handle: redeem,
          operationId: 'pollDeviceSignIn',
          body: z.object({ device_code: Credential }),
          example: { device_code: 'Gx2…' },
          replies: { 200: SignedIn },
          refusals: { 400: ['AUTHORIZATION_PENDING', 'SLOW_DOWN', 'EXPIRED_TOKEN', 'ACCESS_DENIED'], ...limited },
          failure: 'LOGIN_FAILED',
        },
      ),
      route(
        'POST /device/find',
        'Which tool waits under a user code, and where it asked from: what a developer reads before approving',
        {
          handle: find,
          operationId: 'findDeviceSignIn',
          caller: developer,
          sessionOnly: true,
          readOnly: true,
          body: z.object({ user_code: UserCode }),
          example: { user_code: 'BCDF-GHJK' },
          replies: {
            200: data(
              z.strictObject({
                client_name: z.string(),
                ip: z.string().nullable(),
                created_at: Time,
                expires_at: Time,
              }),
            ),
          },
          refusals: { 404: ['NOT_FOUND'], ...limited },
        },
      ),
      route('POST /device/approve', 'Approve or refuse the tool that shows this user code', {
        handle: decide,
        operationId: 'decideDeviceSignIn',
        caller: developer,
        sessionOnly: true,
        body: z.object({ user_code: UserCode, approve: z.boolean() }),
        example: { user_code: 'BCDF-GHJK', approve: true },
        replies: { 200: data(z.strictObject({ approved: z.boolean() })) },
        refusals: { 404: ['NOT_FOUND'], ...limited },
      }),
    ]),
  ],
})
