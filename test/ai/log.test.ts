import { describe, expect, test } from 'vitest'
import { hello, startAi } from '#test/support/ai.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** The log of invocations: who reads what, how long it is kept. */
const { provider, harness, project, admin, prompt } = await startAi()

describe('the log of invocations', () => {
  test('a page of large payloads ends early, and the next one goes on', async () => {
    await project.sql(
      `insert into app.ai_invocations (kind, prompt, provider, model, status, input_usd, output_usd, payload, expires_at, created_at)
       select 'invoke', 'large', 'openai', 'm', 'succeeded', 0, 0,
              case when n > 1 then jsonb_build_object('output', repeat('x', 3000000)) end, internal.now(), internal.now() + n * interval '1 second'
         from generate_series(1, 6) n`,
    )
    const pages: string[][] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { body }: any = await admin.get(`/ai/invocations?prompt=large&limit=100${cursor && `&cursor=${cursor}`}`)
      pages.push(body.data.map(({ id }: any) => id))
      cursor = body.pagination.next_cursor
    }
    expect(pages.map(({ length }) => length)).toEqual([2, 2, 2])
    expect(new Set(pages.flat()).size).toBe(6)
  })

  test('by prompt, user and status, in pages, and none of another project', async () => {
    provider.answer()
    const [name, other] = [await prompt(), await prompt()]
    const user = await project.user()
    for (let call = 0; call < 3; call += 1) await user.post(`/client/ai/prompts/${name}/invoke`, hello)
    await admin.post(`/ai/prompts/${name}/invoke`, hello)
    await admin.post(`/ai/prompts/${other}/invoke`, hello)
    const list = async (query: string) => (await admin.get(`/ai/invocations?${query}`)).data
    expect(await list(`prompt=${name}`)).toHaveLength(4)
    expect(await list(`user_id=${user.id}`)).toHaveLength(3)
    expect(await list(`user_id=${user.id}&prompt=${other}`)).toHaveLength(0)
    expect(await list(`status=succeeded&prompt=${other}`)).toMatchObject([
      { prompt: other, user_id: null, kind: 'invoke', cost_usd: expect.any(Number) },
    ])
    const first = (await admin.get(`/ai/invocations?prompt=${name}&limit=3`)).body
    const rest = (await admin.get(`/ai/invocations?prompt=${name}&limit=3&cursor=${first.pagination.next_cursor}`)).body
    expect(new Set([...first.data, ...rest.data].map(({ id }: any) => id)).size).toBe(4)
    expect(rest.pagination.next_cursor).toBeNull()
    expectRefusal(await admin.get('/ai/invocations?status=odd'), 400, 'INVALID_INPUT')
    expectRefusal(await admin.get('/ai/invocations?user_id=odd'), 400, 'INVALID_INPUT')
    expectRefusal(await admin.get('/ai/invocations?cursor=odd'), 400, 'INVALID_INPUT')
    const stranger = await harness.project()
    expect((await stranger.admin.get('/ai/invocations')).data).toEqual([])
  })

  test('is exported with its user and deleted with them; the spend stays', async () => {
    provider.answer()
    const name = await prompt({ log_payloads: true })
    const user = await project.user()
    await user.post(`/client/ai/prompts/${name}/invoke`, hello)
    const before = (await admin.get(`/ai/prompts/${name}/spend`)).data
    const bundle = await admin.get(`/users/${user.id}/export`)
    const [line] = bundle.text.split('\n').filter((text) => text.includes('"ai_invocations"'))
    expect(JSON.parse(line!).data).toMatchObject({ prompt: name, payload: { messages: [{ content: 'Hello' }] } })
    expect(line).not.toMatch(/cost_usd|_usd/)
    expect((await admin.delete(`/users/${user.id}`)).status).toBe(200)
    expect((await admin.get(`/ai/invocations?prompt=${name}`)).data).toEqual([])
    expect((await admin.get(`/ai/prompts/${name}/spend`)).data).toEqual(before)
  })

  test('is purged after 90 days, without the spend', async () => {
    provider.answer()
    const name = await prompt()
    await admin.post(`/ai/prompts/${name}/invoke`, hello)
    await project.sql(`update app.ai_invocations set created_at = created_at - interval '91 days' where prompt = $1`, [
      name,
    ])
    await project.as('app_worker', { 'app.caller': 'worker' }, 'select internal.purge__ai(100)')
    expect((await admin.get(`/ai/invocations?prompt=${name}`)).data).toEqual([])
    expect((await admin.get(`/ai/prompts/${name}/spend`)).data.spend_usd).toBeGreaterThan(0)
  })
})

test('calls of developers are in the audit trail, those of users are not', async () => {
  provider.answer()
  const name = await prompt()
  const user = await project.user()
  const actions = async () =>
    (await admin.get('/audit-events?limit=200')).data
      .map(({ action }: { action: string }) => action)
      .filter((action: string) => action.startsWith('ai.'))
  const before = await actions()
  await user.post(`/client/ai/prompts/${name}/invoke`, hello)
  expect(await actions()).toEqual(before)
  await admin.post(`/ai/prompts/${name}/invoke`, hello)
  await admin.post('/ai/embeddings', { provider: 'openai', model: 'm', input: 'a' })
  expect((await actions()).slice(0, 2)).toEqual(['ai.embeddings', 'ai.invoke'])
})

test('users read their own invocations alone, and nothing of prompts', async () => {
  provider.answer()
  const [one, other] = [await project.user(), await project.user()]
  await one.post(`/client/ai/prompts/${await prompt()}/invoke`, hello)
  const claims = (id: string) => ({ 'app.caller': 'user', 'app.user_id': id })
  const count = (id: string) =>
    project.as('app_user', claims(id), 'select count(app_user_id)::int as n from app.ai_invocations')
  expect([await count(one.id), await count(other.id)]).toEqual([[{ n: 1 }], [{ n: 0 }]])
  for (const table of ['ai_prompts', 'ai_providers', 'ai_prices', 'ai_prompt_days'])
    await expect(project.as('app_user', claims(one.id), `select from app.${table}`)).rejects.toThrow(
      /permission denied/,
    )
  await expect(
    project.as(
      'app_user',
      claims(one.id),
      `select api.ai_begin('x', true, 'invoke', '{}', '', 0, 0, true, null, '', true, '{}')`,
    ),
  ).rejects.toThrow(/permission denied/)
})
