import { randomBytes } from 'node:crypto'
import type { Message } from '#server/providers/mail.ts'

/** What stands for the code and for the link in a content: no name of a project can contain it. */
export type Marks = { readonly code: string; readonly link: string }
export const secretMarks = (): Marks => {
  const random = randomBytes(16).toString('hex')
  return { code: `{{code.${random}}}`, link: `{{link.${random}}}` }
}

/** A template with everything filled in but its secret, for which marks stand. */
export type Content = {
  /** Of the project's own template; false: in our words. */
  readonly is_own: boolean
  readonly subject: string
  readonly html: string | null
  readonly text: string | null
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

const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`)

/** The mail with a code or link. Its subject contains no secret, because subjects are logged. Without a redirect URL the link is the token itself. */
export const signInMail = (
  message: SignInMessage,
  content: Content,
  marks: Marks,
  redirectUrl: string | null,
): Message => {
  const link = message.kind === 'magic_link' && redirectUrl ? magicLinkUrl(redirectUrl, message.secret) : message.secret
  const filled = (text: string | null, form: (value: string) => string) =>
    text?.replaceAll(marks.link, () => form(link)).replaceAll(marks.code, () => form(message.secret)) ?? null
  const html = filled(content.html, escaped)
  return {
    id: message.id,
    to: message.address,
    subject: content.subject,
    text: filled(content.text, (value) => value),
    ...(html === null ? {} : { html }),
  }
}

/** The text message with a code. */
export const signInText = (message: SignInMessage, brand: string): string =>
  `${message.secret} is your ${brand} code. It is valid for 10 minutes. Give it to nobody.`
