import { afterAll, describe, expect, test } from 'vitest'
import { mailedCode, meetingAt, personalToken, withBearer } from '#test/support/accounts.ts'
import { operatorTokenOf, serviceAccountOf } from '#test/support/delegation.ts'
import { type Answer, type Client, type Developer, freshIp, startHarness } from '#test/support/harness.ts'
import { at, enrol, organizationOf, personalOf } from '#test/support/organizations.ts'
import { startSecond } from '#test/support/second.ts'
import { startMailServer } from '#test/support/smtp.ts'

/** Anybody can sign up with anybody's address. Whoever opens the account here is a stranger; the code comes to its owner. */
const mail = await startMailServer()
afterAll(() => mail.stop())
const harness = await startHarness({ env: { SMTP_URL: mail.url } })
const { anyone } = harness
const second = await startSecond(harness)

const password = 'a long passphrase'
const me = '/auth/developer/me'
const refusalOf = ({ status, error }: Answer) => [status, error?.code]
const login = (email: string, word = password) => anyone.post('/auth/developer/login', { email, password: word })
const prove = async (email: string, by: Client = anyone) =>
  by.post('/auth/developer/otp/verify', { email, code: await mailedCode(harness, mail, email) })
const signedIn = ({ data }: Answer) => withBearer(anyone, data.access_token)
const refreshed = (refresh_token: string) => anyone.post('/auth/developer/refresh', { refresh_token })

/** Every way in that a stranger can have: password, two sign-ins, tokens, one of them rotated. */
const claim = async () => {
  const stranger = await harness.developer()
  const elsewhere = await harness.signIn(stranger)
  const token = await personalToken(stranger)
  const rotated = await personalToken(stranger)
  const after = (await stranger.post(`/admin/tokens/${rotated.id}/rotate`)).data
  return { stranger, elsewhere, email: stranger.email, texts: [token.token, rotated.token, after.token] as string[] }
}

describe('the first proof of an address', () => {
  test('takes the account from whoever opened it: password, sign-ins and tokens end, here and elsewhere', async () => {
    const { stranger, elsewhere, email, texts } = await claim()
    const project = await harness.project({ developer: stranger })
    const ways = [stranger, elsewhere, ...texts.map((text) => withBearer(anyone, text))]
    // remembered by both servers
    for (const way of ways) expect((await way.get(me)).status).toBe(200)
    for (const way of ways) expect((await second.as(way.headers).get(me)).status).toBe(200)

    const answer = await prove(email)
    expect(answer.data.developer).toMatchObject({ id: stranger.id, email_verified: true, has_password: false })
    for (const way of ways) expect(refusalOf(await way.get(me))).toEqual([401, 'INVALID_DEVELOPER_TOKEN'])
    for (const way of ways)
      await expect
        .poll(async () => refusalOf(await second.as(way.headers).get(me)), { timeout: 10_000 })
        .toEqual([401, 'INVALID_DEVELOPER_TOKEN'])
    for (const { refreshToken } of [stranger, elsewhere])
      expect(refusalOf(await refreshed(refreshToken))).toEqual([401, 'INVALID_TOKEN'])
    expect(refusalOf(await login(email))).toEqual([401, 'INVALID_CREDENTIALS'])

    // its owner has what the account has
    const owner = signedIn(answer)
    expect((await owner.get('/auth/developer/sessions')).data).toMatchObject([{ current: true }])
    expect((await owner.get('/admin/projects')).data.map(({ id }: any) => id)).toEqual([project.id])
    expect((await owner.patch(me, { password: "the owner's passphrase" })).status).toBe(200)
    expect((await login(email, "the owner's passphrase")).status).toBe(200)
    const revoked = (await owner.get('/admin/tokens')).data
    expect(revoked.map(({ revoked_at }: any) => typeof revoked_at)).toEqual(['string', 'string'])
    for (const { id } of revoked)
      expect(refusalOf(await owner.post(`/admin/tokens/${id}/rotate`))).toEqual([404, 'NOT_FOUND'])
  })

  test('is in the trail of the account, with how much ended', async () => {
    const { email, stranger } = await claim()
    await prove(email)
    const rows = await harness.control(
      `select action, actor ->> 'id' as actor, changes from app.audit_events where scope = $1 order by position desc limit 4`,
      [stranger.id],
    )
    expect(rows.map(({ action }) => action)).toEqual([
      'developer.login',
      'developer.updated',
      'developer.taken_back',
      'developer.updated',
    ])
    expect(rows[2]).toMatchObject({ actor: stranger.id, changes: { sessions: [2, 0], tokens: [2, 0] } })
    expect(rows[3]?.changes).toEqual({ password_hash: ['[redacted]', '[redacted]'] })
  })

  test("from the account's own sign-in takes nothing away", async () => {
    const { stranger: developer, elsewhere, email, texts } = await claim()
    const answer = await prove(email, developer)
    expect(answer.data.developer).toMatchObject({ email_verified: true, has_password: true })
    for (const way of [developer, elsewhere, ...texts.map((text) => withBearer(anyone, text)), signedIn(answer)])
      expect((await way.get(me)).status).toBe(200)
    expect((await login(email)).status).toBe(200)
  })

  test.each<[string, (of: Awaited<ReturnType<typeof claim>>) => Promise<Client>]>([
    ["another account's sign-in", () => harness.developer()],
    ['a personal access token', async ({ texts }) => withBearer(anyone, texts[0] ?? '')],
    ['a refresh token', async ({ stranger }) => withBearer(anyone, stranger.refreshToken)],
    ['no token at all', async () => withBearer(anyone, 'nothing')],
    [
      'a sign-in that has ended',
      async ({ stranger, elsewhere }) => {
        await anyone.post('/auth/developer/logout', { refresh_token: elsewhere.refreshToken })
        expect((await stranger.get(me)).status).toBe(200)
        return elsewhere
      },
    ],
  ])('with %s beside it is a proof from elsewhere', async (_what, of) => {
    const claimed = await claim()
    const answer = await prove(claimed.email, await of(claimed))
    expect([answer.status, answer.data.developer.has_password]).toEqual([200, false])
    expect(refusalOf(await claimed.stranger.get(me))).toEqual([401, 'INVALID_DEVELOPER_TOKEN'])
  })

  test('from where somebody signed in within the hour takes nothing; later, or after they signed out, it does', async () => {
    const start = Date.now()
    const at = { 'x-forwarded-for': freshIp() }
    const proved = async (after: number, signsOut = false) => {
      harness.setTime(new Date(start))
      const { email } = await harness.developer()
      const { data } = await anyone.post('/auth/developer/login', { email, password }, at)
      if (signsOut) await anyone.post('/auth/developer/logout', { refresh_token: data.refresh_token })
      harness.setTime(new Date(start + after * 1000))
      const code = await mailedCode(harness, mail, email)
      return (await anyone.post('/auth/developer/otp/verify', { email, code }, at)).data.developer
    }
    expect(await proved(3599)).toMatchObject({ email_verified: true, has_password: true })
    expect(await proved(3600)).toMatchObject({ email_verified: true, has_password: false })
    expect(await proved(60, true)).toMatchObject({ email_verified: true, has_password: false })
    harness.setTime(null)
  })

  test('is the first alone: a later one signs in and takes nothing', async () => {
    const { email, stranger } = await claim()
    const owner = signedIn(await prove(email))
    await owner.patch(me, { password: 'mine from here on' })
    const { token } = await personalToken(owner)
    expect((await prove(email)).data.developer).toMatchObject({ id: stranger.id, has_password: true })
    for (const way of [owner, withBearer(anyone, token)]) expect((await way.get(me)).status).toBe(200)
    expect((await login(email, 'mine from here on')).status).toBe(200)
  })

  test('comes from an address that an operator vouched for as a later one', async () => {
    const { email, elsewhere } = await claim()
    await harness.control('select internal.operator_developer_set($1, null, true)', [email])
    expect((await prove(email)).data.developer.has_password).toBe(true)
    expect((await elsewhere.get(me)).status).toBe(200)
  })

  test('by a wrong code takes nothing', async () => {
    const { email, stranger } = await claim()
    const code = await mailedCode(harness, mail, email)
    const wrong = String((Number(code) + 1) % 1_000_000).padStart(6, '0')
    expect(refusalOf(await anyone.post('/auth/developer/otp/verify', { email, code: wrong }))).toEqual([
      401,
      'OTP_INVALID',
    ])
    expect((await stranger.get(me)).data).toMatchObject({ has_password: true, email_verified: false })
  })
})

/**
 * What a proof of the address does with the rows of each table that names an account, an organization or a project: everything that a stranger can
 * have set up and that acts later. A new table fails the test below until it stands here.
 */
const afterProof: Readonly<Record<string, string>> = {
  api_keys: 'stay with their project: its owner sees them with their dates',
  developer_identities: 'deleted',
  developer_sessions: 'ended',
  developer_tokens: 'revoked',
  device_grants: 'deleted',
  domains: 'stays with its project: nothing acts by it alone',
  file_purges: 'a chore',
  invites: 'stays: who used an invite code',
  operations: 'stays with its project',
  operator_tokens: 'revoked: its own, and those of its own organizations',
  organization_invites: 'revoked: into its own organizations, and those that it sent',
  organization_members:
    'others leave its own organizations; it leaves those that others own too, but for accepted invites',
  organizations: 'the personal one and those of which it is the only owner stay',
  project_signing_keys: 'stays: known to the server alone',
  project_subscriptions: 'stays: somebody pays for it',
  projects: 'stays, with what is in it',
  promotion_plans: 'stays: applying one needs the rights of then',
  service_accounts: 'deleted in its own organizations, with their tokens',
  tenant_moves: 'a chore',
  tenants: 'stays with its project',
  traffic_reports: 'figures',
  webhook_audit_cursors: 'goes on only where a webhook watches',
  webhooks: 'deleted in its own organizations',
}

describe('what a stranger has set up around the account', () => {
  test('is decided for each table that names an account, an organization or a project', async () => {
    const tables = await harness.control(
      `select distinct c.relname as name
         from pg_class c join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'app'
         join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        where c.relkind in ('r', 'p') and not c.relispartition
          and (a.attname in ('developer_id', 'organization_id', 'project_id', 'used_by')
               or exists (select from pg_constraint f where f.conrelid = c.oid and f.contype = 'f'
                             and f.confrelid in ('app.developers'::regclass, 'app.organizations'::regclass, 'app.projects'::regclass)))
        order by 1`,
    )
    expect(tables.map(({ name }) => name)).toEqual(Object.keys(afterProof).sort())
  })

  test('ends: service accounts with their tokens, webhooks, invites, other members', async () => {
    const { stranger, email } = await claim()
    const accomplice = await harness.developer()
    const home = await personalOf(stranger)
    const project = await harness.project({ developer: stranger })
    const team = (await organizationOf(stranger)).id
    const machines = [
      await serviceAccountOf(harness, stranger, { organization_id: home }),
      await serviceAccountOf(harness, stranger, { organization_id: team }),
    ]
    const minted = await operatorTokenOf(harness, machines[0]?.client ?? anyone, { organization_id: home })
    const own = await operatorTokenOf(harness, stranger, { project_id: project.id })
    await enrol(harness, home, accomplice, 'owner')
    await enrol(harness, team, accomplice, 'admin')
    const theirs = await operatorTokenOf(harness, accomplice, { organization_id: home })
    for (const organization_id of [home, team]) {
      const hook = { organization_id, target_url: 'https://1.1.1.1/hook', event_types: ['*'] }
      expect((await stranger.post('/admin/control-plane-webhooks', hook)).status).toBe(201)
    }
    const users = `/admin/projects/${project.id}/users`
    for (const { client } of [minted, own, theirs]) expect((await client.get(users)).status).toBe(200)

    const owner = signedIn(await prove(email))
    for (const { client } of [minted, own, theirs])
      expect(refusalOf(await client.get(users))).toEqual([401, 'INVALID_DEVELOPER_TOKEN'])
    for (const { client } of machines)
      expect(
        refusalOf(await client.post('/admin/operator-tokens', { organization_id: home, scopes: ['*:read'] })),
      ).toEqual([401, 'INVALID_DEVELOPER_TOKEN'])
    expect((await accomplice.get(users)).error?.code).toBe('PROJECT_FORBIDDEN')
    for (const list of ['/admin/service-accounts', '/admin/control-plane-webhooks'])
      expect((await owner.get(list)).data).toEqual([])
    for (const id of [home, team]) expect((await owner.get(at(id, '/members'))).data).toHaveLength(1)
    expect((await owner.get(users)).status).toBe(200)
    const [row] = await harness.control(
      `select changes from app.audit_events where action = 'developer.taken_back' and scope = $1`,
      [stranger.id],
    )
    expect(row?.['changes']).toMatchObject({
      service_accounts: [2, 0],
      webhooks: [2, 0],
      members: [2, 0],
      memberships: [0, 0],
    })
  })

  test('leaves what others own too: the account is out of it, unless it was invited there', async () => {
    const { stranger, email } = await claim()
    const accomplice = await harness.developer()
    const shared = (await organizationOf(stranger, 'team')).id
    await enrol(harness, shared, accomplice, 'owner')
    const company = (await organizationOf(accomplice, 'company')).id
    await enrol(harness, company, stranger, 'admin')
    await harness.control(
      `insert into app.organization_invites (organization_id, email, mailbox, role, token_hash, accepted_by, accepted_at, expires_at)
       values ($1, $2, $2, 'admin', gen_random_uuid()::text, $3, now(), now())`,
      [company, email, stranger.id],
    )
    const pending = await harness.control(
      `insert into app.organization_invites (organization_id, email, mailbox, role, token_hash, invited_by, expires_at)
       values ($1, 'x@example.org', 'x@example.org', 'admin', gen_random_uuid()::text, $2, now() + interval '1 day') returning id`,
      [company, stranger.id],
    )
    const owner = signedIn(await prove(email))
    const names = (await owner.get('/admin/organizations')).data.map(({ name }: any) => name)
    expect(names).toContain('company')
    expect(names).not.toContain('team')
    expect((await accomplice.get(at(shared, '/members'))).data.map(({ developer_id }: any) => developer_id)).toEqual([
      accomplice.id,
    ])
    const [{ revoked_at }] = (await harness.control('select revoked_at from app.organization_invites where id = $1', [
      pending[0]?.['id'],
    ])) as [{ revoked_at: Date | null }]
    expect(revoked_at).not.toBeNull()
  })
})

describe('whoever meets the proof', () => {
  const words = { password: 'the stranger stays', current_password: password }

  test('by signing in, changing the password, making and rotating tokens and keys keeps no way in', async () => {
    for (let round = 0; round < 3; round += 1) {
      const { stranger, email } = await claim()
      const project = await harness.project({ developer: stranger })
      const { id } = await personalToken(stranger)
      const home = await personalOf(stranger)
      const code = await mailedCode(harness, mail, email)
      const [proved, ...answers] = await meetingAt(harness, 'app.developers', () => [
        anyone.post('/auth/developer/otp/verify', { email, code }),
        login(email),
        stranger.patch(me, words),
        stranger.post('/admin/tokens', { name: 'late' }),
        stranger.post(`/admin/tokens/${id}/rotate`),
        refreshed(stranger.refreshToken),
        project.admin.post('/api-keys', { key_type: 'server', environment: 'production' }),
        stranger.post('/admin/service-accounts', { organization_id: home, name: 'late', scopes: ['*:write'] }),
        stranger.post('/admin/control-plane-webhooks', { target_url: 'https://1.1.1.1/hook', event_types: ['*'] }),
        stranger.post('/admin/organizations', { name: 'late' }),
        stranger.post('/admin/projects', { name: 'late' }),
        stranger.post('/admin/operator-tokens', { organization_id: home, scopes: ['*:read'] }),
      ])
      expect(proved?.status, proved?.text).toBe(200)
      for (const { status, text } of answers) expect([200, 201, 401, 404], text).toContain(status)
      const left = await harness.control(
        `select (select count(*)::int from app.developer_sessions where developer_id = $1 and ended_at is null) as sessions,
                (select count(*)::int from app.developer_tokens where developer_id = $1 and revoked_at is null) as tokens,
                (select count(*)::int from app.service_accounts where organization_id = $2) as machines,
                (select count(*)::int from app.webhooks where organization_id = $2) as hooks,
                (select count(*)::int from app.operator_tokens where organization_id = $2 and revoked_at is null) as operator_tokens,
                (select password_hash is null from app.developers where id = $1) as is_without_password`,
        [stranger.id, home],
      )
      const nothing = { tokens: 0, machines: 0, hooks: 0, operator_tokens: 0 }
      expect(left).toEqual([{ sessions: 1, ...nothing, is_without_password: true }])
      for (const { data } of answers)
        for (const text of [data?.access_token, data?.token])
          if (typeof text === 'string') expect((await withBearer(anyone, text).get(me)).status).toBe(401)
    }
  })

  /** As a server that has not heard of it yet: the call comes with a credential that it still believes in. */
  const believed = (
    developer: Developer,
    claims: Record<string, string>,
    name: string,
    args: Record<string, unknown>,
  ) => {
    const { database, control } = harness.running.services
    return database.call(
      control,
      'control_developer',
      { caller: 'developer', developerId: developer.id, ...claims },
      name,
      args,
    )
  }

  test('through a server that still believes in an ended sign-in or token adds no way in', async () => {
    const { stranger, email } = await claim()
    const project = await harness.project({ developer: stranger })
    const { id } = await personalToken(stranger)
    const [session] = (await stranger.get('/auth/developer/sessions')).data
    const home = await personalOf(stranger)
    await prove(email)
    const text = { token_prefix: 'svc_dpat_1234567', token_hash: 'x' }
    const key = {
      project_id: project.id,
      key_prefix: 'svc_live_sk_1',
      key_hash: 'x',
      key_type: 'server',
      environment: 'production',
    }
    const calls: [string, Record<string, unknown>][] = [
      ['developer_patch', { patch: {}, token: {}, checked_hash: null, password_hash: 'x' }],
      ['token_create', { name: 'x', scopes: ['*:write'], ...text }],
      ['token_rotate', { token_id: id, ...text }],
      ['api_key_create', key],
      ['organization_create', { name: 'x' }],
      ['service_account_create', { organization_id: home, name: 'x', scopes: ['*:write'], key_hash: 'x' }],
      [
        'organization_invite_create',
        { organization_id: home, id: project.id, email: 'x@example.org', role: 'owner', token_hash: 'x' },
      ],
      [
        'project_create',
        {
          id: crypto.randomUUID(),
          name: 'x',
          keys: [],
          signing: { key_id: 'x', public_jwk: {}, sealed: 'x' },
          database_name: 'x',
        },
      ],
    ]
    const held = [
      { sessionId: session.id },
      { actor: JSON.stringify({ type: 'pat', id }) },
      { actor: JSON.stringify({ type: 'developer', id: stranger.id }) },
    ]
    for (const claims of held)
      for (const [name, args] of calls)
        await expect(believed(stranger, claims, name, args), name).rejects.toMatchObject({
          status: 401,
          code: 'INVALID_DEVELOPER_TOKEN',
        })
  })
})
