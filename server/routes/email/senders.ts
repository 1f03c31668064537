import type { HandlerContext } from '#server/http/route.ts'
import { Line } from '#server/http/schemas.ts'
import { parseAddress } from '#server/providers/mail.ts'

/** Becomes part of a mail header: a line break would begin another header. */
export const From = Line(400).refine(
  (value) => parseAddress(value) !== null,
  'must be a mail address, or Name <mail address>',
)

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
