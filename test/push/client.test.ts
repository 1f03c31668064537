import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'
import { campaignOf, deliveriesOf, message, pushed, shown } from '#test/support/push.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project({ environment: 'development' })
const { admin } = project

const send = async (users: readonly User[], fields: object = {}, more: object = {}) => {
  const answer = await admin.post('/push/send', {
    user_ids: users.map(({ id }) => id),
    message: { ...message, ...fields },
    ...more,
  })
  expect(answer.status, answer.text).toBe(202)
  await project.drain()
  return answer.data.delivery_ids as string[]
}
const inbox = async (user: User, query = '') => (await user.get(`/client/push/inbox${query}`)).data
const unread = async (user: User) => (await user.get('/client/push/inbox/unread-count')).data.count
const opens = (user: User) =>
  project.sql(
    `select properties from app.engagement_events where app_user_id = $1 and event_name = 'svc.push.opened' order by id`,
    [user.id],
  )

test('preferences have defaults, list the categories of the project, and are replaced', async () => {
  const user = await pushed(project)
  expect((await user.get('/client/push/preferences')).data).toMatchObject({
    enabled: true,
    quiet_hours: null,
    timezone: null,
  })
  await admin.post('/push/templates', { key: `t-${randomUUID()}`, message: { ...message, category: 'offers' } })
  const wanted = {
    enabled: true,
    categories: { offers: false, other: true },
    quiet_hours: { start: '22:00', end: '07:00' },
    timezone: 'Europe/Berlin',
  }
  const put = await user.put('/client/push/preferences', wanted)
  expect([put.status, put.data], put.text).toEqual([200, wanted])
  expect((await user.get('/client/push/preferences')).data).toEqual(wanted)
  expect((await user.put('/client/push/preferences', {})).data).toEqual({
    enabled: true,
    categories: { offers: true },
    quiet_hours: null,
    timezone: 'Europe/Berlin',
  })
  for (const [field, fields] of [
    ['enabled', { enabled: 1 }],
    ['categories.a', { categories: { a: 'no' } }],
    ['categories', { categories: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`c${n}`, true])) }],
    ['quiet_hours.start', { quiet_hours: { start: '7:00', end: '08:00' } }],
    ['timezone', { timezone: 'Mars/Olympus' }],
  ] as const)
    expectInvalid(await user.put('/client/push/preferences', fields), field)
})

test('who has switched pushes off, or a category, gets none; the inbox works without pushes', async () => {
  const [off, without, category, bare] = [
    await pushed(project),
    await project.user(),
    await pushed(project),
    await pushed(project),
  ]
  await off.put('/client/push/preferences', { enabled: false })
  await category.put('/client/push/preferences', { categories: { news: false } })
  const { id } = await campaignOf(project, {
    audience: { user_ids: [off, without, category, bare].map((user) => user.id) },
    message: { ...message, category: 'news' },
    send_now: true,
  })
  await project.drain()
  expect(await deliveriesOf(project, id)).toEqual([
    { status: 'sent', reason: null, code: null, n: 1 },
    { status: 'skipped', reason: 'no_token', code: null, n: 1 },
    { status: 'skipped', reason: 'opted_out', code: null, n: 2 },
  ])
  const counts = await Promise.all([off, without, category, bare].map(async (user) => (await inbox(user)).length))
  expect(counts).toEqual([1, 1, 0, 1])
  await send([bare], {}, { inbox: false })
  expect(await inbox(bare)).toHaveLength(1)
})

test('the inbox is paged, newest first; items are read, all read, and deleted, by their owner only', async () => {
  const [user, other] = [await pushed(project), await pushed(project)]
  for (const title of ['first', 'second', 'third'])
    await send([user], { title, deep_link: 'app://x', data: { n: 1 }, image_url: 'https://example.com/a.png' })
  const page = await user.get('/client/push/inbox?limit=2')
  const rest = await user.get(`/client/push/inbox?cursor=${page.body.pagination.next_cursor}`)
  const items = [...page.data, ...rest.data]
  expect(items.map(({ title }) => title)).toEqual(['third', 'second', 'first'])
  expect(items[0]).toEqual({
    id: expect.any(String),
    title: 'third',
    body: 'A message.',
    image_url: 'https://example.com/a.png',
    deep_link: 'app://x',
    data: { n: 1 },
    created_at: expect.any(String),
    read_at: null,
    expires_at: expect.any(String),
  })
  expect(Date.parse(items[0].expires_at) - Date.parse(items[0].created_at)).toBe(90 * 24 * 3600 * 1000)
  expect(await unread(user)).toBe(3)
  const one = `/client/push/inbox/${items[0].id}`
  const read = await user.post(`${one}/read`)
  expect(read.data.read_at).toEqual(expect.any(String))
  expect((await user.post(`${one}/read`)).data).toEqual(read.data)
  expect([await unread(user), (await inbox(user, '?unread=true')).length]).toEqual([2, 2])
  expectRefusal(await other.post(`${one}/read`), 404, 'NOT_FOUND')
  expectRefusal(await other.delete(one), 404, 'NOT_FOUND')
  expect(await inbox(other)).toEqual([])
  expect((await user.post('/client/push/inbox/read-all')).data).toEqual({ read: 2 })
  expect((await user.post('/client/push/inbox/read-all')).data).toEqual({ read: 0 })
  expect((await user.delete(one)).data).toEqual({ deleted: true })
  expectRefusal(await user.delete(one), 404, 'NOT_FOUND')
  expectRefusal(await user.get('/client/push/inbox?cursor=x'), 400, 'INVALID_INPUT')
  expectRefusal(await user.post('/client/push/inbox/x/read'), 400, 'INVALID_ID')
})

test('an inbox holds the newest 500 items, and what has expired is gone', async () => {
  const user = await pushed(project)
  await project.sql(
    `insert into app.push_inbox_items (app_user_id, delivery_id, title, body, created_at, expires_at)
     select $1, gen_random_uuid(), n::text, 'b', now() - make_interval(mins => n), now() + interval '1 day' from generate_series(1, 500) n`,
    [user.id],
  )
  await send([user], { title: 'newest' })
  const rows = await project.sql(
    'select title from app.push_inbox_items where app_user_id = $1 order by created_at desc',
    [user.id],
  )
  expect([rows.length, rows[0]?.title, rows.at(-1)?.title]).toEqual([500, 'newest', '499'])
  await project.sql(`update app.push_inbox_items set expires_at = now() where app_user_id = $1 and title <> 'newest'`, [
    user.id,
  ])
  expect([(await inbox(user)).length, await unread(user)]).toEqual([1, 1])
  await project.sql('select internal.purge__push(5000)')
  expect(await project.sql('select title from app.push_inbox_items where app_user_id = $1', [user.id])).toEqual([
    { title: 'newest' },
  ])
})

test('the first report that a message was opened counts, emits an event, and is the owner’s', async () => {
  const [user, other] = [await pushed(project), await pushed(project)]
  const { id } = await campaignOf(project, { audience: { user_ids: [user.id, other.id] }, send_now: true })
  await project.drain()
  const [delivery] = (await admin.get(`/push/deliveries?user_id=${user.id}`)).data
  const path = `/client/push/deliveries/${delivery.id}`
  expectRefusal(await other.post(`${path}/opened`), 404, 'NOT_FOUND')
  expectRefusal(await other.post(`${path}/received`), 404, 'NOT_FOUND')
  expectRefusal(await user.post('/client/push/deliveries/x/opened'), 400, 'INVALID_ID')
  expect((await user.post(`${path}/received`)).data).toEqual({ received: true })
  const answers = await Promise.all(Array.from({ length: 5 }, () => user.post(`${path}/opened`)))
  expect(answers.map(({ data }) => data)).toEqual(Array(5).fill({ opened: true }))
  expect((await admin.get(`/push/deliveries?user_id=${user.id}`)).data[0]).toMatchObject({
    status: 'opened',
    received_at: expect.any(String),
    opened_at: expect.any(String),
  })
  expect(await opens(user)).toEqual([
    { properties: { delivery_id: delivery.id, campaign_id: id, automation_id: null, variant: null } },
  ])
  expect((await shown(project, id)).counts).toMatchObject({ sent: 2, opened: 1 })
  expect((await admin.get(`/push/campaigns/${id}/stats`)).data).toMatchObject({
    open_rate: 0.5,
    hours: [{ opened: 1 }],
  })
})

test('an outcome that was unknown is known when the message is opened', async () => {
  const user = await pushed(project)
  const { id } = await campaignOf(project, { audience: { user_ids: [user.id] }, send_now: true })
  await project.drain()
  const [delivery] = (await admin.get(`/push/deliveries?user_id=${user.id}`)).data
  await project.sql(
    `update app.campaign_deliveries set status = 'failed', code = 'OUTCOME_UNKNOWN', sent_at = null where id = $1`,
    [delivery.id],
  )
  await user.post(`/client/push/deliveries/${delivery.id}/opened`)
  expect((await admin.get(`/push/deliveries?user_id=${user.id}`)).data[0]).toMatchObject({
    status: 'opened',
    code: null,
  })
  expect((await shown(project, id)).counts.opened).toBe(1)
})

test('users who merge keep one delivery of a campaign, and the newest 500 items', async () => {
  const survivor = await pushed(project)
  const email = `${randomUUID()}@example.com`
  await survivor.patch('/client/users/me', { properties: { email } })
  const other = await pushed(project)
  await campaignOf(project, { audience: { user_ids: [survivor.id, other.id] }, send_now: true })
  await send([other])
  await project.sql(`select internal.merge__push_deliveries($1, $2), internal.merge__push_inbox_items($1, $2)`, [
    survivor.id,
    other.id,
  ])
  const rows = await project.sql(
    'select campaign_id is null as is_direct from app.campaign_deliveries where app_user_id = $1 order by 1',
    [survivor.id],
  )
  expect(rows).toEqual([{ is_direct: false }, { is_direct: true }])
  expect(await inbox(survivor)).toHaveLength(3)
  expect((await admin.get(`/push/deliveries?user_id=${other.id}`)).data).toEqual([])
})

test('of two users who merge while a campaign waits for both, one gets it, and its outcomes add up', async () => {
  const [survivor, other, sent, unsent] = await Promise.all(Array.from({ length: 4 }, () => pushed(project)))
  if (!survivor || !other || !sent || !unsent) throw new Error('no users')
  const { id } = await campaignOf(project, {
    audience: { user_ids: [survivor, other, sent, unsent].map((user) => user.id) },
    send_now: true,
  })
  // later than the start
  const claims = { 'app.caller': 'worker', 'app.clock': new Date(harness.now().getTime() + 1000).toISOString() }
  await project.as('app_worker', claims, 'select api.campaign_plan_step($1)', [id])
  // claimed for both of a pair: what becomes of the one that goes nobody will know
  await project.sql(
    `update app.campaign_deliveries set due_at = due_at - interval '1 hour' where campaign_id = $1 and app_user_id = any ($2)`,
    [id, [sent.id, unsent.id]],
  )
  await project.as('app_worker', claims, 'select api.campaign_claim($1, 2, false)', [id])
  const pairs = [
    [survivor, other],
    [sent, unsent],
  ] as const
  for (const [stays, goes] of pairs)
    await project.sql('select internal.merge__push_deliveries($1, $2)', [stays.id, goes.id])
  harness.setTime(new Date(harness.now().getTime() + 180_000))
  await project.drain()
  harness.setTime(null)
  const left = await project.sql('select app_user_id, status from app.campaign_deliveries where campaign_id = $1', [id])
  expect(left).toHaveLength(2)
  expect(left).toEqual(expect.arrayContaining(pairs.map(([stays]) => ({ app_user_id: stays.id, status: 'sent' }))))
  expect(await shown(project, id)).toMatchObject({
    status: 'sent',
    counts: { targeted: 4, sent: 2, skipped: 1, failed: 1 },
  })
})
