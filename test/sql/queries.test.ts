import { describe, expect, test } from 'vitest'
import { connectAdmin } from '#server/database/cluster.ts'
import { personalToken, withBearer } from '#test/support/accounts.ts'
import { delegationOf, operatorTokenOf } from '#test/support/delegation.ts'
import { type Client, type Project, startHarness } from '#test/support/harness.ts'
import { enrol, personalOf } from '#test/support/organizations.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { untilSleeping } from '#test/support/sql.ts'

const harness = await startHarness()
const project = await harness.project()

const path = (of: Project) => `/admin/projects/${of.id}/sql`
const ask = (sql: string, more: Record<string, unknown> = {}, of = project, by: Client = of.developer) =>
  by.post(path(of), { sql, ...more })
const answerTo = async (sql: string, more: Record<string, unknown> = {}, of = project) => {
  const { status, data, text } = await ask(sql, more, of)
  expect(status, text).toBe(200)
  return data
}
const rowsOf = async (sql: string, of = project) => (await answerTo(sql, {}, of)).rows

describe('who may ask', () => {
  const sql = 'select 1'

  test('the developer of the project, and no other caller', async () => {
    const stranger = await harness.developer()
    const user = await project.user()
    expectRefusal(await ask(sql, {}, project, stranger), 403, 'PROJECT_FORBIDDEN')
    for (const client of [harness.anyone, project.app, project.server, user, project.onBehalfOf(user.id)])
      expectRefusal(await ask(sql, {}, project, client), 401, 'INVALID_DEVELOPER_TOKEN')
    expectRefusal(await project.developer.post(path(project).replace(/.{8}-/, '00000000-'), { sql }), 404, 'NOT_FOUND')
  })

  test('members from the role developer on', async () => {
    const organization = await personalOf(project.developer)
    for (const role of ['viewer', 'developer', 'admin'] as const) {
      const member = await harness.developer()
      await enrol(harness, organization, member, role)
      const answer = await ask(sql, {}, project, member)
      if (role === 'viewer') expectRefusal(answer, 403, 'ROLE_FORBIDDEN')
      else expect(answer.status, role).toBe(200)
    }
  })

  test('a token with the read scope of this project, and no operator token', async () => {
    const asked = async (scopes: string[]) => {
      const { token } = await personalToken(project.developer, { scopes })
      return ask(sql, {}, project, withBearer(harness.anyone, token))
    }
    for (const scopes of [['sql:read'], ['*:read']]) expect((await asked(scopes)).status, scopes.join()).toBe(200)
    expectRefusal(await asked(['users:read']), 403, 'SCOPE_REQUIRED')
    const scene = await delegationOf(harness)
    const operator = await operatorTokenOf(harness, scene.account.client, {
      project_id: scene.project.id,
      scopes: ['*:read'],
    })
    expectRefusal(await ask(sql, {}, scene.project, operator.client), 403, 'DELEGATION_NOT_ALLOWED')
  })

  test('nobody, where the operator has switched it off', async () => {
    const closed = await startHarness({ env: { SQL_QUERIES: 'off' } })
    expectRefusal(await ask(sql, {}, await closed.project()), 403, 'SQL_DISABLED')
  })
})

describe('an answer', () => {
  test('has the columns with their types, and values as JSON has them or as Postgres writes them', async () => {
    const { columns, rows, row_count, is_cut, duration_ms, plan } = await answerTo(`
      select 1::int4 as a, 2::int2 as a, 1.5::float8 as b, true as c, false as d, null as e, 'x"ü' as f,
             9007199254740993::int8 as g, 123456789012345678901234567890.5 as h, 'NaN'::float8 as i, 'NaN'::numeric as j,
             '\\xdead'::bytea as k, array[1, null, 3] as l, '{"b": 1, "a": 1.10}'::json as m,
             '2026-01-02T03:04:05Z'::timestamptz as n, 'infinity'::float4 as o, row(1, 'x') as p, interval '1 day 2 hours' as q,
             '00000000-0000-0000-0000-000000000001'::uuid as r, 'abc'::varchar(10) as "Name with ""quotes"""`)
    expect(columns.map(({ name, type }: { name: string; type: string }) => [name, type])).toEqual([
      ['a', 'integer'],
      ['a', 'smallint'],
      ['b', 'double precision'],
      ['c', 'boolean'],
      ['d', 'boolean'],
      ['e', 'text'],
      ['f', 'text'],
      ['g', 'bigint'],
      ['h', 'numeric'],
      ['i', 'double precision'],
      ['j', 'numeric'],
      ['k', 'bytea'],
      ['l', 'integer[]'],
      ['m', 'json'],
      ['n', 'timestamp with time zone'],
      ['o', 'real'],
      ['p', 'record'],
      ['q', 'interval'],
      ['r', 'uuid'],
      ['Name with "quotes"', 'character varying(10)'],
    ])
    expect(rows).toEqual([
      [
        ...[1, 2, 1.5, true, false, null, 'x"ü', '9007199254740993', '123456789012345678901234567890.5', 'NaN', 'NaN'],
        ...[
          '\\xdead',
          '{1,NULL,3}',
          '{"b": 1, "a": 1.10}',
          '2026-01-02 03:04:05+00',
          'Infinity',
          '(1,x)',
          '1 day 02:00:00',
        ],
        ...['00000000-0000-0000-0000-000000000001', 'abc'],
      ],
    ])
    expect({ row_count, is_cut, plan }).toEqual({ row_count: 1, is_cut: false, plan: null })
    expect(duration_ms).toBeGreaterThanOrEqual(0)
  })

  test('of no columns, of no rows, of every statement that reads', async () => {
    expect(await answerTo('select from generate_series(1, 3)')).toMatchObject({
      columns: [],
      rows: [[], [], []],
      row_count: 3,
    })
    expect(await answerTo('select 1 as one where false')).toMatchObject({ columns: [{ name: 'one' }], rows: [] })
    expect(await rowsOf('values (1, 2), (3, 4)')).toEqual([
      [1, 2],
      [3, 4],
    ])
    expect(
      await rowsOf('with recursive n(i) as (select 1 union all select i + 1 from n where i < 3) select * from n'),
    ).toEqual([[1], [2], [3]])
    expect((await answerTo('table users')).columns.map(({ name }: { name: string }) => name)).toContain('email')
    expect(await rowsOf('(select 2 as i) union all (select 1) order by i')).toEqual([[1], [2]])
    expect(await rowsOf("select pg_sleep(0), 'x'::name, current_user")).toEqual([['', 'x', 'app_dashboard']])
  })

  test('of a text with comments, quotes and a semicolon at its end', async () => {
    for (const text of [
      'select 1;',
      'select 1 -- one; two',
      '-- first\nselect 1 /* a ; /* b ; */ c */ ; -- end',
      "select 1 where ';' = e';' and '\\' = '\\' and $a$;'$a$ = $$;'$$ and e'\\';' <> ';'; /* ; */",
      'select 1 from (select 1 as ";") as "a;b" ;  ',
    ])
      expect(await rowsOf(text), text).toEqual([[1]])
  })

  test('finds tables of ours and collections by their names, every row of them', async () => {
    const own = await harness.project()
    await own.admin.post('/collections', { name: 'plants', columns: [{ name: 'title', type: 'text' }] })
    const user = await own.user()
    await user.post('/client/collections/plants', { title: 'Fern' })
    expect(await rowsOf('select u.id, p.title from users u join plants p on p.user_id = u.id', own)).toEqual([
      [user.id, 'Fern'],
    ])
  })
})

describe('bounds', () => {
  test('rows: 100, or as many as are asked for', async () => {
    const all = 'select i from generate_series(1, 5000) i order by i desc'
    expect(await answerTo(all)).toMatchObject({ row_count: 100, is_cut: true })
    const { rows, is_cut } = await answerTo(all, { limit: 2 })
    expect({ rows, is_cut }).toEqual({ rows: [[5000], [4999]], is_cut: true })
    expect(await answerTo('select generate_series(1, 100)')).toMatchObject({ row_count: 100, is_cut: false })
    expect(await answerTo(all, { limit: 1000 })).toMatchObject({ row_count: 1000, is_cut: true })
    for (const limit of [0, 1001, 1.5, '7']) expectInvalid(await ask(all, { limit }), 'limit')
    expectInvalid(await ask(all, { explain: 'verbose' }), 'explain')
  })

  test('bytes: a megabyte of rows; a long value is shortened and says so', async () => {
    const large = await ask("select i, repeat('é', 40000) from generate_series(1, 1000) i", { limit: 1000 })
    expect(large.data).toMatchObject({ is_cut: true })
    expect(large.data.row_count).toBeGreaterThan(5)
    expect(Buffer.byteLength(large.text)).toBeLessThan(1_001_000)
    const { rows, is_cut } = await answerTo("select repeat('😀', 60000), repeat('x', 50000)")
    expect(is_cut).toBe(true)
    expect([...rows[0][0]]).toHaveLength(50_001)
    expect(rows[0][0].endsWith('😀…')).toBe(true)
    expect(rows[0][1]).toBe('x'.repeat(50_000))
    // the widest row that there can be, of the characters that JSON writes longest
    const columns = Array.from({ length: 1600 }, () => 'c').join()
    const wide = await ask(`select ${columns} from (select repeat(e'\\x01', 100000)) r (c)`)
    expect(wide.status, wide.text.slice(0, 500)).toBe(200)
    expect(wide.data).toMatchObject({ row_count: 1, is_cut: true })
    expect(Buffer.byteLength(wide.text)).toBeLessThan(1_050_000)
  })

  test('memory: what a value has too much of is not sent', async () => {
    const before = process.memoryUsage().rss
    expect(await answerTo("select repeat('x', 200000000)")).toMatchObject({ row_count: 1, is_cut: true })
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000)
    expectRefusal(await ask("select repeat('x', 2000000000)"), 400, 'INVALID_SQL', { sqlstate: '54000' })
  })

  test('text: 20,000 characters', async () => {
    expectInvalid(await ask(`select 1 -- ${'x'.repeat(20_000)}`), 'sql')
    expectInvalid(await ask(''), 'sql')
    expectRefusal(await ask('select 1\0'), 400, 'INVALID_BODY')
  })

  test('time: the shorter one of ten seconds and of what the database has', async () => {
    expectRefusal(await ask('select pg_sleep(11)'), 400, 'SQL_TIMEOUT', { sqlstate: '57014' })
    const own = await harness.project()
    await own.sql(`alter database "${own.database}" set statement_timeout = '300ms'`)
    expectRefusal(
      await ask("select pg_sleep(3), set_config('statement_timeout', '0', false)", {}, own),
      400,
      'SQL_TIMEOUT',
    )
  })

  test('locks: two seconds', async () => {
    const own = await harness.project()
    const client = await connectAdmin(harness.running.services.control.cluster, own.database)
    try {
      await client.query('begin; lock table app.users in access exclusive mode')
      expectRefusal(await ask('select * from users', {}, own), 400, 'SQL_TIMEOUT', { sqlstate: '55P03' })
    } finally {
      await client.end()
    }
  })

  test('one query of a project and of a developer, two of a server: who waits too long gets 503', async () => {
    const mine = await harness.project({ developer: project.developer })
    const [second, third] = [await harness.project(), await harness.project()]
    const long = [ask('select pg_sleep(4.5)'), ask('select pg_sleep(4.5)', {}, second)]
    await untilSleeping(harness, 2)
    const others = await Promise.all([ask('select 1'), ask('select 1', {}, mine), ask('select 1', {}, third)])
    for (const other of others) {
      expectRefusal(other, 503, 'SQL_UNAVAILABLE')
      expect(other.headers.get('retry-after')).toBe('2')
    }
    expect((await Promise.all(long)).map(({ status }) => status)).toEqual([200, 200])
    // whose turn comes in time is served
    expect((await Promise.all([1, 2, 3].map((i) => ask(`select ${i}`)))).map(({ data }) => data.rows)).toEqual([
      [[1]],
      [[2]],
      [[3]],
    ])
  })
})
