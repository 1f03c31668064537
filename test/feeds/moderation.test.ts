import { expect, test } from 'vitest'
import type { User } from '#test/support/harness.ts'
import { startModeration } from '#test/support/moderation.ts'
import { openSocketOf } from '#test/support/realtime.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Rules of moderation read the texts in the metadata of entries as they are posted, and moderators act on entries. */
const { harness, project, admin, word, define, queue, itemOf, report, move } = await startModeration()
const people = (count: number) => Promise.all(Array.from({ length: count }, () => project.user()))
const befriend = async (one: User, other: User) => {
  const [a, b] = [one.id, other.id].sort()
  await project.sql(
    `insert into app.friendships (user_a, user_b, status, requested_by, responded_at) values ($1, $2, 'accepted', $1, now())`,
    [a, b],
  )
}
const casino = (action: string) => word(['casino'], { action, applies_to: ['feed_entry'] })
const body = (metadata: object, more: object = {}) => ({ action: 'said', metadata, ...more })
const post = async (user: User, metadata: object, more: object = {}) => {
  const answer = await user.post('/client/feeds', body(metadata, more))
  expect(answer.status, answer.text).toBe(201)
  return answer.data
}
const home = async (user: User) => (await user.get('/client/feeds')).body
/** The counts that totals are made of are those of the entries. */
const expectCounted = async (user: User) => {
  const [{ counted, stored }] = await project.sql(
    `select (select coalesce(sum(entries), 0)::int from app.feed_counts where actor_key = $1) as counted,
            (select count(*)::int from app.feed_entries where actor_id = $1) as stored`,
    [user.id],
  )
  expect(counted).toBe(stored)
}

test('a text that a rule blocks is refused, at any depth, and nothing is written', async () => {
  const [ann] = (await people(1)) as [User]
  await casino('block')
  for (const metadata of [{ text: 'The Casino!' }, { a: [{ b: ['x', 'my casino'] }] }])
    expectRefusal(await ann.post('/client/feeds', body(metadata)), 400, 'CONTENT_REJECTED')
  // names of fields and numbers are no texts, and other kinds are not meant
  await post(ann, { casino: 1, n: 5 })
  await post(ann, {}, { target_id: 'casino' })
  expect((await home(ann)).total).toBe(2)
  await expectCounted(ann)
})

test('an entry that a rule hides loses its metadata until it is approved, also for those who hear of it', async () => {
  const [ann, bob] = (await people(2)) as [User, User]
  await befriend(ann, bob)
  await casino('hide')
  const group = (await ann.post('/client/groups', { name: 'Cards' })).data
  const socket = await openSocketOf(harness, ann)
  await socket.subscribe(`group:${group.id}`)
  const metadata = { text: 'my casino', n: 1 }
  const entry = await post(ann, metadata, { group_id: group.id })
  expect(entry.metadata).toEqual({})
  const received = await socket.next(({ event, payload }) => event === 'feed.created' && payload.action === 'said')
  expect(received['payload']).toEqual(entry)
  const shown = async () => (await home(bob)).data.find(({ id }: any) => id === entry.id)?.metadata
  expect(await shown()).toEqual({})
  const item = await itemOf(entry.id)
  expect(item).toMatchObject({ subject_type: 'feed_entry', subject_user_id: ann.id, is_hidden: true, source: 'rule' })
  expect(item?.['snapshot']).toMatchObject({ kind: 'feed_entry', text: 'my casino' })
  expect((await move(item?.['id'], 'approve')).status).toBe(200)
  expect(await shown()).toEqual(metadata)
  expect((await home(bob)).total).toBe((await home(bob)).data.length)
  await expectCounted(ann)
})

test('an entry that a rule queues stays as it is, and is deleted when it is rejected', async () => {
  const [ann] = (await people(1)) as [User]
  await casino('queue')
  const entry = await post(ann, { text: 'casino' })
  expect(entry.metadata).toEqual({ text: 'casino' })
  const item = await itemOf(entry.id)
  expect((await move(item?.['id'], 'reject', { action: 'mute_24h' })).status).toBe(200)
  expect((await home(ann)).total).toBe(0)
  await expectCounted(ann)
  expectRefusal(await ann.post('/client/feeds', body({})), 403, 'USER_MUTED')
})

test('what administrators post and what events make is not read', async () => {
  const [ann] = (await people(1)) as [User]
  await casino('block')
  expect((await admin.post('/feeds', { as_user_id: ann.id, ...body({ text: 'casino' }) })).status).toBe(201)
  await ann.post('/client/groups', { name: 'Casino' })
  expect((await home(ann)).data.map(({ action }: any) => action)).toEqual(['group.joined', 'said'])
  expect(await queue()).toEqual([])
})

test('a simulation reads what users posted', async () => {
  await project.sql('delete from app.feed_entries')
  const [ann] = (await people(1)) as [User]
  for (const metadata of [{ text: 'a casino of old' }, { text: 'hello' }, { n: 1 }]) await post(ann, metadata)
  const rule = await casino('queue')
  const { data } = await admin.post(`/moderation/rules/${rule.id}/simulate`, { days: 7 })
  expect(data).toMatchObject({ checked: 2, caught: 1, by_kind: { feed_entry: 1 } })
})

test('who sees an entry reports it, and nobody else', async () => {
  const [ann, friend, member, stranger, blocked] = (await people(5)) as [User, User, User, User, User]
  await befriend(ann, friend)
  await befriend(ann, blocked)
  const group = (await ann.post('/client/groups', { name: 'Us', is_public: false })).data
  await admin.post(`/groups/${group.id}/members`, { app_user_id: member.id, role: 'member' })
  const open = await post(ann, { text: 'hello' })
  const inner = await post(ann, { text: 'psst' }, { group_id: group.id })
  const told = async (user: User, id: string) => {
    const answer = await report(user, 'feed_entry', id)
    return answer.status === 201 ? 201 : answer.error?.code
  }
  expect(await told(ann, open.id)).toBe('SELF_REPORT')
  expect(await told(friend, open.id)).toBe(201)
  expect(await told(friend, inner.id)).toBe('SUBJECT_NOT_FOUND')
  expect(await told(member, inner.id)).toBe(201)
  expect(await told(member, open.id)).toBe('SUBJECT_NOT_FOUND')
  expect(await told(stranger, open.id)).toBe('SUBJECT_NOT_FOUND')
  await ann.post(`/client/friends/${blocked.id}/block`)
  expect(await told(blocked, open.id)).toBe('SUBJECT_NOT_FOUND')
  const system = (await admin.post('/feeds', { system: true, action: 'season.started' })).data
  expect(await told(stranger, system.id)).toBe(201)
  await project.sql('update app.users set is_banned = true where id = $1', [ann.id])
  expect(await told(stranger, open.id)).toBe('SUBJECT_NOT_FOUND')
  expect((await itemOf(inner.id))?.['snapshot']).toEqual({
    action: 'said',
    target_id: null,
    group_id: group.id,
    metadata: { text: 'psst' },
  })
})

test('enough reports hide an entry', async () => {
  const [ann, ...friends] = (await people(3)) as [User, User, User]
  for (const friend of friends) await befriend(ann, friend)
  await define('report_threshold', { count: 2, window_hours: 1, applies_to: ['feed_entry'] })
  const entry = await post(ann, { text: 'hello' })
  for (const friend of friends) expect((await report(friend, 'feed_entry', entry.id)).status).toBe(201)
  expect((await ann.get('/client/feeds/me')).data[0]).toMatchObject({ id: entry.id, metadata: {} })
  await expectCounted(ann)
})
