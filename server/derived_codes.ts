import type { Secrets } from '#server/secrets.ts'

/** What a code is for: one purpose's code opens nothing else. */
export const developerCode = 'developer sign-in code'

/**
 * The six digits of a code with a random id. They derive from SECRETS_KEY, so that neither a table nor the payload of a job holds them,
 * and a mail that is sent twice says the same.
 */
export const codeOf = (secrets: Secrets, purpose: string, id: string): string =>
  String(BigInt(`0x${secrets.mac(`${purpose} digits`, id)}`) % 1_000_000n).padStart(6, '0')

/** What is stored of a code: bound to its purpose and its address, and worth nothing without SECRETS_KEY. */
export const codeMac = (secrets: Secrets, purpose: string, address: string, code: string): string =>
  secrets.mac(purpose, `${address} ${code}`)

/** The token of an invite into an organization, 32 bytes: it derives from SECRETS_KEY too, so that only the mail holds it. */
export const inviteToken = (secrets: Secrets, id: string): string =>
  Buffer.from(secrets.mac('organization invite', id), 'hex').toString('base64url')
