import { afterAll, expect, test, vi } from 'vitest'
import { databaseOf, me, startLoad, startTwoServers } from '#test/support/moving.ts'
import { ask, createTestProject, endPrograms } from '#test/support/process.ts'

/** A project moves between two real servers while it is used. */
vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })
const { server, cluster, sql, other } = await startTwoServers()
afterAll(async () => {
  await endPrograms()
  await other.stop()
}, 120_000)

const events = (where: 'own' | 'second', database: string) =>
  sql<{ id: string }>(where, database, `select id from app.engagement_events where event_name = 'moved'`)

test('all that was answered is there, once, and the other server has what the first had', async () => {
  const project = await createTestProject(server.url)
  const database = databaseOf(project)
  // structure beyond the template: a collection, an index and a function by hand
  const made = await ask(
    server.url,
    'POST',
    `/v1/admin/projects/${project.projectId}/collections`,
    { name: 'notes', columns: [{ name: 'text', type: 'text', required: true }] },
    project.developer,
  )
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  await sql('own', database, `create function public.by_hand(n int) returns int language sql return n + 1`)
  await sql('own', database, `create table public.without_key (n int not null, t text default 'x')`)
  await sql('own', database, `insert into public.without_key select generate_series(1, 1000)`)

  const load = startLoad(server.url, project)
  await vi.waitUntil(() => load.accepted.length > 50, { timeout: 60_000 })
  const moved = await cluster('move', project.projectId, 'second')
  expect(moved.code, moved.out + moved.err).toBe(0)
  const after = load.accepted.length
  await vi.waitUntil(() => load.accepted.length > after + 50, { timeout: 60_000 })
  await load.stop()

  expect([...load.statuses.keys()].filter((status) => !['201', '503'].includes(status))).toEqual([])
  for (const refusal of load.refusals)
    expect(refusal).toMatchObject({ status: 503, retryAfter: expect.stringMatching(/^\d+$/) })
  const rows = (await events('second', database)).map(({ id }) => id)
  expect(new Set(rows).size).toBe(rows.length)
  expect(load.accepted.filter((id) => !rows.includes(id))).toEqual([])
  expect(await sql('own', 'postgres', 'select from pg_database where datname = $1', [database])).toEqual([])
  expect(await sql('own', 'postgres', 'select from pg_replication_slots')).toEqual([])
  expect(await sql('second', database, 'select from pg_subscription')).toEqual([])
  expect(
    await sql(
      'second',
      database,
      'select public.by_hand(1) as two, (select count(*)::int from public.without_key) as n',
    ),
  ).toEqual([{ two: 2, n: 1000 }])
  // identity columns and sequences go on where they were, and the app goes on
  expect((await me(server.url, project)).status).toBe(200)
  const note = await ask(server.url, 'POST', '/v1/client/collections/notes', { text: 'there' }, project.user)
  expect([201, 403], JSON.stringify(note.body)).toContain(note.status)
  expect((await cluster('move', project.projectId, 'second')).err).toContain('already')

  // and back again
  const back = await cluster('drain', 'second')
  expect(back.code, back.out + back.err).toBe(0)
  expect((await events('own', database)).length).toBe(rows.length)
  expect((await me(server.url, project)).status).toBe(200)
  expect((await cluster()).out).toMatch(/second +0 projects of 10, closed/)
  expect((await cluster('capacity', 'second', '12')).out).toMatch(/second +0 projects of 12, closed/)
  for (const wrong of [
    ['capacity', 'third', '12'],
    ['capacity', 'second', '0'],
  ])
    expect((await cluster(...wrong)).code).toBe(1)
  await cluster('capacity', 'second', '10')
})

test('what cannot be moved, or fails on the way, is taken back, and the project goes on', async () => {
  const project = await createTestProject(server.url)
  const database = databaseOf(project)
  await cluster('open', 'second')
  // placed by capacity: the test is about a move from either side
  const [tenant] = await sql<{ name: string }>(
    'own',
    'trellis_control',
    'select c.name from app.tenants t join app.clusters c on c.id = t.cluster_id where t.project_id = $1',
    [project.projectId],
  )
  const [here, there] = tenant?.name === 'own' ? (['own', 'second'] as const) : (['second', 'own'] as const)
  const nothingIsLeft = async () => {
    expect((await me(server.url, project)).status).toBe(200)
    expect(await sql(there, 'postgres', 'select from pg_database where datname = $1', [database])).toEqual([])
    expect(await sql(here, 'postgres', 'select from pg_replication_slots')).toEqual([])
    expect(
      await sql(here, database, `select from pg_publication union all select from app.settings where key = 'move'`),
    ).toEqual([])
    expect(await sql(here, database, `select from pg_class where relreplident = 'f' and relkind = 'r'`)).toEqual([])
    expect(await sql('own', 'trellis_control', 'select from app.tenant_moves')).toEqual([])
  }
  await sql(here, database, 'create text search dictionary public.plain (template = simple)')
  const refused = await cluster('move', project.projectId, there)
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('text search dictionary public.plain') })
  await nothingIsLeft()
  await sql(here, database, 'drop text search dictionary public.plain')
  // an earlier run that was killed while the project was held and its database closed
  await sql(
    'own',
    'trellis_control',
    `with m as (insert into app.tenant_moves (project_id, from_cluster_id, to_cluster_id)
                select t.project_id, t.cluster_id, c.id from app.tenants t join app.clusters c on c.name = $2 where t.project_id = $1)
     update app.tenants set hold = 'moving', held_since = now() where project_id = $1`,
    [project.projectId, there],
  )
  await sql(here, 'postgres', `alter database "${database}" allow_connections false`)
  const moved = await cluster('move', project.projectId, there)
  expect(moved.code, moved.out + moved.err).toBe(0)
  expect(moved.out).toContain('an earlier run is taken back')
  expect((await me(server.url, project)).status).toBe(200)
})

test('every column that holds ids of transactions is known to tenant_arrived', async () => {
  const found = await sql<{ name: string }>(
    'own',
    'trellis_control',
    'select database_name as name from app.tenants t join app.clusters c on c.id = t.cluster_id where c.name = $1',
    ['own'],
  )
  const columns = await sql<{ name: string }>(
    'own',
    found[0]?.name ?? '',
    `select c.relname || '.' || a.attname as name from pg_attribute a join pg_class c on c.oid = a.attrelid
      where a.atttypid in ('xid8'::regtype, 'xid'::regtype, 'pg_snapshot'::regtype) and a.attnum > 0 and c.relkind in ('r', 'p')
        and c.relpersistence = 'p' and not c.relispartition and c.relnamespace = 'app'::regnamespace order by 1`,
  )
  expect(columns.map(({ name }) => name)).toEqual([
    // compared together with the times of the same event alone
    'engagement_events.transaction_id',
    'leaderboard_changes.made',
    'leaderboard_folds.folded_to',
    'leaderboard_runs.fence',
    'league_runs.fence',
  ])
})
