import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, expect, inject, test, vi } from 'vitest'
import { resealDatabase, sealedColumns } from '#server/database/keys.ts'
import { root } from '#server/root.ts'
import { createSecrets, sealedBeginning } from '#server/secrets.ts'
import { startHarness } from '#test/support/harness.ts'
import {
  ask,
  createTestProject,
  endPrograms,
  endServer,
  programEnvironment,
  startServer,
} from '#test/support/process.ts'

/** The rotation of SECRETS_KEY: docs/keys.md. */
vi.setConfig({ testTimeout: 180_000 })
const harness = await startHarness()
afterAll(endPrograms, 60_000)

const newKey = () => randomBytes(32).toString('base64')

const run = (script: string, args: readonly string[], env: Record<string, string>) =>
  new Promise<{ code: number; out: string; err: string }>((resolve) => {
    execFile(
      process.execPath,
      [join(root, script), ...args],
      { env: { ...programEnvironment, ...env } },
      (error, out, err) => resolve({ code: error ? Number(error.code) : 0, out, err }),
    )
  })

test('texts of every key open, the current one writes, and what must outlive a rotation derives from the oldest', () => {
  const [former, next] = [newKey(), newKey()]
  const [alone, both, only] = [createSecrets(former), createSecrets(`${next},${former}`), createSecrets(next)]
  const [id = ''] = only.keyIds
  expect(both.keyIds).toEqual([id, alone.current])
  expect(both.current).toBe(id)
  expect(both.encrypt('p', 'text').startsWith(sealedBeginning(id))).toBe(true)
  expect(only.decrypt('p', both.encrypt('p', 'text'))).toBe('text')
  expect(both.decrypt('p', alone.encrypt('p', 'text'))).toBe('text')
  expect(() => both.decrypt('p', alone.encrypt('p', 'text').replace(/^v2/, 'v1'))).toThrow('not a sealed text')
  expect(() => only.decrypt('p', alone.encrypt('p', 'text'))).toThrow(/does not hold/)
  expect(both.derive('url')).toEqual(alone.derive('url'))
  expect(both.mac('code', '1')).toBe(alone.mac('code', '1'))
  expect(both.use(alone.current)).toBe(true)
  expect(alone.decrypt('p', both.encrypt('p', 'text'))).toBe('text')
  expect(both.deriveAll('x')).toEqual([alone.derive('x'), only.derive('x')])
  expect(both.use('00000000')).toBe(false)
  expect(both.current).toBe(alone.current)
  // a file has one on each line
  expect(createSecrets(`${next}\n${former}\n`).keyIds).toEqual(both.keyIds)
  expect(() => createSecrets(`${next},${next}`)).toThrow(/each of them once/)
  expect(() => createSecrets(Array.from({ length: 5 }, newKey).join(','))).toThrow(/at most 4/)
})

test('every column of sealed texts is known to the re-encryption', async () => {
  const project = await harness.project()
  const text = `select c.relname || '.' || a.attname as name
      from pg_attribute a join pg_class c on c.oid = a.attrelid
     where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') and a.atttypid = 'text'::regtype
       and (a.attname = 'sealed' or a.attname like '%_sealed') order by 1`
  const known = (kind: 'control' | 'tenant') =>
    sealedColumns[kind].map(({ table, column }) => `${table}.${column}`).sort()
  expect((await harness.control(text)).map(({ name }) => name)).toEqual(known('control'))
  // what is sent within minutes is waited for
  const passing = ['user_codes.sealed']
  expect((await project.sql(text)).map(({ name }) => name)).toEqual([...known('tenant'), ...passing].sort())
})

test('a re-encryption that is cut off in the middle loses nothing, and the next one ends it', async () => {
  const project = await harness.project()
  const [former, next] = [newKey(), newKey()]
  const old = createSecrets(former)
  const secrets = createSecrets(`${next},${former}`)
  const hook = crypto.randomUUID()
  await project.sql(
    `insert into app.webhooks (id, event_name, target_url, secret_id) values ($1, 'x', 'https://example.org', $1)`,
    [hook],
  )
  await project.sql('delete from app.webhook_secrets')
  await project.sql(
    `insert into app.webhook_secrets (id, webhook_id, secret_sealed)
     select gen_random_uuid(), $1, s from unnest($2::text[]) s`,
    [hook, Array.from({ length: 250 }, (_, index) => old.encrypt('webhook secret', `secret ${index}`))],
  )
  const id = project.id
  const client = async () => {
    const [{ name }] = await project.sql('select current_database() as name')
    const url = new URL(inject('dsn'))
    url.pathname = `/${name}`
    const made = new pg.Client({ connectionString: url.href, options: '-c role=trellis_owner' })
    made.on('error', () => undefined)
    await made.connect()
    return made
  }
  const first = await client()
  // the connection is lost after the 60th row
  let updates = 0
  const query = first.query.bind(first) as (...args: unknown[]) => Promise<unknown>
  first.query = (async (...args: unknown[]) => {
    if (String(args[0]).startsWith('update app.webhook_secrets') && ++updates === 60) await harness.endConnection(first)
    return query(...args)
  }) as typeof first.query
  await expect(resealDatabase(first, 'tenant', id, secrets)).rejects.toThrow()
  await first.end().catch(() => undefined)
  const countNew = async () =>
    (
      await project.sql('select count(*)::int as n from app.webhook_secrets where starts_with(secret_sealed, $1)', [
        sealedBeginning(secrets.current),
      ])
    )[0].n as number
  expect(await countNew()).toBe(59)
  const second = await client()
  expect(await resealDatabase(second, 'tenant', id, secrets)).toEqual({ resealed: 191, remaining: 0 })
  expect(await resealDatabase(second, 'tenant', id, secrets)).toEqual({ resealed: 0, remaining: 0 })
  // one that no key opens stays as it is, and is told
  await second.query(
    `update app.webhook_secrets set secret_sealed = $1 where id = (select min(id::text)::uuid from app.webhook_secrets)`,
    [createSecrets(newKey()).encrypt('webhook secret', 'lost')],
  )
  expect(await resealDatabase(second, 'tenant', id, secrets)).toEqual({ resealed: 0, remaining: 1 })
  await second.end()
  const only = createSecrets(next)
  const rows = await project.sql('select secret_sealed from app.webhook_secrets')
  const opened = rows.flatMap(({ secret_sealed }) => {
    try {
      return [only.decrypt('webhook secret', secret_sealed)]
    } catch {
      return []
    }
  })
  expect(new Set(opened).size).toBe(249)
})

test('a whole rotation while two servers work: nothing fails, and no key can be dropped too early', {
  timeout: 400_000,
}, async () => {
  const first = await startServer()
  const DATA_DIR = first.dataDir
  const former = (await readFile(join(DATA_DIR, 'secrets.key'), 'utf8')).trim()
  const next = newKey()
  const [oldId = ''] = createSecrets(former).keyIds
  const [newId = ''] = createSecrets(next).keyIds
  const both = { DATA_DIR, SECRETS_KEY: `${next},${former}` }
  const keys = (...args: string[]) => run('scripts/admin.ts', ['keys', ...args], both)

  const story = await createTestProject(first.url)
  const provider = { provider: 'revenuecat', config: { secret_api_key: 'sk_kept_value', webhook_secret: 'whsec_kept' } }
  const path = `/v1/admin/projects/${story.projectId}/integrations`
  expect((await ask(first.url, 'POST', path, provider, story.developer)).status).toBeLessThan(300)

  // while a process lacks the new key, nothing is rotated
  const refused = await keys('rotate')
  expect(refused.code).toBe(1)
  expect(refused.err).toContain(`1 of the processes that run lack the key ${newId}`)

  let isOver = false
  const servers = [first]
  const failed: unknown[] = []
  let answered = 0
  const work = async (index: number) => {
    while (!isOver) {
      const server = servers[index]
      if (!server) {
        await sleep(20)
        continue
      }
      const answers = [
        await ask(server.url, 'GET', '/v1/client/users/me', undefined, story.user),
        await ask(
          server.url,
          'POST',
          '/v1/client/auth/anonymous',
          {},
          {
            ...story.key,
            // the limit of sign-ins is by address
            'x-forwarded-for': `10.${index}.${answered >> 8}.${answered & 255}`,
          },
        ),
        await ask(server.url, 'GET', path, undefined, story.developer),
      ].filter(({ status }) => status >= 300)
      failed.push(...answers)
      answered += 3
    }
  }
  // the second server joins with both keys; then the first is started again with them
  const second = await startServer(both)
  expect(second.output()).toContain('Trellis is running')
  servers.shift()
  await endServer(first)
  const third = await startServer(both)
  servers.push(second, third)
  const working = [work(0), work(1)].map((promise) =>
    promise.catch((error: Error) => {
      failed.push(error)
    }),
  )
  expect((await keys('status')).out).toContain(`${newId}  new`)
  const rotated = await keys('rotate')
  expect(rotated.err).toBe('')
  expect(rotated.out).toContain(`${newId} is current now`)
  // once more is no harm
  expect((await keys('rotate')).out).toContain('was current already')

  // before the re-encryption is at its end, the former key is refused to be dropped
  const early = await run('server/main.ts', [], { DATA_DIR, SECRETS_KEY: next, PORT: '0' })
  expect(early.code).toBe(1)
  expect(early.err).toContain(`SECRETS_KEY lacks the key ${oldId} too early`)

  const link = await run('scripts/database.ts', ['url'], both)
  expect(link.err).toBe('')
  const control = new pg.Client({ connectionString: link.out.trim() })
  await control.connect()
  // the time that requests of the former key get is over
  await control.query(`update app.secret_keys set current_since = now() - interval '10 minutes' where is_current`)
  for (;;) {
    await control.query(`select graphile_worker.add_job('keys__reseal', queue_name := 'chores', job_key := 'keys')`)
    const { rows } = await control.query('select unused_at from app.secret_keys where id = $1', [oldId])
    if (rows[0].unused_at) break
    await sleep(200)
  }
  const { rows: left } = await control.query(
    'select count(*)::int as n from app.project_signing_keys where not starts_with(sealed, $1)',
    [sealedBeginning(newId)],
  )
  expect(left).toEqual([{ n: 0 }])
  await control.end()
  // who is signed in since before still is, and renews under the new key; others would have to sign in again
  const tokens = await keys('status')
  expect(tokens.out).toMatch(new RegExp(`${oldId} {2}in use: sign-ins that were last renewed under it`))
  expect(tokens.out).toMatch(/Encrypted again: 2 of 2 databases, \d+ stored texts/)
  isOver = true
  await Promise.all(working)
  expect(failed).toEqual([])
  expect(answered).toBeGreaterThan(20)

  const beforeForgotten = await run('server/main.ts', [], { DATA_DIR, SECRETS_KEY: next, PORT: '0' })
  expect(beforeForgotten.err).toMatch(
    /too early. Still under it: sign-ins that were last renewed under it, until \d{4}-/,
  )
  expect((await keys('forget', newId)).err).toContain('is current')
  expect((await keys('forget', oldId)).out).toContain('may be dropped')
  expect((await keys('status')).out).toContain(`${oldId}  unused`)
  await endServer(second)
  await endServer(third)

  const wrong = await run('server/main.ts', [], { DATA_DIR, SECRETS_KEY: newKey(), PORT: '0' })
  expect(wrong.code).toBe(1)
  expect(wrong.err).toContain('start Trellis with the SECRETS_KEY that this data was made with')

  const last = await startServer({ DATA_DIR, SECRETS_KEY: next })
  const shown = await ask(last.url, 'GET', path, undefined, story.developer)
  // a developer's token of the former key has ended; a user's, which the project's key signs, has not
  expect(shown.status).toBe(401)
  expect((await ask(last.url, 'GET', '/v1/client/users/me', undefined, story.user)).status).toBe(200)
  await endServer(last)
})

test('a project gets a new signing key: both are in the JWKS, tokens signed before stay valid until they expire', async () => {
  const project = await harness.project()
  const before = await project.user()
  const keysOf = async () =>
    ((await project.app.get('/client/auth/jwks')).data.keys as { kid: string }[]).map(({ kid }) => kid)
  const kidOf = (token: string) =>
    JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString('utf8')).kid as string
  const [former = ''] = await keysOf()
  const env = { DATABASE_URL: inject('dsn'), DATABASE_PREFIX: harness.prefix, SECRETS_KEY: inject('secretsKey') }
  const add = () => run('scripts/admin.ts', ['keys', 'project', project.id], env)
  const added = await add()
  expect(added.err).toBe('')
  expect((await add()).err).toContain('within the last minute')
  await vi.waitFor(async () => expect(await keysOf()).toHaveLength(2), { timeout: 20_000 })
  const [next = ''] = await keysOf()
  expect(next).not.toBe(former)
  expect(await keysOf()).toEqual([next, former])
  // every server has to accept it before it signs
  expect(kidOf((await project.user()).sessionToken)).toBe(former)
  harness.advance(70)
  const after = await project.user()
  expect(kidOf(after.sessionToken)).toBe(next)
  for (const user of [before, after])
    await user.get('/client/users/me').then(({ data }) => expect(data.id).toBe(user.id))
  // a token of another project's key is still refused
  const other = await (await harness.project()).user()
  const strange = project.app.with({ authorization: `Bearer ${other.sessionToken}` })
  expect((await strange.get('/client/users/me')).status).toBe(401)
  harness.advance(3 * 3600)
  await harness.control('select pg_notify($1, $2)', ['trellis_changed', `project:${project.id}`])
  await vi.waitFor(async () => expect(await keysOf()).toEqual([next]), { timeout: 20_000 })
})
