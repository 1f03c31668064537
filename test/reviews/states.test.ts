import { randomUUID } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { createReviews } from '#test/support/reviews.ts'

const harness = await startHarness()
const { project, admin, put, written, subject, list, settings, move, statusOf, told, rule, items, proof } =
  await createReviews(harness)

beforeEach(async () => {
  await project.sql('update app.moderation_rules set is_active = false')
  await settings({ reviews_auto_publish: true })
})

const decide = async (id: string, verb: string) => {
  const [item] = (await items(id)).filter(({ status }) => status === 'pending')
  const answer = await admin.post(`/moderation/queue/${item?.['id']}/${verb}`, {})
  expect(answer.status, answer.text).toBe(200)
}
const report = (who: Awaited<ReturnType<typeof project.user>>, id: string) =>
  who.post(`/client/reviews/${id}/report`, { reason: 'spam' })

test('without auto-publishing a review waits without an item, and is published once', async () => {
  await settings({ reviews_auto_publish: false })
  const [user, of] = [await project.user(), await subject()]
  const { id, status } = await written(user, { ...of, rating: 3, body: 'text' })
  expect([status, await items(id), await told(user.id)]).toEqual(['pending', [], []])
  expect((await list(user, of)).body.summary.count).toBe(0)
  expect((await move(id, 'published')).data).toMatchObject({ id, status: 'published' })
  const event = { review_id: id, ...of, rating: 3 }
  expect(await told(user.id)).toEqual([event])
  expect((await written(user, { ...of, rating: 4, body: 'text' })).status).toBe('pending')
  expect((await move(id, 'published')).status).toBe(200)
  expect(await told(user.id)).toEqual([event])
  const feed = await user.get('/client/feeds/me')
  expect(feed.data).toMatchObject([{ action: 'review.published', target_id: id, metadata: { rating: 3 } }])
  await proof()
})

test('the moves of an administrator', async () => {
  const user = await project.user()
  const of = await subject()
  const { id } = await written(user, of)
  const moves = {
    pending: ['published', 'rejected'],
    published: ['hidden'],
    hidden: ['published'],
    rejected: ['published'],
  } as const
  for (const [from, allowed] of Object.entries(moves))
    for (const to of Object.keys(moves)) {
      await project.sql('update app.reviews set status = $2 where id = $1', [id, from])
      const answer = await move(id, to)
      if (to === from || (allowed as readonly string[]).includes(to))
        expect([answer.status, answer.data?.status], `${from} ${to}`).toEqual([200, to])
      else {
        expectRefusal(answer, 409, 'INVALID_TRANSITION')
        expect(answer.error?.details).toEqual({ from, to })
      }
      await proof()
    }
  expectInvalid(await move(id, 'gone'), 'status')
  expectRefusal(await move(randomUUID(), 'hidden'), 404, 'NOT_FOUND')
})

test('a rule that blocks refuses the write, and nothing changes', async () => {
  await rule('casino', 'block')
  const [user, of] = [await project.user(), await subject()]
  expectRefusal(await put(user, { ...of, title: 'My Casino' }), 400, 'CONTENT_REJECTED')
  const { id } = await written(user, { ...of, rating: 2, body: 'fine' })
  expectRefusal(await put(user, { ...of, rating: 5, body: 'a casino' }), 400, 'CONTENT_REJECTED')
  expect((await list(user, of)).data).toMatchObject([{ id, rating: 2, body: 'fine' }])
  expect(await items(id)).toEqual([])
  await proof()
})

test.each(['queue', 'hide'])('a rule with %s makes it pending; the queue publishes or rejects it', async (action) => {
  await rule('casino', action)
  for (const [verb, then] of [
    ['approve', 'published'],
    ['reject', 'rejected'],
  ] as const) {
    const [user, of] = [await project.user(), await subject()]
    const { id, status } = await written(user, { ...of, rating: 3, body: 'a casino' })
    expect(status).toBe('pending')
    expect(await items(id)).toMatchObject([{ status: 'pending', snapshot: { rating: 3, text: 'a casino' } }])
    await decide(id, verb)
    expect([await statusOf(id), (await told(user.id)).length]).toEqual([then, then === 'published' ? 1 : 0])
    await proof()
  }
})

test('an edit of a published or pending review goes through the rules again', async () => {
  await rule('casino', 'queue')
  const [user, of] = [await project.user(), await subject()]
  const { id } = await written(user, { ...of, body: 'fine' })
  expect((await written(user, { ...of, body: 'a casino' })).status).toBe('pending')
  expect((await written(user, { ...of, body: 'a casino' })).status).toBe('pending')
  expect((await written(user, { ...of, body: 'fine again' })).status).toBe('published')
  // the item is still open, and no longer hides
  expect(await items(id)).toMatchObject([{ status: 'pending', is_hidden: false }])
  await decide(id, 'reject')
  expect(await statusOf(id)).toBe('hidden')
  expect(await told(user.id)).toHaveLength(1)
  await proof()
})

test.each(['rejected', 'hidden'])(
  'an edit of a %s review waits for a decision, through further edits',
  async (from) => {
    const [user, of] = [await project.user(), await subject()]
    const { id } = await written(user, { ...of, body: 'one' })
    await move(id, 'hidden')
    if (from === 'rejected') await project.sql(`update app.reviews set status = 'rejected' where id = $1`, [id])
    expect((await written(user, { ...of, body: 'one' })).status).toBe(from)
    expect((await written(user, { ...of, body: 'two' })).status).toBe('pending')
    expect((await written(user, { ...of, body: 'three' })).status).toBe('pending')
    expect((await move(id, 'published')).data.status).toBe('published')
    expect((await written(user, { ...of, body: 'four' })).status).toBe('published')
    await proof()
  },
)

test('an edit is caught while it waits for a decision: the queue publishes it', async () => {
  await rule('casino', 'hide')
  const [user, of] = [await project.user(), await subject()]
  const { id } = await written(user, { ...of, body: 'one' })
  await move(id, 'hidden')
  expect((await written(user, { ...of, body: 'a casino' })).status).toBe('pending')
  await decide(id, 'approve')
  expect(await statusOf(id)).toBe('published')
  expect((await written(user, { ...of, body: 'fine' })).status).toBe('published')
})

test('reports: received once, not of one’s own, not of what is not published', async () => {
  const [user, reader, of] = [await project.user(), await project.user(), await subject()]
  const { id } = await written(user, { ...of, body: 'text' })
  const first = await report(reader, id)
  expect([first.status, first.data]).toEqual([201, { id: expect.any(String), status: 'received' }])
  expect(await report(reader, id)).toMatchObject({ status: 200, data: first.data })
  expectRefusal(await report(user, id), 400, 'SELF_REPORT')
  expectInvalid(await reader.post(`/client/reviews/${id}/report`, { reason: 'dull' }), 'reason')
  await decide(id, 'approve')
  expect(await statusOf(id)).toBe('published')
  await move(id, 'hidden')
  expectRefusal(await report(await project.user(), id), 404, 'SUBJECT_NOT_FOUND')
  expectRefusal(await report(user, id), 400, 'SELF_REPORT')
  expectRefusal(await report(reader, randomUUID()), 404, 'SUBJECT_NOT_FOUND')
})

test('a threshold of reports hides a review, and the queue decides', async () => {
  const made = await admin.post('/moderation/rules', {
    name: 'Reports',
    rule_type: 'report_threshold',
    config: { count: 2, window_hours: 1, applies_to: ['review'] },
  })
  expect(made.status, made.text).toBe(201)
  const [user, of] = [await project.user(), await subject()]
  const { id } = await written(user, { ...of, body: 'text' })
  await report(await project.user(), id)
  expect(await statusOf(id)).toBe('published')
  await report(await project.user(), id)
  expect(await statusOf(id)).toBe('hidden')
  expect((await list(user, of)).body).toMatchObject({ total: 0, summary: { count: 0 } })
  await decide(id, 'approve')
  expect(await statusOf(id)).toBe('published')
  // published by hand while the queue hides it: later reports hide it again
  const [one, two] = [await project.user(), await project.user()]
  await report(one, id)
  await report(two, id)
  expect(await statusOf(id)).toBe('hidden')
  await move(id, 'published')
  await report(await project.user(), id)
  expect(await statusOf(id)).toBe('hidden')
  await decide(id, 'reject')
  expect(await statusOf(id)).toBe('hidden')
  await proof()
})

test('replies: a second one takes the place of the first, and an edit keeps it', async () => {
  const [user, of] = [await project.user(), await subject()]
  const { id, updated_at } = await written(user, of)
  const reply = (body: unknown) => admin.put(`/reviews/${id}/reply`, { body })
  harness.advance(60)
  const first = await reply('Thanks')
  expect(first.data.reply).toEqual({ body: 'Thanks', at: expect.any(String) })
  expect(first.data.updated_at).toBe(updated_at)
  harness.advance(60)
  const second = await reply('Thank you')
  expect(second.data.reply.at).not.toBe(first.data.reply.at)
  expect((await written(user, { ...of, rating: 1 })).reply).toEqual(second.data.reply)
  expect((await list(user, of)).data[0].reply).toEqual(second.data.reply)
  for (const body of ['', 'x'.repeat(4001), null]) expectInvalid(await reply(body), 'body')
  expect((await admin.delete(`/reviews/${id}/reply`)).data).toEqual({ deleted: true })
  expectRefusal(await admin.delete(`/reviews/${id}/reply`), 404, 'NOT_FOUND')
  expectRefusal(await admin.put(`/reviews/${randomUUID()}/reply`, { body: 'x' }), 404, 'NOT_FOUND')
  expectRefusal(await admin.delete(`/reviews/${randomUUID()}/reply`), 404, 'NOT_FOUND')
  harness.setTime(null)
})

test('an administrator deletes a review, and everything is in the audit trail', async () => {
  const [user, of] = [await project.user(), await subject()]
  const { id } = await written(user, of)
  await move(id, 'hidden')
  await admin.put(`/reviews/${id}/reply`, { body: 'No' })
  await admin.delete(`/reviews/${id}/reply`)
  expect((await admin.delete(`/reviews/${id}`)).data).toEqual({ deleted: true })
  expectRefusal(await admin.delete(`/reviews/${id}`), 404, 'NOT_FOUND')
  expect((await list(user, of)).body.total).toBe(0)
  const rows = await project.sql(
    'select action from app.audit_events where target_id = $1 order by occurred_at, position',
    [id],
  )
  expect(rows.map(({ action }) => action)).toEqual([
    'reviews.update',
    'reviews.reply',
    'reviews.reply_delete',
    'reviews.delete',
  ])
  await proof()
})
