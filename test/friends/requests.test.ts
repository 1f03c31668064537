import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startFriends } from '#test/support/friends.ts'
import type { Answer } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { meetingBehind } from '#test/support/transaction.ts'

/** Friend requests, their answers, and the codes by which users send them. */
const { harness, project, pair, ask, accept, decline, friendsOf, idsOf, events, codesOf, crowd, link } =
  await startFriends()

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
      // each has the time at which its request began, which may be the later one for the request that came first
      for (const user of [ada, bea])
        expect((await events(user)).map(({ event_name }) => event_name).sort()).toEqual([
          'svc.friend.accepted',
          'svc.friend.requested',
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
