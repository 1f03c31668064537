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

/** OWASP's first choice for argon2id: 19 MiB, two passes, one lane. 2 is the library's number of argon2id. About 20 ms; runs off the main thread. */
const options = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1 }

export const hashPassword = (password: string): Promise<string> => hash(password, options)

let dummy: Promise<string> | undefined

/** Takes the same time for an account that does not exist, to prevent user enumeration by timing. */
export const checkPassword = async (stored: string | null, password: string): Promise<boolean> => {
  dummy ??= hashPassword('no account has this password')
  const matches = await verify(stored ?? (await dummy), password).catch(() => false)
  return stored !== null && matches
}
