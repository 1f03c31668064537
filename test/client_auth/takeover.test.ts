import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import { describe, expect, test } from 'vitest'
import type { Answer } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { startSecond } from '#test/support/second.ts'
import { newEmail, newPhone, password } from '#test/support/sign_in.ts'
import { startTakeover } from '#test/support/takeover.ts'

/** Account take-over: what the first verification of an address ends, and what does not verify it. */
const { stage, harness, project, app, device, probed, attack } = await startTakeover()

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

/**
 * What a proof from outside does with the rows of each table that names a user. What a claimant did stays with the account, as its contents; what lets
 * somebody act for it, or in its name, ends. A new table fails the test below until it stands here.
 */
const ends = {
  users: 'phone and anonymous id are cleared',
  user_passwords: 'deleted',
  user_identities: 'deleted but for the address',
  user_sessions: 'ended',
  user_codes: 'deleted',
  push_tokens: 'deactivated: a device would show what is meant for another person',
  referral_claims: 'pending ones of this account are deleted',
  group_invites: 'deleted: their codes may be in any hands',
  realtime_connections: 'closed with their session',
  realtime_places: 'closed with their session',
  realtime_presences: 'closed with their session',
  realtime_readers: 'closed with their session',
  realtime_tickets: 'of a session: a connection is closed when that has ended',
}
const contents =
  `ai_invocations app_sessions blocks campaign_deliveries challenge_participants conversation_participants currency_balances currency_lots
  currency_transactions diagnostic_issue_users diagnostic_reports email_messages email_preferences engagement_events entitlement_grants event_ids feed_entries flag_evaluations
  flag_exposures flag_overrides flag_users friend_codes friendships group_members inventory_ledger_rows inventory_stacks
  leaderboard_entries league_entries league_tiers ledger_requests media_assets merged_names message_reactions messages moderation_items moderation_reports
  moderation_trust_levels onboarding_progress purchases push_inbox_items push_preferences referral_codes review_prompts review_votes reviews reward_grants
  oauth_flows role_assignments segment_members streak_freezes streak_milestones streak_pauses streak_periods streak_timezones subscription_events sync_checkpoints sync_mutations
  subscriptions user_achievements user_event_counters user_streaks webhook_deliveries xp_rule_days xp_totals xp_transactions`.split(
    /\s+/,
  )

describe('what becomes of it', () => {
  test('is decided for each table that names a user', async () => {
    const tables = await project.sql(
      `select distinct replace(table_name, 'app.', '') as name from internal.user_data order by 1`,
    )
    expect(tables.map(({ name }) => name)).toEqual([...Object.keys(ends), ...contents].sort())
  })

  test('ends invites into groups that were made in its name', async () => {
    const attacker = await attack()
    const group = (await attacker.device.post('/client/groups', { name: 'Theirs' })).data
    const invite = await attacker.device.post(`/client/groups/${group.id}/invites`, { role: 'member' })
    expect(invite.status, invite.text).toBe(201)
    const answer = await stage.verifyCode(attacker.email, await stage.code(attacker.email))
    const victim = device(answer)
    expect((await victim.get(`/client/groups/${group.id}/invites`)).data).toEqual([])
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
