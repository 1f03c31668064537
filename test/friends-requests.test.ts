import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { type Answer, startHarness, type User } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { meetingBehind } from '#test/support/transaction.ts'

/** Requests and their answers, friends and the notes about them, codes, suggestions, and what administrators do. */
const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))

const users = (many: number) => Promise.all(Array.from({ length: many }, () => project.user()))
const pair = async () => (await users(2)) as [User, User]
const ask = (one: User, two: User) => one.post('/client/friends/requests', { user_id: two.id })
const accept = (one: User, two: User) => one.post(`/client/friends/requests/${two.id}/accept`)
const decline = (one: User, two: User) => one.post(`/client/friends/requests/${two.id}/decline`)
const befriend = async (one: User, two: User) => {
  expect((await ask(one, two)).status).toBe(201)
  expect((await accept(two, one)).status).toBe(200)
}
const friendsOf = async (user: User, query = '') => (await user.get(`/client/friends${query}`)).data
const idsOf = (rows: { user: { id: string } }[]) => rows.map(({ user }) => user.id)
const events = (user: User) =>
  project.sql(
    `select event_name, properties from app.engagement_events
      where app_user_id = $1 and event_name like 'svc.friend.%' order by received_at, id`,
    [user.id],
  )
const codesOf = (answers: Answer[]) => answers.map(({ status }) => status).sort()
/** Many users of no device, as the other side of many rows. */
const crowd = async (many: number): Promise<string[]> => {
  const made = await project.sql(
    `insert into app.users (display_name) select 'One of many' from generate_series(1, $1::int) returning id`,
    [many],
  )
  return made.map(({ id }) => id)
}
const link = (user: User, others: string[], status: string, fromOthers = false) =>
  project.sql(
    `insert into app.friendships (user_a, user_b, status, requested_by, requested_at, responded_at)
     select least($1::uuid, o.id), greatest($1::uuid, o.id), $3, case when $4 then o.id else $1::uuid end, now() - n * interval '1 minute',
            case when $3 = 'accepted' then now() - n * interval '1 minute' end
       from unnest($2::uuid[]) with ordinality o (id, n)`,
    [user.id, others, status, fromOthers],
  )

describe('a request', () => {
  test('is seen by both, and accepted by the other', async () => {
    const [ada, bea] = await pair()
    const asked = await ask(ada, bea)
    expect(asked.status).toBe(201)
    expect(asked.data).toEqual({
      user: { id: bea.id, display_name: bea.data.display_name, avatar_url: null },
      status: 'pending_outgoing',
      since: expect.any(String),
      metadata: {},
    })
    const again = await ask(ada, bea)
    expect([again.status, again.data]).toEqual([200, asked.data])
    const incoming = await bea.get('/client/friends/requests')
    expect(incoming.body).toMatchObject({ total: 1, offset: 0, limit: 50 })
    expect(incoming.data).toEqual([
      {
        user: { id: ada.id, display_name: ada.data.display_name, avatar_url: null },
        status: 'pending_incoming',
        since: asked.data.since,
        metadata: {},
      },
    ])
    expect((await ada.get('/client/friends/requests')).body.total).toBe(0)
    expect(idsOf((await ada.get('/client/friends/requests?direction=outgoing')).data)).toEqual([bea.id])
    expect(await friendsOf(ada)).toEqual([])
    // nobody accepts their own
    expectRefusal(await accept(ada, bea), 404, 'REQUEST_NOT_FOUND')
    harness.advance(60)
    const accepted = await accept(bea, ada)
    expect([accepted.status, accepted.data.status]).toEqual([200, 'accepted'])
    expect(accepted.data.since > asked.data.since).toBe(true)
    expect((await accept(bea, ada)).data).toEqual(accepted.data)
    expect(await friendsOf(bea)).toEqual([{ ...accepted.data, online: false }])
    expect(idsOf(await friendsOf(ada))).toEqual([bea.id])
    expect((await ask(bea, ada)).status).toBe(200)
    expect((await ada.get('/client/friends/requests?direction=outgoing')).body.total).toBe(0)
    expect(await events(ada)).toEqual([
      { event_name: 'svc.friend.requested', properties: { user_id: bea.id, initiated: true } },
      { event_name: 'svc.friend.accepted', properties: { user_id: bea.id, initiated: false } },
    ])
    expect(await events(bea)).toEqual([
      { event_name: 'svc.friend.requested', properties: { user_id: ada.id, initiated: false } },
      { event_name: 'svc.friend.accepted', properties: { user_id: ada.id, initiated: true } },
    ])
  })

  test('is declined or withdrawn, and may be sent again', async () => {
    const [ada, bea] = await pair()
    await ask(ada, bea)
    expectRefusal(await decline(ada, bea), 404, 'REQUEST_NOT_FOUND')
    expect((await decline(bea, ada)).data).toEqual({ declined: true })
    expectRefusal(await decline(bea, ada), 404, 'REQUEST_NOT_FOUND')
    expect((await ask(ada, bea)).status).toBe(201)
    expectRefusal(await bea.delete(`/client/friends/requests/${ada.id}`), 404, 'REQUEST_NOT_FOUND')
    expect((await ada.delete(`/client/friends/requests/${bea.id}`)).data).toEqual({ deleted: true })
    expectRefusal(await ada.delete(`/client/friends/requests/${bea.id}`), 404, 'REQUEST_NOT_FOUND')
    expectRefusal(await accept(bea, ada), 404, 'REQUEST_NOT_FOUND')
    expect((await ask(bea, ada)).status).toBe(201)
    expect((await accept(ada, bea)).status).toBe(200)
    // what is accepted is no request any more
    expectRefusal(await decline(ada, bea), 404, 'REQUEST_NOT_FOUND')
    expectRefusal(await bea.delete(`/client/friends/requests/${ada.id}`), 404, 'REQUEST_NOT_FOUND')
  })

  test('meets a request: both at once end accepted, once', async () => {
    for (let round = 0; round < 5; round += 1) {
      const [ada, bea] = await pair()
      const answers = await meetingBehind(
        project.database,
        `select from app.users where id in ('${ada.id}', '${bea.id}') order by id for update`,
        () => [ask(ada, bea), ask(bea, ada), ask(ada, bea), ask(bea, ada)],
      )
      expect(codesOf(answers)).toEqual([200, 200, 200, 201])
      expect([idsOf(await friendsOf(ada)), idsOf(await friendsOf(bea))]).toEqual([[bea.id], [ada.id]])
      for (const user of [ada, bea])
        expect((await events(user)).map(({ event_name }) => event_name)).toEqual([
          'svc.friend.requested',
          'svc.friend.accepted',
        ])
    }
  })

  test('is refused to oneself, to nobody, to who is banned, and in a wrong form', async () => {
    const [ada, bea] = await pair()
    expectRefusal(await ask(ada, ada), 400, 'SELF_FRIEND', 'user_id')
    const { code } = (await ada.get('/client/friends/code')).data
    expectRefusal(await ada.post('/client/friends/requests', { friend_code: code }), 400, 'SELF_FRIEND', 'friend_code')
    const post = (body: unknown) => ada.post('/client/friends/requests', body)
    expectRefusal(await post({ user_id: randomUUID() }), 404, 'USER_NOT_FOUND')
    expectRefusal(await post({ friend_code: 'AAAAAAAA' }), 404, 'USER_NOT_FOUND')
    expectInvalid(await post({}), 'user_id')
    expectInvalid(await post({ user_id: bea.id, friend_code: code }), 'user_id')
    expectInvalid(await post({ user_id: 'x' }), 'user_id')
    expectInvalid(await post({ friend_code: '' }), 'friend_code')
    expectInvalid(await post({ friend_code: 'x'.repeat(65) }), 'friend_code')
    expectRefusal(await post('[]'), 400, 'INVALID_BODY')
    for (const path of ['accept', 'decline'])
      expectRefusal(await ada.post(`/client/friends/requests/x/${path}`), 400, 'INVALID_ID')
    for (const path of ['requests/x', 'x', 'x/block'])
      expectRefusal(await ada.delete(`/client/friends/${path}`), 400, 'INVALID_ID')
    expectRefusal(await ada.get('/client/friends/requests?direction=both'), 400, 'INVALID_INPUT', 'direction')
    expectRefusal(await ada.get('/client/friends?status=blocked'), 400, 'INVALID_INPUT', 'status')
    await project.admin.patch(`/users/${bea.id}`, { is_banned: true })
    expectRefusal(await ask(ada, bea), 404, 'USER_NOT_FOUND')
  })

  test('counts against 30 an hour, also one to nobody; one that is repeated does not', async () => {
    const [ada, bea] = await pair()
    await ask(ada, bea)
    const guesses = await Promise.all(
      Array.from({ length: 31 }, () => ada.post('/client/friends/requests', { friend_code: 'AAAAAAAA' })),
    )
    expect(guesses.filter(({ status }) => status === 404)).toHaveLength(29)
    const refused = guesses.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(2)
    expectRefusal(refused[0] as Answer, 429, 'RATE_LIMITED')
    expect(Number(refused[0]?.headers.get('retry-after'))).toBeGreaterThan(3500)
    expect((await ask(ada, bea)).status).toBe(200)
    harness.advance(3601)
    expect(
      (await project.onBehalfOf(ada.id).post('/client/friends/requests', { friend_code: 'AAAAAAAA' })).status,
    ).toBe(404)
  })

  test('is one of a hundred open ones, also when many come at once', async () => {
    const ada = await project.user()
    await link(ada, await crowd(98), 'pending')
    const others = await crowd(5)
    const answers = await Promise.all(others.map((id) => ada.post('/client/friends/requests', { user_id: id })))
    expect(codesOf(answers)).toEqual([201, 201, 409, 409, 409])
    expectRefusal(answers.find(({ status }) => status === 409) as Answer, 409, 'FRIEND_LIMIT_REACHED', { limit: 100 })
    const page = await ada.get('/client/friends?status=pending_outgoing&limit=200')
    expect([page.body.total, page.data.length]).toEqual([100, 100])
  })
})

describe('friends', () => {
  test('are a thousand at most, on both sides', async () => {
    const [ada, bea, cid] = (await users(3)) as [User, User, User]
    await link(ada, await crowd(999), 'accepted')
    await ask(bea, ada)
    await ask(cid, ada)
    const answers = await Promise.all([accept(ada, bea), accept(ada, cid)])
    expect(codesOf(answers)).toEqual([200, 409])
    expectRefusal(answers.find(({ status }) => status === 409) as Answer, 409, 'FRIEND_LIMIT_REACHED', { limit: 1000 })
    const [late] = (await users(1)) as [User]
    expectRefusal(await ask(ada, late), 409, 'FRIEND_LIMIT_REACHED', { limit: 1000 })
    // a request may come; by whom it is accepted does not matter
    await ask(late, ada)
    expectRefusal(await ask(ada, late), 409, 'FRIEND_LIMIT_REACHED')
    const other = await project.user()
    await ask(ada, other).then((refused) => expect(refused.status).toBe(409))
    await link(ada, [other.id], 'pending')
    expectRefusal(await accept(other, ada), 409, 'FRIEND_LIMIT_REACHED')
  })

  test('are listed newest first in exact pages, whichever side of the row they are on', async () => {
    const ada = await project.user()
    const others = await crowd(7)
    await link(ada, others, 'accepted')
    const incoming = await crowd(3)
    await link(ada, incoming, 'pending', true)
    expect(idsOf(await friendsOf(ada))).toEqual(others)
    const page = await ada.get('/client/friends?limit=3&offset=2')
    expect([page.body.total, page.body.offset, page.body.limit, idsOf(page.data)]).toEqual([
      7,
      2,
      3,
      others.slice(2, 5),
    ])
    expect(idsOf(await friendsOf(ada, '?status=pending_incoming'))).toEqual(incoming)
    expect(idsOf((await ada.get('/client/friends/requests?limit=1&offset=1')).data)).toEqual(incoming.slice(1, 2))
    expectRefusal(await ada.get('/client/friends?limit=0'), 400, 'INVALID_INPUT')
  })

  test('have a note each about the other, which the other does not see', async () => {
    const [ada, bea] = await pair()
    await befriend(ada, bea)
    for (const [one, two] of [
      [ada, bea],
      [bea, ada],
    ] as const) {
      const noted = await one.patch(`/client/friends/${two.id}`, { metadata: { of: one.id }, status: 'blocked' })
      expect([noted.status, noted.data.metadata, noted.data.status]).toEqual([200, { of: one.id }, 'accepted'])
    }
    expect((await friendsOf(ada))[0].metadata).toEqual({ of: ada.id })
    expect((await friendsOf(bea))[0].metadata).toEqual({ of: bea.id })
    expect((await ada.patch(`/client/friends/${bea.id}`, {})).data.metadata).toEqual({ of: ada.id })
    for (const metadata of [null, [], 'x', { x: 'x'.repeat(8192) }])
      expectInvalid(await ada.patch(`/client/friends/${bea.id}`, { metadata }), 'metadata')
    const stranger = await project.user()
    expectRefusal(await stranger.patch(`/client/friends/${bea.id}`, { metadata: {} }), 404, 'NOT_FOUND')
    expectRefusal(await ada.patch('/client/friends/x', { metadata: {} }), 400, 'INVALID_ID')
  })

  test('are removed by either, with an event for both', async () => {
    const [ada, bea] = await pair()
    expectRefusal(await ada.delete(`/client/friends/${bea.id}`), 404, 'NOT_FOUND')
    await ask(ada, bea)
    // a request is withdrawn or declined, not removed
    expectRefusal(await ada.delete(`/client/friends/${bea.id}`), 404, 'NOT_FOUND')
    await accept(bea, ada)
    expect((await bea.delete(`/client/friends/${ada.id}`)).data).toEqual({ deleted: true })
    expect([await friendsOf(ada), await friendsOf(bea)]).toEqual([[], []])
    expect((await events(ada)).at(-1)).toEqual({
      event_name: 'svc.friend.removed',
      properties: { user_id: bea.id, initiated: false },
    })
    expect((await events(bea)).at(-1)).toEqual({
      event_name: 'svc.friend.removed',
      properties: { user_id: ada.id, initiated: true },
    })
  })

  test('compete on boards among themselves, from the acceptance on', async () => {
    const [ada, bea, cid] = (await users(3)) as [User, User, User]
    await project.admin.post('/leaderboards', { key: 'points', name: 'Points' })
    for (const [n, user] of [ada, bea, cid].entries())
      await project.onBehalfOf(user.id).post('/client/leaderboards/points/scores', { score: 10 * (n + 1) })
    const board = async () =>
      (await ada.get('/client/leaderboards/points?scope=friends')).data.map((row: any) => [row.app_user_id, row.rank])
    await ask(ada, bea)
    expect(await board()).toEqual([[ada.id, 1]])
    await accept(bea, ada)
    expect(await board()).toEqual([
      [bea.id, 1],
      [ada.id, 2],
    ])
  })

  test('are of one project', async () => {
    const [ada, bea] = await pair()
    await befriend(ada, bea)
    const stranger = await (await harness.project()).user()
    expectRefusal(await stranger.post('/client/friends/requests', { user_id: ada.id }), 404, 'USER_NOT_FOUND')
    expectRefusal(await stranger.delete(`/client/friends/${ada.id}`), 404, 'NOT_FOUND')
    expectRefusal(
      await stranger.get(`/admin/projects/${project.id}/friends?user_id=${ada.id}`),
      401,
      'INVALID_DEVELOPER_TOKEN',
    )
  })
})

describe('a code', () => {
  test('is made once, also by many first calls, and asks its owner', async () => {
    const [ada, bea] = await pair()
    const made = await Promise.all(Array.from({ length: 8 }, () => ada.get('/client/friends/code')))
    expect(new Set(made.map(({ data }) => data.code)).size).toBe(1)
    const { code } = (made[0] as Answer).data
    expect(code).toMatch(/^[A-HJKMNP-Z2-9]{8}$/)
    const typed = ` ${code.slice(0, 4).toLowerCase()}-${code.slice(4)} `
    const asked = await bea.post('/client/friends/requests', { friend_code: typed })
    expect([asked.status, asked.data.user.id]).toEqual([201, ada.id])
  })

  test('is replaced, and the old one names nobody', async () => {
    const [ada, bea] = await pair()
    const { code } = (await ada.get('/client/friends/code')).data
    const rotated = await ada.post('/client/friends/code/rotate')
    expect([rotated.status, rotated.data.code === code]).toEqual([200, false])
    expect((await ada.get('/client/friends/code')).data).toEqual(rotated.data)
    const use = (friend_code: string) => bea.post('/client/friends/requests', { friend_code })
    expectRefusal(await use(code), 404, 'USER_NOT_FOUND')
    expect((await use(rotated.data.code)).status).toBe(201)
    // a first call may be a rotation
    expect((await bea.post('/client/friends/code/rotate')).data.code).toMatch(/^[A-HJKMNP-Z2-9]{8}$/)
  })

  test('goes with its user into a merge, a bundle, and the end', async () => {
    const [survivor, guest] = await pair()
    const { code } = (await guest.get('/client/friends/code')).data
    const merged = await survivor.post('/client/auth/merge', { from_session_token: guest.sessionToken })
    expect(merged.status, merged.text).toBe(200)
    expect((await survivor.get('/client/friends/code')).data).toEqual({ code })
    expect((await project.admin.get(`/users/${survivor.id}/export`)).text).toContain(code)
    const own = (column: string) =>
      project.as('app_user', { 'app.user_id': column }, 'select code from app.friend_codes')
    expect(await own(survivor.id)).toEqual([{ code }])
    expect(await own((await project.user()).id)).toEqual([])
    await project.admin.delete(`/users/${survivor.id}`)
    expect(await project.sql('select from app.friend_codes where code = $1', [code])).toEqual([])
  })
})

test('suggestions are friends of friends by common friends, and nobody whom one knows, blocked, or may not see', async () => {
  const [ada, ...others] = (await users(9)) as [User, ...User[]]
  const [one, two, three, best, good, asked, blocking, banned] = others as [
    User,
    User,
    User,
    User,
    User,
    User,
    User,
    User,
  ]
  const linkAll = (user: User, friends: User[]) =>
    link(
      user,
      friends.map(({ id }) => id),
      'accepted',
    )
  await linkAll(ada, [one, two, three])
  await linkAll(best, [one, two, three])
  await linkAll(good, [one, two])
  await linkAll(asked, [one])
  await linkAll(blocking, [one])
  await linkAll(banned, [one])
  await ask(asked, ada)
  await blocking.post(`/client/friends/${ada.id}/block`)
  await project.admin.patch(`/users/${banned.id}`, { is_banned: true })
  const suggested = await ada.get('/client/friends/suggestions')
  expect(suggested.data).toEqual([
    { user: { id: best.id, display_name: best.data.display_name, avatar_url: null }, common_count: 3 },
    { user: { id: good.id, display_name: good.data.display_name, avatar_url: null }, common_count: 2 },
  ])
  await link(one, await crowd(30), 'accepted')
  expect((await ada.get('/client/friends/suggestions')).data).toHaveLength(20)
  expect((await (await project.user()).get('/client/friends/suggestions')).data).toEqual([])
})

test('merging keeps a thousand friends and a hundred requests, the survivor’s own first', async () => {
  const [survivor, guest] = await pair()
  const [own, theirs, ownAsked, theirAsked] = [await crowd(995), await crowd(10), await crowd(98), await crowd(5)]
  await link(survivor, own, 'accepted')
  await link(survivor, ownAsked, 'pending')
  await link(guest, [...theirs, ...own.slice(0, 3)], 'accepted')
  await link(guest, theirAsked, 'pending')
  const merged = await survivor.post('/client/auth/merge', { from_session_token: guest.sessionToken })
  expect(merged.status, merged.text).toBe(200)
  const kept = new Set(
    idsOf(
      (
        await Promise.all([0, 200, 400, 600, 800, 1000].map((n) => friendsOf(survivor, `?limit=200&offset=${n}`)))
      ).flat(),
    ),
  )
  expect(kept.size).toBe(1000)
  expect(own.filter((id) => !kept.has(id))).toEqual([])
  // of theirs the oldest, which link() puts last
  expect(theirs.filter((id) => kept.has(id))).toEqual(theirs.slice(-5))
  expect((await survivor.get('/client/friends/requests?direction=outgoing')).body.total).toBe(100)
})

describe('administrators', () => {
  test('see the friends and requests of a user, without notes', async () => {
    const [ada, bea, cid] = (await users(3)) as [User, User, User]
    await befriend(ada, bea)
    await ada.patch(`/client/friends/${bea.id}`, { metadata: { secret: 'note' } })
    await ask(cid, ada)
    const page = await project.admin.get(`/friends?user_id=${ada.id}`)
    expect(page.body).toMatchObject({ total: 1, offset: 0, limit: 50 })
    expect(page.data).toEqual([
      {
        user_id: ada.id,
        friend_id: bea.id,
        friend: { id: bea.id, display_name: bea.data.display_name, avatar_url: null },
        status: 'accepted',
        since: expect.any(String),
      },
    ])
    const requests = await project.admin.get(`/friends?user_id=${ada.id}&status=pending_incoming`)
    expect(requests.data.map((row: any) => [row.friend_id, row.status])).toEqual([[cid.id, 'pending_incoming']])
    expectRefusal(await project.admin.get('/friends'), 400, 'INVALID_INPUT', 'user_id')
    expectRefusal(await project.admin.get('/friends?user_id=x'), 400, 'INVALID_INPUT', 'user_id')
    expectRefusal(await project.admin.get(`/friends?user_id=${randomUUID()}`), 404, 'USER_NOT_FOUND')
    expectRefusal(
      await ada.get(`/admin/projects/${project.id}/friends?user_id=${ada.id}`),
      401,
      'INVALID_DEVELOPER_TOKEN',
    )
  })

  test('make friends of two, or send a request of one', async () => {
    const [ada, bea, cid] = (await users(3)) as [User, User, User]
    const add = (one: string, two: string, more: object = {}) =>
      project.admin.post('/friends', { user_id: one, friend_id: two, ...more })
    const made = await add(ada.id, bea.id)
    expect([made.status, made.data.status, made.data.friend_id]).toEqual([201, 'accepted', bea.id])
    expect((await add(bea.id, ada.id)).status).toBe(200)
    expect(idsOf(await friendsOf(bea))).toEqual([ada.id])
    expect(await events(ada)).toEqual([
      { event_name: 'svc.friend.accepted', properties: { user_id: bea.id, initiated: false } },
    ])
    const pending = await add(ada.id, cid.id, { status: 'pending' })
    expect([pending.status, pending.data.status]).toEqual([201, 'pending_outgoing'])
    expect((await add(cid.id, ada.id, { status: 'pending' })).status).toBe(200)
    expect((await events(ada)).at(-1)?.event_name).toBe('svc.friend.requested')
    expect(await friendsOf(cid)).toEqual([])
    const accepted = await add(cid.id, ada.id)
    expect([accepted.status, accepted.data.status]).toEqual([200, 'accepted'])
    const audited = await project.sql(
      `select changes, status from app.audit_events where action = 'friends.add' and target_id = $1 order by occurred_at`,
      [ada.id],
    )
    expect(audited).toEqual([
      { changes: { friend_id: [null, bea.id], status: [null, 'accepted'] }, status: 201 },
      { changes: { friend_id: [null, cid.id], status: [null, 'pending'] }, status: 201 },
    ])
    expectRefusal(await add(ada.id, ada.id), 400, 'SELF_FRIEND')
    expectRefusal(await add(ada.id, randomUUID()), 404, 'USER_NOT_FOUND')
    expectInvalid(await add(ada.id, 'x'), 'friend_id')
    expectInvalid(await add(ada.id, bea.id, { status: 'blocked' }), 'status')
    expectRefusal(await project.admin.post('/friends', '[]'), 400, 'INVALID_BODY')
  })

  test('are held to blocks and limits, and end what there is', async () => {
    const [ada, bea, full] = (await users(3)) as [User, User, User]
    await bea.post(`/client/friends/${ada.id}/block`)
    const add = (one: User, two: User, status = 'accepted') =>
      project.admin.post('/friends', { user_id: one.id, friend_id: two.id, status })
    expectRefusal(await add(ada, bea), 409, 'CONFLICT')
    await link(full, await crowd(1000), 'accepted')
    expectRefusal(await add(ada, full), 409, 'FRIEND_LIMIT_REACHED', { limit: 1000 })
    expect((await add(ada, full, 'pending')).status).toBe(201)
    expectRefusal(await add(full, bea, 'pending'), 409, 'FRIEND_LIMIT_REACHED', { limit: 1000 })
    const eager = await project.user()
    await link(eager, await crowd(100), 'pending')
    expectRefusal(await add(eager, ada, 'pending'), 409, 'FRIEND_LIMIT_REACHED', { limit: 100 })
    const end = (one: string, two: string) => project.admin.delete(`/friends/${one}/${two}`)
    expect((await end(full.id, ada.id)).data).toEqual({ deleted: true })
    expectRefusal(await end(full.id, ada.id), 404, 'NOT_FOUND')
    expectRefusal(await end('x', ada.id), 400, 'INVALID_ID')
    const [audited] = await project.sql(
      `select changes from app.audit_events where action = 'friends.remove' and target_id = $1`,
      [full.id],
    )
    expect(audited.changes).toEqual({ friend_id: [ada.id, null], status: ['pending', null] })
  })
})

test('no function of an administrator or of a worker is a user’s', async () => {
  const me = (await project.user()).id
  for (const call of [
    `api.friend_add('${me}', '${me}')`,
    `api.friends_of_user('${me}')`,
    `internal.friend_end('${me}', '${me}', null)`,
    `internal.friend_accept(null, null)`,
    `internal.friends_of('${me}')`,
  ])
    await expect(project.as('app_user', { 'app.user_id': me, 'app.caller': 'user' }, `select ${call}`)).rejects.toThrow(
      /permission denied/,
    )
  await expect(
    project.as('app_admin', { 'app.caller': 'none' }, `select api.friend_add('${me}', '${me}')`),
  ).rejects.toThrow(/administrators administer/)
})
