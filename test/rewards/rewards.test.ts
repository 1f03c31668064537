import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()

// a kind of reward of this test's own, as an area would bring it
await project.sql(`
  create table app.test_gifts (app_user_id uuid, amount int check (amount < 100), source text);
  create function internal.reward__gift(app_user_id uuid, part jsonb, source_type text, source_id text) returns jsonb
  language sql volatile as $$
    insert into app.test_gifts values (reward__gift.app_user_id, (reward__gift.part ->> 'amount')::int, source_type || ':' || source_id);
    select jsonb_build_object('given', true, 'amount', reward__gift.part -> 'amount')
  $$;
  create function internal.reward__busy(app_user_id uuid, part jsonb, source_type text, source_id text) returns jsonb
  language plpgsql volatile as $$ begin raise exception 'busy' using errcode = (part ->> 0); end $$`)

const grant = async (userId: string, reward: unknown, source = 'test', id = '1') =>
  (
    await project.sql('select internal.grant_reward($1, $2, $3, $4) as outcome', [
      userId,
      JSON.stringify(reward),
      source,
      id,
    ])
  )[0].outcome
const gifts = (userId: string) =>
  project.sql('select amount, source from app.test_gifts where app_user_id = $1', [userId])
const grants = (userId: string) =>
  project.sql(
    'select source_type, source_id, reward, outcome from app.reward_grants where app_user_id = $1 order by source_id',
    [userId],
  )

describe('a reward', () => {
  test('is given once for each user and source, and recorded with what came of it', async () => {
    const [one, two] = [await project.user(), await project.user()]
    const reward = { gift: { amount: 5 } }
    const outcome = { gift: { given: true, amount: 5 } }
    expect(await grant(one.id, reward)).toEqual(outcome)
    expect(await grant(one.id, reward)).toBeNull()
    expect(await grant(one.id, { gift: { amount: 6 } })).toBeNull()
    expect(await grant(two.id, reward)).toEqual(outcome)
    expect(await grant(one.id, reward, 'test', '2')).toEqual(outcome)
    expect(await grant(one.id, reward, 'other')).toEqual(outcome)
    expect(await gifts(one.id)).toHaveLength(3)
    expect(await gifts(two.id)).toEqual([{ amount: 5, source: 'test:1' }])
    expect(await grants(two.id)).toEqual([{ source_type: 'test', source_id: '1', reward, outcome }])
  })

  test('is given once also when twenty give it at once', async () => {
    const user = await project.user()
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => grant(user.id, { gift: { amount: 1 } })))
    expect(outcomes.filter((outcome) => outcome !== null)).toHaveLength(1)
    expect(await gifts(user.id)).toHaveLength(1)
  })

  test('a part that fails is recorded, undone alone, and fails nothing', async () => {
    const user = await project.user()
    const outcome = await grant(user.id, { gift: { amount: 100 }, badge: 'gold', 'odd kind"': 1 })
    expect(outcome.gift).toEqual({ given: false, reason: expect.stringContaining('test_gifts') })
    expect(outcome.badge).toEqual({ given: false, reason: 'there is no such kind of reward here' })
    expect(outcome['odd kind"'].given).toBe(false)
    expect(await gifts(user.id)).toEqual([])
    const [row] = await grants(user.id)
    expect(row.outcome).toEqual(outcome)
    expect(await grant(user.id, { gift: { amount: 100 } })).toBeNull()
  })

  test.each([['[]'], ['"xp"'], ['5'], ['null'], ['{}']])(
    'that says nothing, %s, gives nothing and fails nothing',
    async (text) => {
      const user = await project.user()
      expect(await grant(user.id, JSON.parse(text))).toEqual({})
      expect((await grants(user.id))[0].outcome).toEqual({})
    },
  )

  test('what will pass is not recorded as a failure: the whole is tried again', async () => {
    const user = await project.user()
    for (const code of ['40001', '40P01', '55P03', '53100', '53200', '58030', 'XX001'])
      await expect(grant(user.id, { gift: { amount: 1 }, busy: [code] })).rejects.toMatchObject({ code })
    expect([await grants(user.id), await gifts(user.id)]).toEqual([[], []])
  })

  test('is undone with its cause', async () => {
    const user = await project.user()
    await expect(
      project.sql(`select internal.grant_reward($1, '{"gift": {"amount": 1}}', 'test', '1'), 1 / (select 0)`, [
        user.id,
      ]),
    ).rejects.toThrow(/division/)
    expect([await grants(user.id), await gifts(user.id)]).toEqual([[], []])
  })

  test('is given by no caller: only by functions that know its cause', async () => {
    const user = await project.user()
    for (const role of ['app_user', 'app_server', 'app_admin', 'app_worker', 'app_anon'] as const) {
      const given = project.as(
        role,
        { 'app.user_id': user.id },
        `select internal.grant_reward($1, '{}', 'test', '1')`,
        [user.id],
      )
      await expect(given).rejects.toThrow(/permission denied/)
    }
    for (const role of ['app_user', 'app_server', 'app_anon'] as const)
      await expect(project.as(role, {}, 'select from app.reward_grants')).rejects.toThrow(/permission denied/)
    expect(await project.as('app_admin', {}, 'select id from app.reward_grants limit 1')).toHaveLength(1)
  })
})
