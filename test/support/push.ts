import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { Project, User } from '#test/support/harness.ts'

export const message = { title: 'Hello', body: 'A message.' }

/** Registers a device of a user; answers its token. */
export const device = async (user: User, platform: 'ios' | 'android' = 'ios'): Promise<string> => {
  const token = randomUUID()
  expect((await user.post('/client/users/me/push-token', { token, platform })).status).toBe(200)
  return token
}

/** A signed-in user with a device. */
export const pushed = async (project: Project, platform: 'ios' | 'android' = 'ios') => {
  const user = await project.user()
  const token = await device(user, platform)
  return Object.assign(user, { token })
}

/** Users without a session, with a device each, in one statement; answers the first id and the last. */
export const crowd = async (project: Project, count: number, platform = 'android'): Promise<void> => {
  await project.sql(
    `with made as (
       insert into app.users (display_name, timezone) select 'user ' || n, 'UTC' from generate_series(1, $1) n returning id
     )
     insert into app.push_tokens (app_user_id, token, platform) select m.id, 'token-' || m.id, $2 from made m`,
    [count, platform],
  )
}

export const deliveriesOf = (project: Project, campaignId: string) =>
  project.sql<{ status: string; reason: string | null; code: string | null; n: number }>(
    `select status, reason, code, count(*)::int as n from app.campaign_deliveries where campaign_id = $1 group by 1, 2, 3 order by 1, 2, 3`,
    [campaignId],
  )

/** Makes a campaign, which must succeed. */
export const campaignOf = async (project: Project, fields: object = {}) => {
  const made = await project.admin.post('/push/campaigns', {
    name: 'A campaign',
    message,
    audience: { all: true },
    ...fields,
  })
  expect([201, 202], made.text).toContain(made.status)
  return made.data as { id: string; status: string; workflow_id: string | null }
}

export const shown = async (project: Project, id: string) => (await project.admin.get(`/push/campaigns/${id}`)).data
