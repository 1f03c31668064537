import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, describe, expect, inject, test } from 'vitest'
import { grantConnect } from '#fleet/cluster.ts'
import { createTenantDatabase } from '#fleet/load/migrate.ts'
import { numberedLock, takeLock, withClusterLock, withDatabaseLock } from '#fleet/locks.ts'
import { prepare } from '#fleet/prepare.ts'
import { fleetStatus, readyTenants, reloadInstallation } from '#fleet/rollout.ts'
import { connectAdmin, type Role, targetOf } from '#server/database/cluster.ts'
import { templateName } from '#server/database/names.ts'
import { startHarness } from '#test/support/harness.ts'

/** What a login may do, beyond the requests that it serves. */
const harness = await startHarness()
const { services } = harness.running
const { fleet, control } = services
const { cluster } = control
const project = await harness.project()
const open = new Set<pg.Client>()
afterAll(async () => {
  for (const client of open) await client.end().catch(() => undefined)
})

const login = async (role: Role, database: string) => {
  const { host, port, user, password } = targetOf(cluster, database, role, services.secrets)
  const client = new pg.Client({ host, port, user, password, database })
  client.on('error', () => undefined)
  open.add(client)
  await client.connect()
  return client
}
const reach = (role: Role, database: string) =>
  login(role, database).then(
    (client) => client.end().then(() => 'connected'),
    (error: { code: string }) => error.code,
  )
const refused = (error: unknown) => (error as { code?: string }).code
const asAdmin = async <T extends pg.QueryResultRow>(text: string, values: unknown[] = [], database = 'postgres') => {
  const admin = await connectAdmin(cluster, database, false)
  return admin.query<T>(text, values).finally(() => admin.end())
}
const { isSuperuser, isOurs } = (
  await asAdmin<{ isSuperuser: boolean; isOurs: boolean }>(
    `select r.rolsuper as "isSuperuser",
            r.rolname = 'trellis_superuser'
              or r.rolsuper and not exists (select from pg_roles o where o.rolcanlogin and not o.rolsuper and o.rolname !~ '^login_') as "isOurs"
       from pg_roles r where r.rolname = current_user`,
  )
).rows[0] as { isSuperuser: boolean; isOurs: boolean }

const start = () =>
  prepare({
    config: services.config,
    log: services.log,
    secrets: services.secrets,
    postgres: { dsn: cluster.dsn, socketDirectory: cluster.socketDirectory ?? null, stop: async () => undefined },
  })
const status = () => fleetStatus(cluster, harness.prefix, fleet.programs, services.secrets)
const wrong = async () => (await status()).clusters.flatMap((one) => one.wrong).filter(({ kind }) => kind !== 'shared')

describe('logins', () => {
  test('reach the databases of their kind and no other, least of all those of the server', async () => {
    expect(await reach('app_user', project.database)).toBe('connected')
    expect(await reach('control_worker', control.database)).toBe('connected')
    for (const database of [control.database, ...(isOurs ? ['postgres', 'template1'] : [])])
      expect(await reach('app_user', database), database).toBe('42501')
    expect(await reach('control_auth', project.database)).toBe('42501')
    // 55000: it takes no connections
    expect(['55000', '42501']).toContain(await reach('app_user', templateName(harness.prefix)))
  })

  test('change their own settings, which every login may, until the next start', async () => {
    const client = await login('app_user', project.database)
    await client.query(`alter role current_user set application_name = 'mine';
                        alter role current_user in database "${project.database}" set application_name = 'mine'`)
    await client.end()
    await start()
    const kept = await asAdmin(`select from pg_db_role_setting where 'application_name=mine' = any (setconfig)`)
    expect(kept.rows).toEqual([])
    const { rows } = await (await login('app_user', project.database)).query('show timezone')
    expect(rows).toEqual([{ TimeZone: 'UTC' }])
  })

  test('make no temporary tables', async () => {
    const client = await login('app_user', project.database)
    expect(await client.query('create temporary table t ()').catch(refused)).toBe('42501')
  })

  test
    .runIf(isSuperuser)
    .each([
      'select lo_create(0)',
      "select lo_from_bytea(0, 'x')",
      'select lo_creat(-1)',
      "select lo_put(1, 0, 'x')",
      'select lo_get(1)',
      'select lo_unlink(1)',
      'select lo_open(1, 131072)',
      'select loread(0, 1)',
      "select lowrite(0, 'x')",
      "select lo_import('/etc/passwd')",
      "select lo_export(1, 'x')",
      'select pg_terminate_backend(1)',
      'select pg_cancel_backend(1)',
      'select pg_advisory_lock(1)',
      'select pg_try_advisory_lock_shared(1, 2)',
      "select pg_logical_emit_message(true, 'a', 'b')",
    ])('may not execute %s', async (statement) => {
    for (const [role, database] of [
      ['app_user', project.database],
      ['control_anon', control.database],
    ] as const) {
      const client = await login(role, database)
      const error = await client.query(statement).catch((thrown: Error) => thrown)
      expect(error, statement).toMatchObject({ code: '42501', message: expect.stringContaining('permission denied') })
      await client.end()
    }
  })
})

describe('a lock of ours that a login holds', () => {
  const isEnded = async (client: pg.Client) => (await client.query('select 1').catch(() => 'ended')) === 'ended'

  test('does not keep a start or a migration waiting', async () => {
    const holders = [await login('control_anon', control.database), await login('app_user', project.database)]
    await holders[0]?.query('begin; set local role control_anon; select pg_advisory_xact_lock(7305441002)')
    await holders[1]?.query('begin; set local role app_user; select pg_advisory_xact_lock(7305441002)')
    await start()
    await fleet.migrate(project.id)
    for (const holder of holders) expect(await isEnded(holder)).toBe(true)
  })

  test('does not keep a start or a removal waiting, where the database of the server stays open to logins', async () => {
    await asAdmin('grant connect on database postgres to login_app_user')
    try {
      const holder = await login('app_user', 'postgres')
      await holder.query('select pg_advisory_lock(7305441001)')
      const next = await login('app_user', 'postgres')
      const queued = next.query('select pg_advisory_lock(7305441001)').catch(() => 'ended')
      await start()
      // the second may have had it for a moment, when the first was ended
      await queued
      expect([await isEnded(holder), await isEnded(next)]).toEqual([true, true])
      const other = await login('app_user', 'postgres')
      await other.query(`select pg_advisory_lock(73054411, hashtext('some'))`)
      expect(await withDatabaseLock(cluster, 'some', async () => 'ours')).toBe('ours')
      expect(await isEnded(other)).toBe(true)
    } finally {
      await asAdmin('revoke connect on database postgres from login_app_user')
    }
  })

  test('is waited for where an administrator holds it', async () => {
    const order: string[] = []
    const second = Promise.withResolvers<unknown>()
    await withClusterLock(cluster, async () => {
      second.resolve(withClusterLock(cluster, async () => order.push('second')))
      const queued = `select from pg_locks where locktype = 'advisory' and objsubid = 1 and not granted
                         and classid = (7305441001 >> 32)::oid and objid = (7305441001 & 4294967295)::oid`
      await expect.poll(async () => (await asAdmin(queued)).rows.length, { timeout: 20_000 }).toBeGreaterThan(0)
      order.push('first')
    })
    await second.promise
    expect(order).toEqual(['first', 'second'])
  })

  test('and that an administrator never releases is named', async () => {
    const lock = numberedLock('a test', 77)
    const connect = () => connectAdmin(cluster, project.database, false)
    const [holder, waiting] = [await connect(), await connect()]
    try {
      await takeLock(holder, lock, { connect })
      const { rows } = await holder.query<{ pid: number }>('select pg_backend_pid() as pid')
      const taken = takeLock(waiting, lock, { connect, patienceMs: 100 })
      await expect(taken).rejects.toThrow(
        new RegExp(
          `lock of a test is held by process ${rows[0]?.pid} of Postgres \\(.*, trellis_admin, connected since`,
        ),
      )
    } finally {
      await holder.end()
      await waiting.end()
    }
  })
})

describe('a database that was restored by hand', () => {
  /** As pg_dump, drop, create and pg_restore leave it: what stands in the database is there, what stands of it is not. */
  const restore = async (database: string) => {
    const [kind] = [database === control.database ? 'control' : 'tenant']
    await services.database.pools.forget(`${cluster.id}/${database}`)
    if (kind === 'control') return void (await asAdmin(`grant connect, temporary on database "${database}" to public`))
    await asAdmin(`drop database "${database}" with (force)`)
    const admin = await connectAdmin(cluster, 'postgres', false)
    const template = templateName(harness.prefix)
    await admin.query(`create database "${database}" template "${template}"`).finally(() => admin.end())
  }

  test.each(['a start', 'a reload', 'the sweep'])('is closed again by %s, and db:status says so before', async (by) => {
    for (const database of [project.database, control.database]) await restore(database)
    expect(await reach('control_auth', project.database)).toBe('connected')
    expect(await reach('app_user', control.database)).toBe('connected')
    const found = await wrong()
    expect(found.map(({ database }) => database).sort()).toEqual([control.database, project.database].sort())
    for (const { problems } of found) expect(problems).toContain('every login may connect')
    expect(found.find(({ kind }) => kind === 'tenant')?.problems).toEqual([
      'it does not belong to trellis_owner',
      'every login may connect',
      'every login may make temporary tables',
      'a login may not connect',
    ])

    if (by === 'a start') await start()
    else if (by === 'a reload') await reloadInstallation(cluster, harness.prefix, fleet.programs)
    else await fleet.inspect()
    expect(await wrong()).toEqual([])
    // the backup may be older than the program; db:migrate and the next start look
    const behind = () => readyTenants(cluster, harness.prefix, fleet.programs.tenant.contentHash)
    expect(await behind()).toMatchObject([{ database: project.database }])
    await fleet.migrate(project.id)
    expect(await behind()).toEqual([])
    expect(await reach('control_auth', project.database)).toBe('42501')
    expect(await reach('app_user', control.database)).toBe('42501')
    expect((await project.user()).id).toEqual(expect.any(String))
    const [owner] = (
      await asAdmin<{ owner: string }>('select datdba::regrole::text as owner from pg_database where datname = $1', [
        project.database,
      ])
    ).rows
    expect(owner?.owner).toBe('trellis_owner')
  })

  test('loses what somebody gave a login beside; what was given to a role of the operator stays', async () => {
    const stranger = `dba_${randomBytes(4).toString('hex')}`
    await asAdmin(`create role ${stranger} nologin`)
    try {
      await asAdmin(
        `grant connect on database "${project.database}" to login_control_auth, ${stranger};
         grant temporary on database "${project.database}" to app_user`,
      )
      expect((await wrong())[0]?.problems).toEqual(['a login may more than it needs'])
      await start()
      expect(await wrong()).toEqual([])
      expect(await reach('control_auth', project.database)).toBe('42501')
      const { rows } = await asAdmin<{ may: boolean }>(`select has_database_privilege($1, $2, 'connect') as may`, [
        stranger,
        project.database,
      ])
      expect(rows).toEqual([{ may: true }])
    } finally {
      await asAdmin(`revoke all on database "${project.database}" from ${stranger}; drop role ${stranger}`)
    }
  })

  test('the template takes no connections again', async () => {
    await asAdmin(`alter database "${templateName(harness.prefix)}" allow_connections true`)
    expect(await wrong()).toMatchObject([{ kind: 'template', problems: ['it takes connections'] }])
    await start()
    expect(await wrong()).toEqual([])
  })
})

test.runIf(isSuperuser)(
  'the databases of a server that others log in to are not closed, and db:status names them',
  async () => {
    const stranger = `stranger_${randomBytes(4).toString('hex')}`
    await asAdmin(`create role ${stranger} login; grant connect on database postgres to public`)
    // another file of the suite may start a server meanwhile; the embedded server is always ours
    const isEmbedded = new URL(inject('dsn')).username === 'trellis_superuser'
    try {
      const shared = (await status()).clusters.flatMap((one) => one.wrong).filter(({ kind }) => kind === 'shared')
      for (const one of shared) expect(one.canRepair).toBe(isEmbedded)
    } finally {
      await asAdmin(`drop role ${stranger}`)
      await start()
    }
    if (isOurs) expect(await reach('app_user', 'postgres')).toBe('42501')
  },
)

test('a database made twice at once gets its privileges once, without an error', async () => {
  const name = `${harness.prefix}_${'0'.repeat(32)}`
  const admins = await Promise.all(Array.from({ length: 4 }, () => connectAdmin(cluster, 'postgres', false)))
  const template = templateName(harness.prefix)
  try {
    await createTenantDatabase(admins[0]!, name, template)
    for (let round = 0; round < 10; round += 1)
      await Promise.all(admins.map((admin) => grantConnect(admin, name, ['app_user'])))
    const may = await asAdmin(
      `select a.grantee::regrole::text as who from pg_database d, aclexplode(d.datacl) a
        where d.datname = $1 and a.privilege_type = 'CONNECT' and a.grantee <> d.datdba`,
      [name],
    )
    expect(may.rows).toEqual([{ who: 'login_app_user' }])
  } finally {
    for (const admin of admins) await admin.end()
  }
})
