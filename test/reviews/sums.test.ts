import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { createReviews } from '#test/support/reviews.ts'
import { sized } from '#test/support/sized.ts'

const harness = await startHarness()
const { project, admin, subject, put, proof, rule } = await createReviews(harness)
await rule('awful', 'queue')

const act = fc.record({
  kind: fc.constantFrom(
    ...([
      'put',
      'put',
      'put',
      'put',
      'caught',
      'decide',
      'move',
      'move',
      'vote',
      'unvote',
      'remove',
      'forget',
    ] as const),
    ...(['user', 'merge'] as const),
  ),
  who: fc.nat(5),
  what: fc.nat(4),
  review: fc.nat(20),
  rating: fc.integer({ min: 1, max: 5 }),
  status: fc.constantFrom('published', 'hidden', 'rejected', 'published'),
})

/** Acts that were done: an act of which none ever is would test nothing. */
const done = new Set<string>()

/** What users and administrators do, without limits of a day. */
const play = async () => {
  const users = await Promise.all(Array.from({ length: 6 }, () => project.user()))
  // two of the users are reviewed themselves
  const about = (n: number) => ({ subject_type: 'user', subject_id: users[n]?.id })
  const [one, two] = [await subject(), await subject()]
  const subjectOf = (what: number) => [one, two, { subject_type: 'app' }, about(0), about(1)][what]
  return async ({ kind, who, what, review, rating, status }: typeof act extends fc.Arbitrary<infer T> ? T : never) => {
    const user = users[who] as (typeof users)[number]
    const me = project.onBehalfOf(user.id)
    const ids: string[] = (await project.sql('select id from app.reviews order by id')).map(({ id }) => id)
    const id = ids[review % Math.max(ids.length, 1)]
    if (kind === 'put' || kind === 'caught') {
      await project.sql(`delete from app.rate_limits`)
      return put(me, { ...subjectOf(what), rating, body: kind === 'put' ? `${rating}` : `awful ${rating}` })
    }
    if (kind === 'decide') {
      const open = await project.sql(`select id from app.moderation_items where status = 'pending' order by id`)
      const item = open[review % Math.max(open.length, 1)]
      return item ? admin.post(`/moderation/queue/${item.id}/${rating > 2 ? 'approve' : 'reject'}`) : { status: 404 }
    }
    if (kind === 'user') {
      users[who] = await project.user()
      return admin.delete(`/users/${user.id}`)
    }
    if (kind === 'merge') {
      const other = users[(who + 1) % users.length] as (typeof users)[number]
      users[(who + 1) % users.length] = await project.user()
      return user.post('/client/auth/merge', { from_session_token: other.sessionToken })
    }
    if (!id) return { status: 404 }
    if (kind === 'move') return admin.patch(`/reviews/${id}`, { status })
    if (kind === 'vote') return me.post(`/client/reviews/${id}/helpful`)
    if (kind === 'unvote') return me.delete(`/client/reviews/${id}/helpful`)
    if (kind === 'remove') return admin.delete(`/reviews/${id}`)
    return me.delete(`/client/reviews/${id}`)
  }
}

test('whatever is written, moved, voted and deleted, sums and counts are what a plain aggregate says', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 30, maxLength: 60 }), async (acts) => {
      const doing = await play()
      for (const one of acts) {
        const { status } = await doing(one)
        expect(status).toBeLessThan(500)
        if (status < 300) done.add(one.kind)
      }
      await proof()
      await project.sql('delete from app.reviews')
      await proof()
    }),
    { numRuns: sized(5, 40), seed: Number(process.env['FUZZ_SEED'] ?? 43), endOnFailure: true },
  )
  expect([...done].sort()).toEqual(
    ['caught', 'decide', 'forget', 'merge', 'move', 'put', 'remove', 'unvote', 'user', 'vote'].sort(),
  )
})

test('and at once: nobody is refused for a deadlock', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 40, maxLength: 60 }), async (acts) => {
      const doing = await play()
      for (let from = 0; from < acts.length; from += 8) {
        const answers = await Promise.all(acts.slice(from, from + 8).map(doing))
        for (const { status } of answers) expect(status).toBeLessThan(500)
      }
      await proof()
    }),
    { numRuns: sized(3, 20), seed: Number(process.env['FUZZ_SEED'] ?? 44), endOnFailure: true },
  )
})
