import { describe, expect, test } from 'vitest'
import { createStopping, Stopped } from '#server/stopping.ts'
import { freshName, startCollections } from '#test/support/definitions.ts'
import { startHarness } from '#test/support/harness.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'
import { loadTasks } from '#workers/task.ts'

const { harness, project, define, definition, insert } = await startCollections()
const user = await project.user()
const add = (name: string, body: unknown, query = '') =>
  project.admin.post(`/collections/${name}/indexes${query}`, body)
const drop = (name: string, index: string, query = '') =>
  project.admin.delete(`/collections/${name}/indexes/${index}${query}`)
const indexes = async (name: string) =>
  (
    await project.sql(
      `select c.relname as name, i.indisvalid as valid, pg_get_indexdef(c.oid) as sql from pg_index i join pg_class c on c.oid = i.indexrelid
        where i.indrelid = ('collections.' || $1)::regclass order by 1`,
      [name],
    )
  ).map((row) => row as { name: string; valid: boolean; sql: string })

describe('declared indexes', () => {
  test('every kind, and what it is in the database', async () => {
    const name = await define({
      columns: [
        { name: 't', type: 'text' },
        { name: 'n', type: 'integer' },
        { name: 'l', type: 'integer[]' },
        { name: 'j', type: 'jsonb' },
      ],
    })
    const cases: [Record<string, unknown>, string, RegExp][] = [
      [{ columns: ['n', 't'] }, 'n_t_btree', /USING btree \(n, t\)$/],
      [{ columns: ['t'], unique: true }, 't_unique', /^CREATE UNIQUE INDEX .* \(t\) WHERE \(deleted_at IS NULL\)$/],
      [{ columns: ['user_id', 'n'], unique: true, name: 'mine' }, 'mine', /\(user_id, n\) WHERE/],
      [{ columns: ['l', 'j'], method: 'gin' }, 'l_j_gin', /USING gin \(l, j jsonb_path_ops\)$/],
      [{ columns: ['t'], method: 'trgm' }, 't_trgm', /USING gin \(t extensions.gin_trgm_ops\)$/],
      [
        {
          columns: ['n'],
          name: 'part',
          where: {
            or: [
              { column: 't', op: 'in', value: ['a', "b'"] },
              { column: 'l', op: 'overlaps', value: [1] },
              { column: 't', op: 'like', value: 'x\\' },
            ],
          },
        },
        'part',
        /WHERE/,
      ],
      [
        {
          columns: ['n'],
          name: 'none',
          where: {
            and: [
              { column: 'n', op: 'not_in', value: [] },
              { column: 'n', op: 'ne', value: null },
              { column: 'l', op: 'contains', value: [] },
            ],
          },
        },
        'none',
        /n IS NOT NULL/,
      ],
    ]
    for (const [body, called, sql] of cases) {
      const plan = await add(name, body, '?dry_run=true')
      expect(plan.data?.sql?.length, plan.text).toBeGreaterThan(0)
      const made = await add(name, body)
      expect([made.status, made.data], made.text).toMatchObject([201, { name: called, is_ready: true }])
      expect((await indexes(name)).find((one) => one.name === `${name}_${called}`)?.sql).toMatch(sql)
    }
    await insert(name, { t: 'x\\', n: 1 }, user)
    const after = await definition(name)
    expect(after.indexes).toHaveLength(cases.length)
    expect(after.schema_version).toBe(cases.length + 1)
    expect((await add(name, { columns: ['n', 't'] })).error).toMatchObject({
      code: 'CONFLICT',
      details: { field: 'name' },
    })
  })

  test('unique over live rows: duplicates are named, deleted rows and nulls do not count', async () => {
    const name = await define({
      columns: [
        { name: 'a', type: 'text' },
        { name: 'b', type: 'integer' },
      ],
    })
    for (const row of [
      { a: 'x', b: 1 },
      { a: 'x', b: 1 },
      { a: 'x', b: 2 },
      { a: null, b: 1 },
      { a: null, b: 1 },
    ])
      await insert(name, row, user)
    const refused = await add(name, { columns: ['a', 'b'], unique: true })
    expect([refused.status, refused.error]).toMatchObject([
      409,
      { code: 'CONFLICT', details: { duplicates: [{ values: ['x', 1], count: 2 }] } },
    ])
    expect(
      (await add(name, { columns: ['a', 'b'], unique: true, name: 'few', where: { column: 'b', op: 'gt', value: 1 } }))
        .status,
    ).toBe(201)
    await project.sql(
      `update collections.${name} set deleted_at = now() where id = (select id from collections.${name} where b = 1 and a = 'x' limit 1)`,
    )
    expect((await add(name, { columns: ['a', 'b'], unique: true })).status).toBe(201)
    await expect(insert(name, { a: 'x', b: 1 }, user)).rejects.toThrow(/a_b_unique/)
    // what was deleted comes back only where its value is free
    await expect(
      project.sql(`update collections.${name} set deleted_at = null where deleted_at is not null`),
    ).rejects.toThrow(/a_b_unique/)
  })

  test('dropping; one that a DBA dropped by hand', async () => {
    const name = await define({
      columns: [{ name: 'a', type: 'text' }],
      indexes: [{ columns: ['a'] }, { columns: ['a'], name: 'other' }],
    })
    expect((await drop(name, 'a_btree', '?dry_run=true')).data.sql).toEqual([
      `drop index if exists collections.${name}_a_btree`,
    ])
    expect((await drop(name, 'a_btree')).data).toEqual({ name: 'a_btree', deleted: true })
    expect((await drop(name, 'a_btree')).error?.code).toBe('NOT_FOUND')
    await project.sql(`drop index collections.${name}_other`)
    expect((await drop(name, 'other')).status).toBe(200)
    expect((await drop('nowhere', 'x')).error?.code).toBe('COLLECTION_NOT_FOUND')
    expect((await drop(name, 'x', '?dry_run=x')).error?.code).toBe('INVALID_INPUT')
    expect((await definition(name)).schema_version).toBe(3)
  })

  test('refusals; twenty and not one more', async () => {
    const name = await define({
      columns: [{ name: 'a', type: 'text' }],
      indexes: Array.from({ length: 19 }, (_, n) => ({ columns: ['a'], name: `i${n}` })),
    })
    expect((await add(name, { columns: ['zzz'] })).error).toMatchObject({
      code: 'VALIDATION_ERROR',
      details: { field: 'columns' },
    })
    expect((await add(name, '[]')).error?.code).toBe('INVALID_BODY')
    expect((await add(name, { columns: ['a'] }, '?dry_run=1')).error?.code).toBe('INVALID_INPUT')
    expect((await add('nowhere', { columns: ['a'] })).error?.code).toBe('COLLECTION_NOT_FOUND')
    expect((await add(name, { columns: ['a'] })).status).toBe(201)
    expect((await add(name, { columns: ['a'], name: 'over' })).error).toMatchObject({
      code: 'INDEX_LIMIT_REACHED',
      details: { limit: 20 },
    })
  })

  test('the same index from twenty callers: one is made', async () => {
    const name = await define({ columns: [{ name: 'a', type: 'text' }] })
    const answers = await Promise.all(Array.from({ length: 20 }, () => add(name, { columns: ['a'] })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(409)])
  })
})

describe('over 100,000 rows', () => {
  const large = async (rows = 100_500) => {
    const name = await define({
      columns: [
        { name: 'n', type: 'integer' },
        { name: 'same', type: 'integer', default: 1 },
      ],
    })
    await project.sql(
      `insert into collections.${name} (user_id, n) select $1, n from generate_series(1, ${rows}) as n`,
      [user.id],
    )
    await project.sql(`analyze collections.${name}`)
    return name
  }
  const run = async (operation_id: string) => {
    const job = (await loadTasks()).jobs.find((one) => one.name === 'collections__index')
    await job?.run(harness.running.services, { operation_id })
    return (await project.admin.get(`/operations/${operation_id}`)).data
  }

  test('an index is built in the background, while rows come and go', async () => {
    const name = await large()
    const dry = await add(name, { columns: ['n'] }, '?dry_run=true')
    expect(dry.data).toMatchObject({ warnings: ['The index is built in the background.'], rows: expect.any(Number) })
    expect(dry.data.sql[0]).toContain('create index concurrently')
    const started = await add(name, { columns: ['n'] })
    expect([started.status, started.data]).toEqual([202, { operation_id: expect.any(String), status: 'queued' }])
    expect((await definition(name)).indexes).toEqual([])
    const writing = (async () => {
      for (let n = 0; n < 20; n += 1) await insert(name, { n }, user)
    })()
    const done = await run(started.data.operation_id)
    await writing
    expect(done).toMatchObject({ type: 'collections.index', status: 'succeeded', result: { collection: name } })
    expect((await definition(name)).indexes).toMatchObject([{ name: 'n_btree', is_ready: true }])
    expect((await indexes(name)).find((one) => one.name === `${name}_n_btree`)?.valid).toBe(true)
    const [audited] = await project.sql(
      `select actor from app.audit_events where action = 'collection_indexes.create' order by position desc limit 1`,
    )
    expect(audited.actor).toMatchObject({ type: 'developer', id: project.developer.id })
    // run once more, it does nothing
    await run(started.data.operation_id)
  }, 180_000)

  test('a stop cancels the building, and the next job begins it again', async () => {
    const name = await large()
    const { operation_id } = (await add(name, { columns: ['n'] })).data
    // the building waits for every transaction that writes to the table
    const writing = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
    await writing.query(`lock table collections.${name} in row exclusive mode`)
    const stopping = createStopping(600)
    const services = { ...harness.running.services, stopping: stopping.signals }
    const job = (await loadTasks()).jobs.find((one) => one.name === 'collections__index')
    const built = job?.run(services, { operation_id }).catch((error: Error) => error)
    await untilBlocked(project)
    stopping.ask()
    expect(await built).toBeInstanceOf(Stopped)
    expect((await project.admin.get(`/operations/${operation_id}`)).data.status).toBe('running')
    await writing.commit()
    expect(await run(operation_id)).toMatchObject({ status: 'succeeded' })
    expect((await indexes(name)).filter((one) => one.name.includes('n_btree'))).toMatchObject([{ valid: true }])
  }, 180_000)

  test('one that fails leaves nothing; one whose worker died goes on', async () => {
    const name = await large()
    // duplicates are found before anything begins
    expect((await add(name, { columns: ['same'], unique: true })).error?.code).toBe('CONFLICT')
    const unlucky = await add(name, { columns: ['n'], unique: true })
    await insert(name, { n: 1 }, user)
    expect(await run(unlucky.data.operation_id)).toMatchObject({
      status: 'failed',
      failed_reason: 'Rows have equal values, which a unique index forbids.',
    })
    expect((await definition(name)).indexes).toEqual([])
    // duplicates that come between its check and its end
    const later = await add(name, { columns: ['n', 'same'], name: 'later' })
    const { services } = harness.running
    const place = await services.fleet.placeOf(project.id)
    if (!place) throw new Error('the project is ready')
    // a worker that noted the index, half-built it, and died
    const claims = { caller: 'developer', developerId: project.developer.id, projectId: project.id }
    await services.database.call(place, 'app_admin', claims, 'collection_index_begin', {
      name,
      definition: { columns: ['n', 'same'], name: 'later' },
      operation_id: later.data.operation_id,
    })
    expect((await definition(name)).indexes).toMatchObject([{ name: 'later', is_ready: false }])
    expect((await drop(name, 'later')).error?.code).toBe('CONFLICT')
    await project.sql(`create index ${name}_later on collections.${name} (n)`)
    await project
      .sql(`update pg_index set indisvalid = false where indexrelid = 'collections.${name}_later'::regclass`)
      .catch(() => undefined)
    expect(await run(later.data.operation_id)).toMatchObject({ status: 'succeeded' })
    expect((await definition(name)).indexes).toMatchObject([{ name: 'later', is_ready: true }])
    expect((await indexes(name)).every((one) => one.valid)).toBe(true)
  }, 180_000)

  test('duplicates found while it builds: no invalid index stays', async () => {
    const name = await large()
    const started = await add(name, { columns: ['n'], unique: true })
    // past the check, which the job makes again under its lock, a writer comes
    const { services } = harness.running
    const place = await services.fleet.placeOf(project.id)
    if (!place) throw new Error('the project is ready')
    const claims = { caller: 'developer', developerId: project.developer.id, projectId: project.id }
    await services.database.call(place, 'app_admin', claims, 'collection_index_begin', {
      name,
      definition: { columns: ['n'], unique: true },
      operation_id: started.data.operation_id,
    })
    await insert(name, { n: 1 }, user)
    expect(await run(started.data.operation_id)).toMatchObject({ status: 'failed' })
    expect((await definition(name)).indexes).toEqual([])
    expect((await indexes(name)).map((one) => one.name)).not.toContain(`${name}_n_unique`)
    expect((await indexes(name)).every((one) => one.valid)).toBe(true)
  }, 180_000)

  test('a collection that went meanwhile', async () => {
    const name = await large()
    const started = await add(name, { columns: ['n'] })
    await project.admin.delete(`/collections/${name}?confirm=${name}`)
    expect(await run(started.data.operation_id)).toMatchObject({
      status: 'failed',
      failed_reason: 'There is no such collection.',
    })
  }, 180_000)
})

test('five changes a second, over every kind of change; dry runs aside', async () => {
  const limited = await startHarness({ env: { GENERAL_RATE_LIMITS: 'on' } })
  const own = await limited.project()
  const answers = await Promise.all(
    Array.from({ length: 9 }, () => own.admin.post('/collections', { name: freshName() })),
  )
  expect(answers.filter(({ status }) => status === 201).length).toBeGreaterThanOrEqual(5)
  const refused = answers.find(({ status }) => status === 429)
  expect(refused?.error?.code).toBe('RATE_LIMITED')
  expect(refused?.headers.get('retry-after')).toBe('1')
  const kinds: [string, string, unknown][] = [
    ['PATCH', '/collections/x', {}],
    ['DELETE', '/collections/x', undefined],
    ['POST', '/collections/x/columns', { name: 'a', type: 'text' }],
    ['PATCH', '/collections/x/columns/a', {}],
    ['DELETE', '/collections/x/columns/a', undefined],
    ['POST', '/collections/x/indexes', { columns: ['id'] }],
    ['DELETE', '/collections/x/indexes/a', undefined],
  ]
  for (const [method, path, body] of kinds) {
    const many = await Promise.all(Array.from({ length: 9 }, () => own.admin.request(method, path, body)))
    expect(
      many.some(({ status }) => status === 429),
      `${method} ${path}`,
    ).toBe(true)
  }
  const dry = await Promise.all(
    Array.from({ length: 9 }, () => own.admin.post('/collections?dry_run=true', { name: freshName() })),
  )
  expect(dry.every(({ status }) => status === 200)).toBe(true)
})
