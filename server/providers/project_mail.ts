import { randomBytes } from 'node:crypto'
import { dkimPurpose, dkimSelector, returnPathOf } from '#server/providers/domains.ts'
import { type Message, parseAddress } from '#server/providers/mail.ts'
import { withTracking } from '#server/providers/mail_tracking.ts'
import type { Secrets } from '#server/secrets.ts'

/** How a project sends mail now: api.mail_sender of the control database. */
export type ProjectSender = {
  readonly brand: string
  readonly name: string
  readonly magic_link_redirect_url: string | null
  /** On a verified domain of the project; null: the installation's address sends. */
  readonly from_email: string | null
  readonly from_name: string | null
  readonly reply_to: string | null
  readonly domain: string | null
  readonly dkim_sealed: string | null
}

/** What api.email_attempt_begin returns of a message. */
export type ProjectMessage = {
  readonly id: string
  readonly to: string
  readonly from: string | null
  readonly reply_to: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly subject: string
  readonly category: string
  readonly track: boolean
  readonly html: string | null
  readonly text: string | null
}

type Surroundings = { readonly secrets: Secrets; readonly publicUrl: string; readonly now: () => Date }

export const integrationPurpose = (projectId: string, provider: string): string =>
  `integration ${projectId} ${provider}`

/** From whom a project's message comes: signed where its address is on a verified domain, and with the envelope sender that its DNS allows. */
export const senderOf = (
  { secrets }: Pick<Surroundings, 'secrets'>,
  projectId: string,
  sender: ProjectSender,
  fallback: string,
  isOwnServer = false,
): Pick<Message, 'from' | 'fromName' | 'replyTo' | 'dkim' | 'returnPath'> => {
  const { domain, dkim_sealed, from_email } = sender
  const name = sender.from_name ?? fallback
  return {
    from: from_email ? { address: from_email, name } : null,
    fromName: name,
    replyTo: sender.reply_to,
    dkim:
      domain && dkim_sealed
        ? { domain, selector: dkimSelector, privateKey: secrets.decrypt(dkimPurpose(projectId, domain), dkim_sealed) }
        : null,
    // a project's own server decides itself where bounces go
    returnPath: domain && !isOwnServer ? `bounces@${returnPathOf(domain)}` : null,
  }
}

/** What a link to unsubscribe says, encrypted and authenticated: no address stands in a URL, and none can be made up. */
export type Unsubscription = { readonly project: string; readonly address: string; readonly category: string }
export const unsubscribePurpose = 'mail unsubscription'
export const unsubscribeUrl = ({ secrets, publicUrl }: Omit<Surroundings, 'now'>, what: Unsubscription): string =>
  `${publicUrl}/u/${secrets.encrypt(unsubscribePurpose, JSON.stringify([what.project, what.address, what.category]))}`

/** Reads a link to unsubscribe; null for one that was not made here. */
export const readUnsubscription = (secrets: Secrets, token: string): Unsubscription | null => {
  if (!/^v2\.[0-9a-f]{8}(\.[\w-]+){3}$/.test(token)) return null
  try {
    const [project, address, category] = JSON.parse(secrets.decrypt(unsubscribePurpose, token)) as string[]
    return project && address && category ? { project, address, category } : null
  } catch {
    return null
  }
}

/** Stands in the content of one attempt where the link to unsubscribe belongs: no value of a template can contain it. */
export const unsubscribeMark = (): string => `{{unsubscribe_url.${randomBytes(16).toString('hex')}}}`

/** A message of a project as it is sent. One that is not transactional has a link and the headers of one-click unsubscription (RFC 8058). */
export const projectMail = (
  services: Surroundings,
  projectId: string,
  sender: ProjectSender,
  message: ProjectMessage,
  mark: string,
  isOwnServer: boolean,
): Message => {
  const requested = message.from === null ? null : parseAddress(message.from)
  const own = senderOf(services, projectId, sender, sender.name, isOwnServer)
  const isRequested = requested !== null && requested.address.toLowerCase() === sender.from_email?.toLowerCase()
  const url =
    message.category === 'transactional'
      ? null
      : unsubscribeUrl(services, { project: projectId, address: message.to, category: message.category })
  const filled = (text: string) => text.replaceAll(mark, () => url ?? '{{unsubscribe_url}}')
  // before the link to unsubscribe is filled in, which is nobody's interest
  const html =
    message.html !== null && message.track ? withTracking(services, projectId, message.id, message.html) : message.html
  return {
    ...own,
    ...(isRequested && requested.name ? { from: requested } : {}),
    ...(message.reply_to ? { replyTo: message.reply_to } : {}),
    id: message.id,
    to: message.to,
    subject: message.subject,
    text: message.text === null ? null : filled(message.text),
    ...(html === null ? {} : { html: filled(html) }),
    headers: {
      ...message.headers,
      ...(url === null
        ? {}
        : {
            'List-Unsubscribe': `<${url}>`,
            'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
            Precedence: 'bulk',
          }),
    },
  }
}
