import { afterEach, expect, test } from 'vitest'
import { finished, hello, startAi, usual } from '#test/support/ai.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

/** What a call may cost is reserved beside the call of the provider, and nobody sees an answer whose reservation is not stored. */
const { provider, project, prompt } = await startAi()
const user = await project.user()
const invoke = (name: string, stream: boolean) =>
  user.post(`/client/ai/prompts/${name}/invoke`, { ...hello, ...(stream ? { stream } : {}) })
/** What each commit of a reservation does from now on. */
const atCommit = async (statement: string) => {
  await project.sql(
    `create or replace function app.at_commit() returns trigger language plpgsql as $$ begin ${statement}; return null; end $$`,
  )
  await project.sql(
    'create constraint trigger at_commit after insert on app.ai_invocations deferrable initially deferred for each row execute function app.at_commit()',
  )
}
afterEach(() => project.sql('drop function app.at_commit() cascade'))
const key = 7_204_711

test.each([false, true])(
  'the provider is called while the reservation is committed, and the answer waits for it (stream: %s)',
  async (stream) => {
    await atCommit(`perform pg_advisory_xact_lock(${key})`)
    const holder = await openTransaction(project, 'app_worker', {})
    await holder.query(`select pg_advisory_xact_lock(${key})`)
    const answered = Promise.withResolvers<void>()
    provider.answer((asked, response) => {
      response.once('finish', answered.resolve)
      usual(asked, response)
    })
    const name = await prompt()
    let isOver = false
    const answer = invoke(name, stream).finally(() => {
      isOver = true
    })
    await answered.promise
    await untilBlocked(project)
    expect(isOver).toBe(false)
    await holder.commit()
    expect((await answer).status).toBe(200)
    // its end was recorded after its beginning
    expect(await finished(project, name)).toMatchObject({ status: 'succeeded' })
  },
)

test.each([false, true])(
  'an answer whose reservation cannot be committed is nobody’s, and its provider is given up (stream: %s)',
  async (stream) => {
    await atCommit(`raise exception 'no'`)
    provider.answer(() => undefined)
    const name = await prompt()
    expect((await invoke(name, stream)).status).toBe(500)
    for (const { closed } of provider.asked) await closed
    expect(await project.sql('select from app.ai_invocations where prompt = $1', [name])).toEqual([])
  },
)

test('of a budget that holds one call, the second caller is refused before its provider is called', async () => {
  await atCommit(`perform pg_advisory_xact_lock(${key})`)
  const name = await prompt({ max_tokens: 1000 })
  const { data } = await project.admin.get(`/ai/prompts/${name}`)
  expect(data.max_tokens).toBe(1000)
  await project.admin.put(`/ai/prompts/${name}/budget`, { budget_usd: 0.0007, budget_period: 'total' })
  // the first call is not over, and its reservation not given back, before the second one has its answer
  const gate = Promise.withResolvers<void>()
  provider.answer(async (asked, response) => {
    await gate.promise
    usual(asked, response)
  })
  const holder = await openTransaction(project, 'app_worker', {})
  await holder.query(`select pg_advisory_xact_lock(${key})`)
  const calls = [invoke(name, false), invoke(name, false)]
  // one waits at its commit, the other one for it
  await untilBlocked(project, 2)
  await expect.poll(() => provider.asked.length).toBe(1)
  await holder.commit()
  await Promise.race(calls)
  gate.resolve()
  const codes = (await Promise.all(calls)).map(({ status, error }) => error?.code ?? status)
  expect(codes.sort()).toEqual([200, 'ai_budget_exceeded'])
  expect(provider.asked).toHaveLength(1)
})
