import { randomInt } from 'node:crypto'
import { z } from 'zod'
import type { Secrets } from '#server/secrets.ts'

/** The scope of a six-digit code: a purpose, an address, and the user if a session requested it. */
export type CodeScope = {
  readonly projectId: string
  readonly purpose: 'sign_in' | 'link' | 'delete'
  readonly channel: 'email' | 'phone'
  readonly address: string
  readonly userId: string | null
}

export const Code = z
  .string()
  .regex(/^\d{6}$/, 'must be six digits')
  .meta({ minLength: 6, maxLength: 6 })

/** E.164: a plus, the country, at most 15 digits. */
export const Phone = z.string().regex(/^\+[1-9]\d{6,14}$/, 'must be a phone number such as +4915112345678')

export const newCode = (): string => String(randomInt(1_000_000)).padStart(6, '0')

/**
 * The stored form of a code: its HMAC under SECRETS_KEY over the code and its scope. The address of a deletion is the
 * account's own, which only the database knows.
 */
export const codeHash = (secrets: Secrets, scope: CodeScope, code: string): string => {
  const { projectId, purpose, channel, address, userId } = scope
  const where = purpose === 'delete' ? '' : `${channel} ${address.trim().toLowerCase()}`
  return secrets.mac('client code', JSON.stringify([projectId, purpose, where, userId, code]))
}

/** For the code that confirms the deletion of an account, by email or phone. */
export const deletionCodeHash = (secrets: Secrets, projectId: string, userId: string, code: string): string =>
  codeHash(secrets, { projectId, purpose: 'delete', channel: 'email', address: '', userId }, code)

/** The associated data under which a message for the worker is encrypted, so that it cannot be moved to another row. */
export const sealPurpose = (projectId: string, id: string) => `client message ${projectId} ${id}`
