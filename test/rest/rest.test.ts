import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createClient } from '@supabase/supabase-js'
import { expect, test } from 'vitest'
import { targetOf } from '#server/database/cluster.ts'
import { createRestProcesses } from '#server/rest/processes.ts'
import { createSecrets } from '#server/secrets.ts'
import { startCollections } from '#test/support/definitions.ts'

const { harness, project, define } = await startCollections({ env: { REST_PROCESSES: '2' } })
await project.admin.patch('', { rest_enabled: true })
const user = await project.user()
const posts = await define({
  read_policy: 'public',
  columns: [
    { name: 'title', type: 'text', nullable: false },
    { name: 'editor', type: 'uuid', default: { $fn: 'user_id' } },
  ],
})

const clientOf = (key: string, session?: string) =>
  createClient(harness.url, key, session ? { accessToken: async () => session } : {})
const mine = clientOf(project.clientKey, user.sessionToken)

/** A request as some other client sends it. */
const ask = async (path: string, headers: Record<string, string> = {}, init: RequestInit = {}) => {
  const response = await fetch(`${harness.url}/rest/v1${path}`, { ...init, headers })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? null : JSON.parse(text) }
}
const signedIn = { apikey: project.clientKey, authorization: `Bearer ${user.sessionToken}` }
const { rest } = harness.running.services
const placeOf = async (id: string) => (await harness.running.services.projectCache.byProject(id))?.place as never

test('a row is deleted as our own routes delete it, and its id stays', async () => {
  const made = await mine.from(posts).insert({ title: 'first' }).select().single()
  expect(made.data).toMatchObject({ title: 'first', user_id: user.id, editor: user.id })
  expect(Object.keys(made.data)).not.toContain('deleted_at')
  const moved = await mine.from(posts).update({ id: user.id }).eq('id', made.data.id)
  expect(moved).toMatchObject({ status: 400, error: { code: 'VALIDATION_ERROR', details: { field: 'id' } } })
  await mine.from(posts).delete().eq('id', made.data.id)
  const rows = await project.sql(`select deleted_at is not null as gone from collections.${posts} where id = $1`, [
    made.data.id,
  ])
  expect(rows).toEqual([{ gone: true }])
})

test('the settings of a call are set: the clock, the zone, the caller', async () => {
  harness.setTime('2027-01-02T03:04:05.000Z')
  const made = await clientOf(project.serverKey)
    .from(posts)
    .insert({ title: 'x', user_id: user.id })
    .select('created_at, editor')
    .single()
  harness.setTime(null)
  expect(made.data).toEqual({ created_at: '2027-01-02T03:04:05+00:00', editor: null })
  const zoned = await ask(`/${posts}?select=created_at&limit=1`, { ...signedIn, prefer: 'timezone=America/New_York' })
  expect(zoned.body[0].created_at).toMatch(/\+00:00$/)
})

test('credentials: the key alone is nobody, a server key itself, on behalf of a user that user', async () => {
  const path = `/${posts}?select=id&limit=1`
  expect(await ask(path)).toMatchObject({ status: 401, body: { code: 'UNAUTHORIZED', hint: null } })
  expect((await ask(path, { apikey: 'svc_nothing' })).body.code).toBe('UNAUTHORIZED')
  expect((await clientOf(project.clientKey).from(posts).select()).error?.code).toBe('UNAUTHORIZED')
  expect((await ask(path, { ...signedIn, authorization: 'Bearer nonsense' })).status).toBe(401)
  expect((await ask(path, { authorization: `Bearer ${project.serverKey}` })).status).toBe(200)
  const own = { apikey: project.serverKey, 'x-on-behalf-of': user.id, prefer: 'return=representation' }
  const made = await ask(
    `/${posts}`,
    { ...own, 'content-type': 'application/json' },
    { method: 'POST', body: '{"title":"for"}' },
  )
  expect(made).toMatchObject({ status: 201, body: [{ user_id: user.id }] })
  // the token of PostgREST is the server's own: neither role nor secret can be given
  const forged = `e30.${Buffer.from('{"role":"app_server"}').toString('base64url')}.x`
  expect((await ask(path, { ...signedIn, authorization: `Bearer ${forged}` })).status).toBe(401)
  const elsewhere = await harness.project()
  await elsewhere.admin.patch('', { rest_enabled: true })
  expect((await ask(path, { ...signedIn, apikey: elsewhere.clientKey })).body.code).toBe('UNAUTHORIZED')
  await user.post('/client/auth/logout')
})

test('nothing but the views of collections is there', async () => {
  const server = { apikey: project.serverKey }
  expect((await ask('/users', server)).status).toBe(404)
  expect((await ask('/', server)).status).toBe(404)
  expect((await ask('/rpc/rest_begin', server)).status).toBe(404)
  expect((await ask(`/${posts}`, { ...server, 'accept-profile': 'collections' })).body.code).toBe('PGRST106')
  expect((await ask(`/${posts}`, { ...server, 'accept-profile': 'public' })).status).toBe(200)
  const large = await ask(
    `/${posts}`,
    { ...server, 'content-type': 'application/json' },
    { method: 'POST', body: JSON.stringify({ title: 'x'.repeat(1_100_000) }) },
  )
  expect(large).toMatchObject({ status: 413, body: { code: 'PAYLOAD_TOO_LARGE' } })
})

test('the REST access is off until the developer switches it on', async () => {
  const closed = await harness.project()
  const answer = await clientOf(closed.serverKey).from('anything').select()
  expect(answer).toMatchObject({ status: 403, error: { code: 'REST_DISABLED' } })
  expect((await closed.admin.patch('', { rest_enabled: null })).error?.code).toBe('INVALID_INPUT')
  await closed.admin.patch('', { rest_enabled: true })
  expect((await clientOf(closed.serverKey).from('anything').select()).error?.code).toBe('PGRST205')
  await closed.admin.patch('', { rest_enabled: false })
  expect((await clientOf(closed.serverKey).from('anything').select()).status).toBe(403)
  expect(rest.running().has(closed.id)).toBe(false)
})

test('PostgREST follows the definitions of collections', async () => {
  const server = clientOf(project.serverKey)
  const name = await define({ columns: [{ name: 'a', type: 'integer' }] })
  const until = async (run: () => PromiseLike<{ error: unknown }>) => {
    // PostgREST reads the schema some moments after the change was committed, and tells nobody
    await expect.poll(async () => (await run()).error, { timeout: 10_000, interval: 50 }).toBeNull()
  }
  await until(() => server.from(name).insert({ a: 1, user_id: user.id }))
  expect(
    (await project.admin.post(`/collections/${name}/columns`, { name: 'b', type: 'text', default: 'x' })).status,
  ).toBe(201)
  await until(() => server.from(name).select('b'))
  expect((await project.admin.patch(`/collections/${name}/columns/a`, { name: 'c', type: 'text' })).status).toBe(200)
  await until(() => server.from(name).select('c'))
  expect((await server.from(name).select('b, c')).data).toEqual([{ b: 'x', c: '1' }])
  expect((await project.admin.delete(`/collections/${name}/columns/b?confirm=b`)).status).toBe(200)
  expect((await project.admin.delete(`/collections/${name}?confirm=${name}`)).status).toBe(200)
  expect(await project.sql(`select from pg_views where schemaname = 'rest' and viewname = $1`, [name])).toEqual([])
})

test('PostgREST that is killed is started again, and what runs is bounded', async () => {
  const server = clientOf(project.serverKey)
  await server.from(posts).select('id')
  const first = rest.running().get(project.id) as number
  const lease = await rest.lease(project.id, await placeOf(project.id))
  process.kill(-first, 'SIGKILL')
  await expect.poll(() => rest.running().has(project.id)).toBe(false)
  lease.release()
  expect((await server.from(posts).select('id')).error).toBeNull()
  expect(rest.running().get(project.id)).not.toBe(first)

  // two processes may run: the one that nobody uses goes for the third project
  const [second, third] = [await harness.project(), await harness.project()]
  const held = await rest.lease(second.id, await placeOf(second.id))
  const next = await rest.lease(third.id, await placeOf(third.id))
  expect([...rest.running().keys()].sort()).toEqual([second.id, third.id].sort())
  const refused = await ask(`/${posts}`, { apikey: project.serverKey })
  expect(refused).toMatchObject({ status: 503, body: { code: 'REST_BUSY' } })
  expect(refused.headers.get('retry-after')).toBe('2')
  held.release()
  expect((await server.from(posts).select('id')).error).toBeNull()
  next.release()
})

const baseConfig = () => harness.running.services.config
const processesWith = (config: object) =>
  createRestProcesses({
    config: { ...baseConfig(), ...config },
    database: harness.running.services.database,
    secrets: createSecrets(baseConfig().SECRETS_KEY as string),
    log: { warn: () => undefined } as never,
    clock: () => null,
  })
const isAlive = (group: number) =>
  execFileSync('ps', ['-eo', 'pgid,stat'], { encoding: 'utf8' })
    .split('\n')
    .some((line) => line.trim().startsWith(`${group} `) && !line.includes('Z'))

test('it ends when nobody uses it, and with the server', async () => {
  const processes = processesWith({ REST_IDLE_SECONDS: 0.2 })
  const lease = await processes.lease(project.id, await placeOf(project.id))
  expect(isAlive(lease.pid)).toBe(true)
  lease.release()
  await expect.poll(() => isAlive(lease.pid), { timeout: 5000 }).toBe(false)
  const again = await processes.lease(project.id, await placeOf(project.id))
  await processes.stop()
  expect(isAlive(again.pid)).toBe(false)
  await expect(processes.lease(project.id, await placeOf(project.id))).rejects.toMatchObject({
    code: 'REST_UNAVAILABLE',
  })
})

test('it ends with a server that was killed', async () => {
  const { cluster, database } = (await placeOf(project.id)) as { cluster: { dsn: string }; database: string }
  expect(targetOf(cluster as never, database, 'app_rest', harness.running.services.secrets).user).toBe('login_app_rest')
  const program = `
    import { startPostgrest } from '#server/rest/process.ts'
    const it = await startPostgrest(JSON.parse(process.argv[1]))
    console.log(it.pid)
    setInterval(() => undefined, 1000)`
  const { restUri } = await import('#server/database/cluster.ts')
  const { findPostgrest } = await import('#server/rest/binary.ts')
  const options = {
    binary: findPostgrest(undefined),
    databaseUri: restUri(cluster as never, database, harness.running.services.secrets),
    secret: 'x'.repeat(64),
    connections: 1,
    memoryMb: 64,
  }
  const server = spawn(process.execPath, ['--input-type=module-typescript', '-e', program, JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [chunk] = (await once(server.stdout, 'data')) as [Buffer]
  const group = Number(chunk.toString())
  expect(isAlive(group)).toBe(true)
  server.kill('SIGKILL')
  await expect.poll(() => isAlive(group), { timeout: 5000 }).toBe(false)
})

test('where there is no PostgREST the REST access says so', async () => {
  const processes = processesWith({ POSTGREST_BIN: '/nowhere/postgrest' })
  await expect(processes.lease(project.id, await placeOf(project.id))).rejects.toMatchObject({
    status: 503,
    code: 'REST_UNAVAILABLE',
  })
  // one that ends at once is not started for every request
  const broken = processesWith({ POSTGREST_BIN: '/bin/false' })
  await expect(broken.lease(project.id, await placeOf(project.id))).rejects.toMatchObject({ code: 'REST_UNAVAILABLE' })
  await expect(broken.lease(project.id, await placeOf(project.id))).rejects.toMatchObject({ code: 'REST_UNAVAILABLE' })
  expect(broken.running().size).toBe(0)
})

test('its password and secret are in no argument that other users can read', async () => {
  await clientOf(project.serverKey).from(posts).select('id')
  const group = rest.running().get(project.id) as number
  const commands = execFileSync('ps', ['-eo', 'pgid,args'], { encoding: 'utf8' })
    .split('\n')
    .filter((line) => line.trim().startsWith(`${group} `))
  expect(commands.length).toBeGreaterThan(0)
  expect(commands.join('\n')).not.toMatch(/login_app_rest|postgresql:/)
  if (existsSync(`/proc/${group}/cmdline`))
    expect(readFileSync(`/proc/${group}/cmdline`, 'utf8')).not.toContain('login_app_rest')
})
