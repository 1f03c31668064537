import { expect } from 'vitest'
import type { Client, Project } from '#test/support/harness.ts'
import { startXp } from '#test/support/xp.ts'

/** A project for tests of achievements, and the words that these tests speak. */
export const startAchievements = async () => {
  const { harness, project, someone, emitted, me, ledger } = await startXp()
  const { admin } = project

  let made = 0
  /** An achievement, and an event, of its own for each test. */
  const define = async (criteria: Record<string, unknown> = {}, more: object = {}, on: Project = project) => {
    made += 1
    const key = `achievement-${made}`
    const answer = await on.admin.post('/achievements', {
      key,
      name: key,
      criteria: { type: 'event_count', event_name: `did ${made}`, target_value: 3, ...criteria },
      ...more,
    })
    expect(answer.status, answer.text).toBe(201)
    return { ...answer.data, event: answer.data.criteria.event_name } as { id: string; key: string; event: string }
  }
  const send = async (who: Client, event_name: string, more: object = {}) => {
    const answer = await who.post('/client/events', { event_name, ...more })
    expect(answer.status, answer.text).toBe(201)
    return answer.data.effects.achievements
  }
  const see = async (who: Client, key: string) => (await who.get(`/client/achievements/${key}`)).data
  const grant = (id: string, userId: string) => admin.post(`/achievements/${id}/grant`, { app_user_id: userId })
  const revoke = (id: string, userId: string) => admin.post(`/achievements/${id}/revoke`, { app_user_id: userId })
  return { harness, project, admin, someone, emitted, me, ledger, define, send, see, grant, revoke }
}
