import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Answer } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { startSecond } from '#test/support/second.ts'
import { anonymousId, type Device, newEmail, newPhone, password, startStage } from '#test/support/sign_in.ts'

/** Account take-over: anybody can sign up with another person's address. These tests play both attacker and victim. */
const stage = await startStage()
const { harness, project, app, device } = stage

afterEach(async () => {
  harness.setTime(null)
  // these tests do not concern the rate limit of the whole app
  await project.sql(`delete from app.rate_limits where key like 'client login app%'`)
})

/** The hook of other areas when an account is reclaimed: a function that is found by its name. */
beforeAll(() =>
  project.sql(`
    create table app.take_back_probes (app_user_id uuid);
    create function internal.account_reclaim__probe(app_user_id uuid) returns void language sql security definer set search_path = '' as
      'insert into app.take_back_probes values (account_reclaim__probe.app_user_id)';
    create function internal.account_reclaim__other(text) returns void language sql as 'select 1/0';
    revoke execute on function internal.account_reclaim__probe, internal.account_reclaim__other from public`),
)
const probed = (userId: string) => project.sql('select 1 from app.take_back_probes where app_user_id = $1', [userId])

/** Links a phone by SQL, as a code would; text messages have tests of their own. */
const linkPhone = (userId: string, phone: string) =>
  project.sql(
    `with phone as (update app.users set phone = $2, phone_verified = true where id = $1)
     insert into app.user_identities (app_user_id, provider, provider_id) values ($1, 'phone', $2)`,
    [userId, phone],
  )

type Attacker = {
  readonly email: string
  readonly anonymousId: string
  readonly phone: string
  readonly google: { sub: string; email: string; email_verified: boolean }
  readonly device: Device
  readonly elsewhere: Device
}

/** The attacker's account under the victim's address, with every credential that an attacker can attach. */
const attack = async (): Promise<Attacker> => {
  const [email, anonymous, phone] = [newEmail(), anonymousId(), newPhone()]
  const google = { sub: randomUUID(), email: newEmail(), email_verified: true }
  const made = await stage.signup(email)
  const id_token = await stage.socialToken('google', google)
  expect((await made.post('/client/auth/link', { provider: 'google', id_token })).status).toBe(200)
  await linkPhone(made.id, phone)
  await project.sql('update app.users set anonymous_id = $2 where id = $1', [made.id, anonymous])
  const elsewhere = device(await stage.login(email))
  // an open code of the attacker for another address, to be used later
  await made.post('/client/auth/email/otp/request', { email: newEmail(), purpose: 'link' })
  return { email, anonymousId: anonymous, phone, google, device: made, elsewhere }
}

/** The three ways to verify an address without the account's own session. */
const proofs: [name: string, prove: (email: string) => Promise<{ answer: Answer; identity: string[] }>][] = [
  [
    'an email code',
    async (email) => ({ answer: await stage.verifyCode(email, await stage.code(email)), identity: [] }),
  ],
  ['a magic link', async (email) => ({ answer: await stage.verifyLink(await stage.magicToken(email)), identity: [] })],
  [
    'a social sign-in whose provider verified it',
    async (email) => {
      const sub = randomUUID()
      return { answer: await stage.social('apple', { sub, email, email_verified: true }), identity: [`apple ${sub}`] }
    },
  ],
]

describe.each(proofs)('the victim proves the address by %s', (_name, prove) => {
  test('and keeps the account, in which nothing of the attacker’s is left', async () => {
    const attacker = await attack()
    const second = (await startSecond(harness)).as(app.headers)
    const there = (token: string) => second.get('/client/users/me', { authorization: `Bearer ${token}` })
    for (const { token } of [attacker.device, attacker.elsewhere]) {
      expect((await stage.me({ token })).status).toBe(200)
      expect((await there(token)).status).toBe(200)
    }

    const earlier = await stage.magicToken(attacker.email)
    const { answer, identity } = await prove(attacker.email)
    expect([answer.status, answer.data.is_new_user]).toEqual([200, false])
    expectRefusal(await stage.verifyLink(earlier), 401, 'INVALID_TOKEN')
    expect(answer.data.user).toMatchObject({
      id: attacker.device.id,
      email: attacker.email,
      email_verified: true,
      phone: null,
      phone_verified: false,
      anonymous_id: null,
    })
    expect(decodeJwt(answer.data.session_token)['anon']).toBeNull()
    expect(await stage.identities(attacker.device.id)).toEqual([...identity, `email ${attacker.email}`].sort())
    const victim = device(answer)
    expect((await stage.me(victim)).status).toBe(200)

    // the password
    expectRefusal(await stage.login(attacker.email), 401, 'UNAUTHORIZED')
    // the sessions: refused by this server at once, by another one shortly after
    for (const { token, refresh } of [attacker.device, attacker.elsewhere]) {
      expectRefusal(await stage.me({ token }), 401, 'UNAUTHORIZED')
      await expect.poll(async () => (await there(token)).status).toBe(401)
      expectRefusal(await app.post('/client/auth/refresh', { refresh_token: refresh }), 401, 'INVALID_TOKEN')
    }
    // the anonymous id: signs in a new user
    const anonymous = await app.post('/client/auth/anonymous', { anonymous_id: attacker.anonymousId })
    expect(anonymous.status).toBe(201)
    // the provider: signs in a new, empty account with the provider's address
    const social = await stage.social('google', attacker.google)
    expect([social.status, social.data.user.email]).toEqual([201, attacker.google.email])
    for (const { data } of [anonymous, social]) expect(data.user.id).not.toBe(victim.id)
    // open codes, and the hooks of other areas
    const open = await project.sql('select 1 from app.user_codes where app_user_id = $1 and used_at is null', [
      victim.id,
    ])
    expect(open).toEqual([])
    expect(await probed(victim.id)).toHaveLength(1)
    // the victim sets a password of their own, and it works
    expect((await victim.post('/client/auth/password', { password: 'another passphrase' })).status).toBe(200)
    expect((await stage.login(attacker.email, 'another passphrase')).status).toBe(200)
  })

  test('also where the attacker has unlinked the password, to look harmless', async () => {
    const { email, device: theirs, google } = await attack()
    expect((await theirs.post('/client/auth/unlink', { provider: 'password' })).status).toBe(200)
    const { answer } = await prove(email)
    expect(answer.data.user.id).toBe(theirs.id)
    expectRefusal(await stage.me(theirs), 401, 'UNAUTHORIZED')
    expect((await stage.social('google', google)).data.user.id).not.toBe(theirs.id)
  })

  test('a second proof later takes nothing away', async () => {
    const email = newEmail()
    await attack()
    const first = device((await prove(email)).answer)
    await first.post('/client/auth/password', { password: 'my own passphrase' })
    const again = await stage.verifyCode(email, await stage.code(email))
    expect(again.data.user.id).toBe(first.id)
    expect((await stage.me(first)).status).toBe(200)
    expect((await stage.login(email, 'my own passphrase')).status).toBe(200)
    expect(await probed(first.id)).toEqual([])
  })

  test('an account that an administrator made, and nobody claimed, is taken as it is', async () => {
    const [email, phone] = [newEmail(), newPhone()]
    const [row] = await project.sql(
      `insert into app.users (email, phone, external_id, display_name) values ($1, $2, $3, 'Made') returning id`,
      [email, phone, randomUUID()],
    )
    const { answer } = await prove(email)
    expect(answer.data.user).toMatchObject({ id: row.id, email_verified: true, phone, display_name: 'Made' })
    expect(await probed(row.id)).toEqual([])
  })
})

describe('afterwards', () => {
  test('a social sign-in with the account’s address fails until it is linked from the session', async () => {
    const { email } = await attack()
    const victim = device(await stage.verifyCode(email, await stage.code(email)))
    const claims = { sub: randomUUID(), email, email_verified: true }
    for (const provider of ['google', 'apple'] as const)
      expectRefusal(await stage.social(provider, claims), 409, 'LINK_REQUIRED')
    const id_token = await stage.socialToken('google', claims)
    expect((await victim.post('/client/auth/link', { provider: 'google', id_token })).status).toBe(200)
    const again = await stage.social('google', claims)
    expect([again.status, again.data.user.id]).toEqual([200, victim.id])
    expectRefusal(await stage.social('apple', claims), 409, 'LINK_REQUIRED')
  })

  test('one with a different address makes a separate, empty account', async () => {
    const { email, google } = await attack()
    const victim = device(await stage.verifyLink(await stage.magicToken(email)))
    const { status, data } = await stage.social('google', google)
    expect([status, data.user.id === victim.id, data.user.auth_providers.length]).toEqual([201, false, 1])
  })

  test('whoever came by a provider signs in with it again', async () => {
    const { email } = await attack()
    const claims = { sub: randomUUID(), email, email_verified: true }
    const first = await stage.social('google', claims)
    const again = await stage.social('google', claims)
    expect([first.status, again.status, again.data.user.id]).toEqual([200, 200, first.data.user.id])
    expect((await stage.me(device(first))).status).toBe(200)
  })
})

describe('what proves nothing takes nothing', () => {
  test('a provider that has not verified the address', async () => {
    const { email, device: holder } = await attack()
    const { data } = await stage.social('apple', { email, email_verified: false })
    expect(data.user.id).not.toBe(holder.id)
    expect((await stage.me(holder)).status).toBe(200)
    expect((await stage.login(email)).status).toBe(200)
  })

  test('an address that only looks like theirs: I with a dot is no i, the Kelvin sign no k, what is cut out was there', async () => {
    const id = randomUUID()
    const email = `nikki-${id}@example.org`
    const holder = await stage.signup(email)
    for (const local of ['n\u0130kki', 'ni\u212Aki', 'ni\u0007kki', 'nikki\u0000']) {
      const { status, data } = await stage.social('google', {
        email: `${local}-${id}@example.org`,
        email_verified: true,
      })
      expect([status, data.user.email]).toEqual([201, null])
    }
    const guest = await stage.anonymous()
    const id_token = await stage.socialToken('apple', { email: `n\u0130kki-${id}@example.org`, email_verified: true })
    expect((await guest.post('/client/auth/link', { provider: 'apple', id_token })).data.email).toBeNull()
    expect((await stage.me(holder)).status).toBe(200)
    for (const path of ['otp/request', 'signup', 'login'])
      expectRefusal(
        await app.post(`/client/auth/email/${path}`, { email: `n\u0130kki-${id}@example.org`, password }),
        400,
        'INVALID_INPUT',
      )
    const dotted = `select internal.is_email('n\u0130kki@example.org') or internal.is_email('ni\u212Aki@example.org') as taken`
    expect(await project.sql(dotted)).toEqual([{ taken: false }])
    for (const email of [`a@example.or\u212A`, 'a@\u017fexample.org'])
      expectRefusal(await app.post('/client/auth/magic-link/request', { email }), 400, 'INVALID_INPUT')
  })

  test('a wrong code, and one for another address', async () => {
    const { email, device: holder } = await attack()
    const [code, other] = [await stage.code(email), await stage.code(newEmail())]
    for (const wrong of [other, String((Number(code) + 1) % 1e6).padStart(6, '0')])
      if (wrong !== code) expectRefusal(await stage.verifyCode(email, wrong), 401, 'OTP_INVALID')
    expect((await stage.me(holder)).status).toBe(200)
  })

  test('the attacker’s own proofs of other addresses and numbers', async () => {
    const { email, device: holder, google } = await attack()
    // signing in with the linked provider, which has a different address, verifies nothing
    const { data } = await stage.social('google', google)
    expect([data.user.id, data.user.email_verified]).toEqual([holder.id, false])
    expect((await stage.me(holder)).status).toBe(200)
    // so the victim can still take the account over
    const victim = await stage.verifyCode(email, await stage.code(email))
    expect(victim.data.user.id).toBe(holder.id)
    expectRefusal(await stage.me(holder), 401, 'UNAUTHORIZED')
  })
})

describe('the harmless mirror', () => {
  test('verifying from the signed-in session keeps password, sessions and links', async () => {
    const { email, device: holder, elsewhere, phone, google, anonymousId } = await attack()
    const code = await stage.code(email, 'link', holder)
    const linked = await holder.post('/client/auth/link', { provider: 'email', email, code })
    expect(linked.status).toBe(200)
    expect(linked.data).toMatchObject({ id: holder.id, email_verified: true, phone, anonymous_id: anonymousId })
    for (const session of [holder, elsewhere]) expect((await stage.me(session)).status).toBe(200)
    expect((await stage.login(email)).status).toBe(200)
    expect((await stage.social('google', google)).data.user.id).toBe(holder.id)
    expect(await probed(holder.id)).toEqual([])
    // from then on a verification from elsewhere only signs in
    expect((await stage.verifyCode(email, await stage.code(email))).data.user.id).toBe(holder.id)
    expect((await stage.login(email)).status).toBe(200)
    expect((await stage.me(elsewhere)).status).toBe(200)
  })

  test('linking a provider that has verified the very address does the same', async () => {
    const { email, device: holder } = await attack()
    const id_token = await stage.socialToken('apple', { email, email_verified: true })
    const linked = await holder.post('/client/auth/link', { provider: 'apple', id_token })
    expect([linked.status, linked.data.email_verified]).toEqual([200, true])
    expect((await stage.login(email)).status).toBe(200)
  })
})

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
    expect((await there.get('/client/users/me')).status).toBe(200)
    // the other server does not learn of the take-over: a lost NOTIFY
    const drop = second.running.services.sessions.drop
    second.running.services.sessions.drop = () => undefined
    await stage.verifyCode(email, await stage.code(email))
    const { sessions } = second.running.services
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
    second.running.services.sessions.drop = drop
    const answer = await project
      .as(
        'app_auth',
        { 'app.caller': 'user', 'app.user_id': holder.id, 'app.session_id': String(decodeJwt(holder.token)['sid']) },
        `select (internal.session_owner()).id`,
      )
      .catch((error: Error) => error.message)
    expect(answer).toBe('The session has ended.')
  })

  test('the three proofs at once: one account, and every one of them signed in or told to link', async () => {
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

test('only a proof takes an account back: no other caller may', async () => {
  const { device: holder } = await attack()
  const attempt = (caller: string) =>
    project
      .as(
        'app_auth',
        { 'app.caller': caller, 'app.user_id': holder.id },
        `select internal.account_reclaim('${holder.id}')`,
      )
      .catch((error: Error) => error.message)
  for (const caller of ['user', 'server_key_user', 'server_key', 'developer'])
    expect(await attempt(caller)).toContain('taken back by proof')
  for (const role of ['app_user', 'app_server', 'app_admin', 'app_anon'] as const) {
    const refused = project.as(role, { 'app.caller': 'sign_in' }, `select internal.account_reclaim('${holder.id}')`)
    await expect(refused).rejects.toThrow(/permission denied/)
  }
  expect((await stage.me(holder)).status).toBe(200)
})
