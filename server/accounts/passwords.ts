import { hash, verify } from '@node-rs/argon2'
import { z } from 'zod'
import { refusal } from '#server/errors.ts'
import { Credential } from '#server/http/schemas.ts'
import { field } from '#server/http/words.ts'

/** A new password; refuseWeak checks its length. */
export const NewPassword = field(
  z.string().max(1000, 'must have at most 1000 characters'),
  'Password',
  'At least 8 characters.',
)

/** A password at sign-in. */
export const Password = Credential

/** One keyboard sends a letter with its accent as one character, another one as two: they are the same password. */
const normal = (password: string): string => password.normalize('NFKC')

/** Refuses a new password of fewer than 8 characters, counted in code points: four emoji are four. */
export const refuseWeak = (password: string): void => {
  if ([...normal(password)].length >= 8) return
  throw refusal(400, 'WEAK_PASSWORD', 'The password must have at least 8 characters.', {
    field: 'password',
    reason: 'must have at least 8 characters',
  })
}

/** `renewed`: the hash to store in the place of one that was made of the password as it had been sent. */
export type Checked = { readonly matches: boolean; readonly renewed?: string }

/** Hashes passwords in NFKC and checks them, with argon2id off the main thread. */
export type Passwords = {
  hash(password: string): Promise<string>
  /** Takes the same time for an account that does not exist, to prevent user enumeration by timing. */
  check(stored: string | null, password: string): Promise<Checked>
}

declare module '#server/services.ts' {
  interface Services {
    readonly passwords: Passwords
  }
}

/** Memory in KiB, and passes over it. */
export type PasswordCost = { readonly memoryCost: number; readonly timeCost: number }

/** OWASP's first choice for argon2id: 19 MiB, two passes, one lane. About 20 ms. */
const usualCost: PasswordCost = { memoryCost: 19_456, timeCost: 2 }

export const createPasswords = (cost: PasswordCost = usualCost): Passwords => {
  // 2 is the library's number of argon2id
  const options = { algorithm: 2, parallelism: 1, ...cost }
  let dummy: Promise<string> | undefined
  return {
    hash: (password) => hash(normal(password), options),
    async check(stored, password) {
      dummy ??= hash('no account has this password', options)
      const known = stored ?? (await dummy)
      const fits = (text: string) => verify(known, text).catch(() => false)
      const matches = await fits(normal(password))
      if (normal(password) === password) return { matches: stored !== null && matches }
      // a hash from before passwords were normalised; looked at in any case, so that the time tells nothing
      const matchesAsSent = await fits(password)
      if (stored === null || !(matches || matchesAsSent)) return { matches: false }
      return { matches: true, ...(matches ? {} : { renewed: await hash(normal(password), options) }) }
    },
  }
}
