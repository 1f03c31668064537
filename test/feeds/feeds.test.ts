import { afterEach, describe, expect, test } from 'vitest'
import { feedsOf, soon } from '#test/support/feeds.ts'
import { startHarness, type User } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const stranger = await harness.project()
const unknown = '00000000-0000-4000-8000-000000000000'
const { people, post, actions, group, silence } = feedsOf(project)
afterEach(() => harness.setTime(null))

const allEvents = [
  'achievement.unlocked',
  'challenge.completed',
  'group.joined',
  'level.reached',
  'review.published',
  'streak.milestone',
]

describe('posting', () => {
  test('answers the entry with its actor, and what was left out as defaults', async () => {
    const [user] = (await people(1)) as [User]
    const entry = await post(user, 'run.finished', { target_id: '5k', metadata: { minutes: 27 } })
    expect(entry).toEqual({
      id: expect.any(String),
      actor_id: user.id,
      action: 'run.finished',
      target_id: '5k',
      group_id: null,
      metadata: { minutes: 27 },
      created_at: expect.any(String),
      actor: { id: user.id, display_name: expect.any(String), avatar_url: null },
    })
    expect(await post(user, 'a')).toMatchObject({ target_id: null, group_id: null, metadata: {} })
    expect((await user.get('/client/feeds/me')).data.map(({ id }: any) => id)).toContain(entry.id)
  })

  test('is refused to a muted user, who may delete', async () => {
    const [user] = (await people(1)) as [User]
    const entry = await post(user, 'a')
    const muted_until = new Date(harness.now().getTime() + 60_000).toISOString()
    await project.sql('update app.users set muted_until = $2 where id = $1', [user.id, muted_until])
    expectRefusal(await user.post('/client/feeds', { action: 'a' }), 403, 'USER_MUTED')
    expect((await user.delete(`/client/feeds/${entry.id}`)).status).toBe(200)
    harness.setTime(muted_until)
    await post(project.onBehalfOf(user.id) as User, 'b')
    harness.setTime(null)
  })

  test('refuses each field out of its bounds, and actions that events make', async () => {
    const [user] = (await people(1)) as [User]
    const bad: [string, object][] = [
      ['action', {}],
      ...['', 'A', '1a', 'a'.repeat(65), 'a-b', 'a b'].map((action): [string, object] => ['action', { action }]),
      ['target_id', { action: 'a', target_id: '' }],
      ['target_id', { action: 'a', target_id: 'x'.repeat(256) }],
      ['group_id', { action: 'a', group_id: 'x' }],
      ['metadata', { action: 'a', metadata: [] }],
      ['metadata', { action: 'a', metadata: { text: 'x'.repeat(4096) } }],
      ...allEvents.map((action): [string, object] => ['action', { action }]),
    ]
    for (const [field, body] of bad) expectInvalid(await user.post('/client/feeds', body), field)
    expect(await actions(user, '/me')).toEqual([])
    await post(user, `a${'.'.repeat(63)}`, { target_id: 'x'.repeat(255), metadata: { text: 'x'.repeat(4000) } })
  })

  test('thirty an hour, also by many callers at once', async () => {
    const [user, other] = (await people(2)) as [User, User]
    const answers = await Promise.all(
      Array.from({ length: 2 }, async () => {
        const statuses = []
        for (let n = 0; n < 16; n += 1) statuses.push(await user.post('/client/feeds', { action: 'a' }))
        return statuses
      }),
    )
    const refused = answers.flat().filter(({ status }) => status !== 201)
    expect(refused).toHaveLength(2)
    for (const answer of refused) expectRefusal(answer, 429, 'RATE_LIMITED')
    expect(Number(refused[0]?.headers.get('retry-after'))).toBeGreaterThan(0)
    await post(other, 'a')
    expect((await user.get('/client/feeds/me')).body.total).toBe(30)
    harness.setTime(new Date(Date.now() + 3_601_000))
    // the session is over by then
    expect((await project.onBehalfOf(user.id).post('/client/feeds', { action: 'a' })).status).toBe(201)
  })

  test('to a group: members do, viewers and strangers do not, and a private group is not revealed', async () => {
    const [owner, member, viewer, outsider] = (await people(4)) as [User, User, User, User]
    const open = await group(owner)
    const secret = await group(owner, { is_public: false })
    for (const id of [open, secret]) {
      await project.admin.post(`/groups/${id}/members`, { app_user_id: member.id })
      await project.admin.post(`/groups/${id}/members`, { app_user_id: viewer.id, role: 'viewer' })
      expect(await post(member, 'cheer', { group_id: id })).toMatchObject({ group_id: id })
      expectRefusal(await viewer.post('/client/feeds', { action: 'a', group_id: id }), 403, 'GROUP_ROLE_FORBIDDEN')
    }
    expectRefusal(await outsider.post('/client/feeds', { action: 'a', group_id: open }), 403, 'NOT_A_MEMBER')
    expectRefusal(await outsider.post('/client/feeds', { action: 'a', group_id: secret }), 404, 'NOT_FOUND')
    expectRefusal(await outsider.post('/client/feeds', { action: 'a', group_id: unknown }), 404, 'NOT_FOUND')
  })
})

describe('the feed of a group', () => {
  test('is for members: 403 for who could join, 404 for a private group and one that is not there', async () => {
    const [owner, outsider] = (await people(2)) as [User, User]
    const [open, secret] = [await group(owner), await group(owner, { is_public: false })]
    expectRefusal(await outsider.get(`/client/feeds/group/${open}`), 403, 'NOT_A_MEMBER')
    expectRefusal(await outsider.get(`/client/feeds/group/${secret}`), 404, 'NOT_FOUND')
    expectRefusal(await outsider.get(`/client/feeds/group/${unknown}`), 404, 'NOT_FOUND')
    expectRefusal(await outsider.get('/client/feeds/group/x'), 404, 'NOT_FOUND')
    expect((await owner.get(`/client/feeds/group/${secret}`)).status).toBe(200)
  })

  test('shows what was posted to it, without banned members and blocked pairs, in page and total', async () => {
    await silence()
    const [me, one, two, three] = (await people(4)) as [User, User, User, User]
    const club = await group(me, { is_public: false })
    for (const who of [one, two, three]) {
      await project.admin.post(`/groups/${club}/members`, { app_user_id: who.id })
      await post(who, 'hello', { group_id: club })
      await post(who, 'elsewhere')
    }
    const actors = async () => {
      const { data, body } = await me.get(`/client/feeds/group/${club}`)
      expect(body.total).toBe(data.length)
      return data.map(({ actor_id }: any) => actor_id)
    }
    expect(await actors()).toEqual([three.id, two.id, one.id])
    await project.admin.patch(`/users/${one.id}`, { is_banned: true })
    await project.sql('insert into app.blocks (blocker, blocked) values ($1, $2)', [two.id, me.id])
    expect(await actors()).toEqual([three.id])
    await project.sql('delete from app.blocks')
    await project.sql('insert into app.blocks (blocker, blocked) values ($1, $2)', [me.id, three.id])
    expect(await actors()).toEqual([two.id])
    await project.sql('delete from app.blocks')
    await project.sql('delete from app.groups where id = $1', [club])
    expect(await actions(three, '/me')).toEqual(['elsewhere'])
  })
})

describe('deleting', () => {
  test('own entries only; the total follows', async () => {
    const [user, other] = (await people(2)) as [User, User]
    const entry = await post(user, 'a')
    expectRefusal(await other.delete(`/client/feeds/${entry.id}`), 404, 'NOT_FOUND')
    expectRefusal(await user.delete('/client/feeds/x'), 400, 'INVALID_ID')
    expect((await user.delete(`/client/feeds/${entry.id}`)).data).toEqual({ deleted: true })
    expectRefusal(await user.delete(`/client/feeds/${entry.id}`), 404, 'NOT_FOUND')
    expect((await user.get('/client/feeds/me')).body).toMatchObject({ data: [], total: 0 })
  })

  test('two at once keep the time of the newest entry that is left', async () => {
    const [user] = (await people(1)) as [User]
    const made: any[] = []
    const times = [0, 1, 2].map(soon)
    for (const n of [0, 1, 2]) {
      harness.setTime(times[n] as Date)
      made.push(await post(user, 'a'))
    }
    harness.setTime(null)
    const open = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
    await open.query('select api.feed_remove($1)', [made[2].id])
    const second = user.delete(`/client/feeds/${made[1].id}`)
    await untilBlocked(project)
    await open.commit()
    expect((await second).status).toBe(200)
    expect(
      await project.sql('select entries::int, last_at from app.feed_counts where actor_key = $1', [user.id]),
    ).toEqual([{ entries: 1, last_at: times[0] }])
  })
})

describe('system events', () => {
  test('make entries of the actions that are switched on, once each, and none of imports', async () => {
    const { admin } = project
    expect((await admin.put('/feeds/settings', { events: allEvents })).data).toEqual({ events: allEvents })
    const [user] = (await people(1)) as [User]
    const unlocked = await admin.post('/achievements', {
      key: 'first',
      name: 'First',
      criteria: { type: 'event_count', event_name: 'ran', target_value: 1 },
    })
    expect(unlocked.status, unlocked.text).toBe(201)
    await user.post('/client/events', { event_name: 'ran' })
    await user.post('/client/events', { event_name: 'ran' })
    const { data } = await user.get('/client/feeds')
    expect(data).toMatchObject([
      {
        action: 'achievement.unlocked',
        target_id: unlocked.data.id,
        metadata: { key: 'first', name: 'First' },
        actor_id: user.id,
      },
    ])
    // a group that is private keeps who came to itself
    const secret = await group(user, { is_public: false })
    expect(await actions(user)).toEqual(['achievement.unlocked'])
    expect((await user.get(`/client/feeds/group/${secret}`)).data).toMatchObject([
      { action: 'group.joined', group_id: secret, target_id: secret },
    ])
    const open = await group(user)
    expect((await user.get('/client/feeds')).data[0]).toMatchObject({ action: 'group.joined', group_id: open })

    expect((await admin.put('/feeds/settings', { events: ['achievement.unlocked'] })).data.events).toEqual([
      'achievement.unlocked',
    ])
    await group(user)
    expect((await user.get('/client/feeds/me')).body.total).toBe(3)
    const plans = await project.sql(`select event_name from app.event_plans where feeds`)
    expect(plans).toEqual([{ event_name: 'svc.achievement.unlocked' }])

    const [old] = (await people(1)) as [User]
    const imported = await project.admin.post('/events', {
      app_user_id: old.id,
      event_name: 'ran',
      occurred_at: '2024-01-01T00:00:00Z',
      historical: true,
    })
    expect(imported.status, imported.text).toBe(201)
    expect(await actions(old)).toEqual([])
  })

  test('refuse settings that name no event', async () => {
    expectInvalid(await project.admin.put('/feeds/settings', { events: ['nonsense'] }), 'events', /nonsense/)
    expectInvalid(await project.admin.put('/feeds/settings', {}), 'events')
    expectInvalid(await project.admin.put('/feeds/settings', { events: Array(101).fill('group.joined') }), 'events')
  })

  test('of every registered kind name events that exist, and properties that their event has', async () => {
    const rows = await project.sql('select action, event_name from internal.feed_events order by action')
    expect(rows.map(({ action }) => action)).toEqual(allEvents)
    expect(rows.every(({ action, event_name }) => event_name === `svc.${action}`)).toBe(true)
  })
})

describe('administrators', () => {
  test('post as a user or as the system, whose entries everybody sees', async () => {
    await silence()
    const { admin } = project
    const [user, other] = (await people(2)) as [User, User]
    expect((await admin.post('/feeds', { as_user_id: user.id, action: 'greeted' })).data.actor.id).toBe(user.id)
    const said = await admin.post('/feeds', { system: true, action: 'season.started' })
    expect([said.status, said.data.actor_id, said.data.actor]).toEqual([201, null, null])
    expect(await actions(user)).toEqual(['season.started', 'greeted'])
    expect(await actions(other)).toEqual(['season.started'])
    const club = await group(user)
    await admin.post('/feeds', { system: true, action: 'club.news', group_id: club })
    expect(await actions(user)).toEqual(['season.started', 'greeted'])
    expect(await actions(user, `/group/${club}`)).toEqual(['club.news'])
    // what events make, an administrator may post by hand
    expect((await admin.post('/feeds', { as_user_id: user.id, action: 'level.reached' })).status).toBe(201)
    expectRefusal(await admin.post('/feeds', { as_user_id: unknown, action: 'a' }), 404, 'USER_NOT_FOUND')
    expectRefusal(await admin.post('/feeds', { system: true, action: 'a', group_id: unknown }), 404, 'NOT_FOUND')
    for (const author of [{}, { system: false }, { as_user_id: user.id, system: true }, { as_user_id: 'system' }])
      expectInvalid(await admin.post('/feeds', { action: 'a', ...author }), 'as_user_id')
    expect((await admin.delete(`/feeds/${said.data.id}`)).data).toEqual({ deleted: true })
    expectRefusal(await admin.delete(`/feeds/${said.data.id}`), 404, 'NOT_FOUND')
    expect(await actions(other)).toEqual([])
  })

  test('list by actor, group and action; entries of other projects do not exist', async () => {
    const { admin } = project
    const [user] = (await people(1)) as [User]
    const club = await group(user)
    await post(user, 'a')
    await post(user, 'b', { group_id: club })
    const listed = async (query: string) =>
      (await admin.get(`/feeds?user_id=${user.id}${query}`)).data.map(({ action }: any) => action)
    expect(await listed('')).toEqual(['b', 'a'])
    expect(await listed('&action=a')).toEqual(['a'])
    expect(await listed(`&group_id=${club}`)).toEqual(['b'])
    expect((await admin.get(`/feeds?user_id=${user.id}&limit=1&offset=1`)).body).toMatchObject({
      total: 2,
      data: [{ action: 'a' }],
    })
    const { data } = await admin.get('/feeds')
    expect((await stranger.admin.get('/feeds')).body).toMatchObject({ data: [], total: 0 })
    expectRefusal(await stranger.admin.delete(`/feeds/${data[0].id}`), 404, 'NOT_FOUND')
  })
})

test.each(['feed_home', 'feed_own'])('%s takes the last offset that an int holds', async (name) => {
  const [user] = (await people(1)) as [User]
  const claims = { 'app.caller': 'user', 'app.user_id': user.id }
  const call = `select r.status from api.${name}(page_offset => 2147483647, page_limit => 50) r`
  expect(await project.as('app_user', claims, call)).toEqual([{ status: 200 }])
})
