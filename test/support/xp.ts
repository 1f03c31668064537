import { afterEach, expect } from 'vitest'
import { type Client, startHarness } from '#test/support/harness.ts'

/** An answer that refuses a field. */

/** A project for tests of XP, and the words that these tests speak. */
export const startXp = async () => {
  const harness = await startHarness()
  const project = await harness.project()
  afterEach(() => harness.setTime(null))
  let made = 0
  /** A rule and an event of its own for each test. */
  const rule = async (rules: Record<string, unknown> = { amount: 10 }) => {
    made += 1
    const key = `rule-${made}`
    const answer = await project.admin.post('/xp/rules', { key, name: key, event_name: `event ${made}`, ...rules })
    expect(answer.status, answer.text).toBe(201)
    return answer.data as { id: string; key: string; event_name: string }
  }
  const someone = async () => {
    const { id } = await project.user()
    return { id, ...project.onBehalfOf(id) }
  }
  /** Sends an event and answers what it did to the XP of its user. */
  const send = async (who: Client, event_name: string, more: object = {}) => {
    const answer = await who.post('/client/events', { event_name, ...more })
    expect(answer.status, answer.text).toBe(201)
    return answer.data.effects.xp
  }
  const me = async (who: Client) => {
    const answer = await who.get('/client/xp')
    expect(answer.status, answer.text).toBe(200)
    return answer.data
  }
  const ledger = (userId: string) =>
    project.sql(
      `select amount::int, total_after::int, source, source_id, rule_key, clipped_by from app.xp_transactions
        where app_user_id = $1 order by id`,
      [userId],
    )
  const emitted = async (userId: string, like = 'svc.%') =>
    project.sql(
      `select event_name, properties, is_historical from app.engagement_events where app_user_id = $1 and event_name like $2 and source = 'system'
          and event_name not like 'svc.user%' and event_name not like 'svc.session%' order by received_at, id`,
      [userId, like],
    )
  const levels = async (requested: unknown) => {
    const answer = await project.admin.put('/xp/levels', requested as object)
    expect(answer.status, answer.text).toBe(200)
    return answer.data
  }
  const grant = (userId: string, amount: number, key?: string, more: object = {}) =>
    project.admin.post(
      '/xp/grant',
      { app_user_id: userId, amount, ...more },
      key ? { 'idempotency-key': key } : undefined,
    )
  return { harness, project, rule, someone, send, me, ledger, emitted, levels, grant }
}
