/** From a developer's sign-up to a signed delivery. */
import { verifySignature } from '#server/providers/outbound.ts'
import type { HttpsReceiver } from '#test/support/https.ts'
import { sendEvents } from '../../sdk/src/generated/client.ts'
import { createApp } from '../../sdk/src/index.ts'
import { type Ask, createAsk, DemoError, developerAndProject, type Headers, print, shown, until } from './world.ts'

type Posted = {
  readonly event: { id: string }
  readonly effects: { streaks?: readonly { key: string; current_count: number }[] }
}

const definitions = async (ask: Ask, admin: string, developer: Headers, targetUrl: string) => {
  print('\n3. She defines a streak: a day counts when a user posts the event "practised".')
  const streak = { key: 'daily', name: 'Daily practice', qualifying_event: 'practised' }
  await ask('POST', `${admin}/streaks`, streak, developer)

  print('\n4. And a webhook: the same event is sent on to her server, signed with a secret that is shown once.')
  const webhook = { event_name: 'practised', target_url: targetUrl }
  const { secret } = await ask<{ secret: string }>('POST', `${admin}/webhooks`, webhook, developer)
  return secret
}

const userAndEvent = async (ask: Ask, clientKey: string) => {
  print('\n5. In her app, with the client key, a user signs in without an identity.')
  const key = { 'x-api-key': clientKey }
  const { session_token } = await ask<{ session_token: string }>('POST', '/v1/client/auth/anonymous', {}, key)
  const user = { ...key, authorization: `Bearer ${session_token}` }

  print('\n6. The user practises. The answer says at once what that moved.')
  const practised = { event_name: 'practised', properties: { minutes: 20 } }
  const { event, effects } = await ask<Posted>('POST', '/v1/client/events', practised, user)
  const streak = effects.streaks?.[0]
  if (streak?.key !== 'daily' || streak.current_count !== 1) throw new DemoError('The event moved no streak.')
  return event.id
}

const withSdk = async (url: string, clientKey: string) => {
  print('\n8. The same in an app, with the SDK, for another user.')
  const app = createApp({ url, key: clientKey })
  const { userId } = await app.ensureSignedIn()
  const { data } = await app.call(sendEvents, { body: { event_name: 'practised', properties: { minutes: 20 } } })
  print(`   ${userId}`)
  print(shown(data))
  if (!('event' in data) || data.effects.streaks?.[0]?.change !== 'started')
    throw new DemoError('The event moved no streak.')
}

const delivery = async (receiver: HttpsReceiver, secret: string, eventId: string) => {
  print('\n7. Her server gets the delivery, and checks that it is ours.')
  const request = await until('The delivery', () => receiver.requests[0])
  print(`   ${request.method} ${receiver.url}`)
  for (const [name, value] of Object.entries(request.headers))
    if (name.startsWith('x-service-')) print(`     ${name}: ${value}`)
  const body = JSON.parse(request.body) as { data: { event: { id: string } } }
  print(shown(body))
  const isOurs = verifySignature(
    String(request.headers['x-service-signature']),
    secret,
    request.body,
    Math.floor(Date.now() / 1000),
  )
  if (!isOurs) throw new DemoError('The signature of the delivery is wrong.')
  if (body.data.event.id !== eventId) throw new DemoError('The delivery is about another event.')
  print('   The signature is right.')
}

export const runFirst = async (url: string, receiver: HttpsReceiver): Promise<void> => {
  const ask = createAsk(url)
  const { developer, admin, clientKey } = await developerAndProject(ask)
  const secret = await definitions(ask, admin, developer, receiver.url)
  const eventId = await userAndEvent(ask, clientKey)
  await delivery(receiver, secret, eventId)
  await withSdk(url, clientKey)
}
