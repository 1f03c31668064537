import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTHeaderParameters, SignJWT } from 'jose'

type Algorithm = 'RS256' | 'ES256'
type Key = { readonly kid: string; readonly alg: Algorithm; readonly privateKey: CryptoKey; readonly publicJwk: JWK }

export type IdentityProvider = {
  readonly jwksUrl: string
  readonly issuer: string
  /** What the set holds now; tests take keys out and put others in. */
  readonly keys: Key[]
  /** How often the set was fetched. */
  fetched(): number
  /** Answers this status instead of the keys; null answers them again. */
  fail(status: number | null): void
  /** Answers this text instead of the keys. */
  answer(body: string | null): void
  rotate(alg?: Algorithm): Promise<Key>
  /** A token signed with the newest key. A claim that is undefined is left out. */
  token(claims: Record<string, unknown>, header?: Partial<JWTHeaderParameters>, key?: Key): Promise<string>
  stop(): Promise<void>
}

/** A provider of identity tokens with keys of its own, on a free port: real signatures, fetched over real HTTP. */
export const startIdentityProvider = async (
  issuer: string,
  now: () => Date,
  alg: Algorithm = 'RS256',
): Promise<IdentityProvider> => {
  const keys: Key[] = []
  let count = 0
  let failure: number | null = null
  let body: string | null = null
  const server = createServer((_request, response) => {
    count += 1
    response.statusCode = failure ?? 200
    response.end(failure ? 'away' : (body ?? JSON.stringify({ keys: keys.map(({ publicJwk }) => publicJwk) })))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  const rotate: IdentityProvider['rotate'] = async (wanted = alg) => {
    const { publicKey, privateKey } = await generateKeyPair(wanted, { extractable: true })
    const kid = `key-${keys.length}-${Math.random().toString(36).slice(2)}`
    const key = {
      kid,
      alg: wanted,
      privateKey,
      publicJwk: { ...(await exportJWK(publicKey)), kid, alg: wanted, use: 'sig' },
    }
    keys.push(key)
    return key
  }
  await rotate()

  return {
    jwksUrl: `http://127.0.0.1:${port}/keys`,
    issuer,
    keys,
    fetched: () => count,
    fail(status) {
      failure = status
    },
    answer(text) {
      body = text
    },
    rotate,
    async token(claims, header = {}, key = keys.at(-1) as Key) {
      const seconds = Math.floor(now().getTime() / 1000)
      const all = { iss: issuer, iat: seconds, exp: seconds + 3600, ...claims }
      const present = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
      return new SignJWT(present).setProtectedHeader({ alg: key.alg, kid: key.kid, ...header }).sign(key.privateKey)
    },
    async stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}
