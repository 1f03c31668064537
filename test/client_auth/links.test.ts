import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import { describe, expect, test } from 'vitest'
import type { Answer } from '#test/support/harness.ts'
import { startLinking } from '#test/support/linking.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { anonymousId, newEmail, newPhone, password } from '#test/support/sign_in.ts'

/** Linking and unlinking the ways to sign in of an account: addresses and identity providers. */
const { stage, harness, project, app, link, unlink, linkEmail, linkSocial, withPhone, linkedEvents } =
  await startLinking()

describe('linking an email', () => {
  test('gives an anonymous user an account, and the anonymous id stops working', async () => {
    const [requestedId, email] = [anonymousId(), newEmail()]
    const me = await stage.anonymous(requestedId)
    const answer = await linkEmail(me, email.toUpperCase(), { password })
    expect(answer.status).toBe(200)
    expect(answer.data).toMatchObject({
      id: me.id,
      email,
      email_verified: true,
      anonymous_id: requestedId,
      auth_providers: [{ provider: 'email', provider_id: email }],
    })
    expect((await stage.me(me)).status).toBe(200)
    expect((await stage.login(email)).data.user.id).toBe(me.id)
    expectRefusal(await app.post('/client/auth/anonymous', { anonymous_id: requestedId }), 401, 'UNAUTHORIZED')
    expect(await linkedEvents(me.id)).toEqual(['email', 'password'])
  })

  test('takes the place of a former address, which is free again', async () => {
    const [old, email] = [newEmail(), newEmail()]
    const me = await stage.signup(old)
    expect((await linkEmail(me, email)).data).toMatchObject({ email, email_verified: true })
    expect(await stage.identities(me.id)).toEqual([`email ${email}`])
    expect((await stage.login(email)).status).toBe(200)
    expectRefusal(await stage.login(old), 401, 'UNAUTHORIZED')
    await stage.signup(old)
    // linking the same address again changes nothing and emits no event
    await linkEmail(me, email)
    expect(await linkedEvents(me.id)).toEqual(['email'])
  })

  test('of another user is refused, and says whether a merge would do', async () => {
    const email = newEmail()
    await stage.signup(email)
    const [guest, member] = [await stage.anonymous(), await stage.signup(newEmail())]
    for (const [by, merge_available] of [
      [guest, true],
      [member, false],
    ] as const) {
      const answer = await linkEmail(by, email)
      expectRefusal(answer, 409, 'IDENTITY_IN_USE')
      expect(answer.error?.details).toEqual({ merge_available })
    }
    expect((await stage.me(guest)).data.email).toBeNull()
  })

  test('needs the right code', async () => {
    const email = newEmail()
    const me = await stage.anonymous()
    const code = await stage.code(email, 'link', me)
    const wrong = String((Number(code) + 1) % 1e6).padStart(6, '0')
    for (let times = 0; times < 5; times += 1)
      expectRefusal(await link(me, { provider: 'email', email, code: wrong }), 401, 'OTP_INVALID')
    // the code is locked
    expectRefusal(await link(me, { provider: 'email', email, code }), 401, 'OTP_INVALID')
    expect((await linkEmail(me, email)).status).toBe(200)
  })

  test('verify against link: of two at once for one address one has it, and nobody fails', async () => {
    for (let round = 0; round < 4; round += 1) {
      const email = newEmail()
      const me = await stage.anonymous()
      const [toLink, toSignIn] = [await stage.code(email, 'link', me), await stage.code(email)]
      const [linked, verified] = await Promise.all([
        link(me, { provider: 'email', email, code: toLink }),
        stage.verifyCode(email, toSignIn),
      ])
      const owners = await project.sql('select id from app.users where email = $1', [email])
      expect(owners).toHaveLength(1)
      if (linked.status === 200) {
        expect([owners[0].id, verified.status, verified.data.user.id]).toEqual([me.id, 200, me.id])
      } else {
        expectRefusal(linked, 409, 'IDENTITY_IN_USE')
        expect([verified.status, verified.data.user.id]).toEqual([201, owners[0].id])
      }
    }
  })

  test('ten sessions at once for one address: one has it', async () => {
    const email = newEmail()
    const guests = await Promise.all(Array.from({ length: 4 }, () => stage.anonymous()))
    const codes: string[] = []
    for (const guest of guests) codes.push(await stage.code(email, 'link', guest))
    const answers = await Promise.all(
      guests.map((guest, index) => link(guest, { provider: 'email', email, code: codes[index] })),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ error }) => error?.code === 'IDENTITY_IN_USE')).toHaveLength(3)
  })
})

describe('linking a provider', () => {
  test('adds a way in; its verified address becomes the account’s where there is none', async () => {
    const me = await stage.anonymous()
    const claims = { sub: randomUUID(), email: newEmail(), email_verified: true }
    const answer = await linkSocial(me, 'google', claims)
    expect(answer.data).toMatchObject({
      id: me.id,
      email: claims.email,
      email_verified: true,
      auth_providers: [{ provider: 'google', provider_id: claims.sub }],
    })
    expect((await stage.social('google', claims)).data.user.id).toBe(me.id)
    // linking again succeeds and emits no second event
    expect((await linkSocial(me, 'google', claims)).status).toBe(200)
    expect(await linkedEvents(me.id)).toEqual(['google'])
    // the provider's address is not taken over when it belongs to another user, when it is unverified, or when the user has a verified one
    const taken = newEmail()
    const owner = await stage.signup(taken)
    for (const [email, email_verified] of [
      [taken, true],
      [newEmail(), false],
    ] as const) {
      const guest = await stage.anonymous()
      expect((await linkSocial(guest, 'apple', { email, email_verified })).data.email).toBeNull()
    }
    const kept = await linkSocial(owner, 'apple', { email: newEmail(), email_verified: true })
    expect(kept.data).toMatchObject({ email: taken, email_verified: false })
  })

  test('of another user is refused; at once by ten, one has it', async () => {
    const sub = randomUUID()
    const guests = await Promise.all(Array.from({ length: 10 }, () => stage.anonymous()))
    const answers = await Promise.all(guests.map((guest) => linkSocial(guest, 'apple', { sub })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    const refused = answers.filter(({ status }) => status !== 200)
    for (const answer of refused) {
      expectRefusal(answer, 409, 'IDENTITY_IN_USE')
      expect(answer.error?.details).toEqual({ merge_available: true })
    }
  })

  test('needs a good token, and an audience', async () => {
    const me = await stage.anonymous()
    expectRefusal(await link(me, { provider: 'google', id_token: 'x' }), 401, 'INVALID_TOKEN')
    expectRefusal(await linkSocial(me, 'google', { aud: 'someone.else' }), 401, 'INVALID_TOKEN')
    const bare = await harness.project()
    const there = await bare.user()
    const id_token = await stage.socialToken('apple', {})
    expectRefusal(
      await there.post('/client/auth/link', { provider: 'apple', id_token }),
      400,
      'AUDIENCE_NOT_CONFIGURED',
    )
  })
})

describe('link', () => {
  test.each([
    [{}, 'provider'],
    [{ provider: 'facebook' }, 'provider'],
    [{ provider: 'email', email: 'a@example.org' }, 'code'],
    [{ provider: 'email', email: 'x', code: '123456' }, 'email'],
    [{ provider: 'phone', phone: '0151', code: '123456' }, 'phone'],
    [{ provider: 'google' }, 'id_token'],
    [{ provider: 'password' }, 'password'],
    [{ provider: 'password', password: 7 }, 'password'],
  ])('refuses %j', async (body, field) => {
    const answer = await link(await stage.anonymous(), body)
    expectRefusal(answer, 400, 'INVALID_INPUT')
    expect(answer.error?.details.field).toBe(field)
  })
})

describe('unlinking', () => {
  test('takes each way away, and what went with it', async () => {
    const email = newEmail()
    const me = await stage.signup(email)
    const sub = randomUUID()
    await linkSocial(me, 'google', { sub })
    const phone = await withPhone(me)
    expectRefusal(await unlink(me, { provider: 'apple' }), 404, 'IDENTITY_NOT_FOUND')
    expectRefusal(await unlink(me, { provider: 'google', provider_id: 'another' }), 404, 'IDENTITY_NOT_FOUND')
    expectRefusal(await unlink(me, { provider: 'email', provider_id: newEmail() }), 404, 'IDENTITY_NOT_FOUND')
    expectRefusal(await unlink(me, { provider: 'phone', provider_id: newPhone() }), 404, 'IDENTITY_NOT_FOUND')

    const gone = await unlink(me, { provider: 'google', provider_id: sub })
    expect([gone.status, gone.data.auth_providers]).toEqual([200, [{ provider: 'email', provider_id: email }]])
    expect((await stage.social('google', { sub })).data.user.id).not.toBe(me.id)
    // unlinking the address removes the password, which signs in with that address
    const without = await unlink(me, { provider: 'email' })
    expect(without.data).toMatchObject({ email: null, email_verified: false, auth_providers: [], phone })
    expectRefusal(await stage.login(email), 401, 'UNAUTHORIZED')
    expectRefusal(await unlink(me, { provider: 'password' }), 404, 'IDENTITY_NOT_FOUND')
    expectRefusal(await unlink(me, { provider: 'email' }), 404, 'IDENTITY_NOT_FOUND')
    expectRefusal(await unlink(me, { provider: 'phone' }), 409, 'LAST_IDENTITY')
    expect((await stage.me(me)).data.phone).toBe(phone)
    await stage.signup(email)
  })

  test('a password is no way of its own; the last one stays', async () => {
    const email = newEmail()
    const me = await stage.signup(email)
    expectRefusal(await unlink(me, { provider: 'email' }), 409, 'LAST_IDENTITY')
    expect((await unlink(me, { provider: 'password' })).status).toBe(200)
    expectRefusal(await stage.login(email), 401, 'UNAUTHORIZED')
    expectRefusal(await unlink(me, { provider: 'email' }), 409, 'LAST_IDENTITY')
    const guest = await stage.anonymous()
    expectRefusal(await unlink(guest, { provider: 'phone' }), 404, 'IDENTITY_NOT_FOUND')
  })

  test('of several of one provider needs to know which', async () => {
    const me = await stage.anonymous()
    const [one, two] = [randomUUID(), randomUUID()]
    await linkSocial(me, 'apple', { sub: one })
    await linkSocial(me, 'apple', { sub: two })
    const answer = await unlink(me, { provider: 'apple' })
    expectRefusal(answer, 400, 'INVALID_INPUT')
    expect(answer.error?.details.field).toBe('provider_id')
    expect((await unlink(me, { provider: 'apple', provider_id: one })).status).toBe(200)
    expectRefusal(await unlink(me, { provider: 'apple' }), 409, 'LAST_IDENTITY')
  })

  test('the last two at once: one goes, one stays', async () => {
    for (let round = 0; round < 5; round += 1) {
      const me = await stage.anonymous()
      await linkSocial(me, 'apple')
      await linkSocial(me, 'google')
      const answers = await Promise.all([unlink(me, { provider: 'apple' }), unlink(me, { provider: 'google' })])
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
      expect(await stage.identities(me.id)).toHaveLength(1)
    }
  })

  test('against a sign-in with the very identity: what is unlinked does not come back', async () => {
    const me = await stage.signup(newEmail())
    const sub = randomUUID()
    await linkSocial(me, 'google', { sub })
    const [gone, signedIn] = await stage.queued(me.id, [
      () => unlink(me, { provider: 'google' }),
      () => stage.social('google', { sub }),
    ])
    expect([gone?.status, signedIn?.status]).toEqual([200, 201])
    expect(signedIn?.data.user.id).not.toBe(me.id)
    expect(await stage.identities(me.id)).toEqual([`email ${me.user.email}`])
  })

  test('the last two, one behind the other: the second sees what the first has left', async () => {
    const me = await stage.anonymous()
    await linkSocial(me, 'apple')
    await linkSocial(me, 'google')
    const [first, second] = await stage.queued(me.id, [
      () => unlink(me, { provider: 'apple' }),
      () => unlink(me, { provider: 'google' }),
    ])
    expect(first?.status).toBe(200)
    expectRefusal(second as Answer, 409, 'LAST_IDENTITY')
  })

  test('an address that an administrator changes takes its link along', async () => {
    const [email, next] = [newEmail(), newEmail()]
    const me = await stage.signup(email)
    await project.sql('update app.users set email = $2, email_verified = false where id = $1', [me.id, next])
    expect(await stage.identities(me.id)).toEqual([])
    // the first verification of the new address takes the account over, because its password was never verified
    const owner = await stage.verifyCode(next, await stage.code(next))
    expect(owner.data.user.id).toBe(me.id)
    expectRefusal(await stage.me(me), 401, 'UNAUTHORIZED')
  })

  test.each([
    [{}],
    [{ provider: 'x' }],
    [{ provider: 'google', provider_id: '' }],
    [{ provider: 'google', provider_id: 'x'.repeat(256) }],
  ])('refuses %j', async (body) => expectRefusal(await unlink(await stage.anonymous(), body), 400, 'INVALID_INPUT'))
})

describe('a server key', () => {
  test('does nothing of this for a user, and refuses a request that has a Bearer token as well', async () => {
    const me = await stage.signup(newEmail())
    const other = await stage.anonymous()
    const onBehalf = project.onBehalfOf(me.id)
    const calls: [string, string, object?][] = [
      ['POST', '/client/auth/link', { provider: 'password', password }],
      ['POST', '/client/auth/unlink', { provider: 'email' }],
      ['POST', '/client/auth/password', { password }],
      ['POST', '/client/auth/merge', { from_session_token: other.token }],
      ['GET', '/client/auth/sessions'],
      ['DELETE', `/client/auth/sessions/${decodeJwt(me.token)['sid']}`],
    ]
    for (const [method, path, body] of calls) {
      expectRefusal(await onBehalf.request(method, path, body), 403, 'SESSION_REQUIRED')
      const both = onBehalf.with({ authorization: `Bearer ${me.token}` })
      expectRefusal(await both.request(method, path, body), 400, 'INVALID_INPUT')
      expectRefusal(await project.server.request(method, path, body), 401, 'UNAUTHORIZED')
    }
    expect((await stage.me(me)).status).toBe(200)
    expect((await stage.me(other)).status).toBe(200)
  })
})
