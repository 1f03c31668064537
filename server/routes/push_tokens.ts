import { z } from 'zod'
import { refusal } from '#server/errors.ts'
import { administrator, endUser } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { data, Page, page, Time, Uuid } from '#server/http/schemas.ts'

const Token = z
  .string()
  .regex(/^[!-~]{1,2048}$/, 'must be 1 to 2048 printable ASCII characters')
  .meta({ minLength: 1, maxLength: 2048 })
const Platform = z.enum(['ios', 'android'], 'must be ios or android')

const PushToken = answer('push_token_json', { provider: z.enum(['apns', 'fcm']) })

const Device = z.strictObject({
  id: Uuid,
  platform: Platform,
  provider: z.enum(['apns', 'fcm']),
  is_active: z.boolean(),
  token_end: z.string(),
  created_at: Time,
  updated_at: Time,
})

/** In the body, or in the query for clients that drop the bodies of DELETE. */
const unregister = ({ body, query, call }: HandlerContext) => {
  const token = body['token'] ?? query['token']
  if (token === undefined) {
    throw refusal(400, 'INVALID_INPUT', 'token: is required', { field: 'token', reason: 'is required' })
  }
  return call('push_token_unregister', { token }, { readOnly: false })
}

export const pushTokens = area({
  stem: 'push_tokens',
  title: 'Push tokens',
  part: 'Reach',
  about: 'The devices to which notifications of a user go.',
  codes: 'by area',
  invalid: 'INVALID_INPUT',
  words: {
    token: ['Token', 'As the device got it from Apple or Google.'],
    platform: ['Platform', 'Of the device.'],
  },
  routes: [
    ...group('/client/users', endUser, [
      route('POST /me/push-token', 'Register a device for push; a token belongs to whoever registered it last', {
        call: 'push_token_register',
        operationId: 'registerPushToken',
        body: z.object({ token: Token, platform: Platform }),
        example: { token: 'c2f1e0aa', platform: 'ios' },
        replies: { 200: data(PushToken) },
        failure: 'REGISTER_FAILED',
      }),
      route('DELETE /me/push-token', 'Unregister a device of the caller; the response is the same for other devices', {
        handle: unregister,
        operationId: 'deletePushToken',
        query: { token: Token.optional() },
        body: z.object({ token: Token.optional() }),
        example: { token: 'c2f1e0aa' },
        replies: { 200: data(z.strictObject({ unregistered: z.literal(true) })) },
        failure: 'UNREGISTER_FAILED',
      }),
    ]),
    ...group('/admin/projects/:projectId/users', administrator, [
      route('GET /:userId/devices', 'Devices that a user has registered for push, newest first', {
        call: 'user_devices',
        codes: 'by part',
        scope: 'push:read',
        description: '`token_end`: the last six characters of the token, which is not shown.',
        query: Page,
        replies: { 200: page(Device) },
      }),
    ]),
  ],
})
