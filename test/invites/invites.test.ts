import { afterEach, describe, expect, test } from 'vitest'
import { createInvite, inviteHash } from '#server/accounts/invite_codes.ts'
import { connectAdmin } from '#server/database/cluster.ts'
import { developerWith, inviteCodes, meetingAt, personalToken, withBearer } from '#test/support/accounts.ts'
import { type Answer, freshEmail, startHarness } from '#test/support/harness.ts'
import { startSecond } from '#test/support/second.ts'

const harness = await startHarness()
const invited = await startHarness({
  env: { SIGNUP_MODE: 'invite', REQUEST_ACCESS_URL: 'https://example.org/access' },
})
const closed = await startHarness({ env: { SIGNUP_MODE: 'closed', PUBLIC_URL: 'https://api.example.org/' } })
const password = 'a long passphrase'

const signupAt = (at: typeof harness, more: object = {}) =>
  at.anyone.post('/auth/developer/signup', { email: freshEmail(), password, ...more })
const codeOf = ([code = '']: string[]) => code
const refusalOf = ({ status, error }: Answer) => [status, error?.code]
const stateOf = async (at: typeof harness, code: string) =>
  (
    await at.control(`select internal.invite_status(i) as status, i.used_by from app.invites i where code_hash = $1`, [
      inviteHash(code),
    ])
  )[0]

afterEach(() => {
  for (const one of [harness, invited, closed]) one.setTime(null)
})

describe('invite codes', () => {
  test('are four groups of four behind a prefix, never twice the same, and stored as hashes', async () => {
    const codes = await inviteCodes(harness, 50)
    for (const code of codes) expect(code).toMatch(/^SVC(-[2-9A-HJ-NP-Z]{4}){4}$/)
    expect(new Set(codes).size).toBe(50)
    const stored = JSON.stringify(await harness.control('select * from app.invites'))
    for (const code of codes) {
      expect(stored).not.toContain(code)
      expect(stored).not.toContain(code.replaceAll('-', ''))
      expect(stored).toContain(code.slice(0, 8))
    }
  })

  test.each([
    ['as it is', (code: string) => code],
    ['in small letters', (code: string) => code.toLowerCase()],
    ['without dashes', (code: string) => code.replaceAll('-', '')],
    ['with spaces for dashes', (code: string) => ` ${code.replaceAll('-', ' ')}\n`],
    ['with dashes of a word processor', (code: string) => code.replaceAll('-', ' – ')],
    ['in groups of its own', (code: string) => code.replaceAll('-', '').replace(/(.{2})/g, '$1-')],
  ])('are read %s', async (_how, spelled) => {
    const code = codeOf(await inviteCodes(invited))
    expect((await signupAt(invited, { invite_code: spelled(code) })).status).toBe(201)
    expect((await stateOf(invited, code)).status).toBe('used')
  })
})

describe('sign-up by invite only', () => {
  const access = {
    request_access_url: 'https://example.org/access',
    request_access_endpoint: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/v1\/auth\/developer\/waitlist$/),
  }

  test.each([[{}], [{ invite_code: '' }], [{ invite_code: ' - ' }]])('needs a code: %j', async (body) => {
    const answer = await signupAt(invited, body)
    expect(refusalOf(answer)).toEqual([403, 'INVITE_REQUIRED'])
    expect(answer.error?.details).toEqual(access)
  })

  test('the endpoint that a refusal names is the waitlist', async () => {
    const { error } = await signupAt(invited)
    const response = await fetch(error?.details.request_access_endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: freshEmail() }),
    })
    expect(await response.json()).toEqual({ data: { ok: true } })
  })

  test('a code lets one account in, which can create projects', async () => {
    const code = codeOf(await inviteCodes(invited))
    const { status, data } = await signupAt(invited, { invite_code: code })
    expect([status, data.developer.can_provision]).toEqual([201, true])
    expect(await stateOf(invited, code)).toEqual({ status: 'used', used_by: data.developer.id })
    const made = await withBearer(invited.anyone, data.access_token).post('/admin/projects', { name: 'x' })
    expect(made.status).toBe(201)
    const again = await signupAt(invited, { invite_code: code })
    expect(refusalOf(again)).toEqual([403, 'INVITE_INVALID'])
    expect(again.error?.details).toEqual(access)
  })

  test('a mistyped, unknown, revoked or expired code is refused, with the same words', async () => {
    invited.setTime('2026-12-01T10:00:00Z')
    const [revoked = '', expiring = ''] = await inviteCodes(invited, 2, 7)
    await invited.control('select internal.operator_invite_revoke(null, $1)', [inviteHash(revoked)])
    const mistyped = [
      revoked.slice(0, -1),
      `${revoked}X`,
      revoked.replace('SVC', 'SVX'),
      'x',
      'x'.repeat(1000),
      'malformed',
    ]
    const messages = new Set<string>()
    for (const invite_code of [...mistyped, revoked, createInvite().code]) {
      const answer = await signupAt(invited, { invite_code })
      expect(refusalOf(answer)).toEqual([403, 'INVITE_INVALID'])
      expect(answer.error?.details).toEqual(access)
      messages.add(answer.error?.message ?? '')
    }
    invited.setTime('2026-12-08T10:00:00Z')
    const late = await signupAt(invited, { invite_code: expiring })
    expect(refusalOf(late)).toEqual([403, 'INVITE_INVALID'])
    messages.add(late.error?.message ?? '')
    expect(messages.size).toBe(1)
    invited.setTime('2026-12-08T09:59:59Z')
    expect((await signupAt(invited, { invite_code: expiring })).status).toBe(201)
  })

  test('a code stays unspent when the sign-up is refused', async () => {
    const code = codeOf(await inviteCodes(invited))
    const first = codeOf(await inviteCodes(invited))
    const email = freshEmail()
    expect((await signupAt(invited, { email, invite_code: first })).status).toBe(201)
    const refused: [object, number, string][] = [
      [{ email: email.replace('@', '+alias@') }, 409, 'EMAIL_EXISTS'],
      [{ email: `x${Date.now()}@mailinator.com` }, 400, 'DISPOSABLE_EMAIL'],
      [{ password: 'short' }, 400, 'WEAK_PASSWORD'],
      [{ email: 'nobody' }, 400, 'INVALID_INPUT'],
    ]
    for (const [body, status, why] of refused) {
      expect(refusalOf(await signupAt(invited, { invite_code: code, ...body }))).toEqual([status, why])
      expect(await stateOf(invited, code)).toEqual({ status: 'open', used_by: null })
    }
    expect((await signupAt(invited, { invite_code: code })).status).toBe(201)
  })

  test('one code, twenty sign-ups at once on two servers: one account', async () => {
    const second = await startSecond(invited)
    const code = codeOf(await inviteCodes(invited))
    const emails = Array.from({ length: 20 }, freshEmail)
    const answers = await meetingAt(invited, 'app.developers', () =>
      emails.map((email, index) =>
        (index % 2 ? second.as() : invited.anyone).post('/auth/developer/signup', {
          email,
          password,
          invite_code: index % 3 ? code : code.toLowerCase(),
        }),
      ),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(answers.filter(({ error }) => error?.code === 'INVITE_INVALID')).toHaveLength(19)
    const made = await invited.control('select 1 from app.developers where email = any ($1)', [emails])
    expect(made).toHaveLength(1)
  })

  test.each([[{ invite_code: 5 }], [{ invite_code: null }]])('refuses as malformed: %j', async (body) => {
    const answer = await signupAt(invited, body)
    expect([...refusalOf(answer), answer.error?.details.field]).toEqual([400, 'INVALID_INPUT', 'invite_code'])
  })
})

describe('sign-up when closed', () => {
  test('refuses everybody, whoever has a code too, and says where to ask', async () => {
    const code = codeOf(await inviteCodes(closed))
    for (const body of [{}, { invite_code: code }, { invite_code: 'x' }]) {
      const answer = await signupAt(closed, body)
      expect(refusalOf(answer)).toEqual([403, 'SIGNUPS_CLOSED'])
      expect(answer.error?.details).toEqual({
        request_access_url: 'https://api.example.org/docs',
        request_access_endpoint: 'https://api.example.org/v1/auth/developer/waitlist',
      })
    }
    expect((await stateOf(closed, code)).status).toBe('open')
    expect((await closed.control('select 1 from app.developers')).length).toBe(0)
    expect((await closed.anyone.post('/auth/developer/waitlist', { email: freshEmail() })).status).toBe(200)
  })
})

describe('open sign-up', () => {
  test('needs no code, and a code that is sent must be good', async () => {
    expect((await signupAt(harness, { invite_code: '' })).status).toBe(201)
    const bad = await signupAt(harness, { invite_code: 'SVC-AAAA-BBBB-CCCC-DDDD' })
    expect(refusalOf(bad)).toEqual([403, 'INVITE_INVALID'])
    expect(bad.error?.details.request_access_url).toMatch(/\/docs$/)
    const code = codeOf(await inviteCodes(harness))
    expect((await signupAt(harness, { invite_code: code })).status).toBe(201)
    expect((await stateOf(harness, code)).status).toBe('used')
  })
})

describe('redeeming', () => {
  const redeem = (client: { post: typeof harness.anyone.post }, invite_code: unknown) =>
    client.post('/auth/developer/redeem-invite', { invite_code })

  test('turns provisioning on, once', async () => {
    const developer = await developerWith(harness, 'off')
    expect((await developer.get('/auth/developer/me')).data.can_provision).toBe(false)
    expect(refusalOf(await developer.post('/admin/projects', { name: 'x' }))).toEqual([403, 'INVITE_REQUIRED'])
    const code = codeOf(await inviteCodes(harness))
    const { status, data } = await redeem(developer, ` ${code.toLowerCase()} `)
    expect([status, data]).toEqual([200, { can_provision: true, redeemed: true }])
    expect(await stateOf(harness, code)).toEqual({ status: 'used', used_by: developer.id })
    expect((await developer.get('/auth/developer/me')).data.can_provision).toBe(true)
    expect((await developer.post('/admin/projects', { name: 'x' })).status).toBe(201)
  })

  test('an account that may create projects spends nothing, whatever the code', async () => {
    const developer = await harness.developer()
    const code = codeOf(await inviteCodes(harness))
    for (const sent of [code, 'no code at all', createInvite().code]) {
      const { status, data } = await redeem(developer, sent)
      expect([status, data]).toEqual([200, { can_provision: true, redeemed: false }])
    }
    expect((await stateOf(harness, code)).status).toBe('open')
  })

  test('an account that it was taken from stays without; the code stays unspent', async () => {
    const developer = await developerWith(harness, 'revoked')
    const code = codeOf(await inviteCodes(harness))
    expect(refusalOf(await redeem(developer, code))).toEqual([403, 'PROVISIONING_REVOKED'])
    expect((await stateOf(harness, code)).status).toBe('open')
    expect((await developer.get('/auth/developer/me')).data.can_provision).toBe(false)
    expect(refusalOf(await developer.post('/admin/projects', { name: 'x' }))).toEqual([403, 'INVITE_REQUIRED'])
  })

  test('refuses a bad code, and leaves the account as it was', async () => {
    const developer = await developerWith(harness, 'off')
    const answer = await redeem(developer, createInvite().code)
    expect(refusalOf(answer)).toEqual([403, 'INVITE_INVALID'])
    expect((await developer.get('/auth/developer/me')).data.can_provision).toBe(false)
    for (const bad of [undefined, null, 5, '']) {
      const malformed = await redeem(developer, bad)
      expect([...refusalOf(malformed), malformed.error?.details.field]).toEqual([400, 'INVALID_INPUT', 'invite_code'])
    }
  })

  test('one code, ten accounts and ten sign-ups at once: one is let in', async () => {
    const developers = await Promise.all(Array.from({ length: 10 }, () => developerWith(harness, 'off')))
    const code = codeOf(await inviteCodes(harness))
    const answers = await Promise.all([
      ...developers.map((developer) => redeem(developer, code)),
      ...developers.map(() => signupAt(harness, { invite_code: code })),
    ])
    expect(answers.filter(({ status }) => status < 300)).toHaveLength(1)
    expect(answers.filter(({ error }) => error?.code === 'INVITE_INVALID')).toHaveLength(19)
  })

  test('two codes, one account at once: one is spent', async () => {
    const developer = await developerWith(harness, 'off')
    const codes = await inviteCodes(harness, 5)
    const answers = await Promise.all(codes.map((code) => redeem(developer, code)))
    expect(answers.map(({ data }) => data.redeemed).filter(Boolean)).toHaveLength(1)
    const states = await Promise.all(codes.map((code) => stateOf(harness, code)))
    expect(states.filter(({ status }) => status === 'used')).toHaveLength(1)
  })

  test('with a personal access token needs account:write', async () => {
    const developer = await developerWith(harness, 'off')
    const code = codeOf(await inviteCodes(harness))
    const weak = await personalToken(developer, { scopes: ['account:read'] })
    const strong = await personalToken(developer, { scopes: ['account:write'] })
    expect(refusalOf(await redeem(withBearer(harness.anyone, weak.token), code))).toEqual([403, 'SCOPE_REQUIRED'])
    expect((await redeem(withBearer(harness.anyone, strong.token), code)).data.redeemed).toBe(true)
  })

  test('is over when the account is', async () => {
    const developer = await developerWith(harness, 'off')
    expect((await developer.get('/auth/developer/me')).status).toBe(200)
    await harness.control('delete from app.developers where id = $1', [developer.id])
    expect(refusalOf(await redeem(developer, createInvite().code))).toEqual([401, 'INVALID_DEVELOPER_TOKEN'])
  })
})

describe('the waitlist', () => {
  const join = (body: unknown) => harness.anyone.post('/auth/developer/waitlist', body)
  const entry = async (email: string) =>
    (
      await harness.control('select email, note from app.waitlist_entries where mailbox = internal.email_mailbox($1)', [
        email,
      ])
    )[0]

  test('says the same to everybody, and keeps the first note', async () => {
    const email = freshEmail()
    const { email: registered } = await harness.developer()
    const answers = [
      await join({ email, note: 'the first' }),
      await join({ email, note: 'the second' }),
      await join({ email: email.toUpperCase().replace('@', '+again@') }),
      await join({ email: registered }),
      await join({ email: `${Date.now()}@mailinator.com` }),
    ]
    for (const { status, body } of answers) expect([status, body]).toEqual([200, { data: { ok: true } }])
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(await entry(email)).toEqual({ email, note: 'the first' })
  })

  test('a first request without a note is a first request', async () => {
    const email = freshEmail()
    await join({ email })
    await join({ email, note: 'later' })
    expect(await entry(email)).toEqual({ email, note: null })
  })

  test('keeps the first 500 characters of a note, whole ones', async () => {
    const email = freshEmail()
    expect((await join({ email, note: `${'🌱'.repeat(499)}äx${'y'.repeat(5000)}` })).status).toBe(200)
    expect((await entry(email)).note).toBe(`${'🌱'.repeat(499)}ä`)
    const exact = freshEmail()
    await join({ email: exact, note: 'x'.repeat(500) })
    expect((await entry(exact)).note).toBe('x'.repeat(500))
  })

  test.each([
    [{}],
    [{ email: 'nobody' }],
    [{ email: 5 }],
    [{ email: 'a@example.org', note: 5 }],
    [{ email: 'a@example.org', note: null }],
  ])('refuses %j', async (body) => expect(refusalOf(await join(body))).toEqual([400, 'INVALID_INPUT']))

  test('twenty at once for one mailbox: one entry', async () => {
    const email = freshEmail()
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => join({ email: email.replace('@', `+${n}@`) })),
    )
    for (const { status, body } of answers) expect([status, body]).toEqual([200, { data: { ok: true } }])
    expect(await harness.control('select 1 from app.waitlist_entries where mailbox = $1', [email])).toHaveLength(1)
  })

  test('is full at 10,000, exactly, for those who stand on it too', async () => {
    const listed = freshEmail()
    await join({ email: listed })
    await harness.control(`
      insert into app.waitlist_entries (email, mailbox)
      select e, internal.email_mailbox(e) from (select 'full' || n || '@example.org' as e
        from generate_series(1, 9995 - (select count(*)::int from app.waitlist_entries)) n) x`)
    const answers = await Promise.all(Array.from({ length: 20 }, () => join({ email: freshEmail() })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5)
    const full = answers.filter(({ status }) => status === 429)
    expect(full).toHaveLength(15)
    for (const { error, headers } of full) {
      expect(error?.code).toBe('WAITLIST_FULL')
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    }
    expect(await harness.control('select 1 from app.waitlist_entries')).toHaveLength(10_000)
    expect(refusalOf(await join({ email: listed }))).toEqual([429, 'WAITLIST_FULL'])
    await harness.control(`delete from app.waitlist_entries where email like 'full%'`)
    expect((await join({ email: freshEmail() })).status).toBe(200)
  })

  test('that cannot be written to is 503 WAITLIST_UNAVAILABLE, and says when to come back', async () => {
    const impatient = await startHarness({ env: { STATEMENT_TIMEOUT_MS: '1500', LOG_LEVEL: 'silent' } })
    const ask = () => impatient.anyone.post('/auth/developer/waitlist', { email: freshEmail() })
    expect((await ask()).status).toBe(200)
    const unavailable = async () => {
      const answer = await ask()
      expect(refusalOf(answer)).toEqual([503, 'WAITLIST_UNAVAILABLE'])
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    }
    // somebody holds the table
    const { cluster, database } = impatient.running.services.control
    const holder = await connectAdmin(cluster, database)
    await holder.query('begin; lock table app.waitlist_entries')
    await unavailable()
    await holder.query('commit')
    await holder.end()
    expect((await ask()).status).toBe(200)
    // it is gone
    await impatient.control('alter table app.waitlist_entries rename to waitlist_gones')
    await unavailable()
    await impatient.stop()
  })
})
