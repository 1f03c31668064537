import { randomUUID } from 'node:crypto'
import { get, type IncomingMessage } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { define, group } from '#test/support/collection_rows.ts'
import { startHarness, type User } from '#test/support/harness.ts'
import { openSocketOf } from '#test/support/realtime.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { deviceOf, ofMembers, patch, put, remove } from '#test/support/sync.ts'

const harness = await startHarness()
const project = await harness.project()
const columns = [{ name: 'title', type: 'text' }]
const notes = await define(project, { name: 'notes', sync: true, columns })
await define(project, {
  name: 'plans',
  sync: true,
  ...ofMembers,
  columns,
})

/** The events of a stream, as a browser reads them. */
const streamOf = async (user: User, query = '') => {
  const stream = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${harness.url}/v1/client/realtime/stream?channels=sync${query}`, { headers: user.headers }, resolve).on(
      'error',
      reject,
    )
  })
  let text = ''
  stream.on('data', (chunk) => {
    text += String(chunk)
  })
  stream.on('error', () => undefined)
  onTestFinished(() => void stream.destroy())
  const pokes = () =>
    [...text.matchAll(/^id: (.*)\nevent: poke\ndata: (.*)$/gm)].map(([, id, data]) => ({
      id: id as string,
      ...JSON.parse(data as string),
    }))
  await expect.poll(() => text).toContain('event: ack')
  return { pokes, text: () => text, stop: () => stream.destroy() }
}

test('a stream of events has pokes too, and catches up on those that it missed', async () => {
  const [user, other] = [await project.user(), await project.user()]
  const stream = await streamOf(user)
  await user.post(notes, { title: 'x' })
  await expect.poll(() => stream.pokes().length).toBe(1)
  expect(stream.pokes()[0]).toMatchObject({ type: 'event', channel: 'sync', event: 'poke', payload: {} })
  await other.post(notes, { title: 'of another' })
  await user.post(notes, { title: 'y' })
  await expect.poll(() => stream.pokes().length).toBe(2)
  const { seq } = stream.pokes().at(-1) as { seq: number }
  stream.stop()
  await user.post(notes, { title: 'missed' })
  const again = await streamOf(user, `&since=sync%3D${seq}`)
  await expect.poll(() => again.pokes().length).toBe(1)
  expectRefusal(await user.get('/client/realtime/stream?channels=sync:x'), 404, 'NOT_FOUND')
})

test('every kind of write pokes, and after the last poke a pull has all of it', async () => {
  const user = await project.user()
  const team = await group(project, [[user, 'member']])
  const socket = await openSocketOf(harness, user)
  await socket.subscribe('sync')
  const [phone, tablet] = [deviceOf(project, user), deviceOf(project, user)]
  await tablet.pull()
  const row = randomUUID()
  const writes: (() => Promise<unknown>)[] = [
    () => phone.push([put('notes', row, { title: 'a' })]),
    () => phone.push([patch('notes', row, { title: 'b' })]),
    () => phone.push([remove('notes', row)]),
    () => phone.push([put('notes', row, { title: 'c' })]),
    () => phone.push([put('plans', randomUUID(), { title: 'p', group_id: team })]),
    () => project.admin.delete(`/collections/notes/rows/${row}?hard=true`),
    () => project.sql('delete from app.groups where id = $1', [team]),
  ]
  for (const write of writes) {
    await write()
    expect(await socket.next({ type: 'event', channel: 'sync' })).toMatchObject({ event: 'poke', payload: {} })
    const { created, updated, deleted } = await tablet.pull()
    expect(created.length + updated.length + deleted.length).toBe(1)
  }
  // what is refused is nothing new
  await phone.push([put('notes', randomUUID(), { nope: 1 })])
  await user.post(notes, { title: 'last' })
  await socket.next({ type: 'event', channel: 'sync' })
  expect(socket.frames.filter(({ channel, type }) => channel === 'sync' && type === 'event')).toHaveLength(
    writes.length + 1,
  )
})
