import { afterAll, describe, expect, test, vi } from 'vitest'
import { connectAdmin, maintenanceDatabase, targetOf } from '#server/database/cluster.ts'
import { createGraphQL } from '#server/graphql/graphql.ts'
import { limits } from '#server/graphql/limits.ts'
import { mostParts } from '#server/graphql/shape.ts'
import { ask, dataFor, graphqlProject, introspection } from '#test/support/graphql.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await graphqlProject(harness)
const { graphql, control } = harness.running.services
// who may see and end what others run
const admin = await connectAdmin(control.cluster, maintenanceDatabase(control.cluster), false)
afterAll(() => admin.end())

// the first query makes the schema
await dataFor(project, '{ users { totalCount } }')

const many = (times: number, text: (index: number) => string) =>
  Array.from({ length: times }, (_, index) => text(index)).join(' ')

describe('a query that asks for too much is refused before it runs', () => {
  const nested = (levels: number): string =>
    levels === 0 ? 'id' : `userStreaks(first: 1) { nodes { user { ${nested(levels - 1)} } } }`
  test.each([
    ['a large page', '{ users(first: 201) { nodes { id } } }'],
    ['a page of a billion', '{ users(first: 1000000000) { nodes { id } } }'],
    ['a page below zero', '{ users(first: -1) { nodes { id } } }'],
    ['a far page', '{ users(offset: 100001) { nodes { id } } }'],
    [
      'lists in lists',
      '{ users(first: 200) { nodes { userStreaks(first: 200) { nodes { id: count } } } } }'.replace(
        'id: count',
        'currentCount',
      ),
    ],
    [
      'lists in lists of the usual size',
      '{ users { nodes { userStreaks { nodes { user { appSessions { nodes { id } } } } } } } }',
    ],
    ['many lists under aliases', `{ ${many(51, (n) => `a${n}: users(first: 1) { totalCount }`)} }`],
    ['many fields under aliases', `{ users(first: 1) { nodes { ${many(1001, (n) => `a${n}: id`)} } } }`],
    ['depth', `{ users(first: 1) { nodes { ${nested(6)} } } }`],
    ['many keys of an order', `{ users(orderBy: [${many(9, () => 'ID_ASC')}]) { totalCount } }`],
    [
      'fragments that double',
      `{ users(first: 1) { nodes { ...F0 } } } ${many(12, (n) => `fragment F${n} on User { ...F${n + 1} ...F${n + 1} }`)} fragment F12 on User { id email }`,
    ],
    ['aliases of the introspection', `{ ${many(50, (n) => `a${n}: __schema { types { name fields { name } } }`)} }`],
    ['aliases within the introspection', `{ __schema { ${many(50, (n) => `a${n}: types { name }`)} } }`],
  ])('%s', async (_name, query) => {
    const began = performance.now()
    const answer = await ask(project, query)
    expect([answer.status, answer.data, answer.codes]).toEqual([200, undefined, ['QUERY_TOO_LARGE']])
    expect(performance.now() - began).toBeLessThan(15_000)
  })

  test.each([
    ['variables', 'query ($n: Int) { users(first: $n) { totalCount } }', { n: 201 }],
    ['defaults of variables', 'query ($n: Int = 201) { users(first: $n) { totalCount } }', {}],
    [
      'orders in variables',
      'query ($o: [UserOrderBy!]) { users(orderBy: $o) { totalCount } }',
      { o: Array(9).fill('ID_ASC') },
    ],
  ])('in %s', async (_name, query, variables) => {
    expect((await ask(project, query, variables)).codes).toEqual(['QUERY_TOO_LARGE'])
  })

  test.each([
    ['too many words', `{ users { ${many(limits.tokens, () => 'id')} } }`],
    [
      'introspection in circles',
      '{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }',
    ],
    ['directives without end', `{ users ${many(2000, () => '@skip(if: false)')} { totalCount } }`],
    ['a deep document', `${'{ a '.repeat(1500)}${'}'.repeat(1500)}`],
  ])('%s', async (_name, query) => {
    const answer = await ask(project, query)
    expect(answer.data).toBeUndefined()
    expect(new Set(answer.codes)).toEqual(new Set(['INVALID_QUERY']))
    expect(answer.errors.length).toBeLessThanOrEqual(20)
  })

  test('what a person asks is not', async () => {
    await dataFor(project, introspection)
    await dataFor(
      project,
      '{ users(first: 200) { nodes { id userStreaks(first: 50) { nodes { currentCount streakDefinition { key } } } } } }',
    )
    await dataFor(project, `{ ${many(50, (n) => `a${n}: users(first: 10) { totalCount nodes { id } }`)} }`)
  })

  test('no argument takes a pattern', async () => {
    const { __schema: found } = await dataFor(project, introspection)
    const names = new Set<string>()
    for (const type of found.types) {
      if (type.name.startsWith('__')) continue
      for (const field of type.fields ?? []) for (const arg of field.args) names.add(arg.name)
    }
    expect([...names].filter((name) => /like|regex|match|search|filter|similar/i.test(name))).toEqual([])
  })
})

test.each([
  ['a time', '{ users(condition: { createdAt: "no time" }) { totalCount } }', 'A value is not one of its type.'],
  [
    'a number',
    '{ xpLevels(condition: { xpRequired: "99999999999999999999" }) { totalCount } }',
    'A value is not one of its type.',
  ],
  [
    'a cursor',
    '{ users(after: "no cursor") { nodes { id } } }',
    'after must be the cursor of a row of an earlier page, in the same order.',
  ],
])('%s that is none is bad input, and the text of Postgres is not told', async (_name, query, message) => {
  const answer = await ask(project, query)
  expect(answer.errors.map((error) => [error.extensions.code, error.message])).toEqual([['INVALID_INPUT', message]])
})

test('rows of more than 8 MB are not collected', async () => {
  const own = await graphqlProject(harness)
  await own.sql(
    `insert into app.users (display_name, properties) select 'u', jsonb_build_object('a', repeat(n::text, 50000)) from generate_series(100, 199) n`,
  )
  const answer = await ask(own, '{ users(first: 200) { nodes { id properties } } }')
  expect(answer.codes).toContain('QUERY_TOO_LARGE')
  expect((await dataFor(own, '{ users(first: 20) { nodes { properties } } }')).users.nodes).toHaveLength(20)
})

describe('a slow query', () => {
  /** Makes each row of a table take a tenth of a second for dashboards. */
  const slow = async () => {
    const own = await graphqlProject(harness)
    await own.sql(`insert into app.groups (name) select 'group ' || n from generate_series(1, 200) n;
      create policy "a DBA's own" on app.groups as restrictive for select to app_dashboard using (pg_sleep(0.1) is not null)`)
    return own
  }
  const running = async (of: { database: string }) => {
    const { rows } = await admin.query<{ count: number }>(
      // this login tells no state: one of its sessions that does not wait for its client runs something
      `select count(*)::int as count from pg_stat_activity
        where datname = $1 and application_name = 'trellis_graphql' and wait_event is distinct from 'ClientRead'`,
      [of.database],
    )
    return rows[0]?.count
  }

  test('is cut off, takes two connections at most, and holds nobody else up', async () => {
    const own = await slow()
    await dataFor(own, '{ users { totalCount } }')
    const began = performance.now()
    const answers = Promise.all(
      many(4, String)
        .split(' ')
        .map(() => ask(own, '{ groups { totalCount } a: groups(first: 200) { nodes { id } } }')),
    )
    await expect.poll(() => running(own), { interval: 50, timeout: 20_000 }).toBe(2)
    // a fifth of the same project has to wait its turn elsewhere
    expectRefusal(
      await own.developer.post(`/admin/projects/${own.id}/graphql`, { query: '{ users { totalCount } }' }),
      429,
      'RATE_LIMITED',
    )
    // the API of the same project, and dashboards of another
    const user = await own.user()
    expect((await user.get('/client/users/me')).status).toBe(200)
    expect((await own.admin.get('/groups')).status).toBe(200)
    await dataFor(project, '{ users { totalCount } }')
    for (const { codes, status } of await answers) {
      expect(status).toBe(200)
      expect(new Set(codes)).toEqual(new Set(['QUERY_TIMEOUT']))
    }
    expect(performance.now() - began).toBeLessThan(40_000)
    await expect.poll(() => running(own), { interval: 50 }).toBe(0)
  }, 60_000)

  test('whose process is killed answers 503, and the next one is answered', async () => {
    const own = await slow()
    await dataFor(own, '{ users { totalCount } }')
    const asked = own.developer.post(`/admin/projects/${own.id}/graphql`, { query: '{ groups { totalCount } }' })
    await expect.poll(() => running(own), { interval: 20, timeout: 20_000 }).toBeGreaterThan(0)
    for (const id of graphql.processIds) process.kill(id, 'SIGKILL')
    expectRefusal(await asked, 503, 'GRAPHQL_UNAVAILABLE')
    await dataFor(own, '{ users { totalCount } }')
  }, 60_000)
})

test('a database that takes no connections is 503', async () => {
  const own = await graphqlProject(harness)
  await dataFor(own, '{ users { totalCount } }')
  await admin.query(`alter database ${own.database} allow_connections false`)
  await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = $1`, [own.database])
  expectRefusal(
    await own.developer.post(`/admin/projects/${own.id}/graphql`, { query: '{ groups { totalCount } }' }),
    503,
    'TENANT_UNAVAILABLE',
  )
  await admin.query(`alter database ${own.database} allow_connections true`)
  await dataFor(own, '{ users { totalCount } }')
})

describe('the processes', () => {
  const ends: (() => Promise<void>)[] = []
  afterAll(() => Promise.all(ends.map((end) => end())))
  const log = { error: () => undefined, warn: () => undefined }
  const { services } = harness.running
  const question = {
    target: targetOf(services.control.cluster, project.database, 'app_dashboard', services.secrets),
    asking: { projectId: project.id, developerId: project.developer.id, sessionId: '' },
    query: '{ __typename }',
    operationName: null,
    variables: {},
  }
  const made = (options: Partial<Parameters<typeof createGraphQL>[0]>) => {
    const one = createGraphQL({ log, ...options })
    ends.push(() => one.close())
    return one
  }
  const isAlive = (id: number) => {
    try {
      return process.kill(id, 0)
    } catch {
      return false
    }
  }
  const stuckProgram = new URL('../support/graphql_stuck.ts', import.meta.url).pathname

  test('that make nothing are ended, their callers are told, and the schema is not begun anew', async () => {
    // a program that only waits
    const stuck = made({ program: stuckProgram, buildMs: 300 })
    const answers = await Promise.allSettled([stuck.ask(question), stuck.ask(question)])
    for (const answer of answers)
      expect(answer).toMatchObject({
        status: 'rejected',
        reason: { status: 503, code: 'GRAPHQL_UNAVAILABLE', headers: { 'Retry-After': '30' } },
      })
    await expect.poll(() => stuck.processIds, { interval: 20 }).toEqual([])
    await expect(stuck.ask(question)).rejects.toMatchObject({ code: 'GRAPHQL_UNAVAILABLE' })
    expect(stuck.processIds).toEqual([])
  })

  test('end when nobody asks, and with the server', async () => {
    const idle = made({ idleMs: 50 })
    expect(JSON.parse((await idle.ask(question)).body)).toEqual({ data: { __typename: 'Query' } })
    const [id = 0] = idle.processIds
    await expect.poll(() => isAlive(id), { interval: 20, timeout: 10_000 }).toBe(false)
    const closed = made({ program: stuckProgram })
    const waiting = closed.ask(question).catch((error) => error)
    await expect.poll(() => closed.processIds.length, { interval: 20 }).toBe(1)
    const [second = 0] = closed.processIds
    await closed.close()
    expect((await waiting).code).toBe('GRAPHQL_UNAVAILABLE')
    expect(isAlive(second)).toBe(false)
    await expect(closed.ask(question)).rejects.toMatchObject({ code: 'GRAPHQL_UNAVAILABLE' })
  }, 60_000)

  test('have no secret in their environment', async () => {
    await dataFor(project, '{ users { totalCount } }')
    const { readFile } = await import('node:fs/promises')
    const [id] = graphql.processIds
    const text = await readFile(`/proc/${id}/environ`, 'utf8').catch(() => '')
    if (process.platform === 'linux') expect(text).toContain('GRAPHILE_ENV')
    expect(text).not.toMatch(/SECRETS_KEY|DATABASE_URL|PASSWORD/)
  })
})

test('a project with too many columns is refused by name, and no process begins with it', async () => {
  const own = await graphqlProject(harness)
  await own.sql(`do $$ begin
    for t in 1 .. 5 loop
      execute (select format('create table collections.wide_%s (%s)', t, string_agg(format('c%s int', n), ', ')) from generate_series(1, 1300) n);
      execute format('grant select on collections.wide_%s to app_dashboard', t);
    end loop;
  end $$`)
  const before = graphql.processIds
  const answer = await ask(own, '{ users { totalCount } }')
  expect([answer.status, answer.codes, answer.data]).toEqual([200, ['QUERY_TOO_LARGE'], undefined])
  expect(answer.errors[0]?.message).toContain(`more than ${mostParts} parts`)
  expect(graphql.processIds).toEqual(before)
  await own.sql('drop table collections.wide_1')
  harness.running.services.graphql.drop(`tenant:${own.id}`)
})

describe('a cursor', () => {
  const cursorOf = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
  test.each([
    ['of another order', ['natural', 1]],
    ['of another order of the same length', ['d41d8cd98f', 1]],
    ['of no order', []],
    ['that is no list', { a: 1 }],
    ['with a nested value', [{ a: 1 }, 2]],
  ])('%s is bad input, and nothing is logged', async (_name, value) => {
    const problems = vi.spyOn(harness.running.services.log, 'error')
    const { codes, status, errors } = await ask(
      project,
      'query ($after: Cursor) { users(orderBy: [CREATED_AT_ASC], after: $after) { nodes { id } } }',
      { after: cursorOf(value) },
    )
    expect([status, codes]).toEqual([200, ['INVALID_INPUT']])
    expect(errors[0]?.message).toBe('after must be the cursor of a row of an earlier page, in the same order.')
    expect(problems).not.toHaveBeenCalled()
    problems.mockRestore()
  })
})
