import { expect } from 'vitest'
import type { Client, Harness } from '#test/support/harness.ts'
import { createShop } from '#test/support/stores.ts'

type Body = Record<string, unknown>

/** A project with what tests of reviews ask again and again, on top of the shop's. */
export const createReviews = async (harness: Harness) => {
  const shop = await createShop(harness)
  const { project, item } = shop
  const { admin } = project
  const put = (who: Client, body: Body, headers: Record<string, string> = {}) =>
    who.put('/client/reviews', { subject_type: 'app', rating: 4, ...body }, headers)
  const written = async (...of: Parameters<typeof put>) => {
    const answer = await put(...of)
    expect(answer.status, answer.text).toBeLessThan(202)
    return answer.data
  }
  /** A subject of its own. */
  const subject = async () => ({ subject_type: 'catalog_item', subject_id: (await item()).id as string })
  const list = (who: Client, query: Record<string, string>) => who.get(`/client/reviews?${new URLSearchParams(query)}`)
  const settings = async (body: Body) => {
    const answer = await admin.put('/reviews/settings', body)
    expect(answer.status, answer.text).toBe(200)
    return answer.data
  }
  const move = (id: string, status: string) => admin.patch(`/reviews/${id}`, { status })
  const statusOf = async (id: string) =>
    (await project.sql('select status from app.reviews where id = $1', [id]))[0]?.status
  const told = async (userId: string) =>
    (
      await project.sql(
        `select properties from app.engagement_events
          where app_user_id = $1 and event_name = 'svc.review.published' order by id`,
        [userId],
      )
    ).map(({ properties }) => properties)
  /** A rule that looks for a word in reviews; ends with the test that makes it. */
  const rule = async (word: string, action: string) => {
    const answer = await admin.post('/moderation/rules', {
      name: 'Rule',
      rule_type: 'keyword',
      config: { words: [word], applies_to: ['review'], action },
    })
    expect(answer.status, answer.text).toBe(201)
    return answer.data.id as string
  }
  const items = (id: string) =>
    project.sql(
      `select id, status, is_hidden, snapshot from app.moderation_items where subject_id = $1 order by created_at, id`,
      [id],
    )
  /** Every sum and every count of votes is what a plain aggregate says. */
  const proof = async () => {
    expect(
      await project.sql(
        `with plain as (
           select r.subject_type, r.subject_id,
                  count(*) filter (where r.status = 'published' and r.rating = 1) as stars_1,
                  count(*) filter (where r.status = 'published' and r.rating = 2) as stars_2,
                  count(*) filter (where r.status = 'published' and r.rating = 3) as stars_3,
                  count(*) filter (where r.status = 'published' and r.rating = 4) as stars_4,
                  count(*) filter (where r.status = 'published' and r.rating = 5) as stars_5,
                  count(*) filter (where r.status = 'pending') as pending,
                  count(*) filter (where r.status = 'rejected') as rejected,
                  count(*) filter (where r.status = 'hidden') as hidden
             from app.reviews r group by 1, 2)
         select coalesce(p.subject_id, s.subject_id) as id, to_json(p) as plain, to_json(s) as sums
           from plain p
           full join app.review_sums s on (s.subject_type, s.subject_id) = (p.subject_type, p.subject_id)
          where case when p.subject_id is null
                     then (s.stars_1, s.stars_2, s.stars_3, s.stars_4, s.stars_5, s.pending, s.rejected, s.hidden)
                          <> (0, 0, 0, 0, 0, 0, 0, 0)
                     else to_jsonb(p) is distinct from to_jsonb(s) end`,
      ),
    ).toEqual([])
    expect(
      await project.sql(
        `select r.id from app.reviews r
          where r.helpful_count <> (select count(*) from app.review_votes v where v.review_id = r.id)`,
      ),
    ).toEqual([])
  }
  return { ...shop, admin, put, written, subject, list, settings, move, statusOf, told, rule, items, proof }
}
