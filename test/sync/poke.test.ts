import { randomUUID } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { define, group, inGroup } from '#test/support/collection_rows.ts'
import { startHarness, type User } from '#test/support/harness.ts'
import { openSocketOf, type Socket } from '#test/support/realtime.ts'
import { deviceOf, ofMembers, put } from '#test/support/sync.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))
const columns = [{ name: 'title', type: 'text' }]
const notes = await define(project, { name: 'notes', sync: true, columns })
const news = await define(project, { name: 'news', sync: true, read_policy: 'public', columns })
const plans = await define(project, {
  name: 'plans',
  sync: true,
  ...ofMembers,
  columns,
})
await project.admin.post('/roles', { key: 'editor', name: 'Editor' })
await define(project, { name: 'drafts', sync: true, read_policy: 'role:editor', columns })

const listen = async (user: User) => {
  const socket = await openSocketOf(harness, user)
  expect(await socket.subscribe('sync')).toMatchObject({ type: 'ack' })
  await socket.subscribe('user')
  return socket
}
const poked = async (socket: Socket) =>
  expect(await socket.next({ type: 'event', channel: 'sync' })).toMatchObject({ event: 'poke', payload: {} })
/** Everything that was published before has come: a row of one's own is the last. */
const quiet = async (user: User, socket: Socket) => {
  await user.post(notes, { title: 'last' })
  await poked(socket)
}
const pokes = (socket: Socket) =>
  socket.frames.filter(({ channel, type }) => channel === 'sync' && type === 'event').length

test('a poke comes to who would be brought something, and once for a push', async () => {
  const [user, other] = [await project.user(), await project.user()]
  const [mine, theirs] = [await listen(user), await listen(other)]
  await user.post(notes, { title: 'x' })
  await poked(mine)
  await deviceOf(project, user).push([1, 2, 3].map((n) => put('notes', randomUUID(), { title: `${n}` })))
  await poked(mine)
  await quiet(other, theirs)
  expect(pokes(theirs)).toBe(1)
  await quiet(user, mine)
  expect(pokes(mine)).toBe(3)
  await other.post(news, { title: 'to all' })
  await poked(mine)
  await poked(theirs)
  expect((await mine.ask({ type: 'subscribe', channel: 'sync:x' }))['code']).toBe('NOT_FOUND')
})

test('and to a group, and who joins and leaves one', async () => {
  const [user, other, stranger] = [await project.user(), await project.user(), await project.user()]
  const team = await group(project, [[user, 'member']])
  const sockets = [await listen(user), await listen(other), await listen(stranger)] as const
  await user.with({ 'x-group-context': team }).post(plans, { title: 'x' })
  await poked(sockets[0])
  await project.sql(`insert into app.group_members (group_id, app_user_id, role) values ($1, $2, 'member')`, [
    team,
    other.id,
  ])
  await poked(sockets[1])
  await inGroup(user, team).post(plans, { title: 'y' })
  await poked(sockets[0])
  await poked(sockets[1])
  await project.sql('delete from app.group_members where group_id = $1 and app_user_id = $2', [team, other.id])
  await poked(sockets[1])
  await project.sql('delete from app.groups where id = $1', [team])
  await poked(sockets[0])
  await quiet(stranger, sockets[2])
  expect(pokes(sockets[2])).toBe(1)
})

test('and to who has a role, gains and loses it, also by its end, and to all by a policy', async () => {
  const [user, other] = [await project.user(), await project.user()]
  const [mine, theirs] = [await listen(user), await listen(other)]
  const expires_at = new Date(Date.now() + 30_000).toISOString()
  await project.admin.post('/roles/editor/assignments', { app_user_id: user.id, expires_at })
  await poked(mine)
  const author = await project.user()
  await project.sql(`insert into collections.drafts (user_id, title) values ('${author.id}', 'x')`)
  await poked(mine)
  await quiet(other, theirs)
  expect(pokes(theirs)).toBe(1)
  const before = pokes(mine)
  harness.advance(31)
  await poked(mine)
  expect(pokes(mine)).toBeGreaterThan(before)
  harness.setTime(null)
  await project.admin.patch('/collections/news', { read_policy: 'owner' })
  await poked(theirs)
})
