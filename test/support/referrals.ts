import { afterEach, expect } from 'vitest'
import { type Answer, type Client, startHarness } from '#test/support/harness.ts'

export type Someone = Client & { readonly id: string }

/** A project, and short words for what tests of referrals do all the time; each test begins with empty defaults. */
export const startReferrals = async () => {
  const harness = await startHarness()
  const project = await harness.project()
  const { admin } = project
  afterEach(async () => {
    harness.setTime(null)
    await setDefaults({ reward_referrer: {}, reward_referee: {}, max_uses: null, qualify_event: null, share_url: null })
  })

  const setDefaults = async (fields: Record<string, unknown>) => {
    const answer = await admin.patch('/referrals/defaults', fields)
    expect(answer.status, answer.text).toBe(200)
    return answer.data
  }
  const refused = (answer: Answer, status: number, code: string, details?: object) => {
    expect([answer.status, answer.error?.code], answer.text).toEqual([status, code])
    if (details) expect(answer.error?.details).toMatchObject(details)
  }
  /** With a server key's client: sessions end after an hour, server keys do not. */
  const someone = async (): Promise<Someone> => {
    const { id } = await project.user()
    return { id, ...project.onBehalfOf(id) }
  }
  const known = async () => {
    const user = await someone()
    await verify(user)
    return user
  }
  const verify = (user: Someone) => project.sql('update app.users set email_verified = true where id = $1', [user.id])
  const promo = async (fields: Record<string, unknown> = {}) => {
    const answer = await admin.post('/referrals', fields)
    expect(answer.status, answer.text).toBe(201)
    return answer.data
  }
  const mine = async (user: Someone) => (await user.get('/client/referrals/me')).data
  const claim = (user: Someone, code: string) => user.post('/client/referrals/claim', { code })
  const claimed = async (user: Someone, code: string) => {
    const answer = await claim(user, code)
    expect(answer.status, answer.text).toBe(201)
    return answer.data
  }
  const xp = async (user: Someone) => (await user.get('/client/xp')).data.total
  const brought = async (user: Someone) => (await user.get('/client/referrals/me/claims')).body
  const states = async (user: Someone) => (await brought(user)).data.map(({ state }: { state: string }) => state)
  const uses = async (id: string) =>
    (await project.sql('select uses from app.referral_codes where id = $1', [id]))[0].uses
  const eventsOf = (user: Someone) =>
    project.sql(
      `select properties from app.engagement_events where app_user_id = $1 and event_name = 'svc.referral.claimed' order by id`,
      [user.id],
    )
  const days = (n: number) => harness.advance(n * 86_400)
  return {
    harness,
    project,
    admin,
    setDefaults,
    refused,
    someone,
    known,
    verify,
    promo,
    mine,
    claim,
    claimed,
    xp,
    brought,
    states,
    uses,
    eventsOf,
    days,
  }
}
