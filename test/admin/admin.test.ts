import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, inject, test, vi } from 'vitest'
import { root } from '#server/root.ts'
import { freshEmail, startHarness } from '#test/support/harness.ts'
import {
  ask,
  createTestProject,
  endPrograms,
  endServer,
  programEnvironment,
  startServer,
} from '#test/support/process.ts'

/** npm run admin as a process of its own, beside servers that run. */
vi.setConfig({ testTimeout: 180_000 })
const harness = await startHarness({ env: { SIGNUP_MODE: 'invite' } })
const { anyone } = harness
const password = 'a long passphrase'
const folder = await mkdtemp(join(tmpdir(), 'trellis-admin-'))
afterAll(async () => {
  await endPrograms()
  await rm(folder, { recursive: true, force: true })
}, 180_000)

type Ran = { readonly code: number; readonly out: string; readonly err: string }

const run = (args: readonly string[], env: Record<string, string>): Promise<Ran> =>
  new Promise((resolve) => {
    execFile(
      process.execPath,
      [join(root, 'scripts/admin.ts'), ...args],
      { env: { ...programEnvironment, ...env }, cwd: folder },
      (error, out, err) => resolve({ code: error ? Number(error.code) : 0, out, err }),
    )
  })

const here = {
  DATABASE_URL: inject('dsn'),
  DATABASE_PREFIX: harness.prefix,
  SECRETS_KEY: inject('secretsKey'),
  DATA_DIR: folder,
}
const admin = (...args: string[]) => run(args, here)
const ok = async (...args: string[]) => {
  const ran = await admin(...args)
  expect(ran.code, ran.err).toBe(0)
  return ran.out
}

const signup = (invite_code?: string, email = freshEmail()) =>
  anyone.post('/auth/developer/signup', { email, password, invite_code })
const invited = async () => {
  const email = freshEmail()
  const { data } = await signup((await ok('invite', 'create')).trim(), email)
  return { email, ...anyone.with({ authorization: `Bearer ${data.access_token}` }), id: data.developer.id as string }
}
const newest = async () =>
  (
    await harness.control(
      'select actor, action, target_id, changes from app.audit_events order by occurred_at desc limit 1',
    )
  )[0]

describe('invites', () => {
  test('are made, shown once, listed by their beginning, used', async () => {
    const made = await admin('invite', 'create', '--count', '3', '--days', '7', '--note', 'for \u001b[31mthe team')
    const codes = made.out.trim().split('\n')
    expect(codes).toHaveLength(3)
    for (const code of codes) expect(code).toMatch(/^SVC(-[2-9A-Z]{4}){4}$/)
    expect(made.err).toContain('the only time')
    expect(await newest()).toMatchObject({
      actor: { type: 'system', id: null },
      action: 'invites.create',
      changes: { note: [null, 'for \u001b[31mthe team'] },
    })
    const [{ days }] = await harness.control(
      `select max(extract(day from expires_at - created_at))::int as days from app.invites where code_hint = $1`,
      [codes[0]?.slice(0, 8)],
    )
    expect(days).toBe(7)

    const email = freshEmail()
    expect((await signup(codes[0], email)).status).toBe(201)
    const open = await ok('invite', 'list')
    expect(open).not.toContain(codes[0]?.slice(0, 8))
    for (const code of codes.slice(1)) {
      expect(open).toContain(`${code.slice(0, 8)}-…`)
      expect(open).not.toContain(code)
    }
    expect(open).toContain('for  [31mthe team')
    expect(open).not.toContain('\u001b')
    const all = (await ok('invite', 'list', '--all')).split('\n')
    const used = all.find((line) => line.includes(codes[0]?.slice(0, 8) ?? '?'))
    expect(used).toMatch(/ used .*/)
    expect(used).toContain(email)
  })

  test('are revoked by code or by id, also twice; a used one cannot be', async () => {
    const [byCode = '', byId = '', used = ''] = (await ok('invite', 'create', '--count', '3')).trim().split('\n')
    const line = (await ok('invite', 'list')).split('\n').find((row) => row.includes(byId.slice(0, 8)))
    const id = line?.split(' ')[0] ?? ''
    expect(await ok('invite', 'revoke', byCode.toLowerCase().replaceAll('-', ' '))).toContain('is revoked')
    expect(await ok('invite', 'revoke', id)).toContain(byId.slice(0, 8))
    expect(await newest()).toMatchObject({ action: 'invites.update', target_id: id, actor: { type: 'system' } })
    const trail = async () => (await harness.control('select 1 from app.audit_events')).length
    const before = await trail()
    await ok('invite', 'revoke', id)
    expect(await trail()).toBe(before)
    for (const code of [byCode, byId]) expect((await signup(code)).error?.code).toBe('INVITE_INVALID')
    expect((await signup(used)).status).toBe(201)
    expect(await admin('invite', 'revoke', used)).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining('used already'),
    })
  })
})

describe('developers', () => {
  test('are verified', async () => {
    const developer = await invited()
    const out = await ok('developer', 'verify', developer.email.toUpperCase().replace('@', '+x@'))
    expect(out).toBe(`${developer.email}: verified_free, provisioning on\n`)
    expect((await developer.get('/auth/developer/me')).data).toMatchObject({
      email_verified: true,
      account_state: 'verified_free',
    })
    expect(await newest()).toMatchObject({
      actor: { type: 'system' },
      action: 'developer.updated',
      target_id: developer.id,
      changes: { email_verified: [false, true], account_state: ['sandbox', 'verified_free'] },
    })
  })

  test('may create projects, not before a code, not any more', async () => {
    const developer = await invited()
    const create = () => developer.post('/admin/projects', { name: 'x' })
    const redeem = async (invite_code: string) => developer.post('/auth/developer/redeem-invite', { invite_code })
    expect((await create()).status).toBe(201)
    expect(await ok('developer', 'provisioning', developer.email, 'off')).toContain('provisioning off')
    expect((await create()).error?.code).toBe('INVITE_REQUIRED')
    expect((await redeem((await ok('invite', 'create')).trim())).data.redeemed).toBe(true)
    expect((await create()).status).toBe(201)
    await ok('developer', 'provisioning', developer.email, 'revoked')
    expect((await create()).error?.code).toBe('INVITE_REQUIRED')
    expect((await redeem('x')).error?.code).toBe('PROVISIONING_REVOKED')
    await ok('developer', 'provisioning', developer.email, 'on')
    expect((await create()).status).toBe(201)
  })
})

describe('projects', () => {
  test('change their tier, in running servers too, and their owner is paid', async () => {
    const developer = await invited()
    const made = await developer.post('/admin/projects', { name: 'Garden' })
    const { id } = made.data.project
    await harness.running.services.fleet.provision(id)
    const edge = () => harness.running.services.projectCache.byProject(id)
    expect((await edge())?.effectiveTier).toBe('free')

    expect(await ok('project', 'tier', id, 'pro')).toBe('Garden: tier pro, effective tier pro\n')
    expect((await developer.get('/auth/developer/me')).data.account_state).toBe('paid')
    const [row] = await harness.control(
      `select actor, changes from app.audit_events where action = 'projects.update' and target_id = $1`,
      [id],
    )
    expect(row).toEqual({ actor: { type: 'system', id: null, label: null }, changes: { tier: ['free', 'pro'] } })
    // long before the 30 seconds that it is remembered for
    await expect.poll(async () => (await edge())?.effectiveTier, { timeout: 10_000 }).toBe('pro')
    expect((await developer.get(`/admin/projects/${id}`)).data).toMatchObject({
      tier: 'pro',
      effective_tier: 'pro',
      comped: false,
    })

    expect(await ok('project', 'comp', id, 'on')).toBe('Garden: tier pro, comped, effective tier enterprise\n')
    await expect.poll(async () => (await edge())?.effectiveTier, { timeout: 10_000 }).toBe('enterprise')
    await ok('project', 'tier', id, 'free')
    expect((await developer.get(`/admin/projects/${id}`)).data).toMatchObject({
      tier: 'free',
      effective_tier: 'enterprise',
      comped: true,
    })
    expect(await ok('project', 'comp', id, 'off')).toBe('Garden: tier free, effective tier free\n')
    await expect.poll(async () => (await edge())?.effectiveTier, { timeout: 10_000 }).toBe('free')
    expect((await developer.get('/auth/developer/me')).data.account_state).toBe('sandbox')
  })
})

test('the waitlist is read and shortened', async () => {
  expect(await ok('waitlist', 'list')).toBe('Nobody waits.\n')
  const email = freshEmail()
  await anyone.post('/auth/developer/waitlist', { email, note: 'We teach\nthe piano.' })
  expect(await ok('waitlist', 'list')).toMatch(new RegExp(`^\\S+Z  ${email}  We teach the piano\\.\n$`))
  expect(await ok('waitlist', 'remove', email)).toContain(email)
  expect(await newest()).toMatchObject({ action: 'waitlist.delete', actor: { type: 'system' } })
  expect(await admin('waitlist', 'remove', email)).toMatchObject({
    code: 1,
    err: 'This address is not on the waitlist.\n',
  })
})

describe('mistakes', () => {
  const id = '00000000-0000-4000-8000-000000000000'
  test.each([
    [[], /^Say what to do/],
    [['invite', 'burn'], /^There is no command "invite burn"/],
    [['invite', 'create', '--count', '1001'], /^--count must be/],
    [['invite', 'create', '--days', 'x'], /^--days must be/],
    [['invite', 'create', '--colour', 'red'], /--colour/],
    [['invite', 'revoke'], /^Say which/],
    [['project', 'tier', 'x', 'pro'], /^Say the project's id/],
    [['project', 'tier', id, 'gold'], /^Say which tier: free, pro, enterprise\./],
    [['developer', 'provisioning', 'a@example.org', 'maybe'], /on, off, revoked/],
  ])('%j is said before any database is asked', async (args, sentence) => {
    const ran = await run(args, { ...here, DATABASE_URL: 'postgres://nobody@127.0.0.1:1/x' })
    expect(ran).toMatchObject({ code: 1, out: '' })
    expect(ran.err).toMatch(sentence)
    expect(ran.err).toContain('npm run admin -- <command>')
    expect(ran.err).not.toContain('    at ')
  })

  test.each([
    [['invite', 'revoke', 'SVC-AAAA-BBBB-CCCC-DDDD'], 'There is no such invite.\n'],
    [['project', 'tier', id, 'pro'], 'There is no project with this id.\n'],
    [['developer', 'verify', 'nobody@example.org'], 'There is no developer with this address.\n'],
  ])('%j', async (args, sentence) => {
    expect(await admin(...args)).toEqual({ code: 1, out: '', err: sentence })
  })

  test('where there is nothing yet, or nobody answers', async () => {
    const none = await run(['invite', 'list'], { ...here, DATABASE_PREFIX: 'nothing_here' })
    expect(none).toEqual({
      code: 1,
      out: '',
      err: 'There are no databases here yet: run npm start, or npm run db:migrate.\n',
    })
    const away = await run(['invite', 'list'], { ...here, DATABASE_URL: 'postgres://nobody@127.0.0.1:1/x' })
    expect(away.code).toBe(1)
    expect(away.err).toMatch(/^The database cannot be reached: /)
  })

  test('--help says what there is', async () => {
    expect(await ok('--help')).toContain('developer provisioning EMAIL on|off|revoked')
  })
})

test('works with the embedded Postgres of DATA_DIR, whether or not a server runs', { timeout: 180_000 }, async () => {
  const server = await startServer({ SIGNUP_MODE: 'open' })
  const command = (...args: string[]) => run(args, { DATA_DIR: server.dataDir })
  const story = await createTestProject(server.url)
  const email = (await ask(server.url, 'GET', '/v1/auth/developer/me', undefined, story.developer)).body.data.email
  expect(await command('developer', 'provisioning', email, 'off')).toMatchObject({ code: 0 })
  const refused = await ask(server.url, 'POST', '/v1/admin/projects', { name: 'x' }, story.developer)
  expect(refused).toMatchObject({ status: 403, body: { error: { code: 'INVITE_REQUIRED' } } })
  const made = await command('invite', 'create')
  await endServer(server)

  // nobody runs now: the command starts Postgres, and stops it again
  expect((await command('invite', 'list')).out).toContain(made.out.slice(0, 8))
  const again = await startServer({ DATA_DIR: server.dataDir })
  const body = { invite_code: made.out.trim() }
  const redeemed = await ask(again.url, 'POST', '/v1/auth/developer/redeem-invite', body, story.developer)
  expect(redeemed).toMatchObject({ status: 200, body: { data: { redeemed: true } } })
  await endServer(again)
})
