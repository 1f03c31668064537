import { hash, randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { afterEach, expect } from 'vitest'
import { type Client, startHarness } from '#test/support/harness.ts'
import { type ReceivedRequest, startHttpsReceiver } from '#test/support/https.ts'

export type Handler = (response: ServerResponse, request: ReceivedRequest) => unknown

export const answering =
  (status: number, headers: Record<string, string> = {}, body = ''): Handler =>
  (response) =>
    response.writeHead(status, headers).end(body)

/** What a receiver does, after RFC 2104 and by hand: an implementation that shares nothing with the one that signs. */
export const isSigned = (request: ReceivedRequest, secret: string): boolean => {
  const [, time, given] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(request.headers['x-service-signature'])) ?? []
  const key = Buffer.alloc(64)
  key.write(secret)
  const xor = (byte: number) => key.map((each) => each ^ byte)
  const inner = Buffer.concat([xor(0x36), Buffer.from(`${time}.${request.body}`)])
  const outer = Buffer.concat([xor(0x5c), Buffer.from(hash('sha256', inner, 'hex'), 'hex')])
  return hash('sha256', outer, 'hex') === given
}

/**
 * A project, a real receiver that answers as `say` tells it, and a clock that stands still from `start` on. Between tests all
 * subscriptions go, and the time begins anew.
 */
export const startWebhooks = async (env: Record<string, string> = {}) => {
  const start = '2026-12-01T10:00:00.000Z'
  let handler: Handler = answering(200, {}, 'ok')
  const receiver = await startHttpsReceiver({ handler: (request, response) => handler(response, request) })
  const harness = await startHarness({
    env: { WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.caFile, ...env },
  })
  harness.setTime(start)
  const project = await harness.project()
  const { id: userId } = await project.user()
  const server = project.onBehalfOf(userId)

  afterEach(async () => {
    handler = answering(200, {}, 'ok')
    harness.setTime(start)
    receiver.requests.splice(0)
    await project.sql('delete from app.webhooks')
    await project.sql('delete from app.webhook_deliveries')
    await project.sql('delete from app.outbox')
  })

  const watch = async (fields: object = {}) => {
    const { status, data } = await project.admin.post('/webhooks', {
      event_name: 'paid',
      target_url: receiver.url,
      ...fields,
    })
    expect(status).toBe(201)
    return data
  }
  const fire = async (times = 1, event_name = 'paid') => {
    const events = Array.from({ length: times }, () => ({ id: randomUUID(), event_name }))
    expect((await server.post('/client/events', { events })).status).toBe(201)
    return events.map(({ id }) => id)
  }
  const all = () => project.sql('select * from app.webhook_deliveries order by created_at, id')
  const hookStatus = async (id: string): Promise<string> =>
    (await project.sql('select status from app.webhooks where id = $1', [id]))[0]?.status
  /** So that the next failure is the last of each series. */
  const lastTry = () =>
    project.sql(
      `update app.webhook_deliveries set series_attempts = 8 where status = 'pending' and series_attempts < 8`,
    )
  /** Events that end in dlq, now. */
  const giveUp = async (times: number) => {
    handler = answering(500)
    const ids = await fire(times)
    await lastTry()
    await project.drain()
    return ids
  }
  /** Developer tokens live for 24 hours: a fresh one, by the clock as it stands. */
  const signIn = async (): Promise<Client> => {
    const { data } = await harness.anyone.post('/auth/developer/login', {
      email: project.developer.email,
      password: 'a long passphrase',
    })
    return project.admin.with({ authorization: `Bearer ${data.access_token}` })
  }
  const breaker = async (id: string) =>
    (await project.sql('select * from app.webhook_breakers where webhook_id = $1', [id]))[0]
  /** A subscription that has just degraded, its five deliveries forgotten. */
  const degraded = async () => {
    const hook = await watch()
    await giveUp(5)
    expect(await hookStatus(hook.id)).toBe('degraded')
    await project.sql('delete from app.webhook_deliveries')
    receiver.requests.splice(0)
    return hook
  }
  const switchOn = async (id: string) => {
    const answer = await (await signIn()).patch(`/webhooks/${id}`, { status: 'active' })
    expect([answer.status, answer.data.status]).toEqual([200, 'active'])
  }
  return {
    start,
    receiver,
    harness,
    project,
    server,
    watch,
    fire,
    all,
    hookStatus,
    lastTry,
    giveUp,
    signIn,
    breaker,
    degraded,
    switchOn,
    say(next: Handler) {
      handler = next
    },
    outbox: (task = 'webhooks__deliver') => project.sql('select * from app.outbox where task = $1', [task]),
  }
}
