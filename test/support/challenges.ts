import { expect } from 'vitest'
import type { Client, Project } from '#test/support/harness.ts'
import { startXp } from '#test/support/xp.ts'

export const day = 86_400_000

/** A project for tests of challenges, and the words that these tests speak. */
export const startChallenges = async () => {
  const { harness, project, someone, emitted, me, ledger } = await startXp()
  const from = (offset: number) => new Date(harness.now().getTime() + offset).toISOString()

  let made = 0
  /** A challenge under way, of an event of its own. */
  const define = async (rules: Record<string, unknown> = {}, on: Project = project) => {
    made += 1
    const answer = await on.admin.post('/challenges', {
      name: `Challenge ${made}`,
      start_at: from(-2 * day),
      end_at: from(2 * day),
      goal_type: 'event_count',
      goal_value: 3,
      ...(rules['goal_type'] ? {} : { event_name: `did ${made}` }),
      ...rules,
    })
    expect(answer.status, answer.text).toBe(201)
    return answer.data as { id: string; event_name: string; name: string }
  }
  const send = async (who: Client, event_name: string, more: object = {}) => {
    const answer = await who.post('/client/events', { event_name, ...more })
    expect(answer.status, answer.text).toBe(201)
    return answer.data.effects.challenges
  }
  const see = async (who: Client, id: string) => (await who.get(`/client/challenges/${id}`)).data
  return { harness, project, admin: project.admin, someone, emitted, me, ledger, from, define, send, see }
}
