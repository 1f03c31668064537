import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const [project, other] = [await harness.project(), await harness.project()]

describe('the own profile', () => {
  test('is the user as responses show it, with every provider linked', async () => {
    const user = await project.user()
    await project.sql(
      `update app.users set properties = '{"level": 3, "b": {"a": [1.50]}}', phone = $2 where id = $1`,
      [user.id, '+4930123'],
    )
    await project.sql(
      `insert into app.user_identities (app_user_id, provider, provider_id, created_at)
       values ($1::uuid, 'google', 'g-' || $1::uuid, now()), ($1::uuid, 'apple', 'a-' || $1::uuid, now() - interval '1 day')`,
      [user.id],
    )
    const { status, data } = await user.get('/client/users/me')
    expect(status).toBe(200)
    expect(data).toEqual({
      ...user.data,
      phone: '+4930123',
      properties: { level: 3, b: { a: [1.5] } },
      auth_providers: [
        { provider: 'apple', provider_id: `a-${user.id}` },
        { provider: 'google', provider_id: `g-${user.id}` },
      ],
    })
  })

  test('is gone with its user', async () => {
    const user = await project.user()
    expect((await user.get('/client/users/me')).status).toBe(200)
    await project.sql('delete from app.users where id = $1', [user.id])
    // the session is still remembered for a moment, the user is not
    expectRefusal(await user.get('/client/users/me'), 404, 'NOT_FOUND')
    harness.running.services.sessions.clear()
    expectRefusal(await user.get('/client/users/me'), 401, 'UNAUTHORIZED')
  })

  test('needs a session beside the key', async () => {
    expectRefusal(await project.app.get('/client/users/me'), 401, 'UNAUTHORIZED')
    expectRefusal(await project.server.get('/client/users/me'), 401, 'UNAUTHORIZED')
  })

  test('row-level security alone shows nobody else', async () => {
    const [mine, theirs] = [await project.user(), await project.user()]
    const claims = { 'app.user_id': mine.id, 'app.caller': 'user' }
    expect(await project.as('app_user', claims, 'select id from app.users')).toEqual([{ id: mine.id }])
    const changed = await project.as(
      'app_user',
      claims,
      `update app.users set display_name = 'x' where id = $1 returning id`,
      [theirs.id],
    )
    expect(changed).toEqual([])
    for (const column of ['email', 'is_banned', 'email_verified', 'anonymous_id', 'external_id']) {
      await expect(project.as('app_user', claims, `update app.users set ${column} = default`)).rejects.toThrow(
        /permission denied/,
      )
    }
    for (const table of ['user_passwords', 'user_sessions']) {
      await expect(project.as('app_user', claims, `select * from app.${table}`)).rejects.toThrow(/permission denied/)
    }
    await expect(project.as('app_user', claims, `select api.auth_session(gen_random_uuid())`)).rejects.toThrow(
      /permission denied/,
    )
  })
})

describe('X-On-Behalf-Of', () => {
  test('lets a server key act for a user, however the id is spelled', async () => {
    const user = await project.user()
    for (const id of [user.id, user.id.toUpperCase()]) {
      expect((await project.onBehalfOf(id).get('/client/users/me')).data.id).toBe(user.id)
    }
  })

  test('is ignored with a client key: the session decides', async () => {
    const [mine, theirs] = [await project.user(), await project.user()]
    expect((await mine.get('/client/users/me', { 'x-on-behalf-of': theirs.id })).data.id).toBe(mine.id)
    expectRefusal(await project.app.get('/client/users/me', { 'x-on-behalf-of': theirs.id }), 401, 'UNAUTHORIZED')
  })

  test('takes no Bearer beside it', async () => {
    const [mine, theirs] = [await project.user(), await project.user()]
    for (const authorization of [`Bearer ${mine.sessionToken}`, 'Bearer x', 'Basic x']) {
      const answer = await project.onBehalfOf(theirs.id).get('/client/users/me', { authorization })
      expectRefusal(answer, 400, 'INVALID_INPUT')
      expect(answer.error?.details.field).toBe('Authorization')
    }
    // SDKs that always send the key as the Bearer send nothing of their own
    const authorization = `Bearer ${project.serverKey}`
    expect((await project.onBehalfOf(theirs.id).get('/client/users/me', { authorization })).data.id).toBe(theirs.id)
  })

  test('reaches users of the own project only', async () => {
    const foreign = await other.user()
    expect((await other.onBehalfOf(foreign.id).get('/client/users/me')).status).toBe(200)
    for (const id of [foreign.id, randomUUID(), 'x', '', `${(await project.user()).id} `.repeat(2)]) {
      expectRefusal(await project.onBehalfOf(id).get('/client/users/me'), 404, 'USER_NOT_FOUND')
    }
  })

  test('a server key with a session instead acts as that session', async () => {
    const user = await project.user()
    const authorization = `Bearer ${user.sessionToken}`
    expect((await project.server.get('/client/users/me', { authorization })).data.id).toBe(user.id)
  })
})

describe('the time zone', () => {
  const zoneOf = async (headers: Record<string, string>) => {
    const user = await project.user()
    const answer = await user.get('/client/users/me', headers)
    expect(answer.status).toBe(200)
    const [stored] = await project.sql('select timezone from app.users where id = $1', [user.id])
    expect(stored.timezone).toBe(answer.data.timezone)
    return answer.data.timezone
  }

  test.each([
    ['Time-Zone alone', { 'time-zone': 'Europe/Berlin' }, 'Europe/Berlin'],
    ['X-Service-Timezone alone', { 'x-service-timezone': 'Asia/Tokyo' }, 'Asia/Tokyo'],
    ['both: the brand one', { 'time-zone': 'Europe/Berlin', 'x-service-timezone': 'Asia/Tokyo' }, 'Asia/Tokyo'],
    [
      'an invalid preferred one',
      { 'time-zone': 'Europe/Berlin', 'x-service-timezone': 'Mars/Olympus' },
      'Europe/Berlin',
    ],
    ['an empty preferred one', { 'time-zone': 'Europe/Berlin', 'x-service-timezone': '' }, 'Europe/Berlin'],
    ['an invalid second one', { 'time-zone': 'nonsense', 'x-service-timezone': 'Asia/Tokyo' }, 'Asia/Tokyo'],
    ['UTC', { 'time-zone': 'UTC' }, 'UTC'],
    ['two invalid ones', { 'time-zone': 'x', 'x-service-timezone': 'y' }, null],
    ['none', {}, null],
    ['an offset', { 'time-zone': '+02:00' }, null],
    ['an abbreviation with rules of its own', { 'time-zone': 'CET6CEST' }, null],
    ['another case', { 'time-zone': 'europe/berlin' }, null],
    ['a path', { 'time-zone': '../../etc/passwd' }, null],
    ['a list', { 'time-zone': 'Europe/Berlin, Asia/Tokyo' }, null],
    ['something long', { 'time-zone': 'x'.repeat(4000) }, null],
  ])('%s', async (_what, headers, wanted) => expect(await zoneOf(headers as Record<string, string>)).toBe(wanted))

  test('is never overwritten', async () => {
    const user = await project.user()
    expect((await user.get('/client/users/me', { 'time-zone': 'Europe/Berlin' })).data.timezone).toBe('Europe/Berlin')
    for (const name of ['time-zone', 'x-service-timezone']) {
      expect((await user.get('/client/users/me', { [name]: 'Asia/Tokyo' })).data.timezone).toBe('Europe/Berlin')
    }
  })

  test('of a user who goes while it is stored is nobody’s: 404', async () => {
    const user = await project.user()
    await user.get('/client/users/me')
    const end = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
    await end.query('select api.user_delete($1)', [user.id])
    const waiting = user.get('/client/users/me', { 'time-zone': 'Europe/Berlin' })
    await untilBlocked(project)
    await end.commit()
    expectRefusal(await waiting, 404, 'NOT_FOUND')
  })

  test('of two devices at once is the first one, for both', async () => {
    const zones = ['Europe/Berlin', 'Asia/Tokyo']
    for (let round = 0; round < 5; round += 1) {
      const user = await project.user()
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, index) => user.get('/client/users/me', { 'time-zone': zones[index % 2] ?? '' })),
      )
      const found = new Set(answers.map(({ data }) => data.timezone))
      expect(found.size).toBe(1)
      expect(zones).toContain([...found][0])
    }
  })
})
