import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import { describe, expect, test } from 'vitest'
import type { Answer } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { startSecond } from '#test/support/second.ts'
import { newEmail, password } from '#test/support/sign_in.ts'
import { startTakeover } from '#test/support/takeover.ts'

/** Races of an account take-over with other requests on the same account: in every order the attacker keeps nothing. */
const { stage, harness, project, app, device, probed, attack } = await startTakeover()

describe('raced', () => {
  test('sign-in against take-over: whatever comes first, the attacker holds nothing in the end', async () => {
    for (let round = 0; round < 4; round += 1) {
      const email = newEmail()
      const made = await stage.signup(email)
      const code = await stage.code(email)
      const [proved, ...logins] = await Promise.all([
        stage.verifyCode(email, code),
        ...Array.from({ length: 6 }, () => stage.login(email)),
      ])
      const victim = device(proved as Answer)
      expect(victim.id).toBe(made.id)
      for (const answer of logins) {
        expect([200, 401]).toContain(answer.status)
        if (answer.status === 200)
          expectRefusal(await stage.me({ token: answer.data.session_token }), 401, 'UNAUTHORIZED')
      }
      const live = await project.sql('select id from app.user_sessions where app_user_id = $1 and ended_at is null', [
        made.id,
      ])
      expect(live).toEqual([{ id: decodeJwt(victim.token)['sid'] }])
      expectRefusal(await stage.login(email), 401, 'UNAUTHORIZED')
    }
  })

  test('a password that was right when the take-over began is wrong when it is done', async () => {
    const email = newEmail()
    const made = await stage.signup(email)
    const code = await stage.code(email)
    const [proved, login] = await stage.queued(made.id, [() => stage.verifyCode(email, code), () => stage.login(email)])
    expect(proved?.status).toBe(200)
    expectRefusal(login as Answer, 401, 'UNAUTHORIZED')
    // in the other order, the take-over ends the session of the earlier sign-in
    const other = newEmail()
    const second = await stage.signup(other)
    const token = await stage.magicToken(other)
    const [first, taken] = await stage.queued(second.id, [() => stage.login(other), () => stage.verifyLink(token)])
    expect([first?.status, taken?.status]).toEqual([200, 200])
    expectRefusal(await stage.me(device(first as Answer)), 401, 'UNAUTHORIZED')
    expect((await stage.me(device(taken as Answer))).status).toBe(200)
  })

  test('a proof that waits for the account’s deletion is good once more, and makes a new account', async () => {
    const email = newEmail()
    const made = await stage.signup(email)
    const code = await stage.code(email)
    const [gone, proved] = await stage.queued(made.id, [
      () => made.delete('/client/users/me', { confirm: 'DELETE' }),
      () => stage.verifyCode(email, code),
    ])
    expect(gone?.status).toBe(200)
    expectRefusal(proved as Answer, 401, 'UNAUTHORIZED')
    const again = await stage.verifyCode(email, code)
    expect([again.status, again.data.user.id === made.id]).toEqual([201, false])
  })

  test('a link that waits for the take-over links nothing; one that came first is detached', async () => {
    const sub = randomUUID()
    for (const linkFirst of [true, false]) {
      const email = newEmail()
      const made = await stage.signup(email)
      const code = await stage.code(email)
      const id_token = await stage.socialToken('google', { sub })
      const calls = [
        () => made.post('/client/auth/link', { provider: 'google', id_token }),
        () => stage.verifyCode(email, code),
      ]
      const answers = await stage.queued(made.id, linkFirst ? calls : calls.reverse())
      const linked = linkFirst ? answers[0] : answers[1]
      if (linkFirst) expect(linked?.status).toBe(200)
      else expectRefusal(linked as Answer, 401, 'UNAUTHORIZED')
      expect(await stage.identities(made.id)).toEqual([`email ${email}`])
    }
  })

  test('a device, or a claim, that waits for the take-over stays out; one that came first is switched off', async () => {
    const referrer = await stage.signup(newEmail())
    const { code: referral } = (await referrer.get('/client/referrals/me')).data
    for (const attackerFirst of [true, false]) {
      const email = newEmail()
      const made = await stage.signup(email)
      const code = await stage.code(email)
      const token = randomUUID()
      const prove = () => stage.verifyCode(email, code)
      const attach = [
        () => made.post('/client/users/me/push-token', { token, platform: 'ios' }),
        () => made.post('/client/referrals/claim', { code: referral }),
      ]
      const answers = await stage.queued(made.id, attackerFirst ? [...attach, prove] : [prove, ...attach])
      if (attackerFirst) expect(answers.map(({ status }) => status)).toEqual([200, 201, 200])
      else for (const answer of answers.slice(1)) expectRefusal(answer, 401, 'UNAUTHORIZED')
      const active = 'select 1 from app.push_tokens where app_user_id = $1 and is_active'
      expect(await project.sql(active, [made.id])).toEqual([])
      expect(await project.sql('select 1 from app.referral_claims where claimer_id = $1', [made.id])).toEqual([])
    }
  })

  test('a link against take-over: nothing that the attacker links meanwhile stays', async () => {
    for (let round = 0; round < 4; round += 1) {
      const email = newEmail()
      const made = await stage.signup(email)
      const token = await stage.magicToken(email)
      const subs = Array.from({ length: 5 }, () => randomUUID())
      const links = await Promise.all(subs.map((sub) => stage.socialToken('google', { sub })))
      const [proved, ...linked] = await Promise.all([
        stage.verifyLink(token),
        ...links.map((id_token) => made.post('/client/auth/link', { provider: 'google', id_token })),
      ])
      expect((proved as Answer).status).toBe(200)
      for (const { status } of linked) expect([200, 401]).toContain(status)
      expect(await stage.identities(made.id)).toEqual([`email ${email}`])
      for (const sub of subs) expect((await stage.social('google', { sub })).data.user.id).not.toBe(made.id)
    }
  })

  test('a session that other servers still believe in links nothing after the take-over', async () => {
    const { email, device: holder } = await attack()
    const second = await startSecond(harness)
    const there = second.as({ ...app.headers, authorization: `Bearer ${holder.token}` })
    // the other server does not learn of the take-over: a lost NOTIFY. One of what was before may still be on its way
    const { sessions } = second.running.services
    const { drop, clear } = sessions
    Object.assign(sessions, { drop: () => undefined, clear: () => undefined })
    expect((await there.get('/client/users/me')).status).toBe(200)
    await stage.verifyCode(email, await stage.code(email))
    const known = await sessions.users.get(`${project.id} ${decodeJwt(holder.token)['sid']}`, async () => null)
    expect(known?.userId).toBe(holder.id)
    const id_token = await stage.socialToken('google', {})
    expectRefusal(await there.post('/client/auth/link', { provider: 'google', id_token }), 401, 'UNAUTHORIZED')
    expectRefusal(await there.post('/client/auth/password', { password }), 401, 'UNAUTHORIZED')
    expectRefusal(await there.post('/client/auth/unlink', { provider: 'email' }), 401, 'UNAUTHORIZED')
    const [theirs] = await project.sql('select id from app.user_sessions where app_user_id = $1 and ended_at is null', [
      holder.id,
    ])
    expectRefusal(await there.delete(`/client/auth/sessions/${theirs.id}`), 401, 'UNAUTHORIZED')
    const phone = { token: randomUUID(), platform: 'ios' }
    expectRefusal(await there.post('/client/users/me/push-token', phone), 401, 'UNAUTHORIZED')
    Object.assign(sessions, { drop, clear })
    const answer = await project
      .as(
        'app_auth',
        { 'app.caller': 'user', 'app.user_id': holder.id, 'app.session_id': String(decodeJwt(holder.token)['sid']) },
        `select (internal.session_owner()).id`,
      )
      .catch((error: Error) => error.message)
    expect(answer).toBe('The session has ended.')
  })

  test('the three proofs at once: one account, and each request is signed in or asked to link', async () => {
    const { email, device: holder } = await attack()
    const [code, token] = [await stage.code(email), await stage.magicToken(email)]
    const claims = { sub: randomUUID(), email, email_verified: true }
    const answers = await Promise.all([
      stage.verifyCode(email, code),
      stage.verifyLink(token),
      stage.social('google', claims),
      stage.social('google', claims),
    ])
    for (const { status, data, error } of answers) {
      if (status === 200) expect(data.user.id).toBe(holder.id)
      // the take-over invalidates the other open codes of the address
      else expect(['LINK_REQUIRED', 'OTP_INVALID', 'INVALID_TOKEN']).toContain(error?.code)
    }
    expect(answers.some(({ status }) => status === 200)).toBe(true)
    expectRefusal(await stage.me(holder), 401, 'UNAUTHORIZED')
    expect(await project.sql('select 1 from app.users where email = $1', [email])).toHaveLength(1)
  })
})

test('everything at once on one account: nobody fails, nobody waits in a circle, and one proved owner is left', async () => {
  for (let round = 0; round < 3; round += 1) {
    const { email, device: holder, elsewhere, google } = await attack()
    const code = await stage.code(email)
    const tokens = [await stage.magicToken(email), await stage.magicToken(email)]
    const linkCode = await stage.code(email, 'link', holder)
    const guest = await stage.anonymous()
    const proved = { sub: randomUUID(), email, email_verified: true }
    const links = await Promise.all([0, 1, 2].map(() => stage.socialToken('apple', {})))
    const both = [holder, elsewhere]
    const answers = await Promise.all([
      stage.verifyCode(email, code),
      ...tokens.map((token) => stage.verifyLink(token)),
      stage.social('google', proved),
      stage.social('google', google),
      stage.login(email),
      ...links.map((id_token) => holder.post('/client/auth/link', { provider: 'apple', id_token })),
      holder.post('/client/auth/link', { provider: 'email', email, code: linkCode }),
      ...both.map((by) => by.post('/client/auth/unlink', { provider: 'google' })),
      ...both.map((by) => by.post('/client/auth/unlink', { provider: 'phone' })),
      ...both.map((by) => by.post('/client/auth/password', { password: 'another passphrase' })),
      ...both.map((by) => by.post('/client/auth/merge', { from_session_token: guest.token })),
      ...both.map((by) => app.post('/client/auth/refresh', { refresh_token: by.refresh })),
      ...both.map((by) => by.post('/client/events', { event_name: 'played' })),
      elsewhere.post('/client/auth/logout', { refresh_token: elsewhere.refresh, all: true }),
    ])
    for (const { status, text } of answers) expect(status, text).toBeLessThan(500)
    const owners = await project.sql('select id, email_verified from app.users where email = $1', [email])
    expect(owners).toEqual([{ id: holder.id, email_verified: true }])
    // either the holder verified the address first and keeps everything, or somebody else did and the holder's credentials are gone
    const taken = (await probed(holder.id)).length > 0
    if (taken) expectRefusal(await stage.me(holder), 401, 'UNAUTHORIZED')
  }
})
