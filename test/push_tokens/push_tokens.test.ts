import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { type Answer, startHarness, type User } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))

const path = '/client/users/me/push-token'
const register = (user: Pick<User, 'post'>, token: string, platform = 'ios') => user.post(path, { token, platform })
const rows = (token: string) => project.sql('select * from app.push_tokens where token = $1', [token])
const isActive = async (token: string) => (await rows(token))[0]?.is_active

describe('registering a device', () => {
  test.each([
    ['ios', 'apns'],
    ['android', 'fcm'],
  ])('of %s answers the row, whose provider is %s', async (platform, provider) => {
    const user = await project.user()
    const token = randomUUID()
    const { status, data } = await register(user, token, platform)
    expect(status).toBe(200)
    expect(data).toEqual({
      id: expect.any(String),
      app_user_id: user.id,
      token,
      platform,
      provider,
      is_active: true,
      created_at: expect.any(String),
      updated_at: data.created_at,
    })
  })

  test('again keeps the row, switches it on, and takes the new platform', async () => {
    const user = await project.user()
    const token = randomUUID()
    const first = (await register(user, token)).data
    await user.delete(path, { token })
    expect(await isActive(token)).toBe(false)
    harness.advance(60)
    const { data } = await register(user, token, 'android')
    expect(data).toMatchObject({
      id: first.id,
      created_at: first.created_at,
      platform: 'android',
      provider: 'fcm',
      is_active: true,
    })
    expect(data.updated_at).not.toBe(first.updated_at)
    expect(await rows(token)).toHaveLength(1)
  })

  test('that was another user’s moves it, and looks like a new one', async () => {
    const [one, two] = [await project.user(), await project.user()]
    const [token, fresh] = [randomUUID(), randomUUID()]
    const old = (await register(one, token)).data
    harness.advance(60)
    const moved = await register(two, token)
    const made = await register(two, fresh)
    const shape = ({ status, data }: Answer) => ({ status, ...data, id: '', token: '' })
    expect(shape(moved)).toEqual(shape(made))
    expect(moved.data.id).not.toBe(old.id)
    expect(await rows(token)).toMatchObject([{ app_user_id: two.id }])
    expect(await one.delete(path, { token })).toMatchObject({ status: 200, data: { unregistered: true } })
    expect(await isActive(token)).toBe(true)
  })

  test('by many users at once leaves it with one of them, whole', async () => {
    const users = await Promise.all(Array.from({ length: 12 }, () => project.user()))
    const token = randomUUID()
    for (let round = 0; round < 3; round += 1) {
      const answers = await Promise.all(users.map((user) => register(user, token)))
      expect(answers.map(({ status }) => status)).toEqual(users.map(() => 200))
      answers.forEach(({ data }, index) => {
        expect(data.app_user_id).toBe(users[index]?.id)
      })
      const [row, ...more] = await rows(token)
      expect([users.map(({ id }) => id).includes(row.app_user_id), more.length]).toEqual([true, 0])
    }
  })

  test('of a user who has just gone, or goes at this moment, is 404', async () => {
    const [gone, going] = [await project.user(), await project.user()]
    for (const user of [gone, going]) await user.get('/client/users/me')
    await project.sql('delete from app.users where id = $1', [gone.id])
    const token = randomUUID()
    expectRefusal(await register(gone, token), 404, 'NOT_FOUND')
    const end = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
    await end.query('select api.user_delete($1)', [going.id])
    const waiting = register(going, token)
    await untilBlocked(project)
    await end.commit()
    expectRefusal(await waiting, 404, 'NOT_FOUND')
    expect(await rows(token)).toEqual([])
  })

  test('works on behalf of a user', async () => {
    const user = await project.user()
    expect((await register(project.onBehalfOf(user.id), randomUUID())).data.app_user_id).toBe(user.id)
  })

  test('takes a token of 2048 characters and none longer', async () => {
    const user = await project.user()
    const token = randomUUID().padEnd(2048, 'x')
    expect((await register(user, token)).status).toBe(200)
    expectRefusal(await register(user, `${token}x`), 400, 'INVALID_INPUT', 'token')
    expect(await rows(`${token}x`)).toHaveLength(0)
  })

  test.each([
    [{ platform: 'ios' }, 'token'],
    [{ token: '', platform: 'ios' }, 'token'],
    [{ token: 'with space', platform: 'ios' }, 'token'],
    [{ token: 'ünicode', platform: 'ios' }, 'token'],
    [{ token: 5, platform: 'ios' }, 'token'],
    [{ token: 'x' }, 'platform'],
    [{ token: 'x', platform: 'web' }, 'platform'],
  ])('refuses %j', async (body, field) => {
    const user = await project.user()
    expectRefusal(await user.post(path, body), 400, 'INVALID_INPUT', field)
    expect(await project.sql('select from app.push_tokens where app_user_id = $1', [user.id])).toHaveLength(0)
  })

  test('refuses what is no JSON object', async () => {
    const user = await project.user()
    for (const body of ['[]', '{']) {
      expectRefusal(await user.request('POST', path, body), 400, 'INVALID_INPUT')
      expectRefusal(await user.request('DELETE', path, body), 400, 'INVALID_INPUT')
    }
  })
})

describe('taking a device back', () => {
  test.each([
    ['the body', (user: User, token: string) => user.delete(path, { token })],
    ['the query', (user: User, token: string) => user.delete(`${path}?token=${token}`)],
    ['the body, rather than the query', (user: User, token: string) => user.delete(`${path}?token=other`, { token })],
  ])('takes the token from %s', async (_what, remove) => {
    const user = await project.user()
    const token = randomUUID()
    await register(user, token)
    expect(await remove(user, token)).toMatchObject({ status: 200, data: { unregistered: true } })
    expect(await isActive(token)).toBe(false)
    expect(await remove(user, token)).toMatchObject({ status: 200, data: { unregistered: true } })
  })

  test('answers the same for an unknown token and another user’s, and leaves that alone', async () => {
    const [one, two] = [await project.user(), await project.user()]
    const token = randomUUID()
    await register(one, token)
    const answers = [await two.delete(path, { token }), await two.delete(path, { token: 'unknown' })]
    expect([new Set(answers.map(({ text }) => text)).size, answers[0]?.data]).toEqual([1, { unregistered: true }])
    expect(await isActive(token)).toBe(true)
  })

  test('needs a token', async () => {
    const user = await project.user()
    for (const answer of [
      await user.delete(path),
      await user.delete(path, {}),
      await user.delete(`${path}?token=`),
      await user.delete(path, { token: 1 }),
    ]) {
      expectRefusal(answer, 400, 'INVALID_INPUT', 'token')
    }
  })
})

test('as a role in SQL a user reads own tokens only, and writes none', async () => {
  const [mine, theirs] = [await project.user(), await project.user()]
  const [own, foreign] = [randomUUID(), randomUUID()]
  await register(mine, own)
  await register(theirs, foreign)
  const claims = { 'app.user_id': mine.id, 'app.caller': 'user' }
  expect(await project.as('app_user', claims, 'select token from app.push_tokens')).toEqual([{ token: own }])
  for (const sql of [
    'delete from app.push_tokens',
    'update app.push_tokens set is_active = false',
    `insert into app.push_tokens (app_user_id, token, platform) values ('${mine.id}', 'x', 'ios')`,
  ]) {
    await expect(project.as('app_user', claims, sql)).rejects.toThrow(/permission denied/)
  }
  await expect(project.as('app_server', {}, 'select from app.push_tokens')).rejects.toThrow(/permission denied/)
})

test('taking an account back switches its devices off', async () => {
  const [user, other] = [await project.user(), await project.user()]
  const [own, foreign] = [randomUUID(), randomUUID()]
  await register(user, own)
  await register(other, foreign)
  await project.sql('select internal.account_reclaim__push_tokens($1)', [user.id])
  expect([await isActive(own), await isActive(foreign)]).toEqual([false, true])
  await expect(
    project.as('app_user', {}, 'select internal.account_reclaim__push_tokens($1)', [user.id]),
  ).rejects.toThrow(/permission denied/)
})
