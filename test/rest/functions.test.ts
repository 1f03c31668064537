import { createClient } from '@supabase/supabase-js'
import { describe, expect, test } from 'vitest'
import { startCollections } from '#test/support/definitions.ts'

/** What a DBA adds to schema rest: functions to call, computed columns. */
const { harness, project, define } = await startCollections()
await project.admin.patch('', { rest_enabled: true })
const [user, other] = [await project.user(), await project.user()]
const books = await define({
  columns: [
    { name: 'title', type: 'text' },
    { name: 'pages', type: 'integer' },
  ],
})
const chapters = await define({
  columns: [
    { name: 'name', type: 'text' },
    { name: 'book_id', type: 'uuid', references: { collection: books, on_delete: 'cascade' } },
  ],
})
const clientOf = (session: string) => createClient(harness.url, project.clientKey, { accessToken: async () => session })
const client = clientOf(user.sessionToken)
const server = createClient(harness.url, project.serverKey)
const made = await client
  .from(books)
  .insert([
    { title: 'a', pages: 100 },
    { title: 'b', pages: 300 },
  ])
  .select('id, title')
await client.from(chapters).insert({ name: 'one', book_id: made.data?.[0]?.id })
await clientOf(other.sessionToken).from(books).insert({ title: 'c', pages: 500 })

/** As a DBA works: the statement, and that PostgREST reads the schema, which it does some moments later. */
const byHand = async (statements: string, isThere: () => PromiseLike<{ error: unknown }>) => {
  await project.sql(`${statements}; notify pgrst, 'reload schema'`)
  await expect.poll(async () => (await isThere()).error, { timeout: 10_000, interval: 50 }).toBeNull()
}
const longer = (least: number) => client.rpc('longer', { at_least: least }).select('title')

describe('functions', () => {
  test('are called by who they are granted to, under the policies of the caller', async () => {
    await byHand(
      `create function rest.longer(at_least int) returns setof rest.${books} language sql stable
         begin atomic select b.* from rest.${books} b where b.pages >= at_least order by b.title; end;
       grant execute on function rest.longer to app_rest`,
      () => longer(1),
    )
    expect((await longer(50)).data).toEqual([{ title: 'a' }, { title: 'b' }])
    expect((await client.rpc('longer', { at_least: 200 }, { get: true }).select('title')).data).toEqual([
      { title: 'b' },
    ])
    expect((await client.rpc('longer', { at_least: 1 }, { head: true, count: 'exact' })).count).toBe(2)
    const embedded = await client.rpc('longer', { at_least: 1 }).select(`title, ${chapters}(name)`).eq('title', 'a')
    expect(embedded.data).toEqual([{ title: 'a', [chapters]: [{ name: 'one' }] }])
    expect(await server.rpc('longer', { at_least: 1 })).toMatchObject({ status: 403, error: { code: '42501' } })
  })

  test('write, refuse with a code of their own, and are not found by another name', async () => {
    await byHand(
      `create function rest.rename(book uuid, title text) returns int language plpgsql volatile as $$
         declare n int;
         begin
           if rename.title = '' then perform internal.fail(409, 'CONFLICT', 'A book has a title.'); end if;
           update rest.${books} b set title = rename.title where b.id = rename.book;
           get diagnostics n = row_count;
           return n;
         end $$;
       grant execute on function rest.rename to app_rest`,
      () => client.rpc('rename', { book: user.id, title: 'x' }),
    )
    const [first] = made.data as unknown as [{ id: string }]
    expect((await client.rpc('rename', { book: first.id, title: 'a2' })).data).toBe(1)
    expect((await clientOf(other.sessionToken).rpc('rename', { book: first.id, title: 'mine' })).data).toBe(0)
    expect(await client.rpc('rename', { book: first.id, title: '' })).toMatchObject({
      status: 409,
      error: { code: 'CONFLICT', message: 'A book has a title.' },
    })
    const missing = (await client.rpc('renam', { book: first.id })).error
    expect(missing).toMatchObject({ code: 'PGRST202', message: expect.stringMatching(/public\.renam/) })
    expect(JSON.stringify(missing)).not.toMatch(/\brest\b/)
    expect((await client.rpc('rename', { nothing: 1 })).error?.code).toBe('PGRST202')
    await client.rpc('rename', { book: first.id, title: 'a' })
  })

  test('a new one is granted to nobody', async () => {
    await byHand(`create function rest.ungranted() returns int language sql stable as 'select 1'`, async () => {
      const { error } = await client.rpc('ungranted')
      return { error: error?.code === '42501' ? null : error }
    })
    expect(await server.rpc('ungranted')).toMatchObject({ status: 403, error: { code: '42501' } })
  })

  test('answer nothing, and see the trace of the request', async () => {
    await byHand(
      `create function rest.nothing(n int) returns void language sql immutable as '';
       create function rest.nothing_of_many() returns setof void language sql stable as 'select null::void from generate_series(1, 3)';
       create function rest.trace_of() returns json language sql stable as $$
         select current_setting('request.headers')::json $$;
       grant execute on function rest.nothing, rest.nothing_of_many, rest.trace_of to app_rest`,
      () => client.rpc('trace_of'),
    )
    expect(await client.rpc('nothing', { n: 1 })).toMatchObject({ status: 204, error: null, data: null })
    expect(await client.rpc('nothing', { n: 1 }, { get: true })).toMatchObject({ status: 204, error: null })
    expect((await client.rpc('nothing_of_many')).error).toBeNull()
    // no version of Postgres has JSON of void before 18, and none is asked for it
    const asked = (name: string) => {
      const call = () => client.rpc(name, name === 'nothing' ? { n: 1 } : {}, { count: 'exact' })
      return [
        call(),
        call().select('*'),
        call().limit(1).csv(),
        call().single(),
        call().eq(name, 'x'),
        call().order(name),
      ]
    }
    const statuses = async (name: string) => (await Promise.all(asked(name))).map(({ status }) => status)
    expect(await statuses('nothing')).toEqual([204, 204, 204, 204, 400, 400])
    expect(await statuses('nothing_of_many')).toEqual([200, 200, 200, 406, 400, 400])
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const traced = client.rpc('trace_of').setHeader('traceparent', traceparent).setHeader('baggage', 'a=1')
    const { data } = await traced.setHeader('cookie', 'c=1')
    expect(data).toMatchObject({ traceparent, baggage: 'a=1' })
    expect(Object.keys(data)).not.toEqual(expect.arrayContaining([expect.stringMatching(/^(cookie|apikey)$/)]))
  })

  test('of one name, which a call could mean alike, are named as clients know them', async () => {
    await byHand(
      `create function rest.either(a int) returns int language sql immutable as 'select 1';
       create function rest.either(a text) returns int language sql immutable as 'select 2';
       grant execute on function rest.either(int), rest.either(text) to app_rest`,
      async () => {
        const { error } = await client.rpc('either', { a: 1 })
        return { error: error?.code === 'PGRST203' ? null : error }
      },
    )
    const { status, error } = await client.rpc('either', { a: 1 })
    expect({ status, error }).toMatchObject({
      status: 300,
      error: { code: 'PGRST203', message: expect.stringContaining('public.either(a => integer)') },
    })
    expect(JSON.stringify(error)).not.toMatch(/\brest\b/)
  })

  test('those of Postgres and of the program are not there', async () => {
    for (const name of ['pg_advisory_xact_lock', 'pg_sleep', 'rest_begin', 'set_config', 'rest_prepare', 'put_away'])
      expect((await server.rpc(name)).error?.code, name).toBe('PGRST202')
  })
})

describe('computed columns', () => {
  test('are functions of a row: chosen, filtered, ordered by, embedded', async () => {
    await project.sql(
      `create function rest.full_title(book rest.${books}) returns text language sql stable
         begin atomic select book.title || ', ' || book.pages || ' pages'; end;
       grant execute on function rest.full_title to app_rest`,
    )
    const read = await client.from(books).select('title, full_title').order('full_title', { ascending: false })
    expect(read).toMatchObject({
      error: null,
      data: [
        { title: 'b', full_title: 'b, 300 pages' },
        { title: 'a', full_title: 'a, 100 pages' },
      ],
    })
    expect((await client.from(books).select('title').eq('full_title', 'a, 100 pages')).data).toHaveLength(1)
    expect((await client.from(chapters).select(`name, ${books}(full_title)`)).data).toEqual([
      { name: 'one', [books]: { full_title: 'a, 100 pages' } },
    ])
    expect(await server.from(books).select('full_title')).toMatchObject({ status: 403, error: { code: '42501' } })
  })

  test('stay when the collection gets a column, and keep the ones that they read', async () => {
    const path = `/collections/${books}`
    expect((await project.admin.post(`${path}/columns`, { name: 'note', type: 'text' })).status).toBe(201)
    expect((await project.admin.patch(path, { read_policy: 'public' })).status).toBe(200)
    expect((await project.admin.patch(`${path}/columns/pages`, { min: 0 })).status).toBe(200)
    expect((await client.from(books).select('full_title, note').eq('title', 'a')).data).toEqual([
      { full_title: 'a, 100 pages', note: null },
    ])
    for (const change of [{ name: 'length' }, { type: 'bigint' }])
      expect((await project.admin.patch(`${path}/columns/pages`, change)).error).toMatchObject({
        code: 'CONFLICT',
        message: expect.stringMatching('function'),
      })
    expect((await project.admin.delete(`${path}/columns/note?confirm=note`)).error?.code).toBe('CONFLICT')
    // of an older program: all views are made again
    await project.sql('update app.rest_access set generator = 0')
    const place = (await harness.running.services.projectCache.byProject(project.id))?.place as never
    const call = harness.running.services.database.call(place, 'app_worker', { caller: 'worker' }, 'rest_prepare', {})
    expect(JSON.parse((await call).body.toString()).data.views).toBeGreaterThan(0)
    expect((await client.from(books).select('full_title').eq('title', 'a')).data).toHaveLength(1)
    await project.sql('drop function rest.full_title, rest.longer')
    expect((await project.admin.patch(`${path}/columns/pages`, { name: 'length' })).status).toBe(200)
    expect((await client.from(books).select('length').eq('title', 'a')).data).toEqual([{ length: 100 }])
  })
})
