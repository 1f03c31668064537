import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { createReviews } from '#test/support/reviews.ts'
import { sized } from '#test/support/sized.ts'

const harness = await startHarness()
const { project, admin, subject, put, proof } = await createReviews(harness)

const act = fc.record({
  kind: fc.constantFrom('put', 'put', 'put', 'put', 'move', 'move', 'vote', 'unvote', 'remove', 'forget', 'user'),
  who: fc.nat(5),
  what: fc.nat(2),
  review: fc.nat(20),
  rating: fc.integer({ min: 1, max: 5 }),
  status: fc.constantFrom('published', 'hidden', 'rejected', 'published'),
})

/** What users and administrators do, without limits of a day. */
const play = async () => {
  const subjects = [await subject(), await subject(), { subject_type: 'app' }]
  const users = await Promise.all(Array.from({ length: 6 }, async () => (await project.user()).id))
  return async ({ kind, who, what, review, rating, status }: typeof act extends fc.Arbitrary<infer T> ? T : never) => {
    const me = project.onBehalfOf(users[who] as string)
    const ids: string[] = (await project.sql('select id from app.reviews order by id')).map(({ id }) => id)
    const id = ids[review % Math.max(ids.length, 1)]
    if (kind === 'put') {
      await project.sql(`delete from app.rate_limits`)
      return put(me, { ...subjects[what], rating, body: `${rating}` })
    }
    if (kind === 'user') {
      const gone = users[who]
      users[who] = (await project.user()).id
      return admin.delete(`/users/${gone}`)
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
      for (const one of acts) expect((await doing(one)).status).toBeLessThan(500)
      await proof()
      await project.sql('delete from app.reviews')
      await proof()
    }),
    { numRuns: sized(5, 40), seed: Number(process.env['FUZZ_SEED'] ?? 43), endOnFailure: true },
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
