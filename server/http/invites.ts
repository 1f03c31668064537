import { randomInt } from 'node:crypto'
import { z } from 'zod'
import { sha256 } from '#server/secrets.ts'
import type { Services } from '#server/services.ts'

/** As a person typed it: what is no code at all is refused as a code, not as a field. */
export const InviteCode = z.string()

/** Digits and letters that nobody takes for one another, on paper or on the phone. */
const alphabet = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ'

/** `SVC-7K2M-...`: four random groups of four, 80 bits. */
export const createInvite = () => {
  const group = () => Array.from({ length: 4 }, () => alphabet[randomInt(alphabet.length)]).join('')
  const first = group()
  const code = `SVC-${first}-${group()}-${group()}-${group()}`
  return { code, code_hash: inviteHash(code), code_hint: `SVC-${first}` }
}

/** The hash that a code is known by, whatever its case, spaces and dashes; one that is no hash for what has another form, which no invite has. */
export const inviteHash = (code: string): string => {
  if (code.length > 1000) return 'malformed'
  const plain = code.replace(/[\s\p{Pd}]/gu, '').toUpperCase()
  return /^SVC[0-9A-Z]{16}$/.test(plain) ? sha256(plain) : 'malformed'
}

/** A field that was left empty in a form is a code that was not sent. */
export const isBlank = (code: string | undefined): boolean => code === undefined || /^[\s\p{Pd}]*$/u.test(code)

/** Where a person, and a program, asks for access: the details of a refused sign-up. */
export const requestAccess = ({ config, publicUrl }: Services) => ({
  request_access_url: config.REQUEST_ACCESS_URL ?? `${publicUrl}/docs`,
  request_access_endpoint: `${publicUrl}/v1/auth/developer/waitlist`,
})
