import { randomUUID } from 'node:crypto'
import { afterEach, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { createReviews } from '#test/support/reviews.ts'

const harness = await startHarness()
const { project, admin, item, offer, someone, bought, put, written, subject, list, settings, proof } =
  await createReviews(harness)

afterEach(() => harness.setTime(null))

test('the first review of a subject is 201, a second one takes its place with 200 and keeps its id', async () => {
  const [user, of] = [await project.user(), await subject()]
  const first = await put(user, { ...of, rating: 2, title: 'Bad', body: 'No good' })
  expect(first.status, first.text).toBe(201)
  expect(first.data).toEqual({
    id: expect.any(String),
    app_user_id: user.id,
    ...of,
    rating: 2,
    title: 'Bad',
    body: 'No good',
    status: 'published',
    helpful_count: 0,
    reply: null,
    locale: null,
    app_version: null,
    created_at: expect.any(String),
    updated_at: expect.any(String),
    user: { id: user.id, display_name: expect.any(String), avatar_url: null },
    voted: false,
  })
  harness.advance(60)
  const second = await put(user, { ...of, rating: 5 })
  expect([second.status, second.data.id, second.data.created_at]).toEqual([200, first.data.id, first.data.created_at])
  expect(second.data).toMatchObject({ rating: 5, title: null, body: null })
  expect(second.data.updated_at).not.toBe(first.data.updated_at)
  harness.advance(60)
  expect((await written(user, { ...of, rating: 5 })).updated_at).toBe(second.data.updated_at)
  await proof()
})

test('twenty first reviews of one user and subject at once make one review', async () => {
  const [user, of] = [await project.user(), await subject()]
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => put(user, { ...of, rating: (n % 5) + 1 })))
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(19)
  const shown = await list(user, of)
  expect([shown.body.total, shown.body.summary.count]).toEqual([1, 1])
  await proof()
})

test('white space alone is no text; other text stays as it was sent, counted in code points', async () => {
  const user = await project.user()
  const of = await subject()
  expect(await written(user, { ...of, title: ' \t\u3000\u00a0', body: '\n' })).toMatchObject({
    title: null,
    body: null,
  })
  const long = { title: '🦊'.repeat(120), body: ` ${'é'.repeat(3998)} ` }
  expect(await written(user, { ...of, ...long })).toMatchObject(long)
  for (const title of ['x'.repeat(121), 'two\nlines']) expectInvalid(await put(user, { ...of, title }), 'title')
  expectInvalid(await put(user, { ...of, body: 'x'.repeat(4001) }), 'body')
  for (const rating of [0, 6, 2.5, '5', null, undefined]) expectInvalid(await put(user, { ...of, rating }), 'rating')
  expectInvalid(await put(user, { ...of, locale: 'x'.repeat(36) }), 'locale')
  expectInvalid(await put(user, { ...of, app_version: 'x'.repeat(65) }), 'app_version')
})

test('language and version are those of the body, else of the headers', async () => {
  const [user, of] = [await project.user(), await subject()]
  const headers = { 'accept-language': '*, pt-BR;q=0.9, en;q=0.5', 'x-app-version': '2.1.0' }
  expect(await written(user, of, headers)).toMatchObject({ locale: 'pt-BR', app_version: '2.1.0' })
  const sent = { locale: 'cy', app_version: '3.0' }
  expect(await written(user, { ...of, ...sent }, headers)).toMatchObject(sent)
  const none = { 'accept-language': '*', 'x-app-version': 'é'.repeat(3) }
  expect(await written(user, of, none)).toMatchObject({ locale: null, app_version: null })
})

test('items and entries are named by id or key, and the app by nothing or the id of the project', async () => {
  const user = await project.user()
  const thing = await item()
  const byKey = await written(user, { subject_type: 'catalog_item', subject_id: thing.key })
  expect(byKey.subject_id).toBe(thing.id)
  expect((await list(user, { subject_type: 'catalog_item', subject_id: thing.key })).body.total).toBe(1)
  const app = await put(user, { subject_type: 'app' })
  expect([app.status, app.data.subject_id]).toEqual([201, project.id])
  expect((await put(user, { subject_type: 'app', subject_id: project.id })).status).toBe(200)
  expect((await list(user, { subject_type: 'app' })).body.total).toBe(1)
  expectRefusal(await put(user, { subject_type: 'app', subject_id: randomUUID() }), 404, 'SUBJECT_NOT_FOUND')
  const entry = await admin.post('/content', { key: 'welcome', content_type: 'article', fields: { title: 'Hello' } })
  expect(entry.status, entry.text).toBe(201)
  const of = { subject_type: 'content', subject_id: 'welcome' }
  expectRefusal(await put(user, of), 404, 'SUBJECT_NOT_FOUND')
  expect((await admin.post('/content/welcome/locales/en/publish', {})).status).toBe(200)
  expect((await written(user, of)).subject_id).toBe(entry.data.id)
})

test('what is not there, or not for the caller, is no subject', async () => {
  const [user, blocker] = [await project.user(), await project.user()]
  const gone = await item({ is_active: false })
  expect((await blocker.post(`/client/friends/${user.id}/block`)).status).toBeLessThan(300)
  for (const [subject_type, subject_id] of [
    ['catalog_item', randomUUID()],
    ['catalog_item', 'nothing'],
    ['catalog_item', gone.id],
    ['content', 'nothing'],
    ['user', randomUUID()],
    ['user', 'nobody'],
    ['user', blocker.id],
    ['collection:nowhere', randomUUID()],
  ] as const) {
    expectRefusal(await put(user, { subject_type, subject_id }), 404, 'SUBJECT_NOT_FOUND')
    expectRefusal(await list(user, { subject_type, subject_id }), 404, 'SUBJECT_NOT_FOUND')
  }
  for (const subject_type of ['group', 'collection', 'collection:', 'collection:A', '', null])
    expectInvalid(await put(user, { subject_type, subject_id: randomUUID() }), 'subject_type')
  expectInvalid(await put(user, { subject_type: 'user' }), 'subject_id')
})

test('oneself and a row of one’s own are not reviewed, nor a row that the caller may not read', async () => {
  const [user, other] = [await project.user(), await project.user()]
  expectInvalid(await put(user, { subject_type: 'user', subject_id: user.id }), 'subject_id')
  expect((await put(user, { subject_type: 'user', subject_id: other.id })).status).toBe(201)
  for (const [name, read_policy] of [
    ['open_notes', 'public'],
    ['own_notes', 'owner'],
  ] as const) {
    const made = await admin.post('/collections', { name, columns: [{ name: 'body', type: 'text' }], read_policy })
    expect(made.status, made.text).toBe(201)
  }
  const row = async (name: string) => (await other.post(`/client/collections/${name}`, { body: 'text' })).data.id
  const [open, own] = [await row('open_notes'), await row('own_notes')]
  const of = { subject_type: 'collection:open_notes', subject_id: open }
  expect((await put(user, of)).status).toBe(201)
  expectInvalid(await put(other, of), 'subject_id')
  expectRefusal(await put(user, { subject_type: 'collection:own_notes', subject_id: own }), 404, 'SUBJECT_NOT_FOUND')
  expectRefusal(await put(user, { ...of, subject_id: own }), 404, 'SUBJECT_NOT_FOUND')
  expect((await other.delete(`/client/collections/open_notes/${open}`)).status).toBe(200)
  expectRefusal(await put(user, of), 404, 'SUBJECT_NOT_FOUND')
})

test('the twenty-first well-formed request within 24 hours is refused, whatever the others came to', async () => {
  const [of, user] = [await subject(), project.onBehalfOf((await project.user()).id)]
  harness.advance(1)
  expectInvalid(await put(user, { ...of, rating: 7 }), 'rating')
  for (let n = 0; n < 10; n += 1) await put(user, { ...of, rating: (n % 5) + 1 })
  for (let n = 0; n < 10; n += 1)
    expectRefusal(await put(user, { ...of, subject_id: randomUUID() }), 404, 'SUBJECT_NOT_FOUND')
  const refused = await put(user, { ...of, rating: 1 })
  expectRefusal(refused, 429, 'RATE_LIMITED')
  expect(Number(refused.headers.get('retry-after'))).toBe(86_400)
  const id = (await list(user, of)).data[0].id
  expect((await user.delete(`/client/reviews/${id}`)).data).toEqual({ deleted: true })
  harness.advance(86_401)
  expect((await put(user, of)).status).toBe(201)
})

test('where buyers only review items, the ledger or a purchase that was not refunded makes one', async () => {
  await settings({ reviews_require_purchase: true })
  const [user, thing] = [await project.user(), await item()]
  const of = { subject_type: 'catalog_item', subject_id: thing.id }
  expectRefusal(await put(user, of), 403, 'NOT_ELIGIBLE')
  expect((await put(user, { subject_type: 'app' })).status).toBe(201)
  const granted = await admin.post('/inventory/grant', {
    app_user_id: user.id,
    catalog_item_key: thing.key,
    quantity: 1,
    reason: 'x',
  })
  expect(granted.status, granted.text).toBe(201)
  const used = await user.post(`/client/inventory/${thing.key}/consume`, { quantity: 1 })
  expect(used.status, used.text).toBeLessThan(300)
  expect((await put(user, of)).status).toBe(201)
  const pack = { item_type: 'currency_pack', use_effect: { currencies: [{ currency_code: 'COINS', amount: 1 }] } }
  for (const at of [await offer(), await offer({}, {}, pack)]) {
    const buyer = await someone(10)
    const bundle = { subject_type: 'catalog_item', subject_id: at.item.id }
    expectRefusal(await put(buyer.server, bundle), 403, 'NOT_ELIGIBLE')
    const { purchase } = await bought(buyer.user, at)
    expect((await put(buyer.server, bundle)).status).toBe(201)
    expect((await admin.post(`/purchases/${purchase.id}/refund`, {})).status).toBe(200)
    expect((await put(buyer.server, { ...bundle, rating: 1 })).status).toBe(200)
    await buyer.user.delete(`/client/reviews/${(await list(buyer.user, bundle)).data[0].id}`)
    expectRefusal(await put(buyer.server, bundle), 403, 'NOT_ELIGIBLE')
  }
  await settings({ reviews_require_purchase: false })
  expect((await put(await project.user(), of)).status).toBe(201)
})

test('a muted or banned user writes none, and a user deletes only their own', async () => {
  await settings({ reviews_require_purchase: false })
  const [user, other, of] = [await project.user(), await project.user(), await subject()]
  const { id } = await written(user, of)
  expectRefusal(await other.delete(`/client/reviews/${id}`), 404, 'NOT_FOUND')
  await project.sql(`update app.users set muted_until = internal.now() + interval '1 hour' where id = $1`, [user.id])
  expectRefusal(await put(user, { ...of, rating: 1 }), 403, 'USER_MUTED')
  expect((await user.delete(`/client/reviews/${id}`)).data).toEqual({ deleted: true })
  expectRefusal(await user.delete(`/client/reviews/${id}`), 404, 'NOT_FOUND')
  expect((await admin.patch(`/users/${other.id}`, { is_banned: true })).status).toBe(200)
  expectRefusal(await put(project.onBehalfOf(other.id), of), 403, 'USER_BANNED')
  await proof()
})
