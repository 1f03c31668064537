import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { createReviews } from '#test/support/reviews.ts'
import { meetingBehind } from '#test/support/transaction.ts'

const harness = await startHarness()
const { project, admin, written, subject, list, move, proof } = await createReviews(harness)

const review = async () => {
  const [author, of] = [await project.user(), await subject()]
  return { author, of, id: (await written(author, of)).id as string }
}
const at = (id: string) => `/client/reviews/${id}/helpful`

test('a vote counts once, and is taken back once', async () => {
  const { id } = await review()
  const user = await project.user()
  const answer = (status: number, helpful_count: number, voted: boolean) => ({
    status,
    data: { id, helpful_count, voted },
  })
  expect(await user.delete(at(id))).toMatchObject(answer(200, 0, false))
  expect(await user.post(at(id))).toMatchObject(answer(201, 1, true))
  expect(await user.post(at(id))).toMatchObject(answer(200, 1, true))
  expect(await (await project.user()).post(at(id))).toMatchObject(answer(201, 2, true))
  expect(await user.delete(at(id))).toMatchObject(answer(200, 1, false))
  expect(await user.delete(at(id))).toMatchObject(answer(200, 1, false))
  await proof()
})

test('nobody votes for their own review, or for one that is not published', async () => {
  const { author, id } = await review()
  const user = await project.user()
  expectRefusal(await author.post(at(id)), 400, 'SELF_VOTE')
  expectRefusal(await author.delete(at(id)), 400, 'SELF_VOTE')
  await move(id, 'hidden')
  for (const call of [
    user.post(at(id)),
    user.delete(at(id)),
    user.post(at(randomUUID())),
    user.delete(at(randomUUID())),
  ])
    expectRefusal(await call, 404, 'NOT_FOUND')
})

test('an edit keeps votes, and a deleted voter’s goes', async () => {
  const { author, of, id } = await review()
  const voters = await Promise.all(Array.from({ length: 3 }, () => project.user()))
  for (const voter of voters) await voter.post(at(id))
  expect((await written(author, { ...of, rating: 1 })).helpful_count).toBe(3)
  expect((await admin.delete(`/users/${voters[0]?.id}`)).status).toBe(200)
  expect((await list(author, of)).data[0].helpful_count).toBe(2)
  await proof()
})

test('twenty users vote at once while others edit and take back: the count is exact', async () => {
  const { author, of, id } = await review()
  const users = await Promise.all(Array.from({ length: 20 }, () => project.user()))
  const answers = await meetingBehind(project.database, `select from app.reviews where id = '${id}' for update`, () => [
    ...users.map((user) => user.post(at(id))),
    ...users.slice(0, 5).map((user) => user.post(at(id))),
    written(author, { ...of, rating: 2 }).then((data) => ({ status: 200, data })),
  ])
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(20)
  expect((await list(author, of)).data[0]).toMatchObject({ helpful_count: 20, rating: 2 })
  await Promise.all(users.slice(0, 8).flatMap((user) => [user.delete(at(id)), user.delete(at(id))]))
  expect((await list(author, of)).data[0].helpful_count).toBe(12)
  await proof()
})

test('users who voted for each other are deleted at once, and no request fails', async () => {
  for (let n = 0; n < 6; n += 1) {
    const of = await subject()
    const users = await Promise.all(Array.from({ length: 4 }, () => project.user()))
    const ids: string[] = []
    for (const user of users) ids.push((await written(user, of)).id)
    for (const [i, user] of users.entries())
      for (const [j, id] of ids.entries()) if (i !== j) expect((await user.post(at(id))).status).toBe(201)
    const answers = await Promise.all(users.slice(0, 3).map((user) => admin.delete(`/users/${user.id}`)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect((await list(users[3] as (typeof users)[0], of)).body).toMatchObject({
      total: 1,
      data: [{ helpful_count: 0 }],
    })
    await proof()
  }
})
