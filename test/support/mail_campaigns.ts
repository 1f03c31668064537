import { expect } from 'vitest'
import type { Project, User } from '#test/support/harness.ts'
import { newEmail } from '#test/support/sign_in.ts'

/** A user with a mail address. */
export const reader = async (project: Project, properties: object = {}): Promise<User & { email: string }> => {
  const user = await project.user()
  const email = newEmail()
  await project.sql(`update app.users set email = $2, properties = $3, display_name = 'Reader' where id = $1`, [
    user.id,
    email,
    JSON.stringify(properties),
  ])
  return { ...user, email }
}

/** Users without a session, with an address each, in one statement. */
export const readers = async (project: Project, count: number): Promise<void> => {
  await project.sql(
    `insert into app.users (display_name, email, timezone)
     select 'user ' || n, 'u' || n || '-' || left(md5(random()::text), 8) || '@example.org', 'UTC' from generate_series(1, $1) n`,
    [count],
  )
}

export const newsTemplate = {
  key: 'news',
  name: 'News',
  category: 'news',
  subject: 'News for {{display_name|you}}',
  html: '<p>{{offer|Nothing}}</p><p><a href="{{unsubscribe_url}}">no more</a></p>',
  text: '{{offer|Nothing}}\n{{unsubscribe_url}}',
}

export const defineTemplate = async (project: Project, fields: object = {}) => {
  const made = await project.admin.post('/email/templates', { ...newsTemplate, ...fields })
  expect(made.status, made.text).toBe(201)
}

/** Makes a campaign of mail, which must succeed. */
export const mailCampaign = async (project: Project, fields: object = {}) => {
  const made = await project.admin.post('/email/campaigns', {
    name: 'A campaign',
    template_key: 'news',
    audience: { all: true },
    ...fields,
  })
  expect([201, 202], made.text).toContain(made.status)
  return made.data as { id: string; status: string; workflow_id: string | null }
}

export const mailCampaignOf = async (project: Project, id: string) =>
  (await project.admin.get(`/email/campaigns/${id}`)).data
