import { describe, expect, test } from 'vitest'
import { actsForUsers, onlyReads } from '#server/http/route.ts'
import { type Answer, type Client, startHarness } from '#test/support/harness.ts'
import { commit, put, register, setTier, upload } from '#test/support/media.ts'
import { openSocketOf } from '#test/support/realtime.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { callRoute, createCast, nameOf } from '#test/support/routes.ts'

/** A ban and a mute, in every way in. */
const harness = await startHarness()
const cast = await createCast(harness)
const { project } = cast
const { admin } = project
await admin.patch('', { rest_enabled: true })
const routes = harness.running.areas.flatMap((area) => area.routes)
const client = routes.filter(({ path }) => path.startsWith('/client/'))

const ban = (id: string, is_banned = true) => admin.patch(`/users/${id}`, { is_banned })
const banned = await project.user()
const theirs = await upload(banned)
await ban(banned.id)
const onBehalf = project.onBehalfOf(banned.id)

test('each client route is one of an app, of a session, or of a server key on behalf of a user', () => {
  const callers = new Set(client.map(({ caller }) => caller.name))
  expect([...callers].sort()).toEqual([
    'appKey',
    'appOrUser',
    'endUser',
    'endUserOrServer',
    'serverAlone',
    'serverForUser',
    'sessionUser',
    'ticketHolder',
  ])
})

describe.each(client.filter(actsForUsers).map((route) => ({ name: nameOf(route), route })))('$name', ({ route }) => {
  test('is refused on behalf of a banned user, whatever is sent', async () => {
    expectRefusal(await callRoute(route, cast, onBehalf), 403, 'USER_BANNED')
    expectRefusal(await callRoute(route, cast, onBehalf, undefined, '{}'), 403, 'USER_BANNED')
  })
})

test('what only reads stays open on behalf of a banned user, and is closed to their session', async () => {
  // a connection is kept open
  const reads = client.filter((route) => onlyReads(route) && !route.path.startsWith('/client/realtime/'))
  for (const route of reads.filter(({ caller }) => caller.security.some((one) => 'OnBehalfOf' in one))) {
    const answer = await callRoute(route, cast, onBehalf)
    expect([route.path, answer.status, answer.error?.code]).not.toEqual([route.path, 403, 'USER_BANNED'])
  }
  expect((await onBehalf.get('/client/users/me')).status).toBe(200)
  expect((await banned.get('/client/users/me')).status).toBe(401)
  expect((await onBehalf.get(`/client/media/${theirs.id}`)).status).toBe(200)
  const presigned = { bucket: 'media', key: theirs.key, method: 'GET' }
  expect((await onBehalf.post('/client/media/presign', presigned)).status).toBe(200)
})

test('a ban and its end hold at once, also where the user is known to the server', async () => {
  const user = await project.user()
  const of = project.onBehalfOf(user.id)
  const write = () => of.post('/client/feeds', { action: 'a.b' })
  for (let round = 0; round < 3; round += 1) {
    expect((await write()).status).toBe(201)
    // a read that loads the user while the ban is written
    await Promise.all([ban(user.id), of.get('/client/users/me'), of.get('/client/users/me')])
    expectRefusal(await write(), 403, 'USER_BANNED')
    await Promise.all([ban(user.id, false), of.get('/client/users/me'), of.get('/client/users/me')])
  }
})

test('what others read is refused by the database, before a server has heard of the ban', async () => {
  const [user, friend] = [await project.user(), await project.user()]
  const of = project.onBehalfOf(user.id)
  const talk = await of.post('/client/messaging/conversations', { participant_ids: [friend.id] })
  const messages = `/client/messaging/conversations/${talk.data.id}/messages`
  expect((await of.post(messages, { body: 'one' })).status).toBe(201)
  await project.sql('alter table app.users disable trigger tg_users__credentials_of_banned')
  await project.sql('update app.users set is_banned = true where id = $1', [user.id])
  await project.sql('alter table app.users enable trigger tg_users__credentials_of_banned')
  expectRefusal(await of.post(messages, { body: 'two' }), 403, 'USER_BANNED')
  expectRefusal(await of.post('/client/feeds', { action: 'a.b' }), 403, 'USER_BANNED')
})

test('the REST access takes no write on behalf of a banned user', async () => {
  const name = 'bans'
  await admin.post('/collections', { name, columns: [{ name: 'title', type: 'text' }] })
  const user = await project.user()
  const rest = (method: string, path: string, body?: unknown) =>
    fetch(`${harness.url}/${path}`, {
      method,
      headers: {
        apikey: project.serverKey,
        'x-on-behalf-of': user.id,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  expect((await rest('POST', `rest/v1/${name}`, { title: 'x' })).status).toBe(201)
  await ban(user.id)
  for (const answer of [
    await rest('POST', `rest/v1/${name}`, { title: 'x' }),
    await rest('PATCH', `rest/v1/${name}?title=eq.x`, { title: 'y' }),
    await rest('DELETE', `rest/v1/${name}?title=eq.x`),
    await rest('POST', `storage/v1/object/media/user/${user.id}/a.json`, {}),
    await rest('PUT', `storage/v1/object/media/user/${user.id}/a.json`, {}),
    await rest('DELETE', 'storage/v1/object/media', { prefixes: [`user/${user.id}/a.json`] }),
  ]) {
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([403, 'USER_BANNED'])
  }
  const kept = await rest('GET', `rest/v1/${name}`)
  expect([kept.status, await kept.json()]).toMatchObject([200, [{ title: 'x' }]])
  expect((await rest('POST', 'storage/v1/object/list/media', { prefix: `user/${user.id}` })).status).toBe(200)
})

describe('an upload URL that is older than the ban', () => {
  const open = async () => {
    const user = await project.user()
    return { user, ...(await register(user)) }
  }

  test('brings nothing that is committed, by whoever asks and whenever', async () => {
    const { user, id, uploadUrl } = await open()
    await ban(user.id)
    await put(uploadUrl, 'hello')
    const of = project.onBehalfOf(user.id)
    expectRefusal(await commit(of, id), 403, 'USER_BANNED')
    expectRefusal(await of.get(`/client/media/${id}`), 404, 'NOT_FOUND')
    harness.advance(2 * 86_400)
    await project.sql(`select internal.enqueue('media__clean')`)
    await project.drain()
    harness.setTime(null)
    expect(await project.sql('select status from app.media_assets where id = $1', [id])).toEqual([])
  })

  test('is not followed by another', async () => {
    const user = await project.user()
    await setTier(harness, project, 'pro')
    await ban(user.id)
    const body = { bucket: 'media', key: `user/${user.id}/a.txt`, method: 'PUT', content_type: 'text/plain' }
    expectRefusal(await project.onBehalfOf(user.id).post('/client/media/presign', body), 403, 'USER_BANNED')
  })
})

test('a connection on behalf of a banned user listens, and publishes nothing', async () => {
  const user = await project.user()
  const socket = await openSocketOf(harness, { headers: project.onBehalfOf(user.id).headers } as never)
  expect(await socket.subscribe('room:bans')).toMatchObject({ type: 'ack' })
  await ban(user.id)
  const publish = { type: 'publish', channel: 'room:bans', event: 'e', payload: 1 }
  expect(await socket.ask(publish)).toMatchObject({ type: 'error', code: 'USER_BANNED' })
  expect(await socket.ask({ type: 'presence', channel: 'room:bans', state: {} })).toMatchObject({ code: 'USER_BANNED' })
})

/** What a mute closes: texts that others read. */
describe('a mute', async () => {
  const [user, friend] = [await project.user(), await project.user()]
  const post = async (path: string, body: object) => (await user.post(path, body)).data
  const group = await post('/client/groups', { name: 'Before' })
  const talk = await post('/client/messaging/conversations', { participant_ids: [friend.id] })
  const messages = `/client/messaging/conversations/${talk.id}/messages`
  const message = await post(messages, { body: 'before' })
  await admin.post('/collections', { name: 'muted', columns: [{ name: 'title', type: 'text', moderated: true }] })
  const rows = '/client/collections/muted'
  const row = await post(rows, { title: 'before' })
  await admin.patch(`/users/${user.id}`, { muted_until: '2100-01-01T00:00:00Z' })
  const operations = [{ op: 'insert', collection: 'muted', data: { title: 'x' } }]
  const rest = async (who: Client, method: string, path: string, body: object): Promise<Answer> => {
    const { authorization, 'x-api-key': apikey, 'x-on-behalf-of': behalf } = who.headers as Record<string, string>
    const answer = await fetch(`${harness.url}/rest/v1/${path}`, {
      method,
      headers: {
        'content-type': 'application/json',
        ...(apikey ? { apikey } : {}),
        ...(authorization ? { authorization } : {}),
        ...(behalf ? { 'x-on-behalf-of': behalf } : {}),
      },
      body: JSON.stringify(body),
    })
    const { code } = (await answer.json()) as { code: string }
    return { status: answer.status, error: { code } } as never
  }

  const writes: Record<string, (who: Client) => Promise<Answer>> = {
    'the name of a user': (who) => who.patch('/client/users/me', { display_name: 'x' }),
    'a group': (who) => who.post('/client/groups', { name: 'x' }),
    'the name of a group': (who) => who.patch(`/client/groups/${group.id}`, { name: 'x' }),
    'a named conversation': (who) =>
      who.post('/client/messaging/conversations', { type: 'group', name: 'x', participant_ids: [friend.id] }),
    'the name of a conversation': (who) => who.patch(`/client/messaging/conversations/${talk.id}`, { name: 'x' }),
    'a message': (who) => who.post(messages, { body: 'x' }),
    'the change of a message': (who) => who.patch(`${messages}/${message.id}`, { body: 'x' }),
    'a reaction': (who) => who.post(`${messages}/${message.id}/reactions`, { emoji: '👍' }),
    'an entry of a feed': (who) => who.post('/client/feeds', { action: 'a.b' }),
    'a row': (who) => who.post(rows, { title: 'x' }),
    'rows at once': (who) => who.post(`${rows}/batch`, { rows: [{ title: 'x' }] }),
    'the change of a row': (who) => who.patch(`${rows}/${row.id}`, { title: 'x' }),
    'a row of a transaction': (who) => who.post('/client/collections/transaction', { operations }),
    'a row through the REST access': (who) => rest(who, 'POST', 'muted', { title: 'x' }),
    'the change of a row through the REST access': (who) => rest(who, 'PATCH', `muted?id=eq.${row.id}`, { title: 'x' }),
  }
  test.each(Object.entries(writes))('holds for %s, by session and by server key', async (_name, write) => {
    for (const who of [user, project.onBehalfOf(user.id)]) {
      const answer = await write(who)
      expect([answer.status, answer.error?.code], answer.text).toEqual([403, 'USER_MUTED'])
    }
  })
})
