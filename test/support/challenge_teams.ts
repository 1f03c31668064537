import { expect } from 'vitest'
import { startChallenges } from '#test/support/challenges.ts'
import type { Client, Project } from '#test/support/harness.ts'

type World = Awaited<ReturnType<typeof startChallenges>>
export type Someone = Awaited<ReturnType<World['someone']>>

/** A project for tests of challenges that groups play. */
export const startTeams = async () => {
  const world = await startChallenges()
  const { harness, project, admin, someone, define, see } = world
  const defineTeams = (rules: Record<string, unknown> = {}, on: Project = project) =>
    define({ team_mode: 'group', reward_xp: 10, ...rules }, on)
  /** A private group; its first member owns it. */
  const group = async (...members: Someone[]) => {
    const [owner, ...others] = members
    const made = await (owner as Someone).post('/client/groups', { name: 'A team', is_public: false })
    expect(made.status, made.text).toBe(201)
    for (const { id } of others) await enter(made.data.id, id)
    return made.data.id as string
  }
  const enter = async (groupId: string, app_user_id: string) =>
    expect((await admin.post(`/groups/${groupId}/members`, { app_user_id })).status).toBe(201)
  const some = (count: number) => Promise.all(Array.from({ length: count }, () => someone()))
  const mine = async (who: Client, id: string) => (await see(who, id)).my
  const join = (who: Client, id: string, group_id?: string) =>
    who.post(`/client/challenges/${id}/join`, group_id ? { group_id } : undefined)

  /** Lets the background do what is due. */
  const runTeamTasks = async () => {
    harness.advance(1)
    await project.drain()
  }
  return { ...world, defineTeams, group, enter, some, mine, join, runTeamTasks }
}
