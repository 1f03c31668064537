import { afterEach, describe, expect, test } from 'vitest'
import { hello, startAi, usual } from '#test/support/ai.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { newEmail } from '#test/support/sign_in.ts'
import { meetingBehind } from '#test/support/transaction.ts'

/** The most that the calls of a project may cost in a month. */
const { provider, harness, project, admin, prompt } = await startAi()
const user = await project.user()
await admin.post('/collections', {
  name: 'notes',
  read_policy: 'public',
  columns: [{ name: 'near', type: 'vector', dimensions: 3 }],
})
const name = await prompt()
afterEach(async () => {
  harness.setTime(null)
  await ceiling(null)
})

const ceiling = async (amount_usd: number | null) => {
  const owner = await harness.signIn(project.developer)
  const answer = await owner.put(`/admin/projects/${project.id}/billing/spend-ceiling`, { amount_usd })
  expect([answer.status, answer.data], answer.text).toEqual([200, { spend_ceiling_usd: amount_usd }])
}
/** As the app's server, whose key no passing of time ends. */
const invoke = () => project.onBehalfOf(user.id).post(`/client/ai/prompts/${name}/invoke`, hello)
const mail = () => ({ to: newEmail(), subject: 'Hello', text: 'Hello' })
const near = { column: 'near', text: 'a cat' }
/** Everything that a provider is paid for. */
const costly = {
  'a prompt': () => invoke(),
  'a prompt, of an administrator': () => admin.post(`/ai/prompts/${name}/invoke`, hello),
  'native messages': () =>
    admin.post('/ai/messages', { provider: 'openai', body: { model: 'gpt-4o-mini', max_tokens: 5, ...hello } }),
  embeddings: () => admin.post('/ai/embeddings', { provider: 'openai', model: 'text-embedding-3-small', input: 'a' }),
  'a search by text': () => user.post('/client/collections/notes/find-nearest', near),
  'a search by text, of an administrator': () => admin.post('/collections/notes/find-nearest', near),
  'a mail': () => admin.post('/email/send', mail()),
  mails: () => admin.post('/email/send-batch', { messages: [mail()] }),
}

describe('the spend ceiling', () => {
  test('is a number or null', async () => {
    const put = (body: object) => admin.put('/billing/spend-ceiling', body)
    for (const amount_usd of [-1, '5', 1e10, true])
      expectRefusal(await put({ amount_usd }), 400, 'VALIDATION_ERROR', 'amount_usd')
    expectRefusal(await put({}), 400, 'VALIDATION_ERROR', 'amount_usd')
    expect((await put({ amount_usd: 12.5 })).data).toEqual({ spend_ceiling_usd: 12.5 })
    expect((await admin.get('/billing')).data).toMatchObject({ spend_ceiling_usd: 12.5, comped: false })
    await put({ amount_usd: 12.5 })
    await put({ amount_usd: null })
    expect((await admin.get('/billing')).data).toMatchObject({ spend_ceiling_usd: null })
    const trail = await project.sql(
      `select changes from app.audit_events where action = 'billing.update' order by position`,
    )
    expect(trail.map(({ changes }) => changes)).toEqual([
      { spend_ceiling_usd: [null, 12.5] },
      { spend_ceiling_usd: [12.5, null] },
    ])
  })

  test.each(Object.keys(costly) as (keyof typeof costly)[])('refuses %s before anybody is called', async (what) => {
    provider.answer()
    await ceiling(0)
    const refused = await costly[what]()
    expectRefusal(refused, 402, 'SPEND_CEILING_REACHED')
    // how much that is concerns administrators
    expect(refused.error?.details).toBeUndefined()
    expect(provider.asked).toHaveLength(0)
    expect(await project.sql('select from app.outbox where task = $1', ['email__send'])).toEqual([])
    await ceiling(null)
    const { status, text } = await costly[what]()
    expect(status, text).toBeLessThan(300)
    await project.sql(`delete from app.outbox where task = 'email__send'`)
  })

  test('ends with the month', async () => {
    provider.answer()
    harness.setTime('2027-01-31T23:00:00Z')
    expect((await invoke()).status).toBe(200)
    const { used } = (await (await harness.signIn(project.developer)).get(`/admin/projects/${project.id}/billing`)).data
      .usage.ai_spend_usd
    expect(used).toBeGreaterThan(0)
    await ceiling(used)
    expectRefusal(await invoke(), 402, 'SPEND_CEILING_REACHED')
    harness.setTime('2027-02-01T00:00:01Z')
    // a call reserves the most that it may cost
    await ceiling(1)
    expect((await invoke()).status).toBe(200)
  })

  test('does not hold for a comped project', async () => {
    provider.answer()
    await ceiling(0)
    await harness.control('update app.projects set comped = true where id = $1', [project.id])
    harness.running.services.projectCache.drop(`project:${project.id}`)
    for (const call of Object.values(costly)) expect((await call()).status).toBeLessThan(300)
    await harness.control('update app.projects set comped = false where id = $1', [project.id])
    harness.running.services.projectCache.drop(`project:${project.id}`)
    expectRefusal(await invoke(), 402, 'SPEND_CEILING_REACHED')
  })

  test('is never passed by calls at once: each counts what those before it have reserved', async () => {
    provider.answer()
    // calls of one prompt would wait for each other in any case, and so would those of one user
    const prompts = await Promise.all(Array.from({ length: 5 }, () => prompt({ max_tokens: 1000 })))
    const callers = await Promise.all(Array.from({ length: 20 }, () => project.user()))
    const call = (n: number) =>
      project.onBehalfOf(callers[n]?.id ?? '').post(`/client/ai/prompts/${prompts[n % 5]}/invoke`, hello)
    const spent = async () => (await admin.get('/billing')).data.usage.ai_spend_usd.used as number
    const before = await spent()
    // the most that the 1,000 tokens of an answer may cost: a call reserves its question too
    const reserve = (1000 * 0.6) / 1e6
    await ceiling(before + reserve)
    expectRefusal(await call(0), 402, 'SPEND_CEILING_REACHED')
    await ceiling(before + reserve * 5.5)
    // the provider answers nobody before every call was admitted or refused
    const gate = Promise.withResolvers<void>()
    provider.answer(async (asked, response) => {
      await gate.promise
      usual(asked, response)
    })
    let refused = 0
    const calls = callers.map(async (_, n) => {
      const { status } = await call(n)
      if (status === 402) refused += 1
      return status
    })
    await expect.poll(() => refused + provider.asked.length, { timeout: 30_000 }).toBe(20)
    expect(provider.asked.length).toBe(5)
    gate.resolve()
    expect((await Promise.all(calls)).filter((status) => status === 200)).toHaveLength(5)
    expect(await spent()).toBeLessThanOrEqual(before + reserve * 5.5)
  })

  test.each([
    {
      what: 'native messages',
      reserve: (1000 * 0.6) / 1e6,
      call: () =>
        admin.post('/ai/messages', { provider: 'openai', body: { model: 'gpt-4o-mini', max_tokens: 1000, ...hello } }),
    },
    {
      what: 'streams of native messages',
      reserve: (1000 * 0.6) / 1e6,
      call: () =>
        admin.post('/ai/messages', {
          provider: 'openai',
          body: { model: 'gpt-4o-mini', max_completion_tokens: 500, n: 2, stream: true, ...hello },
        }),
    },
    {
      what: 'embeddings',
      reserve: (5000 * 0.02) / 1e6,
      call: () =>
        admin.post('/ai/embeddings', {
          provider: 'openai',
          model: 'text-embedding-3-small',
          input: Array.from({ length: 5 }, () => 'a'.repeat(1000)),
        }),
    },
    {
      what: 'searches by text',
      reserve: (1000 * 0.02) / 1e6,
      call: (caller: string) =>
        project
          .onBehalfOf(caller)
          .post('/client/collections/notes/find-nearest', { column: 'near', text: 'a'.repeat(1000) }),
    },
  ])('is never passed by $what at once', async ({ reserve, call }) => {
    const callers = await Promise.all(Array.from({ length: 12 }, () => project.user()))
    // with what other tests have spent in months to come
    const spent = async () => (await project.sql('select internal.spend_month()::float as spend'))[0].spend as number
    const before = await spent()
    await ceiling(before + reserve * 0.99)
    provider.answer()
    expectRefusal(await call(callers[0]!.id), 402, 'SPEND_CEILING_REACHED')
    expect(provider.asked).toHaveLength(0)
    await ceiling(before + reserve * 3.5)
    const gate = Promise.withResolvers<void>()
    provider.answer(async (asked, response) => {
      await gate.promise
      usual(asked, response)
    })
    let refused = 0
    const calls = callers.map(async ({ id }) => {
      const { status } = await call(id)
      if (status === 402) refused += 1
      return status
    })
    await expect.poll(() => refused + provider.asked.length, { timeout: 30_000 }).toBe(12)
    expect(provider.asked).toHaveLength(3)
    gate.resolve()
    expect((await Promise.all(calls)).filter((status) => status === 200)).toHaveLength(3)
    await expect.poll(async () => (await admin.get('/ai/invocations?status=running')).data).toEqual([])
    expect(await spent()).toBeGreaterThan(before)
    expect(await spent()).toBeLessThanOrEqual(before + reserve * 3.5)
    // what is not used is free again
    expect((await call(callers[0]!.id)).status).toBe(200)
  })

  test('makes a call wait for one that is being admitted, and counts what that one reserves', async () => {
    provider.answer()
    const spent = (await admin.get('/billing')).data.usage.ai_spend_usd.used as number
    await ceiling(spent + 1)
    // another call that has been admitted, and has reserved all there is, but is not committed
    const [second] = await meetingBehind(
      project.database,
      `select internal.spend_check(false, 0.9);
       insert into app.ai_invocations (kind, provider, model, input_usd, output_usd, reserved_usd, expires_at)
       values ('embeddings', 'openai', 'any', 1, 1, 1.1, internal.now() + interval '1 hour')`,
      () => [invoke()],
    )
    if (!second) throw new Error('no answer')
    expectRefusal(second, 402, 'SPEND_CEILING_REACHED')
    await project.sql(`delete from app.ai_invocations where reserved_usd = 1.1 and status = 'running'`)
  })

  test('is set by those who may write, of their own project', async () => {
    const other = await harness.project()
    expectRefusal(
      await other.developer.put(`/admin/projects/${project.id}/billing/spend-ceiling`, { amount_usd: 1 }),
      403,
      'PROJECT_FORBIDDEN',
    )
    expect((await user.get(`/admin/projects/${project.id}/billing`)).status).toBe(401)
  })
})
