import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import fc from 'fast-check'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { csvHead, csvRow } from '#server/http/csv.ts'
import { type Answer, type Project, startHarness, type User } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { fillEveryTable } from '#test/support/user_rows.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))

const lines = ({ text }: Answer): any[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
const columns = 'id,email,anonymous_id,created_at,last_seen_at,properties,platform_strings,push_token_count'

/** A small reader of RFC 4180, so that what we write is not read by our own hand. */
const table = (text: string): string[][] => {
  const rows: string[][] = [[]]
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g)) {
    if (quoted === undefined && plain === '' && end === '' && rows.at(-1)?.length === 0) break
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain ?? '')
    if (end === '\r\n') rows.push([])
  }
  return rows.filter((row) => row.length > 0)
}

describe('the export of users', () => {
  let own: Project
  const made: string[] = []
  const make = async (at: string, fields: object = {}) => {
    harness.setTime(at)
    const { data } = await own.admin.post('/users', fields)
    harness.setTime(null)
    made.push(data.id)
    return data
  }

  beforeAll(async () => {
    own = await harness.project()
    await make('2026-11-02T00:00:00Z', { email: 'ada@example.org', properties: { a: 1, note: 'x, "y"' } })
    await make('2026-11-01T00:00:00Z')
    await make('2026-11-03T00:00:00Z', { external_id: '=1+1', email: '-cmd@example.org', properties: { f: '=1' } })
    await own.sql(
      `insert into app.push_tokens (app_user_id, token, platform, is_active)
       values ($1, 'a', 'ios', true), ($1, 'b', 'android', true), ($1, 'c', 'ios', true), ($1, 'd', 'android', false), ($2, 'e', 'ios', false)`,
      [made[0], made[1]],
    )
  })

  test('is CSV unless told otherwise, oldest first, with the contract’s columns', async () => {
    const answer = await own.admin.get('/users/export')
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(answer.headers.get('content-disposition')).toBe('attachment; filename="users-export.csv"')
    const [head, ...rows] = table(answer.text)
    expect(head?.join(',')).toBe(columns)
    expect(rows.map(([id]) => id)).toEqual([made[1], made[0], made[2]])
    expect(rows[1]).toEqual([
      made[0],
      'ada@example.org',
      '',
      '2026-11-02T00:00:00.000Z',
      '2026-11-02T00:00:00.000Z',
      '{"a":1,"note":"x, "y""}'.replace('x, "y"', 'x, \\"y\\"'),
      'android|ios',
      '3',
    ])
    expect([rows[0]?.[6], rows[0]?.[7]]).toEqual(['', '0'])
    expect(rows[0]?.[2]).toMatch(/^anon_/)
  })

  test('opens safely in a spreadsheet', async () => {
    const [, , , risky] = table((await own.admin.get('/users/export')).text)
    expect([risky?.[1], risky?.[5]]).toEqual(["'-cmd@example.org", '{"f":"=1"}'])
  })

  test('is NDJSON on wish, platforms as a list', async () => {
    const answer = await own.admin.get('/users/export?format=ndjson')
    expect(answer.headers.get('content-type')).toMatch(/^application\/x-ndjson/)
    const rows = lines(answer)
    expect(rows.map(({ id }) => id)).toEqual([made[1], made[0], made[2]])
    expect(rows[1]).toEqual({
      id: made[0],
      email: 'ada@example.org',
      anonymous_id: null,
      created_at: '2026-11-02T00:00:00.000Z',
      last_seen_at: '2026-11-02T00:00:00.000Z',
      properties: { a: 1, note: 'x, "y"' },
      platform_strings: ['android', 'ios'],
      push_token_count: 3,
    })
    expect(Object.keys(rows[0]).join(',')).toBe(columns)
  })

  test.each([
    ['2026-11-02T00:00:00Z', 2],
    ['2026-11-02T00:00:00.001Z', 1],
    ['2026-11-02T01:00:00%2B01:00', 2],
    ['2026-11-01', 3],
    ['2027-01-01', 0],
  ])('since %s has %i users', async (since, count) => {
    expect(lines(await own.admin.get(`/users/export?format=ndjson&since=${since}`))).toHaveLength(count)
  })

  test('has in CSV, byte for byte, what server/http/csv.ts makes of the rows in NDJSON', async () => {
    const many = await harness.project()
    const risky = [
      '',
      'null',
      '"',
      '\\',
      ',',
      ', ',
      '": ',
      ' ',
      '\n',
      '\r',
      '\t',
      '=',
      '-',
      '+',
      '@',
      '|',
      '\u0001',
      'é',
      '😀',
      'a',
    ]
    const text = fc.array(fc.constantFrom(...risky), { maxLength: 5 }).map((parts) => parts.join(''))
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { depthSize: 'small' },
        text,
        fc.integer(),
        fc.constantFrom(null, true, 1.5, -0.25, 1e21),
        tie('list'),
        tie('object'),
      ),
      list: fc.array(tie('any'), { maxLength: 3 }),
      // keys that are numbers come first in JavaScript, and JSON.parse of V8 mistakes keys with escapes for each other
      object: fc.dictionary(fc.constantFrom('k', 'k ', 'k, ', 'k:', 'null', 'é', '='), tie('any'), { maxKeys: 3 }),
    })).object
    const users = fc.sample(fc.record({ anonymous_id: fc.option(text), properties: value }), { numRuns: 300, seed: 1 })
    await many.sql(
      `insert into app.users (display_name, anonymous_id, properties, created_at)
       select 'u', case when r.u ->> 'anonymous_id' <> '' then (r.u ->> 'anonymous_id') || r.n end, r.u -> 'properties', timestamptz '2026-11-01' + r.n * interval '1 second'
         from jsonb_array_elements($1) with ordinality r (u, n)`,
      [JSON.stringify(users)],
    )
    await many.sql(
      `update app.users set properties = '{"exact": 12345678901234567890.10, "none": null}' where anonymous_id is null`,
    )
    const rows = (await many.admin.get('/users/export?format=ndjson')).text.split('\n').slice(0, -1)
    expect(rows).toHaveLength(300)
    const names = columns
      .split(',')
      .map((name) =>
        name === 'platform_strings'
          ? { name, cell: (row: Readonly<Record<string, unknown>>) => (row[name] as string[]).join('|') }
          : name,
      )
    expect((await many.admin.get('/users/export')).text).toBe(
      csvHead(names) + rows.map((row) => csvRow(names, row)).join(''),
    )
    const user = await many.user()
    await many.sql(
      `insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source)
       select internal.new_id(), $1, '=1,"x"', u.properties, now(), now(), 'client' from app.users u`,
      [user.id],
    )
    const path = `/users/${user.id}/events/export`
    const events = (await many.admin.get(`${path}?format=ndjson`)).text.split('\n').slice(0, -1)
    expect(events).toHaveLength(301)
    const columnsOfEvents = ['id', 'app_user_id', 'event_name', 'properties', 'occurred_at']
    expect((await many.admin.get(path)).text).toBe(
      csvHead(columnsOfEvents) + events.map((row) => csvRow(columnsOfEvents, row)).join(''),
    )
  })

  test('refuses a bound that is no time, and an unknown format', async () => {
    for (const since of ['yesterday', '2026-02-30', ''])
      expectRefusal(await own.admin.get(`/users/export?since=${since}`), 400, 'INVALID_SINCE')
    expectRefusal(await own.admin.get('/users/export?format=xml'), 400, 'INVALID_BODY')
  })

  test.each([499, 500, 501, 1000, 1203])(
    'of %i users has each once, whatever their times',
    { timeout: 20_000 },
    async (count) => {
      const many = await harness.project()
      // many of one microsecond: the batches part between them
      await many.sql(
        `insert into app.users (display_name, created_at) select 'u', timestamptz '2026-11-01' + (n / 400) * interval '1 microsecond' from generate_series(1, $1) n`,
        [count],
      )
      const ids = lines(await many.admin.get('/users/export?format=ndjson')).map(({ id }) => id)
      expect([ids.length, new Set(ids).size]).toEqual([count, count])
      expect(table((await many.admin.get('/users/export')).text)).toHaveLength(count + 1)
    },
  )
})

describe('the export of a user’s events', () => {
  let user: User
  const path = (query = '') => `/users/${user.id}/events/export${query}`
  const ids = async (query: string) =>
    lines(await project.admin.get(path(`?format=ndjson${query}`))).map(({ properties }) => properties.n)

  beforeAll(async () => {
    user = await project.user()
    const events = [3, 1, 2].map((n) => ({
      event_name: n === 2 ? 'ran' : 'swam',
      occurred_at: `2026-11-0${n}T00:00:00Z`,
      properties: { n },
    }))
    await project.onBehalfOf(user.id).post('/client/events', { events })
    const other = await project.user()
    await project.onBehalfOf(other.id).post('/client/events', { event_name: 'ran', properties: { n: 9 } })
  })

  test('has the contract’s columns, oldest first, without our own unless wished for', async () => {
    const answer = await project.admin.get(path())
    expect(answer.headers.get('content-disposition')).toBe(`attachment; filename="user-${user.id}-events.csv"`)
    const [head, first] = table(answer.text)
    expect(head?.join(',')).toBe('id,app_user_id,event_name,properties,occurred_at')
    expect(first).toEqual([expect.any(String), user.id, 'swam', '{"n":1}', '2026-11-01T00:00:00.000Z'])
    expect(await ids('')).toEqual([1, 2, 3])
    expect(lines(await project.admin.get(path('?format=ndjson&include_system=true')))).toHaveLength(5)
    expect(Object.keys(lines(await project.admin.get(path('?format=ndjson')))[0])).toEqual(head)
  })

  test.each([
    ['&since=2026-11-02T00:00:00Z', [2, 3]],
    ['&until=2026-11-02T00:00:00Z', [1]],
    ['&since=2026-11-02&until=2026-11-03', [2]],
    ['&event_name=swam', [1, 3]],
    ['&event_name=swa', []],
  ])('keeps to %s', async (query, wanted) => {
    expect(await ids(query)).toEqual(wanted)
  })

  test('refuses bad bounds by name', async () => {
    expectRefusal(await project.admin.get(path('?since=x')), 400, 'INVALID_SINCE')
    expectRefusal(await project.admin.get(path('?until=x')), 400, 'INVALID_UNTIL')
    expectRefusal(await project.admin.get(path('?format=xml')), 400, 'INVALID_BODY')
  })

  test('goes on over batches, and over partitions', async () => {
    const busy = await project.user()
    await project.sql(
      `insert into app.engagement_events (id, app_user_id, event_name, occurred_at, received_at, source)
       select internal.new_id(), $1, 'e', timestamptz '2026-09-01' + (n / 7) * interval '1 hour', timestamptz '2026-09-01' + n * interval '2 hours', 'client'
         from generate_series(1, 1100) n`,
      [busy.id],
    )
    // 900 of them had been received by then
    harness.setTime(new Date(Date.UTC(2026, 8, 1, 1800)))
    const rows = lines(await project.admin.get(`/users/${busy.id}/events/export?format=ndjson`))
    expect([rows.length, new Set(rows.map(({ id }) => id)).size]).toEqual([900, 900])
    const times = rows.map(({ occurred_at }) => occurred_at)
    expect(times).toEqual([...times].sort())
  })
})

describe('the bundle', () => {
  test('has the contract’s headers, one line a row, and export_complete at the end', async () => {
    const user = await project.user()
    await user.patch('/client/users/me', { display_name: 'Ada', properties: { a: [1.5] } })
    await user.post('/client/users/me/push-token', { token: `secret-${user.id}`, platform: 'ios' })
    await user.post('/client/events', { event_name: 'ran' })
    const answer = await project.admin.get(`/users/${user.id}/export`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/x-ndjson')
    expect(answer.headers.get('content-disposition')).toBe(`attachment; filename="user-${user.id}-export.ndjson"`)
    const all = lines(answer)
    expect(all[0]).toMatchObject({
      section: 'users',
      data: { id: user.id, display_name: 'Ada', properties: { a: [1.5] } },
    })
    expect(all[0].data.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(all.at(-1)).toEqual({
      section: 'export_complete',
      data: { user_id: user.id, rows: all.length - 1, completed_at: expect.any(String) },
    })
    expect(all.filter(({ section }) => section === 'export_complete')).toHaveLength(1)
    const sections = all.map(({ section }) => section)
    for (const section of ['push_tokens', 'user_sessions', 'engagement_events', 'user_event_counters'])
      expect(sections).toContain(section)
    expect(answer.text).not.toContain(`secret-${user.id}`)
  })

  test('has every registered table with every column that is no secret, and no secret', {
    timeout: 180_000,
  }, async () => {
    const own = await harness.project()
    const user = await own.user()
    const places = await fillEveryTable(own, user.id)
    await own.sql(`update app.user_passwords set password_hash = 'secret-hash' where app_user_id = $1`, [user.id])
    await own.sql(`update app.user_sessions set refresh_hash = 'secret-hash' where app_user_id = $1`, [user.id])
    const answer = await own.admin.get(`/users/${user.id}/export`)
    const all = lines(answer)
    for (const { table_name, user_column, export_columns, secret_columns } of places) {
      const section = table_name.split('.')[1]
      const rows = all.filter((line) => line.section === section && line.data[user_column] === user.id)
      if (!export_columns) {
        expect([
          section,
          all.filter(
            (line) =>
              line.section === section &&
              line.data[user_column] === user.id &&
              !places.some((other) => other.table_name === table_name && other.export_columns),
          ).length,
        ]).toEqual([section, 0])
        continue
      }
      expect([section, rows.length > 0]).toEqual([section, true])
      for (const { data } of rows) {
        const names = Object.keys(data)
        const wanted = places
          .filter((other) => other.table_name === table_name && other.export_columns)
          .map((other) => [...(other.export_columns ?? [])].sort().join())
        expect([section, wanted]).toEqual([section, expect.arrayContaining([names.sort().join()])])
      }
      if (places.filter((other) => other.table_name === table_name).length === 1) {
        for (const secret of secret_columns) expect(rows.every(({ data }) => !(secret in data))).toBe(true)
      }
    }
    expect(answer.text).not.toContain('secret-hash')
    expect(all.at(-1)?.data.rows).toBe(all.length - 1)
  })

  test('has nothing of another user', async () => {
    const [mine, theirs] = [await project.user(), await project.user()]
    for (const user of [mine, theirs]) await user.post('/client/events', { event_name: 'ran' })
    expect((await project.admin.get(`/users/${mine.id}/export`)).text).not.toContain(theirs.id)
  })

  test('of many rows has each once, in batches', async () => {
    const user = await project.user()
    await project.sql(
      `insert into app.engagement_events (id, app_user_id, event_name, occurred_at, received_at, source)
       select internal.new_id(), $1, 'e', timestamptz '2026-11-01' + (n / 300) * interval '1 microsecond', now(), 'client' from generate_series(1, 1500) n`,
      [user.id],
    )
    const all = lines(await project.admin.get(`/users/${user.id}/export`))
    const events = all.filter(({ section }) => section === 'engagement_events')
    const [{ n }] = await project.sql('select count(*)::int as n from app.engagement_events where app_user_id = $1', [
      user.id,
    ])
    expect([events.length, new Set(events.map(({ data }) => data.id)).size]).toEqual([n, n])
    expect(all.at(-1).data.rows).toBe(all.length - 1)
  })

  test('reads a developer’s own tables under their names', async () => {
    const own = await harness.project()
    const user = await own.user()
    await own.sql(
      `create table collections.notes (id uuid primary key default gen_random_uuid(), user_id uuid, body text, at timestamptz)`,
    )
    await own.sql(`insert into internal.user_data (table_name, user_column, section, export_columns, on_merge, on_delete, declared_in)
                   values ('collections.notes', 'user_id', 'collections', '{*}', 'move', 'delete', 'collections')`)
    await own.sql(`insert into collections.notes (user_id, body, at) values ($1, 'mine', '2026-11-01')`, [user.id])
    const line = lines(await own.admin.get(`/users/${user.id}/export`)).find(({ section }) => section === 'collections')
    expect(line).toEqual({
      section: 'collections',
      collection: 'notes',
      data: { id: expect.any(String), user_id: user.id, body: 'mine', at: '2026-11-01T00:00:00.000Z' },
    })
    // a table without a foreign key is emptied of its user all the same
    await own.admin.delete(`/users/${user.id}`)
    expect(await own.sql('select from collections.notes')).toEqual([])
  })
})

describe('the own bundle', () => {
  test('is the administrator’s, once in 24 hours', async () => {
    harness.setTime(new Date(Math.ceil(Date.now() / 1000) * 1000))
    const [user, other] = [await project.user(), await project.user()]
    const answer = await user.get('/client/users/me/export')
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-disposition')).toBe(`attachment; filename="user-${user.id}-export.ndjson"`)
    expect(answer.text).toBe((await project.admin.get(`/users/${user.id}/export`)).text)
    const refused = await user.get('/client/users/me/export')
    expectRefusal(refused, 429, 'RATE_LIMITED')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(80_000)
    expect((await other.get('/client/users/me/export')).status).toBe(200)
    harness.advance(86_399)
    const behalf = project.onBehalfOf(user.id)
    expectRefusal(await behalf.get('/client/users/me/export'), 429, 'RATE_LIMITED')
    harness.advance(1)
    expect((await behalf.get('/client/users/me/export')).status).toBe(200)
  })

  test('of many at once is given once', async () => {
    const user = await project.user()
    const answers = await Promise.all(Array.from({ length: 8 }, () => user.get('/client/users/me/export')))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(429)])
  })

  test('that could not begin is not counted', async () => {
    const user = await project.user()
    await user.get('/client/users/me')
    await project.sql(`alter table app.users rename to users_away`)
    const broken = await user.get('/client/users/me/export')
    await project.sql(`alter table app.users_away rename to users`)
    expectRefusal(broken, 500, 'FETCH_FAILED')
    expect((await user.get('/client/users/me/export')).status).toBe(200)
  })

  test('is not counted when only its headers were asked for', async () => {
    const user = await project.user()
    const head = await user.request('HEAD', '/client/users/me/export')
    expect([head.status, head.text, head.headers.get('content-disposition')]).toEqual([
      200,
      '',
      `attachment; filename="user-${user.id}-export.ndjson"`,
    ])
    expect((await user.get('/client/users/me/export')).text).toContain('export_complete')
    expect((await user.request('HEAD', '/client/users/me/export')).status).toBe(429)
  })

  test('of a user who has just gone is 404', async () => {
    const user = await project.user()
    await user.get('/client/users/me')
    await project.sql('delete from app.users where id = $1', [user.id])
    expectRefusal(await user.get('/client/users/me/export'), 404, 'NOT_FOUND')
  })

  test('as a role in SQL is one’s own alone', async () => {
    const [mine, theirs] = [await project.user(), await project.user()]
    const claims = { 'app.user_id': mine.id, 'app.caller': 'user' }
    await expect(project.as('app_user', claims, 'select internal.user_bundle($1, null)', [theirs.id])).rejects.toThrow(
      /for its user/,
    )
    expect(await project.as('app_user', claims, 'select internal.user_bundle($1, null)', [mine.id])).toHaveLength(1)
  })
})

describe('a stream that breaks', () => {
  /** Reads a little of an export by hand and stops, so that the rest waits behind a full connection. */
  const open = (path: string) => {
    const { hostname, port } = new URL(harness.url)
    const socket = connect(Number(port), hostname)
    const { authorization } = project.developer.headers
    socket.write(
      `GET /v1/admin/projects/${project.id}${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n\r\n`,
    )
    return socket
  }

  test('ends the connection and never looks complete', { timeout: 180_000 }, async () => {
    const user = await project.user()
    await project.sql(
      `insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source)
       select internal.new_id(), $1, 'e', jsonb_build_object('x', repeat(md5(n::text), 300)), now() - n * interval '1 second', now(), 'client'
         from generate_series(1, 4000) n`,
      [user.id],
    )
    const socket = open(`/users/${user.id}/export`)
    const read: Buffer[] = []
    const ended = new Promise<string>((resolve) => {
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''))
      socket.on('close', () => resolve('closed'))
    })
    await new Promise<void>((resolve) => {
      socket.once('data', (part) => {
        read.push(part)
        socket.pause()
        resolve()
      })
    })
    // the user goes while the export is under way: what is left of it is not the whole
    await project.sql('delete from app.users where id = $1', [user.id])
    socket.on('data', (part) => read.push(part))
    socket.resume()
    expect(await ended).toMatch(/ECONNRESET|closed/)
    const text = Buffer.concat(read).toString()
    expect(text).toMatch(/^HTTP\/1\.1 200/)
    expect(text).not.toContain('export_complete')
    expect(text.endsWith('0\r\n\r\n')).toBe(false)
  })
})

test('a missing user is an ordinary refusal, before anything streams', async () => {
  for (const path of ['export', 'events/export']) {
    const answer = await project.admin.get(`/users/${randomUUID()}/${path}`)
    expectRefusal(answer, 404, 'NOT_FOUND')
    expect(answer.headers.get('content-type')).toContain('application/json')
  }
})
