import { afterEach, beforeEach, expect } from 'vitest'
import { type Client, startHarness, type User } from '#test/support/harness.ts'

/** A harness and a project with the helpers of the tests of moderation. Each test begins without active rules. */
export const startModeration = async () => {
  const harness = await startHarness()
  const project = await harness.project()
  const { admin } = project

  // one rule of a test is not to read the texts of the next
  beforeEach(() => project.sql('update app.moderation_rules set is_active = false'))
  afterEach(() => harness.setTime(null))

  const define = async (rule_type: string, config: object, fields: object = {}) => {
    await project.sql('delete from app.moderation_rules where not is_active')
    const rule = await admin.post('/moderation/rules', { name: 'Rule', rule_type, config, ...fields })
    expect(rule.status, rule.text).toBe(201)
    return rule.data as { id: string }
  }
  const word = (words: string[], more: object = {}) => define('keyword', { words, ...more })
  const queue = async (status = 'pending') =>
    (await admin.get(`/moderation/queue?status=${status}&limit=200`)).data as Record<string, any>[]
  const itemOf = async (id: string, status = 'pending') =>
    (await queue(status)).find((item) => item['subject_id'] === id)
  const report = (from: Client, subject_type: string, subject_id: string, reason = 'spam', more: object = {}) =>
    from.post('/client/moderation/reports', { subject_type, subject_id, reason, ...more })
  const move = (id: string, verb: string, body: object = {}) => admin.post(`/moderation/queue/${id}/${verb}`, body)
  const rename = (user: Client, display_name: string) => user.patch('/client/users/me', { display_name })
  const nameOf = async (user: User) =>
    (await project.sql('select display_name from app.users where id = $1', [user.id]))[0].display_name
  const events = (user: User) =>
    project.sql(
      `select event_name, properties from app.engagement_events where app_user_id = $1 and event_name like 'svc.moderation.%' order by received_at, id`,
      [user.id],
    )
  return { harness, project, admin, define, word, queue, itemOf, report, move, rename, nameOf, events }
}
