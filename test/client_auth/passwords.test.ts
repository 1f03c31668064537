import { hash } from '@node-rs/argon2'
import { describe, expect, test } from 'vitest'
import { startLinking } from '#test/support/linking.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { type Device, newEmail, password } from '#test/support/sign_in.ts'

/** Passwords of end users: linking, changing and forgetting one. */
const { stage, harness, app, device, link, linkEmail, linkedEvents } = await startLinking()
const setPassword = (by: Device, body: object) => by.post('/client/auth/password', body)

describe('passwords', () => {
  test('linking one needs an email to sign in with, and 8 characters', async () => {
    const guest = await stage.anonymous()
    for (const answer of [
      await link(guest, { provider: 'password', password }),
      await setPassword(guest, { password }),
    ]) {
      expectRefusal(answer, 400, 'INVALID_INPUT')
      expect(answer.error?.details.field).toBe('password')
    }
    const email = newEmail()
    const me = device(await stage.verifyCode(email, await stage.code(email)))
    for (const answer of [
      await link(me, { provider: 'password', password: '1234567' }),
      await setPassword(me, { password: '1234567' }),
      await linkEmail(me, newEmail(), { password: 'short' }),
    ])
      expectRefusal(answer, 400, 'WEAK_PASSWORD')
    expect((await link(me, { provider: 'password', password })).status).toBe(200)
    expect((await stage.login(email)).data.user.id).toBe(me.id)
    expect(await linkedEvents(me.id)).toEqual(['password'])
  })

  test('is the same one composed and decomposed, and a hash of the form that was sent is renewed', async () => {
    const [apart, joined] = ['lo\u0308we im zoo', 'l\u00f6we im zoo']
    for (const [set, other] of [
      [apart, joined],
      [joined, apart],
    ] as const) {
      const email = newEmail()
      expect((await app.post('/client/auth/email/signup', { email, password: set })).status).toBe(201)
      for (const sent of [set, other])
        expect((await app.post('/client/auth/email/login', { email, password: sent })).status).toBe(200)
    }
    const email = newEmail()
    const { data } = await app.post('/client/auth/email/signup', { email, password: apart })
    const raw = await hash(apart, { algorithm: 2, memoryCost: 8, timeCost: 1 })
    await stage.project.sql('update app.user_passwords set password_hash = $1 where app_user_id = $2', [
      raw,
      data.user.id,
    ])
    const login = async (sent: string) => (await app.post('/client/auth/email/login', { email, password: sent })).status
    expect(await login(joined)).toBe(401)
    expect(await login(apart)).toBe(200)
    for (const sent of [joined, apart]) expect(await login(sent)).toBe(200)
    expect(await login('lowe im zoo')).toBe(401)
    const me = device(await app.post('/client/auth/email/login', { email, password: joined }))
    expect((await setPassword(me, { password: 'another one', current_password: apart })).status).toBe(200)
    // counted as it is compared: seven letters, however they were sent
    const weak = await app.post('/client/auth/email/signup', { email: newEmail(), password: 'lo\u0308we im' })
    expectRefusal(weak, 400, 'WEAK_PASSWORD')
  })

  test('a right current one is no failed try', async () => {
    const email = newEmail()
    const me = device(await stage.verifyCode(email, await stage.code(email)))
    expect((await setPassword(me, { password })).status).toBe(200)
    for (let times = 0; times < 11; times += 1)
      expect((await setPassword(me, { password, current_password: password })).status).toBe(200)
  })

  test('one that is too short is no attempt of the ten a minute', async () => {
    const email = newEmail()
    const me = device(await stage.verifyCode(email, await stage.code(email)))
    for (let times = 0; times < 12; times += 1)
      expectRefusal(await link(me, { provider: 'password', password: 'short' }), 400, 'WEAK_PASSWORD')
    expect((await link(me, { provider: 'password', password })).status).toBe(200)
  })

  test('linking one where one is set needs the current one, however young the session', async () => {
    const email = newEmail()
    const me = await stage.signup(email)
    const other = 'another passphrase'
    for (const body of [
      { provider: 'password', password: other },
      { provider: 'email', email: newEmail(), code: '123456', password: other },
    ]) {
      const missing = await link(me, body)
      expectRefusal(missing, 400, 'INVALID_INPUT')
      expect(missing.error?.details.field).toBe('current_password')
      expectRefusal(await link(me, { ...body, current_password: 'wrong' }), 401, 'UNAUTHORIZED')
    }
    expect((await link(me, { provider: 'password', password: other, current_password: password })).status).toBe(200)
    expect((await stage.login(email, other)).status).toBe(200)
    const next = newEmail()
    expect((await linkEmail(me, next, { password, current_password: other })).status).toBe(200)
    expect((await stage.login(next)).status).toBe(200)
  })

  test('changing one ends the other sessions, and keeps this one', async () => {
    const email = newEmail()
    const me = await stage.signup(email)
    const elsewhere = device(await stage.login(email))
    expect((await setPassword(me, { password: 'another passphrase', current_password: password })).data).toEqual({
      success: true,
    })
    expect((await stage.me(me)).status).toBe(200)
    expectRefusal(await stage.me(elsewhere), 401, 'UNAUTHORIZED')
    expectRefusal(await app.post('/client/auth/refresh', { refresh_token: elsewhere.refresh }), 401, 'INVALID_TOKEN')
    expectRefusal(await stage.login(email), 401, 'UNAUTHORIZED')
    expect((await stage.login(email, 'another passphrase')).status).toBe(200)
  })

  test('a session younger than ten minutes may do without the current one; a refresh makes none younger', async () => {
    harness.setTime('2026-11-22T10:00:00Z')
    const email = newEmail()
    const me = await stage.signup(email)
    harness.setTime('2026-11-22T10:09:59Z')
    expect((await setPassword(me, { password: 'second passphrase' })).status).toBe(200)
    harness.setTime('2026-11-22T10:10:00Z')
    const refreshed = await app.post('/client/auth/refresh', { refresh_token: me.refresh })
    for (const token of [me.token, refreshed.data.session_token]) {
      const answer = await app.post(
        '/client/auth/password',
        { password: 'third passphrase' },
        { authorization: `Bearer ${token}` },
      )
      expectRefusal(answer, 400, 'INVALID_INPUT')
      expect(answer.error?.details.field).toBe('current_password')
    }
    expectRefusal(
      await setPassword(me, { password: 'third passphrase', current_password: 'wrong' }),
      401,
      'UNAUTHORIZED',
    )
    expect(
      (await setPassword(me, { password: 'third passphrase', current_password: 'second passphrase' })).status,
    ).toBe(200)
    // a wrong current password is refused in a recent session too
    const young = device(await stage.login(email, 'third passphrase'))
    expectRefusal(await setPassword(young, { password, current_password: 'wrong' }), 401, 'UNAUTHORIZED')
    // a forgotten password can be replaced after a sign-in by code, and in no other way
    const back = device(await stage.verifyCode(email, await stage.code(email)))
    expect((await setPassword(back, { password: 'fourth passphrase' })).status).toBe(200)
    expect((await stage.login(email, 'fourth passphrase')).data.user.id).toBe(me.id)
  })

  test('five at once with the same current one: one wins', async () => {
    const email = newEmail()
    const me = await stage.signup(email)
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, index) =>
        setPassword(me, { password: `passphrase number ${index}`, current_password: password }),
      ),
    )
    const won = answers.flatMap(({ status }, index) => (status === 200 ? [index] : []))
    expect(won).toHaveLength(1)
    for (const answer of answers.filter(({ status }) => status !== 200)) expectRefusal(answer, 401, 'UNAUTHORIZED')
    expect((await stage.login(email, `passphrase number ${won[0]}`)).status).toBe(200)
  })
})
