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

/**
 * What derives from the keys of SECRETS_KEY, which never leave this object. The newest key comes first. One of them is current: new texts are
 * encrypted and tokens signed under it. Until control says which (`use`), that is the newest.
 */
export type Secrets = {
  /** The ids of the keys, newest first: 8 characters each, which tell nothing about the key. */
  readonly keyIds: readonly string[]
  /** The id of the key that is current. */
  readonly current: string
  /** Makes a key current; false, and nothing is changed, when SECRETS_KEY does not hold it. */
  use(keyId: string): boolean
  /**
   * Bytes for one purpose: HKDF-SHA-256 with the purpose as info. They are those of the oldest key, so that what was made of them (a URL, a
   * cursor) holds during a rotation, until that key is dropped.
   */
  derive(purpose: string, length?: number): Buffer
  /** Such bytes of the current key. */
  deriveCurrent(purpose: string, length?: number): Buffer
  /** Such bytes of every key, the current one first: to verify what any of them has signed. */
  deriveAll(purpose: string, length?: number): Buffer[]
  /** AES-256-GCM under a key of its own, bound to `purpose`: `v2.<key id>.<nonce>.<tag>.<ciphertext>`, the last three in base64url. */
  encrypt(purpose: string, text: string): string
  /** Throws when the text was changed, or encrypted under a key that is not here or for another purpose. */
  decrypt(purpose: string, sealed: string): string
  /** HMAC-SHA-256 in hex, for codes too short to be hidden by a plain hash; under the oldest key. */
  mac(purpose: string, text: string): string
  /** A value that proves which key this is. */
  checkOf(keyId: string): string
}

type Key = { readonly id: string; readonly sealing: Buffer; derive(purpose: string, length?: number): Buffer }

const mostKeys = 4

const createKey = (text: string): Key => {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length !== 32) throw new StartError('SECRETS_KEY must be 32 bytes in base64: openssl rand -base64 32')
  const derive = (purpose: string, length = 32) =>
    Buffer.from(hkdfSync('sha256', bytes, Buffer.alloc(0), `trellis:${purpose}`, length))
  return { id: derive('key id', 4).toString('hex'), sealing: derive('encryption'), derive }
}

const macOf = (key: Key, purpose: string, text: string) =>
  createHmac('sha256', key.derive(`mac:${purpose}`))
    .update(text)
    .digest('hex')

/** What stands before a text that was encrypted under this key. */
export const sealedBeginning = (keyId: string): string => `v2.${keyId}.`

/** `text` holds one key, or several, newest first, with commas or line breaks between. */
export const createSecrets = (text: string): Secrets => {
  const keys = text
    .trim()
    .split(/[\s,]+/)
    .map(createKey)
  const [newest] = keys
  const oldest = keys.at(-1)
  if (!newest || !oldest || keys.length > mostKeys || new Set(keys.map(({ id }) => id)).size < keys.length)
    throw new StartError(`SECRETS_KEY must hold at most ${mostKeys} keys, and each of them once.`)
  let current = newest
  const inOrder = () => [current, ...keys.filter((key) => key !== current)]
  return {
    keyIds: keys.map(({ id }) => id),
    get current() {
      return current.id
    },
    use(keyId) {
      const found = keys.find(({ id }) => id === keyId)
      if (found) current = found
      return found !== undefined
    },
    derive: (purpose, length) => oldest.derive(purpose, length),
    deriveCurrent: (purpose, length) => current.derive(purpose, length),
    deriveAll: (purpose, length) => inOrder().map((key) => key.derive(purpose, length)),
    encrypt(purpose, plain) {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', current.sealing, nonce).setAAD(Buffer.from(purpose))
      const body = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
      return sealedBeginning(current.id) + [nonce, cipher.getAuthTag(), body].map(encoded).join('.')
    },
    decrypt(purpose, sealed) {
      const [version, keyId, nonce, tag, body, ...more] = sealed.split('.')
      if (version !== 'v2' || !nonce || !tag || body === undefined || more.length > 0)
        throw new Error('not a sealed text')
      const key = keys.find(({ id }) => id === keyId)
      if (!key) throw new Error(`encrypted under a key that SECRETS_KEY does not hold: ${keyId}`)
      const decipher = createDecipheriv('aes-256-gcm', key.sealing, Buffer.from(nonce, 'base64url'), {
        authTagLength: 16,
      })
      decipher.setAAD(Buffer.from(purpose)).setAuthTag(Buffer.from(tag, 'base64url'))
      return Buffer.concat([decipher.update(Buffer.from(body, 'base64url')), decipher.final()]).toString('utf8')
    },
    mac: (purpose, plain) => macOf(oldest, purpose, plain),
    checkOf(keyId) {
      const found = keys.find(({ id }) => id === keyId)
      if (!found) throw new Error(`SECRETS_KEY does not hold the key ${keyId}`)
      return macOf(found, 'installation', 'trellis')
    },
  }
}

const encoded = (part: string | Buffer) => (typeof part === 'string' ? part : part.toString('base64url'))

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** The salt of a password's verifier, in base64. */
export const scramSalt = (password: string): string =>
  createHash('sha256').update(`salt:${password}`).digest().subarray(0, 16).toString('base64')

/**
 * The verifier that Postgres stores for a password (RFC 5803), made here so that the password itself never reaches the
 * server's log. The salt derives from the password: the same password gives the same verifier.
 */
export const scramVerifier = (password: string): string => {
  const iterations = 4096
  const salt = Buffer.from(scramSalt(password), 'base64')
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256')
  const keyed = (label: string) => createHmac('sha256', salted).update(label).digest()
  const storedKey = createHash('sha256').update(keyed('Client Key')).digest('base64')
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${keyed('Server Key').toString('base64')}`
}

/** The keys of SECRETS_KEY from the environment, else from DATA_DIR, where it is generated once. */
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
