import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { csvHead, csvRow } from '#server/http/csv.ts'
import { type Answer, type Project, startHarness, type User } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

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

  test('is CSV by default, oldest first, with its columns', async () => {
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
      '\uff1d',
      '\uff0b',
      '\uff0d',
      '\uff20',
      "'",
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

  test('has its columns, oldest first, and further ones only when asked for', async () => {
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

test('a missing user is an ordinary refusal, before anything streams', async () => {
  for (const path of ['export', 'events/export']) {
    const answer = await project.admin.get(`/users/${randomUUID()}/${path}`)
    expectRefusal(answer, 404, 'NOT_FOUND')
    expect(answer.headers.get('content-type')).toContain('application/json')
  }
})
