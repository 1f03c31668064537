import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { createReviews } from '#test/support/reviews.ts'
import { meetingBehind } from '#test/support/transaction.ts'

const harness = await startHarness()
const { project, admin, written, subject, list, put, proof } = await createReviews(harness)

const merge = async (me: Awaited<ReturnType<typeof project.user>>, guest: Awaited<ReturnType<typeof project.user>>) => {
  const answer = await me.post('/client/auth/merge', { from_session_token: guest.sessionToken })
  expect(answer.status, answer.text).toBe(200)
  return answer.data.merged
}

test('a merge moves reviews; of two of one subject the survivor’s stays, and votes for one’s own go', async () => {
  const [me, guest, other] = [await project.user(), await project.user(), await project.user()]
  const [one, two] = [await subject(), await subject()]
  const mine = await written(me, { ...one, rating: 5 })
  await written(guest, { ...one, rating: 1 })
  const moved = await written(guest, { ...two, rating: 2 })
  const others = await written(other, { ...two, rating: 3 })
  for (const [who, id] of [
    [me, moved.id],
    [guest, mine.id],
    [me, others.id],
    [guest, others.id],
    [other, moved.id],
  ] as const)
    expect((await who.post(`/client/reviews/${id}/helpful`)).status).toBe(201)
  await written(me, { subject_type: 'user', subject_id: guest.id })
  await written(guest, { subject_type: 'user', subject_id: me.id })
  await written(other, { subject_type: 'user', subject_id: guest.id, rating: 2 })
  expect((await guest.post('/client/reviews/prompt-shown')).status).toBe(201)
  expect(await merge(me, guest)).toMatchObject({ reviews: 1, review_prompts: 1 })
  expect((await list(me, one)).data).toMatchObject([{ id: mine.id, rating: 5, helpful_count: 0 }])
  expect((await list(me, two)).data).toMatchObject([
    { id: others.id, helpful_count: 1, voted: true },
    { id: moved.id, app_user_id: me.id, rating: 2, helpful_count: 1 },
  ])
  const about = await list(other, { subject_type: 'user', subject_id: me.id })
  expect(about.body).toMatchObject({ total: 1, data: [{ app_user_id: other.id, rating: 2 }] })
  expect((await me.get('/client/reviews/mine')).body.total).toBe(2)
  await proof()
})

test('a merge leaves no review of a row of one’s own, whichever of the two it was', async () => {
  const [me, guest, other] = [await project.user(), await project.user(), await project.user()]
  const made = await admin.post('/collections', {
    ...{ name: 'merged_notes', columns: [{ name: 'body', type: 'text' }], read_policy: 'public' },
  })
  expect(made.status, made.text).toBe(201)
  const row = async (who: typeof me) => (await who.post('/client/collections/merged_notes', { body: 'text' })).data.id
  const of = (subject_id: string) => ({ subject_type: 'collection:merged_notes', subject_id })
  const [mine, theirs, others] = [of(await row(me)), of(await row(guest)), of(await row(other))]
  await written(me, theirs)
  await written(guest, mine)
  await written(guest, others)
  await written(other, { ...theirs, rating: 2 })
  expect(await merge(me, guest)).toMatchObject({ reviews: 1 })
  expect((await list(other, mine)).body).toMatchObject({ total: 0, summary: { average: null } })
  expect((await list(other, theirs)).body).toMatchObject({ total: 1, summary: { average: 2 } })
  expect((await me.get('/client/reviews/mine')).data).toMatchObject([others])
  await proof()
})

test('a review of the survivor stays before one of the merged user by the same author', async () => {
  const [me, guest, other] = [await project.user(), await project.user(), await project.user()]
  const kept = await written(other, { subject_type: 'user', subject_id: me.id, rating: 5 })
  await written(other, { subject_type: 'user', subject_id: guest.id, rating: 1 })
  await merge(me, guest)
  expect((await other.get('/client/reviews/mine')).data).toMatchObject([{ id: kept.id, rating: 5 }])
  await proof()
})

test('the export has reviews, votes and the prompt; all go with the user, and sums fall', async () => {
  const [user, other, of] = [await project.user(), await project.user(), await subject()]
  const { id } = await written(user, { ...of, rating: 1, body: 'mine' })
  const kept = await written(other, { ...of, rating: 5 })
  await written(other, { subject_type: 'user', subject_id: user.id, body: 'about you' })
  await user.post(`/client/reviews/${kept.id}/helpful`)
  await user.post('/client/reviews/prompt-shown')
  const lines = (await admin.get(`/users/${user.id}/export`)).text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const of_ = (name: string) => lines.filter(({ section }) => section === name).map(({ data }) => data)
  expect(of_('reviews')).toMatchObject([{ id, body: 'mine', status: 'published' }])
  expect(of_('review_votes')).toMatchObject([{ review_id: kept.id }])
  expect(of_('review_prompts')).toHaveLength(1)
  expect((await admin.delete(`/users/${user.id}`)).status).toBe(200)
  expect((await list(other, of)).body).toMatchObject({
    data: [{ id: kept.id, helpful_count: 0 }],
    summary: { average: 5, count: 1 },
  })
  expect((await other.get('/client/reviews/mine')).body.total).toBe(1)
  expect(await project.sql('select from app.review_prompts where app_user_id = $1', [user.id])).toEqual([])
  await proof()
})

test('reviews of users by each other, who are deleted while they write, leave exact sums', async () => {
  for (let n = 0; n < 5; n += 1) {
    const users = await Promise.all(Array.from({ length: 3 }, () => project.user()))
    const [a, b, c] = users as [(typeof users)[0], (typeof users)[0], (typeof users)[0]]
    const about = (id: string) => ({ subject_type: 'user', subject_id: id })
    await written(a, about(b.id))
    await written(b, about(a.id))
    const answers = await Promise.all([
      admin.delete(`/users/${a.id}`),
      admin.delete(`/users/${b.id}`),
      put(c, about(a.id)),
      put(c, about(b.id)),
      put(a, { ...about(b.id), rating: 1 }),
    ])
    for (const { status, text } of answers) expect(status, text).toBeLessThan(500)
    await proof()
  }
})

test('what a user begins while the user, or the subject, is deleted is refused by name', async () => {
  const [user, other, of] = [await project.user(), await project.user(), await subject()]
  const { id } = await written(other, of)
  const about = (who: typeof user) => ({ subject_type: 'user', subject_id: who.id })
  const answers = await meetingBehind(project.database, `delete from app.users where id = '${user.id}'`, () => [
    put(user, of),
    user.post(`/client/reviews/${id}/helpful`),
    user.post('/client/reviews/prompt-shown'),
    put(other, about(user)),
  ])
  const subjectGone = answers.pop()
  for (const answer of answers) expectRefusal(answer, 401, 'UNAUTHORIZED')
  expectRefusal(subjectGone as NonNullable<typeof subjectGone>, 404, 'SUBJECT_NOT_FOUND')
  await proof()
})
