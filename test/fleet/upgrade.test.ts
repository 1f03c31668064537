import { randomBytes, randomUUID } from 'node:crypto'
import { readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { existingHome } from '#fleet/embedded/folder.ts'
import { runScript } from '#test/support/admin.ts'
import { download, missing, post, uploadFile } from '#test/support/backups.ts'
import {
  ask,
  createTestProject,
  endPrograms,
  endServer,
  startServer,
  temporaryFolder,
  type WorkerProcess,
} from '#test/support/process.ts'

afterAll(endPrograms, 60_000)

const upgrade = (dataDir: string, ...args: string[]) =>
  runScript('scripts/database.ts', ['upgrade', ...args], { DATA_DIR: dataDir })

test('data are copied into a new cluster: all that was answered is there, sessions hold, and the former one is kept', {
  timeout: 240_000,
}, async () => {
  const server = await startServer()
  const { dataDir } = server
  const story = await createTestProject(server.url)
  const admin = `/v1/admin/projects/${story.projectId}`
  const notes = { name: 'notes', read_policy: 'owner', columns: [{ name: 'title', type: 'text' }] }
  expect((await ask(server.url, 'POST', `${admin}/collections`, notes, story.developer)).status).toBe(201)
  const note = { title: 'kept' }
  expect((await ask(server.url, 'POST', '/v1/client/collections/notes', note, story.user)).status).toBe(201)
  const events = Array.from({ length: 20 }, () => randomUUID())
  for (const id of events) expect(await post(server.url, story.user, id)).toBe(true)
  const bytes = randomBytes(10_000)
  const asset = await uploadFile(server.url, story, bytes)

  const superuser = async (run: WorkerProcess) => {
    expect(run.child.exitCode).toBe(null)
    const printed = await runScript('scripts/database.ts', ['url'], { DATA_DIR: dataDir })
    const address = new URL(printed.out.trim())
    address.searchParams.delete('options')
    const client = new pg.Client({ connectionString: address.href })
    await client.connect()
    return client
  }
  const roleOf = async (client: pg.Client) => {
    const { rows } = await client.query(
      `select a.rolcanlogin, a.rolconnlimit, a.rolvaliduntil::text, a.rolpassword, s.setconfig,
              (select jsonb_agg(to_jsonb(x) - '{oid,roleid,member,grantor}'::text[]) from pg_auth_members x where x.member = a.oid) as memberships
         from pg_authid a left join pg_db_role_setting s on s.setrole = a.oid where a.rolname = 'upgrade_dba'`,
    )
    await client.end()
    return rows
  }
  const before = await superuser(server)
  await before.query(`create role upgrade_dba login password 'dba' connection limit 3 valid until '2090-01-01'`)
  await before.query(`alter role upgrade_dba set statement_timeout = '7s'`)
  await before.query(`alter role upgrade_dba set search_path = app, public`)
  await before.query('grant pg_read_all_data to upgrade_dba with admin true, inherit false')
  const role = await roleOf(before)
  expect(role).toHaveLength(1)

  const busy = await upgrade(dataDir, '--rebuild')
  expect(busy).toMatchObject({ code: 1, err: expect.stringContaining('is in use: stop its servers') })
  await endServer(server)
  const nothing = await upgrade(dataDir)
  expect(nothing).toMatchObject({ code: 0, out: expect.stringContaining('there is nothing to upgrade') })
  const done = await upgrade(dataDir, '--rebuild')
  expect(done, done.err).toMatchObject({
    code: 0,
    out: expect.stringMatching(/upgraded from Postgres \d+ to \d+: 1 projects/),
  })
  const home = (await existingHome(dataDir)) ?? ''
  const names = await readdir(home)
  expect(names.filter((name) => /^(cluster|draft)/.test(name))).toEqual([
    'cluster',
    expect.stringMatching(/^cluster-\d+$/),
  ])

  const again = await startServer({ DATA_DIR: dataDir })
  expect((await ask(again.url, 'GET', '/v1/client/users/me', undefined, story.user)).body.data.id).toBe(story.userId)
  expect(await missing(again.url, story.user, events)).toBe(0)
  expect((await download(again.url, story, asset))?.equals(bytes)).toBe(true)
  const listed = await ask(again.url, 'GET', '/v1/client/collections/notes', undefined, story.user)
  expect(listed.body.data.map(({ title }: any) => title)).toEqual(['kept'])
  // provisioned by the queue, in the new cluster
  await createTestProject(again.url)
  const doctor = await runScript('scripts/admin.ts', ['doctor'], { DATA_DIR: dataDir })
  expect(doctor.out).not.toMatch(/^FAILED (Postgres|lost|failed|privileges)/m)
  expect(await roleOf(await superuser(again))).toEqual(role)
  await endServer(again)
})

test('data of another major version are refused by the start, which says what to do; half an upgrade too', {
  timeout: 120_000,
}, async () => {
  const server = await startServer()
  await endServer(server)
  const home = (await existingHome(server.dataDir)) ?? ''
  const file = join(home, 'cluster/PG_VERSION')
  const version = await readFile(file, 'utf8')
  await writeFile(file, '12\n')
  const refused = await startServer({ DATA_DIR: server.dataDir })
  expect(await refused.ended).toBe(1)
  expect(refused.output()).toContain('was made by Postgres 12')
  expect(refused.output()).toContain('npm run db:upgrade')
  expect(await upgrade(server.dataDir)).toMatchObject({
    code: 1,
    err: expect.stringContaining('npm install --prefix former'),
  })
  const empty = await temporaryFolder()
  expect(await upgrade(server.dataDir, '--from', empty)).toMatchObject({
    code: 1,
    err: expect.stringContaining('is no package of embedded Postgres'),
  })
  await writeFile(file, version)
  await rename(join(home, 'cluster'), join(home, `cluster-${version.trim()}`))
  const half = await startServer({ DATA_DIR: server.dataDir })
  expect(await half.ended).toBe(1)
  expect(half.output()).toContain(`Rename cluster-${version.trim()} to cluster`)
  await rename(join(home, `cluster-${version.trim()}`), join(home, 'cluster'))
  await endServer(await startServer({ DATA_DIR: server.dataDir }))
  expect(await upgrade(await temporaryFolder())).toMatchObject({
    code: 1,
    err: expect.stringContaining('There are no databases here yet'),
  })
})
