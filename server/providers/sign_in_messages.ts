import type { Message } from '#server/providers/mail.ts'

/** The sender of a project's sign-in mail and the target of its links, from the control database. */
export type Sender = {
  readonly brand: string
  readonly magic_link_redirect_url: string | null
  readonly from_email: string | null
  readonly from_name: string | null
  readonly reply_to: string | null
}

export type SignInMessage = {
  readonly id: string
  readonly kind: 'code' | 'magic_link'
  readonly address: string
  readonly purpose: 'sign_in' | 'link' | 'delete'
  /** The code, or the token of the link. */
  readonly secret: string
}

/**
 * The app's URL with `token` appended to its query, before a fragment. Composed as text, so that the
 * rest of the URL stays exactly as the developer configured it, also with a custom scheme.
 */
export const magicLinkUrl = (url: string, token: string): string => {
  const [, before = '', fragment = ''] = /^([^#]*)(#.*)?$/s.exec(url) ?? []
  const joint = !before.includes('?') ? '?' : /[?&]$/.test(before) ? '' : '&'
  return `${before}${joint}token=${token}${fragment}`
}

const codeWords = {
  sign_in: { subject: 'Your sign-in code for', lead: 'Your code to sign in to' },
  link: { subject: 'Confirm your address for', lead: 'Your code to confirm this address for your account at' },
  delete: { subject: 'Confirm the deletion of your account at', lead: 'Your code to delete your account at' },
} as const

const ignore = 'If you did not ask for this, you can ignore it: nothing happens without it. Give it to nobody.'

/** The mail with a code or link. Its subject contains no secret, because subjects are logged. */
export const signInMail = (message: SignInMessage, sender: Sender): Message => {
  const { brand } = sender
  const words = codeWords[message.purpose]
  const link = message.kind === 'magic_link' && sender.magic_link_redirect_url
  const { subject, lines } = link
    ? linkWords(brand, magicLinkUrl(link, message.secret))
    : message.kind === 'magic_link'
      ? tokenWords(brand, message.secret)
      : {
          subject: `${words.subject} ${brand}`,
          lines: [`${words.lead} ${brand}:`, { strong: message.secret }, 'It is valid for 10 minutes and works once.'],
        }
  const all = [...lines, ignore]
  return {
    id: message.id,
    to: message.address,
    subject,
    text: `${all.map(plain).join('\n\n')}\n`,
    html: page(all),
    from: sender.from_email ? { address: sender.from_email, name: sender.from_name ?? brand } : null,
    fromName: sender.from_name ?? brand,
    replyTo: sender.reply_to,
  }
}

/** The text message with a code. */
export const signInText = (message: SignInMessage, brand: string): string =>
  `${message.secret} is your ${brand} code. It is valid for 10 minutes. Give it to nobody.`

type Line = string | { readonly strong: string } | { readonly link: string; readonly label: string }

const linkWords = (brand: string, url: string): { subject: string; lines: Line[] } => ({
  subject: `Sign in to ${brand}`,
  lines: [`Open this link to sign in to ${brand}:`, { link: url, label: `Sign in to ${brand}` }, validity],
})

/** Without a redirect URL there is no link: the mail contains the token itself, for developers who test their app. */
const tokenWords = (brand: string, token: string): { subject: string; lines: Line[] } => ({
  subject: `Sign in to ${brand}`,
  lines: [`Enter this token to sign in to ${brand}:`, { strong: token }, validity],
})

const validity = 'It is valid for 15 minutes and works once.'

const plain = (line: Line): string => (typeof line === 'string' ? line : 'link' in line ? line.link : line.strong)

const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`)

const markup = (line: Line): string => {
  if (typeof line === 'string') return `<p>${escaped(line)}</p>`
  if ('strong' in line)
    return `<p style="font-size:24px;font-weight:bold;word-break:break-all">${escaped(line.strong)}</p>`
  return `<p><a href="${escaped(line.link)}">${escaped(line.label)}</a></p>`
}

const page = (lines: readonly Line[]): string =>
  `<!doctype html><html><body style="font-family:sans-serif">${lines.map(markup).join('')}</body></html>`
