import { createClient } from '@supabase/supabase-js'
import { describe, expect, test } from 'vitest'
import { startCollections } from '#test/support/definitions.ts'

/** Reading without a session: the client key alone, as app_anon. */
const { harness, project, define } = await startCollections()
await project.admin.patch('', { rest_enabled: true })
const user = await project.user()
const posts = await define({ read_policy: 'public', columns: [{ name: 'title', type: 'text' }] })
const replies = await define({
  read_policy: 'public',
  columns: [
    { name: 'text', type: 'text' },
    { name: 'post_id', type: 'uuid', references: { collection: posts, on_delete: 'cascade' } },
  ],
})
const drafts = await define({
  read_policy: 'owner',
  columns: [
    { name: 'text', type: 'text' },
    { name: 'post_id', type: 'uuid', references: { collection: posts, on_delete: 'cascade' } },
  ],
})
const member = createClient(harness.url, project.clientKey, { accessToken: async () => user.sessionToken })
const stranger = createClient(harness.url, project.clientKey)
const made = await member
  .from(posts)
  .insert([{ title: 'a' }, { title: 'gone' }])
  .select('id, title')
const [post, gone] = made.data as unknown as [{ id: string }, { id: string }]
await member.from(posts).delete().eq('id', gone.id)
await member.from(replies).insert({ text: 'b', post_id: post.id })
await member.from(drafts).insert({ text: 'c', post_id: post.id })

test('off at first: the client key alone reads nothing', async () => {
  expect((await project.admin.get('')).data.anonymous_reads).toBe(false)
  expect(await stranger.from(posts).select()).toMatchObject({ status: 401, error: { code: 'UNAUTHORIZED' } })
  expect(await stranger.rpc('anything')).toMatchObject({ status: 401, error: { code: 'UNAUTHORIZED' } })
  expect((await project.admin.patch('', { anonymous_reads: true })).status).toBe(200)
})

describe('switched on', () => {
  test('public collections are read, with filters, orders, counts and what is embedded', async () => {
    expect(await stranger.from(posts).select('title')).toMatchObject({ status: 200, data: [{ title: 'a' }] })
    expect((await stranger.from(posts).select('*', { count: 'exact', head: true }).eq('title', 'a')).count).toBe(1)
    expect((await stranger.from(posts).select('title').eq('id', gone.id)).data).toEqual([])
    expect((await stranger.from(posts).select(`title, ${replies}(text)`)).data).toEqual([
      { title: 'a', [replies]: [{ text: 'b' }] },
    ])
    const supabaseJs = { apikey: project.clientKey, authorization: `Bearer ${project.clientKey}` }
    expect((await fetch(`${harness.url}/rest/v1/${posts}`, { headers: supabaseJs })).status).toBe(200)
  })

  test('no other collection is, not embedded either', async () => {
    for (const asked of [
      stranger.from(drafts).select(),
      stranger.from(posts).select(`title, ${drafts}(text)`),
      stranger.from(drafts).select('*', { count: 'exact' }),
    ])
      expect(await asked).toMatchObject({ status: 401, error: { code: '42501' } })
    expect((await stranger.from('users').select()).error?.code).toBe('PGRST205')
    expect((await stranger.schema('collections').from(posts).select()).error?.code).toBe('PGRST106')
    expect((await stranger.schema('app').from('users').select()).error?.code).toBe('PGRST106')
  })

  test('nothing is written', async () => {
    const table = () => stranger.from(posts)
    for (const asked of [
      table().insert({ title: 'x' }),
      table().insert({ title: 'x', user_id: user.id }),
      table().upsert({ id: post.id, title: 'x' }),
      table().update({ title: 'x' }).eq('id', post.id),
      table().delete().eq('id', post.id),
    ])
      expect(await asked).toMatchObject({ status: 401, error: { code: 'UNAUTHORIZED' } })
    const put = await fetch(`${harness.url}/rest/v1/${posts}?id=eq.${post.id}`, {
      method: 'PUT',
      headers: { apikey: project.clientKey, 'content-type': 'application/json' },
      body: JSON.stringify({ id: post.id, title: 'x' }),
    })
    expect(put.status).toBe(401)
    expect((await member.from(posts).select('title')).data).toEqual([{ title: 'a' }])
  })

  test('a function that is granted to app_anon is called, no other one', async () => {
    await project.sql(`
      create function rest.open_one() returns text language sql stable as 'select current_user::text';
      create function rest.closed_one() returns text language sql stable as 'select current_user::text';
      create function rest.writing_one() returns int language sql volatile
        as 'update collections.${posts} set title = ''x''; select 1';
      grant execute on function rest.open_one, rest.closed_one, rest.writing_one to app_rest;
      grant execute on function rest.open_one, rest.writing_one to app_anon;
      notify pgrst, 'reload schema'`)
    await expect.poll(async () => (await stranger.rpc('open_one')).data, { timeout: 10_000 }).toBe('app_anon')
    expect((await stranger.rpc('open_one', {}, { get: true })).data).toBe('app_anon')
    expect((await member.rpc('closed_one')).data).toBe('app_rest')
    expect(await stranger.rpc('closed_one')).toMatchObject({ status: 401, error: { code: '42501' } })
    // what it may read it may not write, in a function either
    expect(await stranger.rpc('writing_one')).toMatchObject({ status: 401, error: { code: '42501' } })
    expect((await stranger.rpc('pg_advisory_xact_lock', { key: 1 })).error?.code).toBe('PGRST202')
    expect((await stranger.rpc('pg_sleep', { seconds: 1 })).error?.code).toBe('PGRST202')
  })

  test('a session that is not valid is not nobody', async () => {
    const forged = createClient(harness.url, project.clientKey, { accessToken: async () => 'nonsense' })
    expect((await forged.from(posts).select()).status).toBe(401)
    const unknown = createClient(harness.url, `${project.clientKey}x`)
    expect((await unknown.from(posts).select()).status).toBe(401)
  })

  test('the policy of a collection is followed as it changes', async () => {
    const path = `/collections/${replies}`
    await project.admin.patch(path, { read_policy: 'owner' })
    expect(await stranger.from(replies).select()).toMatchObject({ status: 401, error: { code: '42501' } })
    await project.admin.patch(path, { read_policy: 'public' })
    expect((await stranger.from(replies).select('text')).data).toEqual([{ text: 'b' }])
    await project.admin.post(`${path}/columns`, { name: 'n', type: 'integer' })
    expect((await stranger.from(replies).select('text, n')).data).toEqual([{ text: 'b', n: null }])
  })

  test('files ask for a session', async () => {
    const { error } = await stranger.storage.from('media').list(`user/${user.id}`)
    expect(error).not.toBeNull()
  })

  test('switched off again, it is refused at once', async () => {
    await project.admin.patch('', { anonymous_reads: false })
    expect(await stranger.from(posts).select()).toMatchObject({ status: 401, error: { code: 'UNAUTHORIZED' } })
    await project.admin.patch('', { anonymous_reads: true })
    await project.admin.patch('', { rest_enabled: false })
    expect((await stranger.from(posts).select()).error?.code).toBe('REST_DISABLED')
    await project.admin.patch('', { rest_enabled: true })
  })
})

test('however many strangers read, users find a connection', async () => {
  await project.sql(`
    create function rest.slow_one() returns int language sql volatile as 'select 1 from (select pg_sleep(0.5)) s';
    grant execute on function rest.slow_one to app_anon, app_rest;
    notify pgrst, 'reload schema'`)
  await expect.poll(async () => (await stranger.rpc('slow_one')).data, { timeout: 10_000 }).toBe(1)
  const order: string[] = []
  const reads = Array.from({ length: 8 }, async () => {
    const { error } = await stranger.rpc('slow_one')
    order.push('stranger')
    return error
  })
  await expect(member.from(posts).select('title')).resolves.toMatchObject({ error: null })
  order.push('user')
  expect(await Promise.all(reads)).toEqual(Array(8).fill(null))
  // four connections, of which strangers have two: the user waits for none of them
  expect(order.indexOf('user')).toBeLessThanOrEqual(2)
})

test('what app_anon may do besides is reading what is open to every app', async () => {
  // as the role itself, without PostgREST between
  const refused = (sql: string) =>
    project.as('app_anon', {}, sql).then(
      () => sql,
      (error: Error) => error.message,
    )
  for (const sql of [
    'select from app.users',
    `select from collections.${drafts}`,
    `insert into collections.${posts} (title) values ('x')`,
    `update collections.${posts} set title = 'x'`,
    `delete from collections.${posts}`,
    'select api.rest_prepare()',
    'select pg_advisory_lock(1)',
    'create table rest.x (n int)',
    'create function rest.f() returns int language sql as $$select 1$$',
    'create temporary table x (n int)',
  ])
    expect(await refused(sql), sql).toMatch(/permission denied/)
})
