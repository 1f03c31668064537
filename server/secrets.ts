import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  pbkdf2Sync,
  randomBytes,
} from 'node:crypto'
import { link, mkdir, open, readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { StartError } from '#server/errors.ts'

/** What derives from SECRETS_KEY. The key itself never leaves this object. */
export type Secrets = {
  /** Bytes for one purpose, the same each time: HKDF-SHA-256 with the purpose as info. */
  derive(purpose: string, length?: number): Buffer
  /** AES-256-GCM under a key of its own, bound to `purpose`: `v1.<nonce>.<tag>.<ciphertext>` in base64url. */
  encrypt(purpose: string, text: string): string
  /** Throws when the text was changed, or encrypted under another key or for another purpose. */
  decrypt(purpose: string, sealed: string): string
  /** HMAC-SHA-256 in hex, for codes too short to be hidden by a plain hash. */
  mac(purpose: string, text: string): string
}

export const createSecrets = (key: string): Secrets => {
  const bytes = Buffer.from(key, 'base64')
  if (bytes.length !== 32) throw new StartError('SECRETS_KEY must be 32 bytes in base64: openssl rand -base64 32')
  const derive = (purpose: string, length = 32) =>
    Buffer.from(hkdfSync('sha256', bytes, Buffer.alloc(0), `trellis:${purpose}`, length))
  const sealing = derive('encryption')
  return {
    derive,
    encrypt(purpose, text) {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', sealing, nonce).setAAD(Buffer.from(purpose))
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return ['v1', nonce, cipher.getAuthTag(), body].map(encoded).join('.')
    },
    decrypt(purpose, sealed) {
      const [version, nonce, tag, body] = sealed.split('.')
      if (version !== 'v1' || !nonce || !tag || body === undefined) throw new Error('not a sealed text of version 1')
      const decipher = createDecipheriv('aes-256-gcm', sealing, Buffer.from(nonce, 'base64url'), { authTagLength: 16 })
      decipher.setAAD(Buffer.from(purpose)).setAuthTag(Buffer.from(tag, 'base64url'))
      return Buffer.concat([decipher.update(Buffer.from(body, 'base64url')), decipher.final()]).toString('utf8')
    },
    mac: (purpose, text) =>
      createHmac('sha256', derive(`mac:${purpose}`))
        .update(text)
        .digest('hex'),
  }
}

const encoded = (part: string | Buffer) => (typeof part === 'string' ? part : part.toString('base64url'))

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/**
 * The verifier that Postgres stores for a password (RFC 5803), made here so that the password itself never reaches the
 * server's log. The salt derives from the password: the same password gives the same verifier.
 */
export const scramVerifier = (password: string): string => {
  const iterations = 4096
  const salt = createHash('sha256').update(`salt:${password}`).digest().subarray(0, 16)
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256')
  const keyed = (label: string) => createHmac('sha256', salted).update(label).digest()
  const storedKey = createHash('sha256').update(keyed('Client Key')).digest('base64')
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${keyed('Server Key').toString('base64')}`
}

/** SECRETS_KEY from the environment, else from DATA_DIR, where it is generated once. */
export const loadSecretsKey = async (given: string | undefined, dataDir: string): Promise<string> => {
  if (given) return given
  await mkdir(dataDir, { recursive: true })
  const file = join(dataDir, 'secrets.key')
  const draft = `${file}.${process.pid}`
  try {
    const handle = await open(draft, 'wx', 0o600)
    await handle.writeFile(`${randomBytes(32).toString('base64')}\n`)
    await handle.sync()
    await handle.close()
    // a link appears whole or not at all, and only one of several starters makes it
    await link(draft, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await unlink(draft).catch(() => undefined)
  }
  const key = (await readFile(file, 'utf8')).trim()
  if (!key) throw new StartError(`${file} is empty. Put back the key that this data was made with.`)
  return key
}
