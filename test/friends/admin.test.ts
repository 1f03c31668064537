import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startFriends } from '#test/support/friends.ts'
import type { User } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

/** What administrators see and change of friends. */
const { project, users, ask, befriend, friendsOf, idsOf, events, crowd, link } = await startFriends()

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
  ).rejects.toThrow(/friends are administered by administrators/)
})
