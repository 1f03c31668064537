import { dataOf } from '#server/database/database.ts'
import { inviteToken } from '#server/derived_codes.ts'
import { job } from '#workers/task.ts'

type Invited = {
  readonly email: string
  readonly organization: string
  readonly role: string
  readonly invited_by: string | null
  readonly expires_at: string
}

const text = (
  { organization, role, invited_by, expires_at }: Invited,
  url: string,
) => `${invited_by ?? 'Somebody'} invites you to the organization ${organization}, as ${role}.

Accept it here, until ${expires_at}:
${url}

You need an account with this address. If you do not know the sender, do nothing.
`

/** One line: a name is chosen by the organization, and becomes part of a header. */
const lineOf = (name: string) => name.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim()

/** Mails an invite. One that was accepted or revoked, or has expired, is not mailed; a second run sends the same mail again. */
export const organizationsInvite = job(
  'organizations__invite',
  async ({ database, control, secrets, mail, publicUrl }, { invite_id = '' }) => {
    const reply = await database.call(control, 'control_worker', { caller: 'worker' }, 'organization_invite_mail', {
      invite_id,
    })
    const found = dataOf<Invited | null>(reply)
    if (!found) return
    const organization = lineOf(found.organization)
    await mail.send({
      to: found.email,
      subject: `Invite to ${organization}`,
      // behind the #: browsers send it to no server, and no log holds it
      text: text({ ...found, organization }, `${publicUrl}/invite#${inviteToken(secrets, invite_id)}`),
      id: `organization-invite-${invite_id}`,
    })
  },
  'prompt',
)
