/** Who may send to whom. */
import { dataOf } from '#server/database/database.ts'
import { callControl } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { parseAddress } from '#server/providers/mail.ts'
import { isKeptInside } from '#server/providers/mail_allowance.ts'

export type Recipient = { readonly to?: string | undefined; readonly from?: string | null | undefined }

/**
 * Until an owner has verified their address, the installation writes to its members for a project in its own name, and to nobody else. What names a sender
 * does not go in its name: `checkSenders` has asked whose the domain is.
 */
export const checkRecipients = async (context: HandlerContext, messages: readonly Recipient[]): Promise<void> => {
  const { call, services } = context
  const { project } = context.resolved
  const recipients = messages.filter(({ from }) => !from)
  if (!project || !isKeptInside(services, project) || recipients.length === 0) return
  if (dataOf<boolean>(await call('email_has_own_server', {}, { readOnly: true }))) return
  const addresses = JSON.stringify(recipients.map(({ to }) => to ?? null))
  await callControl(context, 'mail_to_check', { addresses }, { readOnly: true })
}

/** Whether a sender may be used is known to control; a message without one needs no such question. */
export const checkSenders = async (
  context: HandlerContext,
  senders: readonly (string | null | undefined)[],
): Promise<void> => {
  const addresses = [...new Set(senders.flatMap((from) => (from ? [parseAddress(from)?.address ?? ''] : [])))]
  if (addresses.length === 0) return
  await callControl(context, 'mail_from_check', { addresses: JSON.stringify(addresses) }, { readOnly: true })
}
