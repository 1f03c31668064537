import { dataOf } from '#server/database/database.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { Line } from '#server/http/schemas.ts'
import { parseAddress } from '#server/providers/mail.ts'
import { isKeptInside } from '#server/providers/mail_allowance.ts'

/** Becomes part of a mail header: a line break would begin another header. */
export const From = Line(400).refine(
  (value) => parseAddress(value) !== null,
  'must be a mail address, or Name <mail address>',
)

type Recipient = { readonly to?: string | undefined }

/** Until an owner has verified their address, the installation writes to its members for a project, and to nobody else. */
export const checkRecipients = async (
  { call, services, resolved }: HandlerContext,
  recipients: readonly Recipient[],
): Promise<void> => {
  const { project } = resolved
  if (!project || !isKeptInside(services, project)) return
  if (dataOf<boolean>(await call('email_has_own_server', {}, { readOnly: true }))) return
  await services.database.call(
    services.control,
    'control_developer',
    resolved.claims,
    'mail_to_check',
    { project_id: project.projectId, addresses: JSON.stringify(recipients.map(({ to }) => to ?? null)) },
    { readOnly: true },
  )
}

/** Whether a sender may be used is known to control; a message without one needs no such question. */
export const checkSenders = async (
  { services, resolved }: HandlerContext,
  senders: readonly (string | null | undefined)[],
): Promise<void> => {
  const addresses = [...new Set(senders.flatMap((from) => (from ? [parseAddress(from)?.address ?? ''] : [])))]
  if (addresses.length === 0) return
  await services.database.call(
    services.control,
    'control_developer',
    resolved.claims,
    'mail_from_check',
    { project_id: resolved.project?.projectId, addresses: JSON.stringify(addresses) },
    { readOnly: true },
  )
}
