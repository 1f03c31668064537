import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { readCursor, writeCursor } from '#server/http/cursors.ts'
import { type Project, startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
let project: Project
beforeAll(async () => {
  project = await harness.project()
})

const one = async <T>(text: string, values: unknown[] = []): Promise<T> =>
  Object.values((await project.sql(text, values))[0] ?? {})[0] as T
const base64url = (text: string) => Buffer.from(text).toString('base64url')
const read = (cursor: string, order: string, kinds: string) =>
  one<string[]>('select internal.cursor_read($1, $2, $3)', [cursor, order, kinds])
const id = '0198f000-0000-7000-8000-00000000abcd'

describe('a cursor', () => {
  test('holds its version, the order and the keys, and is read under that order alone', async () => {
    const at = '2026-01-02T03:04:05.678901Z'
    const cursor = await one<string>(`select internal.cursor_write('created_at,id', internal.cursor_time($1), $2)`, [
      at,
      id,
    ])
    expect(JSON.parse(Buffer.from(cursor, 'base64url').toString())).toEqual([
      1,
      'created_at,id',
      '1767323045678901',
      id,
    ])
    const keys = await read(cursor, 'created_at,id', '{timestamptz,uuid}')
    expect(keys).toEqual(['1767323045678901', id])
    expect(await one<Date>('select internal.cursor_moment($1) = $2', [keys[0], at])).toBe(true)
    await expect(read(cursor, 'occurred_at,id', '{timestamptz,uuid}')).rejects.toThrow('must be a next_cursor')
    await expect(read(cursor, 'created_at,id', '{uuid,uuid}')).rejects.toThrow('must be a next_cursor')
  })

  test('is the same in SQL and in TypeScript', async () => {
    const written = await one<string>(`select internal.cursor_write('a,b', 'x', 'ü')`)
    expect(readCursor('a,b', written)).toEqual(['x', 'ü'])
    expect(readCursor('a', written)).toBeNull()
    expect(await read(writeCursor('id', [id]), 'id', '{uuid}')).toEqual([id])
  })

  const forged: [string, string][] = [
    ['nothing', ''],
    ['no base64url', '😀'],
    ['no text', Buffer.from([255, 254, 0]).toString('base64url')],
    ['no JSON', base64url('[1,"id"')],
    ['another version', base64url(JSON.stringify([2, 'id', id]))],
    ['no key', base64url('[1,"id"]')],
    ['a key too many', base64url(JSON.stringify([1, 'id', id, id]))],
    ['a key that is null', base64url('[1,"id",null]')],
    ['a key that is an object', base64url('[1,"id",{}]')],
    ['a key with NUL', base64url('[1,"id","\\u0000"]')],
    ['a key that is no uuid', base64url(`[1,"id","' or true --"]`)],
    ['an object', base64url('{"0": 1, "1": "id"}')],
    ['a number', base64url('5')],
    ['depth', base64url('['.repeat(140))],
    ['more than 200 characters', base64url(JSON.stringify([1, 'id', id]) + ' '.repeat(150))],
  ]
  test.each(forged)('of %s is refused', async (_, cursor) => {
    await expect(read(cursor, 'id', '{uuid}')).rejects.toThrow('cursor: must be a next_cursor of this list')
  })

  test.each(['1e3', '1'.repeat(19), `-${'1'.repeat(18)}`, 'x', ''])('whose time is %s is refused', async (key) => {
    const cursor = base64url(JSON.stringify([1, 'at,id', key, id]))
    await expect(read(cursor, 'at,id', '{timestamptz,uuid}')).rejects.toThrow('must be a next_cursor')
  })

  test.each([`-${'9'.repeat(17)}`, '9'.repeat(18)])('whose time is %s is one that Postgres has', async (key) => {
    expect(await one<boolean>('select internal.cursor_moment($1) is not null', [key])).toBe(true)
  })
})

describe('the JSON of a row', () => {
  const declare = (keys: string) =>
    project.sql(`select internal.row_declare('rowed_json', null::internal.rowed, $1)`, [keys])
  beforeAll(() =>
    project.sql(`create table internal.rowed (id int, "a ""name" text, tags text[], at timestamptz, hidden text)`),
  )

  test('has the columns that are declared, in that order, and no other', async () => {
    await declare('{at,number:id,"a \\"name",tags}')
    const made = `internal.rowed_json((1, 'x', '{a,b}', '2026-01-02T03:04:05Z', 'hidden')::internal.rowed)`
    expect(await one<string>(`select ${made}::text`)).toBe(
      '{"at" : "2026-01-02T03:04:05.000Z", "number" : 1, "a \\"name" : "x", "tags" : ["a","b"]}',
    )
  })

  test.each(['{nothing}', '{id,"id), (r).hidden"}'])('cannot be declared with %s', async (keys) => {
    await expect(declare(keys)).rejects.toThrow('has not all of the columns')
  })
})

describe('a list', () => {
  type Page = { data: { id: string }[]; total: number; pagination: { next_cursor: string | null } }
  beforeAll(async () => {
    await project.sql(`
      create table internal.listed (id uuid primary key, kind text, "a ""name" int, at timestamptz, is_hidden boolean default false);
      insert into internal.listed
      select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, case when n % 2 = 0 then 'even' else 'odd' end, n,
             timestamptz '2026-01-01Z' + (n / 4) * interval '1 microsecond', n % 5 = 0
        from generate_series(1, 40) n;
      create function internal.listed_json(r internal.listed) returns json language sql stable as
        $$ select json_build_object('id', (r).id) $$;
      create function internal.is_listed(r internal.listed) returns boolean language sql stable as $$ select not (r).is_hidden $$`)
  })
  const declare = (rest: string, order = `'{at,id}'`) =>
    project.sql(`select internal.list_declare('listed_page', null::internal.listed, 'listed_json', ${order}${rest})`)
  const drop = () =>
    project.sql(
      `do $$ begin execute (select string_agg('drop function ' || oid::regprocedure, ';') from pg_proc where proname = 'listed_page'); end $$`,
    )
  const list = (args: string, values: unknown[] = []) =>
    one<Page>(`select (internal.listed_page(${args})).body`, values)
  const ids = async (condition: string, order = 'at desc, id desc') =>
    (await project.sql(`select id from internal.listed where ${condition} order by ${order}`)).map((row) => row.id)

  test.each([
    ['', '', 'true', undefined],
    [`, required => '{kind}'`, `'even', `, `kind = 'even'`, undefined],
    [`, required => '{kind}'`, 'null, ', 'false', undefined],
    [`, filters => '{kind}'`, 'null, ', 'true', undefined],
    [`, filters => '{kind}'`, `'even', `, `kind = 'even'`, undefined],
    [`, filters => '{kind}'`, `''' or true --', `, 'false', undefined],
    [`, filters => '{kind,is_hidden}'`, `'even', false, `, `kind = 'even' and not is_hidden`, undefined],
    [`, filters => '{kind,is_hidden}'`, 'null, false, ', 'not is_hidden', undefined],
    [`, required => '{kind}', condition => 'is_listed'`, `'odd', `, `kind = 'odd' and not is_hidden`, undefined],
    [`, direction => 'asc'`, '', 'true', 'at, id'],
    [`, required => array['a "name']`, '9, ', `"a ""name" = 9`, undefined],
  ])(
    'by offset that is declared with %s, asked for %s, has its rows and the number of all',
    async (rest, args, condition, order) => {
      await declare(rest)
      const all = await ids(condition, order)
      const page = await list(`${args}2, 7`)
      expect([page.data.map((row) => row.id), page.total]).toEqual([all.slice(2, 9), all.length])
      await drop()
    },
  )

  test.each([
    [`, required => '{nothing}'`, undefined, 'has not all of the columns'],
    [`, required => array['kind" = $$x$$ or "a']`, undefined, 'has not all of the columns'],
    ['', `'{id desc}'`, 'has not all of the columns'],
    [`, direction => 'desc; drop'`, undefined, 'descending order'],
    [`, by_cursor => true, direction => 'asc'`, undefined, 'descending order'],
    [`, by_cursor => true, is_counted => true`, undefined, 'a counted list is by offset'],
  ])('cannot be declared with %s and the order %s', async (rest, order, message) => {
    await expect(declare(rest, order)).rejects.toThrow(message)
  })

  test.each([
    ['desc', ''],
    ['asc', ''],
    ['desc', `, required => '{kind}'`],
    ['desc', `, filters => '{kind}'`],
  ])('by offset, %s%s, has each row at its place, however far from the beginning', async (direction, rest) => {
    await project.sql(`
      create table internal.far (id uuid primary key, kind text not null, at timestamptz not null);
      insert into internal.far select gen_random_uuid(), case when n % 10 = 0 then 'rare' else 'usual' end, timestamptz '2026-01-01Z' + (n / 7) * interval '1 second'
        from generate_series(1, 5003) n;
      create function internal.far_json(r internal.far) returns json language sql stable as $$ select to_json((r).id) $$;
      select internal.list_declare('far_page', null::internal.far, 'far_json', '{at,id}', direction => '${direction}'${rest})`)
    const condition = rest ? `kind = 'usual'` : 'true'
    const all = (
      await project.sql(`select id from internal.far where ${condition} order by at ${direction}, id ${direction}`)
    ).map(({ id }) => id)
    for (const limit of [1, 50]) {
      const middle = Math.floor(all.length / 2)
      const offsets = [
        0,
        999,
        1000,
        1001,
        middle - 51,
        middle - 1,
        middle,
        middle + 1,
        all.length - 51,
        all.length - 50,
        all.length - 3,
      ]
      for (const offset of [...offsets, all.length - 1, all.length, all.length + 1, all.length + 5000]) {
        const page = await one<{ data: string[]; total: number }>(
          `select (internal.far_page(${rest ? `'usual', ` : ''}${offset}, ${limit})).body`,
        )
        expect([offset, page.data, page.total]).toEqual([offset, all.slice(offset, offset + limit), all.length])
      }
    }
    await project.sql(`
      do $$ begin execute (select string_agg('drop function ' || oid::regprocedure, ';') from pg_proc where proname = 'far_page'); end $$;
      drop function internal.far_json; drop table internal.far`)
  })

  test('reads names of functions as names alone', async () => {
    await declare(`, condition => 'is_listed(t) or true --'`)
    await expect(list('0, 1')).rejects.toThrow('does not exist')
    await drop()
  })

  test.each([
    [`'{at,id}'`, '', '', 'true', 'at desc, id desc'],
    [`'{id}'`, `, filters => '{kind}'`, `'odd', `, `kind = 'odd'`, 'id desc'],
    [
      `'{at,id}'`,
      `, condition => 'is_listed', has_since => true`,
      `'2026-01-01T00:00:00.000004Z', `,
      `not is_hidden and at >= '2026-01-01T00:00:00.000004Z'`,
      'at desc, id desc',
    ],
  ])('by cursor in the order %s%s, asked for %s, has each row once', async (orderBy, rest, args, condition, order) => {
    await declare(`${rest}, by_cursor => true`, orderBy)
    for (const limit of [1, 7, 40, 41]) {
      const seen: string[] = []
      let cursor: string | null = null
      do {
        const page: Page = await list(`${args}$1, ${limit}`, [cursor])
        expect(page.data.length).toBeLessThanOrEqual(limit)
        seen.push(...page.data.map((row) => row.id))
        cursor = page.pagination.next_cursor
      } while (cursor)
      expect(seen).toEqual(await ids(condition, order))
    }
    await drop()
  })

  test('over HTTP refuses a cursor of another list', async () => {
    const forged = base64url(JSON.stringify([1, 'created_at,id', '1', randomUUID()]))
    for (const path of ['/inventory/ledger', '/currencies/transactions', '/xp/transactions']) {
      const { status, error } = await project.admin.get(`${path}?cursor=${forged}`)
      expect([status, error?.code], path).toEqual([400, 'INVALID_INPUT'])
    }
  })
})
