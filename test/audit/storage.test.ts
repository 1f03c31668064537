import pg from 'pg'
import { afterEach, describe, expect, test } from 'vitest'
import { type Role, targetOf } from '#server/database/cluster.ts'
import { startHarness } from '#test/support/harness.ts'
import { loadTasks } from '#workers/task.ts'

const harness = await startHarness()
const { services } = harness.running
afterEach(() => harness.setTime(null))

const maintain = async () => {
  const { jobs } = await loadTasks()
  await jobs.find(({ name }) => name === 'fleet__maintain')?.run(services, {})
}
type Sql = typeof harness.control
const partitionsOf = async (sql: Sql, parent: string) =>
  (
    await sql(
      `select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
                where i.inhparent = to_regclass('app.' || $1) order by 1`,
      [parent],
    )
  ).map(({ relname }) => relname)
const partitions = (sql: Sql) => partitionsOf(sql, 'audit_events')
/** A change at a time, by nobody in particular. */
const change = (sql: Sql, at: string, target: string) =>
  sql(`select internal.audit('test.change', 'tests', $2, scope => $3) from set_config('app.clock', $1, true)`, [
    at,
    target,
    scope,
  ])
const scope = '00000000-0000-0000-0000-000000000000'
const rowsIn = async (sql: Sql, table: string) =>
  (await sql(`select target_id from app.${table} where action = 'test.change' order by position`)).map(
    ({ target_id }) => target_id,
  )

describe.each([
  ['a project', 203],
  ['control', 204],
] as const)('the trail of %s', (kind, decade) => {
  const start = async (): Promise<Sql> => (kind === 'control' ? harness.control : (await harness.project()).sql)

  test('is kept by month; months are made ahead, and take what came before they were there', async () => {
    const sql = await start()
    harness.setTime(`${decade}1-01-31T23:00:00Z`)
    await maintain()
    expect(await partitions(sql)).toEqual(
      expect.arrayContaining([
        `audit_events_${decade}101`,
        `audit_events_${decade}102`,
        `audit_events_${decade}103`,
        'audit_events_default',
      ]),
    )
    await change(sql, `${decade}1-01-31T23:59:59.999999Z`, 'january')
    await change(sql, `${decade}1-02-01T00:00:00Z`, 'february')
    // nobody was there to make this month
    await change(sql, `${decade}1-07-01T00:00:00Z`, 'july')
    expect(await rowsIn(sql, `audit_events_${decade}101`)).toEqual(['january'])
    expect(await rowsIn(sql, `audit_events_${decade}102`)).toEqual(['february'])
    expect(await rowsIn(sql, 'audit_events_default')).toEqual(['july'])
    harness.setTime(`${decade}1-07-02T03:23:00Z`)
    await maintain()
    expect(await rowsIn(sql, 'audit_events_default')).toEqual([])
    expect(await rowsIn(sql, `audit_events_${decade}107`)).toEqual(['july'])
    expect(await partitions(sql)).not.toContain(`audit_events_${decade}106`)
  })

  test('begins each month of seals with the last hash of the one before, and never goes back into a month that is over', async () => {
    const sql = await start()
    const seal = () => sql('select internal.audit_seal(1000)')
    await change(sql, `${decade}2-05-31T12:00:00Z`, 'may')
    await seal()
    await change(sql, `${decade}2-06-01T00:00:01Z`, 'june')
    await seal()
    // a transaction that began before midnight, and committed when June was sealed already
    await change(sql, `${decade}2-05-31T23:59:59Z`, 'late')
    await seal()
    const rows = await sql(
      `select e.target_id, s.hash, e.occurred_at, s.sealed_at
         from app.audit_events e join app.audit_seals s on s.event_id = e.id
        where e.action = 'test.change' and e.occurred_at >= '${decade}2-05-01' and s.scope = $1 order by s.position`,
      [scope],
    )
    expect(rows.map(({ target_id }) => target_id)).toEqual(['may', 'june', 'late'])
    expect(rows[2].occurred_at).toEqual(new Date(`${decade}2-05-31T23:59:59Z`))
    expect(rows[2].sealed_at).toEqual(new Date(`${decade}2-06-01T00:00:01Z`))
    const heads = await sql(
      `select month::text, opening_hash, last_hash from app.audit_heads where scope = $1 and month >= '${decade}2-05-01' order by month`,
      [scope],
    )
    expect(heads).toEqual([
      { month: `${decade}2-05-01`, opening_hash: expect.any(Buffer), last_hash: rows[0].hash },
      { month: `${decade}2-06-01`, opening_hash: rows[0].hash, last_hash: rows[2].hash },
    ])
  })
})

test('months without a day of the last 400 are dropped, and what is left can still be verified', async () => {
  const project = await harness.project()
  const { sql } = project
  const verify = async (at: string) => {
    const rows = await project.as(
      'app_admin',
      { 'app.clock': at },
      `select r.body -> 'data' as data from api.audit_verify(page_limit => 4) r`,
    )
    return rows[0].data
  }
  harness.setTime('2033-01-05T00:00:00Z')
  await maintain()
  for (const [at, name] of [
    ['2033-01-10T00:00:00Z', 'a'],
    ['2033-01-31T23:00:00Z', 'b'],
    ['2033-02-01T00:00:00Z', 'c'],
    ['2033-02-02T00:00:00Z', 'd'],
    // a row of January that commits in February: it goes with its month, its seal with the next
    ['2033-01-31T23:59:00Z', 'late'],
  ] as const) {
    await change(sql, at, name)
    await sql(`select internal.audit_seal(1) from set_config('app.clock', $1, true)`, [at])
  }
  // 400 days after the last of January: that day still counts
  harness.setTime('2034-03-07T00:00:00Z')
  await maintain()
  expect(await rowsIn(sql, 'audit_events')).toEqual(['a', 'b', 'c', 'd', 'late'])
  harness.setTime('2034-03-08T00:00:00Z')
  await maintain()
  expect(await partitions(sql)).not.toContain('audit_events_203301')
  const kept = await partitionsOf(sql, 'audit_seals')
  expect([kept.includes('audit_seals_203301'), kept.includes('audit_seals_203302')]).toEqual([false, true])
  expect(await rowsIn(sql, 'audit_events')).toEqual(['c', 'd'])
  const now = '2034-03-08T00:00:00Z'
  expect(await verify(now)).toMatchObject({ checked: 2, first_broken: null, is_cut: false })
  // the recorded hash holds the first one that is left
  await sql(`update app.audit_heads set opening_hash = opening_hash || '\\x00' where month = '2033-02-01'`)
  expect(await verify(now)).toMatchObject({ first_broken: { id: expect.any(String) } })

  // a trail of which everything is gone goes on where it ended
  harness.setTime('2036-01-01T00:00:00Z')
  await maintain()
  expect(await rowsIn(sql, 'audit_events')).toEqual([])
  expect(await verify('2036-01-01T00:00:00Z')).toMatchObject({ checked: 0, is_cut: false })
  await change(sql, '2036-01-01T00:00:00Z', 'e')
  await sql(`select internal.audit_seal(3) from set_config('app.clock', '2036-01-01T00:00:00Z', true)`)
  const [{ position }] = await sql(
    `select s.position from app.audit_seals s join app.audit_events e on e.id = s.event_id where e.target_id = 'e'`,
  )
  expect(Number(position)).toBe(6)
  expect(await verify('2036-01-01T00:00:00Z')).toMatchObject({ checked: 1, first_broken: null, is_cut: false })
})

test('writers never wait for one another: one trail is written by two transactions at the same time', async () => {
  const [one, other] = [await harness.project(), await harness.project()]
  const login = async () => {
    const client = new pg.Client({ connectionString: databaseUrl(services.control.database) })
    await client.connect()
    await client.query('begin; set local role trellis_owner')
    return client
  }
  const [first, second] = [await login(), await login()]
  try {
    const audit = `select internal.audit('test.change', 'tests', 'x', scope => $1)`
    await first.query(audit, [one.id])
    // refused at once, were there any lock to wait for
    await second.query(`set local lock_timeout = '1ms'`)
    await second.query(audit, [other.id])
    await second.query(audit, [one.id])
    await second.query('commit')
    const written = await second.query(
      `select from app.audit_events where scope = any ($1) and action = 'test.change'`,
      [[one.id, other.id]],
    )
    expect(written.rowCount).toBe(2)
  } finally {
    await first.end()
    await second.end()
  }
})

const databaseUrl = (name: string) => {
  const url = new URL(services.control.cluster.dsn)
  url.pathname = `/${name}`
  return url.href
}

describe('is append-only', () => {
  const roles = {
    tenant: ['app_anon', 'app_user', 'app_server', 'app_admin', 'app_dashboard', 'app_worker', 'app_auth'],
    control: ['control_anon', 'control_developer', 'control_auth', 'control_worker'],
  } as const
  const changes = [
    `insert into app.audit_events select * from app.audit_events limit 1`,
    `insert into app.audit_events (id, scope, position, occurred_at, actor, action, target_type, status)
       values (gen_random_uuid(), gen_random_uuid(), 1, now(), '{}', 'a', 'b', 200)`,
    `update app.audit_events set ip = ''`,
    'delete from app.audit_events',
    'truncate app.audit_events',
    'delete from app.audit_events_default',
    ...['audit_heads', 'audit_digests', 'audit_seals', 'audit_seals_default'].flatMap((table) => [
      `insert into app.${table} select * from app.${table}`,
      `update app.${table} set scope = scope`,
      `delete from app.${table}`,
      `truncate app.${table}`,
    ]),
    `select nextval('app.audit_positions')`,
    `select internal.audit_many(array['a'], 'b', array['c'], array['{}']::json[], array[200], array[gen_random_uuid()])`,
    `select internal.audit_head_keep(null, 1)`,
    'drop table app.audit_events',
    `select internal.audit('a', 'b', 'c')`,
    'alter table app.audit_events disable trigger all',
  ]
  const logins = Object.entries(roles).flatMap(([kind, names]) => names.map((role) => ({ kind, role })))

  test.each(logins)('for $role', async ({ kind, role }) => {
    const project = await harness.project()
    const database = kind === 'control' ? services.control.database : project.database
    const target = targetOf(services.control.cluster, database, role as Role, services.secrets)
    const client = new pg.Client({ ...target, ssl: false })
    await client.connect()
    try {
      for (const change of changes) {
        await client.query(`begin; set local role ${role}`)
        await client.query(
          `select set_config('app.caller', 'developer', true), set_config('app.developer_id', $1, true)`,
          [project.developer.id],
        )
        await expect(client.query(change), change).rejects.toThrow(/permission denied|must be owner/)
        await client.query('rollback')
      }
      // and only administrators read it
      await client.query(`begin; set local role ${role}`)
      const read = client.query('select from app.audit_events')
      if (['app_admin', 'app_dashboard', 'control_developer'].includes(role)) await read
      else await expect(read).rejects.toThrow(/permission denied/)
    } finally {
      await client.end()
    }
  })

  test('and a developer reads the trails of own projects, organizations and of the own account, no other', async () => {
    const [mine, other] = [await harness.project(), await harness.project()]
    await harness.control(`select internal.audit('test.account', 'developers', $1::text, scope => $1::uuid)`, [
      mine.developer.id,
    ])
    const target = targetOf(services.control.cluster, services.control.database, 'control_developer', services.secrets)
    const client = new pg.Client({ ...target, ssl: false })
    await client.connect()
    await client.query(`begin; set local role control_developer`)
    await client.query(`select set_config('app.developer_id', $1, true)`, [mine.developer.id])
    const { rows } = await client.query('select distinct scope from app.audit_events')
    await client.end()
    const [organization] = await harness.control('select organization_id as id from app.projects where id = $1', [
      mine.id,
    ])
    const own = [mine.id, mine.developer.id, organization?.['id']]
    expect(rows.map((row) => row.scope).sort()).toEqual(own.sort())
    expect(rows.map((row) => row.scope)).not.toContain(other.id)
  })
})
