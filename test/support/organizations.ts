import { expect } from 'vitest'
import type { OrganizationRole } from '#server/http/ranks.ts'
import { runJobs } from '#test/support/accounts.ts'
import type { Answer, Client, Developer, Harness } from '#test/support/harness.ts'
import type { MailServer } from '#test/support/smtp.ts'

export const organizationOf = async (owner: Client, name = 'Example Ltd'): Promise<Answer['data']> => {
  const { status, data, text } = await owner.post('/admin/organizations', { name })
  expect(status, text).toBe(201)
  return data
}

export const personalOf = async (developer: Client): Promise<string> => {
  const { data } = await developer.get('/admin/organizations')
  return data.find(({ is_personal }: { is_personal: boolean }) => is_personal).id
}

/** Makes a developer a member without a mail, as an accepted invite does. */
export const enrol = async (
  harness: Harness,
  organization: string,
  developer: { id: string },
  role: OrganizationRole,
) => {
  await harness.control(
    `insert into app.organization_members (organization_id, developer_id, role) values ($1, $2, $3)
     on conflict (organization_id, developer_id) do update set role = excluded.role`,
    [organization, developer.id, role],
  )
  // by hand: a change in SQL of the test is told to nobody
  harness.running.services.sessions.clear()
}

/** Invites a developer and reads the token from the mail. */
export const mailedInvite = async (
  harness: Harness,
  mail: MailServer,
  by: Client,
  organization: string,
  { email, role = 'developer' }: { email: string; role?: OrganizationRole },
): Promise<{ id: string; token: string }> => {
  const { status, data, text } = await by.post(`/admin/organizations/${organization}/invites`, { email, role })
  expect(status, text).toBe(201)
  await runJobs(harness, 'organizations__invite')
  const token = /#([\w-]{43})\s/.exec(mail.to(email).at(-1)?.text ?? '')?.[1]
  if (!token) throw new Error(`no invite came to ${email}`)
  return { id: data.id, token }
}

export const acceptInvite = (developer: Developer, token: string) => developer.post('/admin/invites/accept', { token })

/** The path of an organization. */
export const at = (id: string, rest = '') => `/admin/organizations/${id}${rest}`

/** An organization with a member of each role. */
export const companyOf = async (harness: Harness) => {
  const owner = await harness.developer()
  const { id } = await organizationOf(owner)
  const join = async (role: OrganizationRole) => {
    const person = await harness.developer()
    await enrol(harness, id, person, role)
    return person
  }
  const members = {
    owner,
    admin: await join('admin'),
    developer: await join('developer'),
    viewer: await join('viewer'),
  }
  return { id, join, ...members }
}
