import { createClient } from '@supabase/supabase-js'
import { describe, expect, test } from 'vitest'
import { startCollections } from '#test/support/definitions.ts'

/** The bounds of values and rows hold in the table, whoever writes; and no answer ends PostgREST, whatever is stored. */
const { harness, project, define, tried } = await startCollections()
await project.admin.patch('', { rest_enabled: true })
const user = await project.user()
const name = await define({
  read_policy: 'public',
  write_policy: 'authenticated',
  columns: [
    { name: 'title', type: 'text' },
    { name: 'body', type: 'jsonb' },
    { name: 'n', type: 'numeric' },
    { name: 'list', type: 'numeric[]' },
  ],
})
const client = createClient(harness.url, project.clientKey, { accessToken: async () => user.sessionToken })

const ask = async (method: string, path: string, body: string | undefined, type = 'application/json') => {
  const response = await fetch(`${harness.url}/rest/v1/${path}`, {
    method,
    headers: { apikey: project.clientKey, authorization: `Bearer ${user.sessionToken}`, 'content-type': type },
    ...(body === undefined ? {} : { body }),
  })
  const text = await response.text()
  return { status: response.status, length: text.length, body: text === '' ? null : JSON.parse(text) }
}
const many = (count: number, one: string) => Array(count).fill(one).join(',')
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)

describe('what a body brings through the REST access', () => {
  test.each([
    ['a number of jsonb', `{"body":[${many(120, '1e131071')}]}`, 'INVALID_JSON'],
    ['a numeric', '{"n":1e131071}', 'INVALID_JSON'],
    ['a numeric of many places', '{"n":1e-1001}', 'INVALID_JSON'],
    ['a list of numerics', '{"list":[1e1000]}', 'INVALID_JSON'],
    ['nesting', `{"body":${nested(3000)}}`, 'INVALID_JSON'],
    ['numbers that are long together', `{"body":[${many(2000, '1e999')}]}`, 'INVALID_JSON'],
    ['text that is not JSON', '{"body":', 'PGRST102'],
    ['a numeric as a string', '{"n":"1e131071"}', 'INVALID_BODY'],
    ['a numeric of many places as a string', '{"n":"0e-1001"}', 'INVALID_BODY'],
    ['a list as a text of Postgres', `{"list":"{${many(100, '1e131071')}}"}`, 'INVALID_BODY'],
    ['zeros of many places', `{"list":"{${many(100, '0e-16383')}}"}`, 'INVALID_BODY'],
    ['a list that is long together', `{"list":"{${many(20_000, '1e999')}}"}`, 'INVALID_BODY'],
  ])('%s', async (_what, body, code) => {
    expect(await ask('POST', name, body)).toMatchObject({ status: 400, body: { code, hint: null } })
    expect(await ask('POST', `${name}?on_conflict=id`, body)).toMatchObject({ status: 400, body: { code } })
    expect(await ask('POST', `${name}?columns=body,n,list`, body)).toMatchObject({ status: 400 })
    const row = await client.from(name).insert({ title: 'x' }).select('id').single()
    expect(await ask('PATCH', `${name}?id=eq.${row.data?.id}`, body)).toMatchObject({ status: 400, body: { code } })
    await client.from(name).delete().eq('id', row.data?.id)
    expect((await client.from(name).select('id')).data).toEqual([])
  })

  test('as CSV, and as a form', async () => {
    for (const [type, body] of [
      ['text/csv', 'title,n\nx,1e131071'],
      ['text/csv', `title,list\nx,"{${many(100, '1e131071')}}"`],
      ['application/x-www-form-urlencoded', 'title=x&n=1e131071'],
    ] as const)
      expect(await ask('POST', name, body, type)).toMatchObject({ status: 400, body: { code: 'INVALID_BODY' } })
    expect(await ask('POST', name, 'title,n\nx,1e999', 'text/csv')).toMatchObject({ status: 201 })
    await client.from(name).delete().eq('title', 'x')
  })

  test('what is allowed stays allowed', async () => {
    const body = `{"title":"ok","n":1e999,"list":[1e999,-1.5e-999],"body":{"deep":${nested(198)},"text":"${'1'.repeat(2000)}"}}`
    expect(await ask('POST', name, body)).toMatchObject({ status: 201 })
    await client.from(name).delete().eq('title', 'ok')
  })
})

describe('whoever writes, and whatever becomes of a column', () => {
  const write = (values: string, into = name) =>
    tried('app_user', user.id, `insert into collections.${into} (body) values (${values})`)

  test('SQL, triggers of a DBA, a column that is added, renamed, changed and dropped', async () => {
    expect(await write(`'[1e1000]'`)).toBe('INVALID_BODY')
    expect(await write(`'${nested(201)}'`)).toBe('INVALID_BODY')
    expect(await write(`'${nested(200)}'`)).toEqual([])
    const late = await define({ columns: [{ name: 'a', type: 'text' }] })
    await project.admin.post(`/collections/${late}/columns`, { name: 'n', type: 'integer' })
    await project.admin.post(`/collections/${late}/columns`, { name: 'body', type: 'jsonb' })
    await project.admin.patch(`/collections/${late}/columns/n`, { type: 'numeric' })
    expect(await write(`'[1e1000]'`, late)).toBe('INVALID_BODY')
    const number = (column: string) =>
      tried('app_user', user.id, `insert into collections.${late} (${column}) values (1e1000)`)
    expect(await number('n')).toBe('INVALID_BODY')
    expect((await project.admin.patch(`/collections/${late}/columns/n`, { name: 'm' })).status).toBe(200)
    expect(await number('m')).toBe('INVALID_BODY')
    expect((await project.admin.delete(`/collections/${late}/columns/body?confirm=body`)).status).toBe(200)
    expect(await number('m')).toBe('INVALID_BODY')
    expect((await project.admin.patch(`/collections/${late}/columns/m`, { type: 'text' })).status).toBe(200)
    expect(await number('m')).toEqual([])
    await project.sql(`
      create schema dba;
      create function dba.longer() returns trigger language plpgsql as $$ begin new.n := 1e1000; return new; end $$;
      create trigger zz_longer before insert on collections.${name} for each row execute function dba.longer()`)
    expect((await user.post(`/client/collections/${name}`, { title: 'x' })).error).toMatchObject({
      code: 'INVALID_BODY',
      details: { column: 'n' },
    })
    await project.sql(`drop trigger zz_longer on collections.${name}; drop schema dba cascade`)
  })
})

test('an answer names a column ten times at most, in whatever form', async () => {
  await ask('POST', name, JSON.stringify({ title: 'y'.repeat(900_000), body: { x: { y: 1 }, 'a-b': 2 } }))
  const times = (count: number, one: (n: number) => string) => Array.from({ length: count }, (_, n) => one(n)).join(',')
  for (const form of [
    (n: number) => `a${n}:title`,
    (n: number) => `a${n}:title::text`,
    (n: number) => `"a:${n}":"title"`,
    (n: number) => `"${'('.repeat(n)}":title`,
    (n: number) => `a${n}:body->x`,
    (n: number) => `a${n}:body->${'0'.repeat(n + 1)}`,
    () => '*',
  ]) {
    const many = await ask('GET', `${name}?select=${encodeURIComponent(times(30, form))}&limit=1`, undefined)
    expect(many).toMatchObject({
      status: 400,
      body: { code: 'RESPONSE_TOO_LARGE', message: expect.stringContaining('more than 10 times') },
    })
  }
  const filter = `title=like.yy*&select=${times(11, (n) => `a${n}:title`)}`
  expect(await ask('PATCH', `${name}?${filter}`, '{"n":1}')).toMatchObject({ status: 400 })
  const keys = times(40, (n) => `body->a-${n}`)
  expect(await ask('GET', `${name}?title=like.yy*&select=id,x:body->x->y,${keys}`, undefined)).toMatchObject({
    status: 200,
    body: [{ x: 1 }],
  })
  await client.from(name).delete().like('title', 'yy%')
})

test('an answer is put together from its parts, of letters of any length', async () => {
  const titles = Array.from({ length: 300 }, (_, n) => `${n} ä😀`.repeat(n % 50))
  await client.from(name).insert(titles.map((title, n) => ({ title, n })))
  for (const count of [0, 1, 2, 40, 300]) {
    const { data } = await client.from(name).select('title').order('n').limit(count)
    expect(data).toEqual(titles.slice(0, count).map((title) => ({ title })))
    const csv = await client.from(name).select('title').order('n').limit(count).csv()
    // the head, and each title in quotes
    const lines = csv.data?.split('\n').slice(1) ?? []
    expect(lines).toEqual(count === 0 ? [''] : titles.slice(0, count).map((title) => `"${title}"`))
  }
  await client.from(name).delete().not('n', 'is', null)
})

describe('rows that are there already', () => {
  test('close no collection: an answer is bounded, and they can be deleted', async () => {
    await project.sql(
      `drop trigger collection_size on collections.${name}; drop trigger collection_size_changed on collections.${name}`,
    )
    await project.sql(
      `insert into collections.${name} (user_id, title, body)
       select $1, 'long', (select jsonb_agg(1e131071::numeric) from generate_series(1, 120)) from generate_series(1, 20)`,
      [user.id],
    )
    await project.sql(`update app.collections set generator = 4 where name = $1`, [name])
    await project.sql('select internal.collections_regenerate(internal.collection_generator())')
    expect(await write1e1000()).toBe('INVALID_BODY')
    await client.from(name).insert({ title: 'short' })
    const process = harness.running.services.rest.running().get(project.id)
    for (const answer of [
      await ask('GET', name, undefined),
      await ask('GET', `${name}?title=eq.long&limit=1`, undefined),
    ])
      expect(answer).toMatchObject({ status: 400, body: { code: 'RESPONSE_TOO_LARGE' } })
    const csv = await fetch(`${harness.url}/rest/v1/${name}`, {
      headers: { apikey: project.clientKey, authorization: `Bearer ${user.sessionToken}`, accept: 'text/csv' },
    })
    // three texts of 15 MB take their time
    expect(((await csv.json()) as { code: string }).code).toMatch(/RESPONSE_TOO_LARGE|57014/)
    expect((await client.from(name).select('title').eq('title', 'short')).data).toEqual([{ title: 'short' }])
    expect((await client.from(name).select('title')).data).toHaveLength(22)
    const changed = await client.from(name).update({ title: 'lo' }).eq('title', 'long').limit(1).order('id')
    expect(changed.error).toBeNull()
    expect((await client.from(name).delete().in('title', ['long', 'lo'])).error).toBeNull()
    expect((await client.from(name).select('title').not('title', 'is', null)).data).toEqual([{ title: 'short' }])
    expect(harness.running.services.rest.running().get(project.id)).toBe(process)
  })
  const write1e1000 = () => tried('app_user', user.id, `insert into collections.${name} (body) values ('[1e1000]')`)
})
