import type { ServerResponse } from 'node:http'
import { afterEach, expect, test, vi } from 'vitest'
import { targetOf } from '#server/database/cluster.ts'
import { createPools } from '#server/database/pools.ts'
import { bookings, shareOf } from '#server/database/shares.ts'
import { type Asked, eventsIn, hello, startAi, usual } from '#test/support/ai.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

/** What a provider was paid for is booked, whatever its user does meanwhile. */
const { provider, harness, project, admin, prompt } = await startAi()
await admin.post('/collections', {
  name: 'notes',
  read_policy: 'public',
  columns: [{ name: 'near', type: 'vector', dimensions: 3 }],
})
await admin.put('/billing/spend-ceiling', { amount_usd: 1000 })
const busy = await prompt()
afterEach(() => harness.setTime(null))

/** What an end user may cause a provider to be paid for. */
const paid = {
  'a prompt': (user: any, name: string) => user.post(`/client/ai/prompts/${name}/invoke`, hello),
  'a stream': (user: any, name: string) => user.post(`/client/ai/prompts/${name}/invoke`, { ...hello, stream: true }),
  'a prompt, by the app’s server': (user: any, name: string) =>
    project.onBehalfOf(user.id).post(`/client/ai/prompts/${name}/invoke`, hello),
  'a search by text': (user: any) =>
    user.post('/client/collections/notes/find-nearest', { column: 'near', text: 'a cat' }),
}

test.each(Object.keys(paid) as (keyof typeof paid)[])(
  '%s is booked while its user’s other calls wait',
  async (what) => {
    const user = await project.user()
    const name = await prompt()
    const waiting: [Asked, ServerResponse][] = []
    provider.answer((asked, response) => waiting.push([asked, response]))
    const answer = paid[what](user, name)
    await expect.poll(() => waiting.length).toBe(1)
    // calls under a ceiling are admitted one after the other: these hold what connections one user may have
    const holder = await openTransaction(project, 'app_worker', {})
    await holder.query('select internal.spend_check(false, 0)')
    const slow = [1, 2].map(() => user.post(`/client/ai/prompts/${busy}/invoke`, hello))
    await untilBlocked(project, 2)
    const [asked, response] = waiting[0]!
    usual(asked, response)
    await vi.waitFor(
      async () => {
        const [row] = await project.sql(
          `select status, cost_usd > 0 as has_cost from app.ai_invocations where app_user_id = $1 order by created_at limit 1`,
          [user.id],
        )
        expect(row).toEqual({ status: 'succeeded', has_cost: true })
      },
      { timeout: 10_000, interval: 20 },
    )
    await holder.commit()
    const { status, text } = await answer
    expect(status, text).toBe(200)
    if (what === 'a stream') expect(eventsIn(text).at(-1)?.event).toBe('done')
    await expect.poll(() => waiting.length).toBe(3)
    for (const [asked, response] of waiting.slice(1)) usual(asked, response)
    await Promise.all(slow)
  },
)

test('a booking is served first, as soon as any other call is done', async () => {
  const { cluster } = harness.running.services.control
  const target = (role: 'app_user' | 'app_worker') =>
    targetOf(cluster, project.database, role, harness.running.services.secrets)
  const pools = createPools({ total: 40, perTenant: 6, waitMs: 20_000, clock: () => 0 })
  // two of the users, one of each other kind, and another one of background work waits
  const roles = ['app_user', 'app_user', 'app_auth', 'app_server', 'app_admin', 'app_worker'] as const
  const held = []
  for (const role of roles) held.push(await pools.lease(target('app_user'), shareOf(role, undefined)))
  const served: string[] = []
  const next = [shareOf('app_user', undefined), shareOf('app_worker', undefined), bookings].map(async (share) => {
    const lease = await pools.lease(target('app_worker'), share)
    served.push(share.kind)
    lease.release()
  })
  expect(pools.state(1).callers.bookings).toEqual({ leases: 0, waiters: 1 })
  held[0]?.release()
  await next[2]
  expect(served).toEqual(['bookings'])
  for (const lease of held) lease.release()
  await Promise.all(next)
  await pools.close()
})

const day = 86_400
const begin = async (caller: object, name: string, more = '') => {
  await project.as(
    'app_worker',
    { ...caller, 'app.clock': harness.now().toISOString() },
    `select api.ai_begin($1, true, 'invoke', '{}', 'Hello', 5, 0, true, null, '10.0.0.1', true, '{}', false${more})`,
    [name],
  )
  const [row] = await project.sql('select id, reserved_usd::float from app.ai_invocations where prompt = $1', [name])
  return row as { id: string; reserved_usd: number }
}

test.each([
  ['a whole answer', '', 1],
  ['a stream, whose text may have been read', ', true', 0],
])('%s, whose server crashed before it was booked, costs what was reserved', async (_what, more, left) => {
  const code = `COIN${left}`
  await admin.post('/currencies', { code, name: 'Coins' })
  const payer = await project.user()
  const adjustments = [{ currency_code: code, amount: 1 }]
  await admin.post('/currencies/transactions', { app_user_id: payer.id, adjustments, reason: 'test' })
  const name = await prompt({ cost: { currency_code: code, amount: 1 } })
  harness.setTime('2027-03-05T23:50:00Z')
  const balance = async () =>
    Number(
      (await project.sql('select balance from app.currency_balances where app_user_id = $1', [payer.id]))[0].balance,
    )
  const { id, reserved_usd } = await begin({ 'app.caller': 'user', 'app.user_id': payer.id }, name, more)
  expect(reserved_usd).toBeGreaterThan(0)
  await project.drain()
  expect(await balance()).toBe(0)
  harness.advance(15 * 60 + 1)
  await project.drain()
  const [row] = await project.sql(
    'select status, error_code, is_estimated, input_tokens::int, cost_usd::float from app.ai_invocations where id = $1',
    [id],
  )
  const ended = { status: 'failed', error_code: 'ABANDONED', is_estimated: true, input_tokens: 0 }
  expect(row).toEqual({ ...ended, cost_usd: reserved_usd })
  expect(await balance()).toBe(left)
  const booked = () =>
    project.sql(
      `select d.day::text, d.spend_usd::float, d.calls::int from app.ai_prompt_days d join app.ai_prompts p on p.id = d.prompt_id where p.name = $1`,
      [name],
    )
  expect(await booked()).toEqual([{ day: '2027-03-05', spend_usd: reserved_usd, calls: 1 }])
  // its server comes to its end after all: what it cost takes the place of the reservation
  await project.as(
    'app_worker',
    { 'app.caller': 'user', 'app.user_id': payer.id },
    `select api.ai_finish($1, 'cancelled', 12, 34, false)`,
    [id],
  )
  const cost = (12 * 0.15 + 34 * 0.6) / 1e6
  expect(await booked()).toEqual([{ day: '2027-03-05', spend_usd: cost, calls: 1 }])
  expect(await balance()).toBe(left)
})

test('until it is booked, an abandoned call holds its reservation in its period, and not in the next one', async () => {
  const name = await prompt({ max_tokens: 1000 })
  await admin.put(`/ai/prompts/${name}/budget`, { budget_usd: 0.0007, budget_period: 'daily' })
  harness.setTime('2027-03-10T12:00:00Z')
  await begin({ 'app.caller': 'server_key' }, name)
  const again = () =>
    project.as(
      'app_worker',
      { 'app.caller': 'server_key', 'app.clock': harness.now().toISOString() },
      `select api.ai_begin($1, true, 'invoke', '{}', 'Hello', 5, 0, true, null, '10.0.0.1', true, '{}')`,
      [name],
    )
  harness.advance(16 * 60)
  await expect(again()).rejects.toThrow()
  harness.advance(day)
  await again()
})
