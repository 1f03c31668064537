import { describe, expect, test } from 'vitest'
import { startFriends } from '#test/support/friends.ts'
import type { Answer, User } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

/** Friends: their lists, limits and notes, suggestions, and the merge of two users. */
const { harness, project, users, pair, ask, accept, befriend, friendsOf, idsOf, events, codesOf, crowd, link } =
  await startFriends()

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
