import { z } from 'zod'
import { create, decide, find, redeem } from '#server/accounts/device_grants.ts'
import { SignedIn } from '#server/accounts/sign_in.ts'
import { anyone, developer } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { Credential, data, Line, Time } from '#server/http/schemas.ts'

const UserCode = z.string().min(1, 'is required').max(40, 'must have at most 40 characters')

const limited = { 429: ['RATE_LIMIT_EXCEEDED'] }

export const deviceGrants = area({
  stem: 'device_grants',
  title: 'Sign-in of tools',
  part: 'Platform',
  about: 'A tool without a browser shows a code, and a developer approves it at /device (RFC 8628).',
  scopeArea: 'account',
  words: {
    client_name: ['Tool', 'What asks, such as `trellis cli`.'],
    device_code: ['Device code', 'The secret code that the tool got.'],
    user_code: ['Code', 'The code that the tool shows.'],
    approve: ['Approve', 'True signs the tool in as you; false refuses it.'],
  },
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
