import { hash, verify } from '@node-rs/argon2'

/** OWASP's first choice for argon2id: 19 MiB, two passes, one lane. 2 is the library's number of argon2id. About 20 ms; runs off the main thread. */
const options = { algorithm: 2, memoryCost: 19_456, timeCost: 2, parallelism: 1 }

export const hashPassword = (password: string): Promise<string> => hash(password, options)

let dummy: Promise<string> | undefined

/** Takes as long for an account that is not there: the answer's time says nothing. */
export const checkPassword = async (stored: string | null, password: string): Promise<boolean> => {
  dummy ??= hashPassword('no account has this password')
  const matches = await verify(stored ?? (await dummy), password).catch(() => false)
  return stored !== null && matches
}
