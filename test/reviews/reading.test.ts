import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { dataFor } from '#test/support/graphql.ts'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { createReviews } from '#test/support/reviews.ts'

const harness = await startHarness()
const { project, admin, put, written, subject, list, move } = await createReviews(harness)

/** Reviews of a new subject with these ratings, oldest first. */
const rated = async (...ratings: number[]) => {
  const of = await subject()
  const reviews: { id: string; rating: number }[] = []
  for (const rating of ratings) reviews.push(await written(await project.user(), { ...of, rating }))
  return { of, reviews }
}
const idsOf = (answer: { data: { id: string }[] }) => answer.data.map(({ id }) => id)

test('orders, filter and pages; the summary is of all, whatever is asked', async () => {
  const { of, reviews } = await rated(4, 5, 1, 5)
  const [a, b, c, d] = reviews.map(({ id }) => id)
  const voter = await project.user()
  for (const id of [a, c]) expect((await voter.post(`/client/reviews/${id}/helpful`)).status).toBe(201)
  expect((await (await project.user()).post(`/client/reviews/${a}/helpful`)).status).toBe(201)
  const summary = { average: 3.75, count: 4, histogram: { 1: 1, 2: 0, 3: 0, 4: 1, 5: 2 } }
  const asked = async (query: Record<string, string>) => {
    const answer = await list(voter, { ...of, ...query })
    expect(answer.body.summary).toEqual(summary)
    return [idsOf(answer), answer.body.total]
  }
  expect(await asked({})).toEqual([[d, c, b, a], 4])
  expect(await asked({ sort: 'helpful' })).toEqual([[a, c, d, b], 4])
  expect(await asked({ sort: 'rating' })).toEqual([[d, b, a, c], 4])
  for (const sort of ['newest', 'helpful', 'rating']) {
    expect(await asked({ sort, rating: '5' })).toEqual([[d, b], 2])
    expect(await asked({ sort, rating: '2' })).toEqual([[], 0])
    expect(await asked({ sort, rating: '5', limit: '1', offset: '1' })).toEqual([[b], 2])
  }
  const rows = (await list(voter, { ...of })).data
  expect(rows.map(({ voted }: { voted: boolean }) => voted)).toEqual([false, true, false, true])
})

test('the average is rounded half up to two decimals, and null without reviews', async () => {
  const of = await subject()
  const user = await project.user()
  expect((await list(user, of)).body).toMatchObject({ data: [], total: 0, summary: { average: null, count: 0 } })
  // 1 five and 7 ones and so on: 9 / 8 = 1.125
  const { of: other } = await rated(1, 1, 1, 1, 1, 1, 1, 2)
  expect((await list(user, other)).body.summary.average).toBe(1.13)
})

test('the list has published reviews only, for their author too; mine has all', async () => {
  const of = await subject()
  const user = await project.user()
  const { id } = await written(user, of)
  harness.advance(1)
  const other = await written(user, { subject_type: 'app' })
  await move(id, 'hidden')
  expect((await list(user, of)).body).toMatchObject({ data: [], total: 0, summary: { count: 0 } })
  const mine = await user.get('/client/reviews/mine')
  expect(idsOf(mine)).toEqual([other.id, id])
  expect(mine.body).toMatchObject({ total: 2, data: [{ status: 'published' }, { status: 'hidden', voted: false }] })
  expect((await (await project.user()).get('/client/reviews/mine')).data).toEqual([])
})

test('a list that asks for nothing that there is', async () => {
  const user = await project.user()
  const of = await subject()
  const invalid = async (query: Record<string, string>, field: string) =>
    expectRefusal(await list(user, query), 400, 'INVALID_INPUT', field)
  await invalid({}, 'subject_type')
  await invalid({ subject_type: 'user' }, 'subject_id')
  await invalid({ subject_type: 'planet', subject_id: of.subject_id }, 'subject_type')
  await invalid({ ...of, sort: 'oldest' }, 'sort')
  for (const rating of ['0', '6', '1.5', 'five']) await invalid({ ...of, rating }, 'rating')
  expectRefusal(await list(user, { ...of, subject_id: randomUUID() }), 404, 'SUBJECT_NOT_FOUND')
})

test('where one of two users has blocked the other, a review has no name, and counts as before', async () => {
  const [author, reader, third] = [await project.user(), await project.user(), await project.user()]
  await author.patch('/client/users/me', { display_name: 'Ada', avatar_url: 'https://pictures.test/a.png' })
  const one = await subject()
  const { id } = await written(author, { ...one, rating: 3, body: 'So so' })
  const seen = async (who: typeof reader) => (await list(who, one)).body
  const named = { user: { id: author.id, display_name: 'Ada', avatar_url: 'https://pictures.test/a.png' } }
  const nameless = { id, body: 'So so', user: { id: author.id, display_name: null, avatar_url: null } }
  expect((await seen(reader)).data).toMatchObject([named])
  expect((await reader.post(`/client/friends/${author.id}/block`)).status).toBe(201)
  expect((await third.get(`/client/friends/blocked`)).status).toBe(200)
  expect(await seen(reader)).toMatchObject({ data: [nameless], total: 1, summary: { average: 3, count: 1 } })
  expect((await author.post(`/client/friends/${third.id}/block`)).status).toBe(201)
  expect((await seen(third)).data).toMatchObject([nameless])
  expect((await seen(author)).data).toMatchObject([named])
})

test('administrators list by status, rating, user and subject, and sum up', async () => {
  const { of, reviews } = await rated(5, 1)
  const [first, second] = reviews.map(({ id }) => id) as [string, string]
  await move(second, 'hidden')
  const all = async (query: Record<string, string>) => {
    const answer = await admin.get(`/reviews?${new URLSearchParams(query)}`)
    expect(answer.status, answer.text).toBe(200)
    return idsOf(answer)
  }
  const named = `catalog_item:${of.subject_id}`
  expect(await all({ subject: named })).toEqual([second, first])
  expect((await admin.get(`/reviews?subject=${named}`)).data[0]).toMatchObject({
    id: second,
    user: { id: expect.any(String) },
  })
  expect(await all({ subject: named, status: 'hidden' })).toEqual([second])
  expect(await all({ subject: named, rating: '5' })).toEqual([first])
  expect((await all({ subject: 'catalog_item' })).slice(0, 2)).toEqual([second, first])
  const author = (await admin.get(`/reviews?subject=${named}`)).data[1].app_user_id
  expect(await all({ user_id: author })).toEqual([first])
  expect(await all({ subject: `collection:notes:${of.subject_id}` })).toEqual([])
  const sum = async (query: string) => (await admin.get(`/reviews/summary${query}`)).data
  expect(await sum(`?subject=${named}`)).toEqual({
    average: 5,
    count: 1,
    histogram: { 1: 0, 2: 0, 3: 0, 4: 0, 5: 1 },
    by_status: { pending: 0, published: 1, rejected: 0, hidden: 1 },
  })
  expect((await sum('?subject=collection:notes')).average).toBeNull()
  expect((await sum('')).by_status.published).toBe(
    (await sum('?subject=catalog_item')).count + (await sum('?subject=app')).count,
  )
  for (const subject of ['planet', 'catalog_item:potion', 'collection', ':', `user:${of.subject_id}:x`])
    for (const path of ['/reviews', '/reviews/summary'])
      expectRefusal(await admin.get(`${path}?subject=${encodeURIComponent(subject)}`), 400, 'INVALID_INPUT', 'subject')
  expectRefusal(await admin.get('/reviews?status=gone'), 400, 'INVALID_INPUT', 'status')
  expectRefusal(await admin.get('/reviews?rating=9'), 400, 'INVALID_INPUT', 'rating')
  expectRefusal(await admin.get('/reviews?user_id=x'), 400, 'INVALID_INPUT', 'user_id')
})

test('users read only their own rows of the table, and write none', async () => {
  const { reviews } = await rated(5)
  const user = await project.user()
  await put(user, { subject_type: 'app' })
  const claims = { 'app.user_id': user.id, 'app.caller': 'user' }
  expect(await project.as('app_user', claims, 'select distinct app_user_id from app.reviews')).toEqual([
    { app_user_id: user.id },
  ])
  for (const attack of [
    'select from app.review_sums',
    'select from app.review_votes',
    'update app.reviews set rating = 5',
    'delete from app.reviews',
    `select internal.review_sums_add('{app}', '{${user.id}}', '{5}', '{published}', '{1}')`,
    `select internal.review_item('${reviews[0]?.id}')`,
    `select api.review_update('${reviews[0]?.id}', 'hidden')`,
    `select api.review_delete('${reviews[0]?.id}')`,
    `select api.reviews_all()`,
  ])
    await expect(project.as('app_user', claims, attack), attack).rejects.toThrow(/permission denied/)
})

test('another project has none of it', async () => {
  const { reviews } = await rated(5)
  const other = await harness.project()
  expectRefusal(await other.admin.patch(`/reviews/${reviews[0]?.id}`, { status: 'hidden' }), 404, 'NOT_FOUND')
  expect((await other.admin.get('/reviews')).data).toEqual([])
})

test('developers read reviews by GraphQL', async () => {
  await admin.patch('', { graphql_enabled: true })
  const { of, reviews } = await rated(3)
  const [reviewer] = (await admin.get(`/reviews?subject=catalog_item:${of.subject_id}`)).data
  const data = await dataFor(project, `{ user(id: "${reviewer.app_user_id}") { reviews { nodes { id rating } } } }`)
  expect(data.user.reviews.nodes).toEqual([{ id: reviews[0]?.id, rating: 3 }])
})
