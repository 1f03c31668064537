import { randomInt } from 'node:crypto'
import { z } from 'zod'
import { sha256 } from '#server/secrets.ts'
import type { Services } from '#server/services.ts'

/** A code as a person typed it: a malformed one is refused as a wrong code, not as an invalid field. */
export const InviteCode = z.string()

/** Digits and letters that cannot be confused with each other, in writing or when read aloud. */
const alphabet = '23456789ABCDEFGHJKLMNPQRSTUVWXYZ'

/** `SVC-7K2M-...`: four random groups of four, 80 bits. */
export const createInvite = () => {
  const group = () => Array.from({ length: 4 }, () => alphabet[randomInt(alphabet.length)]).join('')
  const first = group()
  const code = `SVC-${first}-${group()}-${group()}-${group()}`
  return { code, code_hash: inviteHash(code), code_hint: `SVC-${first}` }
}

/** The hash of a code, regardless of case, spaces and dashes; for a text in another format a value that is not a hash, which no invite has. */
export const inviteHash = (code: string): string => {
  if (code.length > 1000) return 'malformed'
  const plain = code.replace(/[\s\p{Pd}]/gu, '').toUpperCase()
  return /^SVC[0-9A-Z]{16}$/.test(plain) ? sha256(plain) : 'malformed'
}

/** A form field that was left empty counts as no code. */
export const isBlank = (code: string | undefined): boolean => code === undefined || /^[\s\p{Pd}]*$/u.test(code)

/** Where a person, and a program, can ask for access: the details of a refused sign-up. */
export const requestAccess = ({ config, publicUrl }: Pick<Services, 'config' | 'publicUrl'>) => ({
  request_access_url: config.REQUEST_ACCESS_URL ?? `${publicUrl}/docs`,
  request_access_endpoint: `${publicUrl}/v1/auth/developer/waitlist`,
})
