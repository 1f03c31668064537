import pg from 'pg'
import { scramSalt } from '#server/secrets.ts'

const known = new Map<string, string>()

type Internals = { password: unknown; _handleAuthSASLContinue(message: { data: string }): Promise<void> }
const internals = pg.Client.prototype as unknown as Internals
const proceed = internals._handleAuthSASLContinue

/**
 * Passwords that every client of this process may use, beside its own. While keys are rotated, a login has the password of the former key or
 * of the new one, and which of them is for the server to say: it sends the salt of the verifier that it holds before the client proves that
 * it knows the password, and our salts derive from the password. So a connection that is made while the password changes does not fail, and
 * none is made twice.
 */
export const learnPasswords = (passwords: readonly string[]): void => {
  for (const password of passwords) known.set(scramSalt(password), password)
}

internals._handleAuthSASLContinue = function (this: Internals, message) {
  const salt = /(?:^|,)s=([^,]+)/.exec(message.data)?.[1]
  const password = salt === undefined ? undefined : known.get(salt)
  if (password !== undefined) this.password = password
  return proceed.call(this, message)
}
