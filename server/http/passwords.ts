import { hash, verify } from '@node-rs/argon2'
import { z } from 'zod'
import { refusal } from '#server/errors.ts'
import { Credential } from '#server/http/schemas.ts'

/** A new password; refuseWeak checks its length. */
export const NewPassword = z.string().max(1000, 'must have at most 1000 characters')

/** A password at sign-in. */
export const Password = Credential

/** Refuses a new password of fewer than 8 characters, counted in code points: four emoji are four. */
export const refuseWeak = (password: string): void => {
  if ([...password].length >= 8) return
  throw refusal(400, 'WEAK_PASSWORD', 'The password must have at least 8 characters.', {
    field: 'password',
    reason: 'must have at least 8 characters',
  })
}

/** Hashes passwords and checks them, with argon2id off the main thread. */
export type Passwords = {
  hash(password: string): Promise<string>
  /** Takes the same time for an account that does not exist, to prevent user enumeration by timing. */
  check(stored: string | null, password: string): Promise<boolean>
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
    hash: (password) => hash(password, options),
    async check(stored, password) {
      dummy ??= hash('no account has this password', options)
      const matches = await verify(stored ?? (await dummy), password).catch(() => false)
      return stored !== null && matches
    },
  }
}
