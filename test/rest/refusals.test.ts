import { request } from 'node:http'
import { createClient } from '@supabase/supabase-js'
import { describe, expect, test } from 'vitest'
import { startCollections } from '#test/support/definitions.ts'
import { startSecond } from '#test/support/second.ts'

/** What the REST access refuses before PostgREST, or says in other words than PostgREST does. */
const { harness, project, define } = await startCollections()
await project.admin.patch('', { rest_enabled: true })
const user = await project.user()
const name = await define({
  columns: [
    { name: 'title', type: 'text', unique: true },
    { name: 'n', type: 'integer' },
  ],
})
const client = createClient(harness.url, project.clientKey, { accessToken: async () => user.sessionToken })
const server = createClient(harness.url, project.serverKey)
const credentials = { apikey: project.clientKey, authorization: `Bearer ${user.sessionToken}` }

/** Sends bytes as they are: fetch would refuse some of them. */
const send = (method: string, path: string, headers: Record<string, string> = {}, body: string | Buffer = '') =>
  new Promise<{ status: number; body: any }>((resolve, reject) => {
    const { hostname, port } = new URL(harness.url)
    const sent = request(
      { hostname, port, method, path: `/rest/v1/${path}`, headers: { ...credentials, ...headers } },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString()
          resolve({ status: response.statusCode ?? 0, body: text === '' ? null : JSON.parse(text) })
        })
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })

describe('hostile input is the fault of its sender', () => {
  test.each([
    ['a path with U+0000', 'GET', `${name}%00`, {}, 400, 'INVALID_INPUT'],
    ['a query with U+0000', 'GET', `${name}?title=eq.%00`, {}, 400, 'INVALID_INPUT'],
    ['a query that is not UTF-8', 'GET', `${name}?title=eq.%ff`, {}, 400, 'INVALID_INPUT'],
    ['Prefer', 'GET', name, { prefer: '\xff\xfe' }, 400, 'INVALID_INPUT'],
    ['Accept-Profile', 'GET', name, { 'accept-profile': '\xff' }, 400, 'INVALID_INPUT'],
    ['Content-Type', 'POST', name, { 'content-type': '\xff' }, 415, 'UNSUPPORTED_MEDIA_TYPE'],
    ['Accept', 'GET', name, { accept: '\xff' }, 400, 'INVALID_INPUT'],
    ['a media type that is not there', 'GET', name, { accept: 'application/geo+json' }, 406, 'PGRST107'],
    ['another one', 'GET', name, { accept: 'application/vnd.pgrst.plan' }, 415, 'PGRST107'],
  ] as const)('%s', async (_what, method, path, headers, status, code) => {
    expect(await send(method, path, headers, method === 'POST' ? '{}' : '')).toMatchObject({
      status,
      body: { code, hint: null },
    })
  })

  test('CSV with a quote that is not closed', async () => {
    const csv = { 'content-type': 'text/csv; charset=utf-8' }
    for (const body of ['title\n"x', 'title\n"x\ny', 'title\n"x""'])
      expect(await send('POST', name, csv, body), body).toMatchObject({ status: 400, body: { code: 'PGRST102' } })
    expect(await send('POST', name, csv, 'title,n\n"x ""y""",1')).toMatchObject({ status: 201, body: null })
    expect((await client.from(name).select('title').eq('title', 'x "y"')).data).toHaveLength(1)
  })

  test('a form, or CSV, that is no text', async () => {
    const form = 'application/x-www-form-urlencoded'
    for (const [type, body] of [
      [form, 'title=%A0'],
      [form, '{"title":"%A0"}'],
      [form, 'title=%00'],
      [form, Buffer.from('title=\xa0', 'latin1')],
      ['text/csv', Buffer.from('title\n\xff', 'latin1')],
      ['text/csv', 'title\n\0'],
    ] as const)
      expect(await send('POST', name, { 'content-type': type }, body), String(body)).toMatchObject({
        status: 400,
        body: { code: 'INVALID_INPUT' },
      })
    expect(await send('POST', name, { 'content-type': form }, 'title=%C3%A4+50%')).toMatchObject({ status: 201 })
    expect(await send('POST', name, { 'content-type': 'text/csv' }, 'title\n%A0')).toMatchObject({ status: 201 })
    const { data } = await client.from(name).select('title').in('title', ['ä 50%', '%A0'])
    expect(data).toHaveLength(2)
  })

  test('a value that is too long for the index of its column', async () => {
    // letters that no compression shortens
    const title = Array.from({ length: 2000 }, (_, n) => ((n * 7919 * 104_729) % 2 ** 31).toString(36)).join('')
    expect(await client.from(name).insert({ title })).toMatchObject({ status: 413, error: { code: '54000' } })
  })

  test('nothing random is answered with an error of the server', async () => {
    const random = sequence(17)
    const pick = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)] as T
    const bytes = () => Array.from({ length: 1 + Math.floor(random() * 6) }, () => Math.floor(random() * 256))
    const word = () =>
      pick(['', 'title', 'id', 'eq.', '(', ')', ',', '%', '%%', '*', 'not.', 'and', '"', '::', '->>', 'null'])
    const encoded = () =>
      bytes()
        .map((byte) => `%${byte.toString(16).padStart(2, '0')}`)
        .join('')
    const headers = () => {
      const header = pick([
        'prefer',
        'accept',
        'content-type',
        'range',
        'range-unit',
        'accept-profile',
        'content-profile',
      ])
      const value = pick([
        String.fromCharCode(...bytes().map((byte) => Math.max(32, byte))),
        'count=exact',
        'text/csv',
        '0-1',
        'public',
        ';',
        ',',
      ])
      return { [header]: value }
    }
    for (let round = 0; round < 150; round += 1) {
      const method = pick(['GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'HEAD'])
      const query = Array.from({ length: 3 }, () => pick([word, encoded])()).join('')
      const path = `${pick([name, word(), encoded()])}?${pick(['select=', 'title=', 'order=', 'or=', 'limit=', ''])}${query}`
      const sent = { 'content-type': 'application/json', ...headers() }
      const answer = await send(
        method,
        path.replaceAll(' ', '+'),
        sent,
        pick(['', '{}', '[]', '{"n":"x"}', '[1', 'title,n\nx']),
      )
      expect(answer.status, JSON.stringify([method, path, sent, answer.body])).toBeLessThan(500)
    }
  })
  const sequence = (seed: number) => {
    let state = seed
    return () => {
      state = (state * 48_271) % 2_147_483_647
      return state / 2_147_483_647
    }
  }
})

describe('an update or a delete without a filter', () => {
  test.each(['', '?', '?select=id', '?id', '?n&select=*', '?order=id', '?columns=n', '?select=id;order=id'])(
    'is refused, whatever the key: %s',
    async (query) => {
      for (const headers of [{}, { apikey: project.serverKey, authorization: `Bearer ${project.serverKey}` }]) {
        const sent = { 'content-type': 'application/json', ...headers }
        expect(await send('PATCH', `${name}${query}`, sent, '{"n":1}')).toMatchObject({
          status: 400,
          body: { code: '21000', message: 'UPDATE requires a WHERE clause', details: null, hint: null },
        })
        expect(await send('DELETE', `${name}${query}`, sent)).toMatchObject({
          status: 400,
          body: { code: '21000', message: 'DELETE requires a WHERE clause' },
        })
      }
    },
  )
  test('with one it is done', async () => {
    // what the requests above made
    expect((await server.from(name).delete().not('id', 'is', null)).error).toBeNull()
    const made = await client.from(name).insert([
      { title: 'a', n: 1 },
      { title: 'b', n: 2 },
    ])
    expect(made.error).toBeNull()
    const changed = await client.from(name).update({ n: 3 }).or('title.eq.a,title.eq.b').select('title, n')
    expect(changed).toMatchObject({ error: null, data: [{}, {}] })
    expect((await client.from(name).update({ n: 4 }).order('title').limit(1).select('title')).data).toEqual([
      { title: 'a' },
    ])
    expect((await client.from(name).delete().not('id', 'is', null).select('n')).data).toHaveLength(2)
  })
})

test('a rollback rolls back', async () => {
  const made = await client.from(name).insert({ title: 'dry' }).select('title').rollback()
  expect(made.data).toEqual([{ title: 'dry' }])
  expect((await client.from(name).select('title').eq('title', 'dry')).data).toEqual([])
  expect((await client.from(name).insert({ title: 'wet' }).select('title')).data).toEqual([{ title: 'wet' }])
  await client.from(name).delete().eq('title', 'wet').rollback()
  await client.from(name).update({ n: 9 }).eq('title', 'wet').rollback()
  expect((await client.from(name).select('title, n').eq('title', 'wet')).data).toEqual([{ title: 'wet', n: null }])
})

test('messages name the schema that clients know', async () => {
  const told = async (run: PromiseLike<{ error: unknown }>) => JSON.stringify((await run).error)
  for (const error of [
    await told(client.from('nothing').select()),
    await told(client.rpc('anything', { x: 1 })),
    await told(client.from(name).select('id, other(id)')),
    await told(client.schema('app').from(name).select()),
    await told(client.from('nothing').insert({ a: 1 })),
  ]) {
    expect(error).toMatch(/public/)
    expect(error).not.toMatch(/\brest\b/)
  }
  for (const asked of [client.from('nothing').insert({ a: 1 }), client.from('nothing').select()])
    expect(await asked).toMatchObject({
      status: 404,
      error: {
        code: 'PGRST205',
        message: "Could not find the table 'public.nothing' in the schema cache",
        details: null,
        hint: null,
      },
    })
})

test('what is not served is refused by name, with what is in its place', async () => {
  const few = (client.from(name).update({ n: 1 }).eq('title', 'q') as any).maxAffected(1)
  expect(await few).toMatchObject({
    status: 400,
    error: { code: 'PGRST122', hint: expect.stringMatching('maxAffected') },
  })
})

test('a collection, a column and a reference can be used as soon as they are made', async () => {
  for (let round = 0; round < 3; round += 1) {
    const made = await define({ columns: [{ name: 'a', type: 'integer' }] })
    expect((await server.from(made).insert({ a: 1, user_id: user.id })).error).toBeNull()
    await project.admin.post(`/collections/${made}/columns`, { name: 'b', type: 'text' })
    expect((await client.from(made).insert({ b: 'x' })).error).toBeNull()
    await project.admin.post(`/collections/${made}/columns`, {
      name: 'of',
      type: 'uuid',
      references: { collection: name, on_delete: 'set_null' },
    })
    expect((await client.from(made).select(`a, ${name}(title)`)).error).toBeNull()
  }
})

test('what another server process has made is written to, embedded and read at the first request', async () => {
  const elsewhere = (await startSecond(harness)).as(project.developer.headers)
  for (let round = 0; round < 3; round += 1) {
    const made = `elsewhere_${round}`
    const columns = [
      { name: 'a', type: 'integer' },
      { name: 'of', type: 'uuid', references: { collection: name, on_delete: 'set_null' } },
    ]
    expect((await elsewhere.post(`/admin/projects/${project.id}/collections`, { name: made, columns })).status).toBe(
      201,
    )
    expect((await client.from(made).insert({ a: 1 }).select(`a, ${name}(title)`)).error).toBeNull()
    expect((await client.from(made).select('a')).data).toEqual([{ a: 1 }])
  }
})

test('a read that takes too long is refused, and what the state of the server ends may be sent again', async () => {
  await project.sql(`
    create function rest.ended(state text) returns int language plpgsql volatile as $$
      begin raise exception 'ended' using errcode = ended.state; end $$;
    create view rest.late as select rest.ended('57014') as n;
    grant execute on function rest.ended to app_rest, app_server;
    grant select on rest.late to app_rest, app_server;
    create function collections.ends() returns trigger language plpgsql as $$
      begin raise exception 'ended' using errcode = new.title; end $$;
    create trigger ends before insert on collections.${name} for each row when (new.title ~ '^[0-9A-Z]{5}$') execute function collections.ends()`)
  expect(await send('GET', 'late')).toMatchObject({ status: 400, body: { code: '57014', message: 'ended' } })
  // 40001 and 40P01 are tried again by PostgREST itself
  for (const code of ['57014', '55P03', '53200', '57P01']) {
    const refused = await fetch(`${harness.url}/rest/v1/${name}`, {
      method: 'POST',
      headers: { ...credentials, 'content-type': 'application/json' },
      body: JSON.stringify({ title: code }),
    })
    const { code: told } = (await refused.json()) as { code: string }
    expect([refused.status, told, refused.headers.get('retry-after')], code).toEqual([503, code, '2'])
  }
  await project.sql(`
    drop trigger ends on collections.${name}; drop function collections.ends(); drop view rest.late; drop function rest.ended`)
})
