import { type CryptoKey, importJWK, type JWK } from 'jose'
import type { Logger } from 'pino'

const freshMs = 3600_000
const staleMs = 24 * 3600_000
const pauseMs = 30_000
const timeoutMs = 5_000
const maxBytes = 64 * 1024
const kinds = { RS256: 'RSA', ES256: 'EC' } as const

export type Algorithm = keyof typeof kinds

export type Keyset = {
  /** The public key with this id, for one algorithm; null when the set has none. Throws when no set is available. */
  key(keyId: string, algorithm: Algorithm): Promise<CryptoKey | null>
}

export type KeysetOptions = {
  readonly url: string
  readonly now: () => Date
  readonly log: Pick<Logger, 'warn'>
}

type Held = { readonly jwks: readonly JWK[]; readonly imported: Map<string, CryptoKey>; readonly at: number }

/**
 * A provider's public keys, cached for an hour. A key id that is not in the set causes another fetch, because keys rotate, but at most
 * one every 30 seconds, so that requests with invented ids do not flood the provider. While the provider is unreachable, the cached set
 * stays in use for up to a day.
 */
export const createKeyset = ({ url, now, log }: KeysetOptions): Keyset => {
  let held: Held | null = null
  let tried = Number.NEGATIVE_INFINITY
  let fetching: Promise<void> | undefined
  const time = () => now().getTime()
  const age = () => (held ? time() - held.at : Number.POSITIVE_INFINITY)
  // a clock that was set back must not prevent a fetch
  const mayTry = () => time() - tried >= pauseMs || time() < tried

  const refetch = (): Promise<void> => {
    fetching ??= fetchJwks(url)
      .then(
        (jwks) => {
          held = { jwks, imported: new Map(), at: time() }
        },
        (error: Error) => log.warn({ url, error: error.message }, 'keys of an identity provider cannot be fetched'),
      )
      .finally(() => {
        tried = time()
        fetching = undefined
      })
    return fetching
  }

  return {
    async key(keyId, algorithm) {
      if (age() >= freshMs && (mayTry() || fetching)) await refetch()
      if (!held || age() >= staleMs) throw new Error('the keys of the identity provider cannot be had')
      const known = await importKey(held, keyId, algorithm)
      if (known || !(mayTry() || fetching)) return known
      await refetch()
      return importKey(held, keyId, algorithm)
    },
  }
}

const importKey = async (held: Held, keyId: string, algorithm: Algorithm): Promise<CryptoKey | null> => {
  const name = `${algorithm} ${keyId}`
  const known = held.imported.get(name)
  if (known) return known
  // a key is used only with the algorithm that it was published for
  const jwk = held.jwks.find(
    ({ kid, kty, alg, use }) =>
      kid === keyId && kty === kinds[algorithm] && (alg ?? algorithm) === algorithm && (use ?? 'sig') === 'sig',
  )
  const key = jwk && (await importJWK(jwk, algorithm).catch(() => null))
  // only public keys: a symmetric secret that was published by mistake must not verify tokens
  if (!key || key instanceof Uint8Array || key.type !== 'public') return null
  held.imported.set(name, key)
  return key
}

const fetchJwks = async (url: string): Promise<readonly JWK[]> => {
  const response = await fetch(url, {
    headers: { accept: 'application/json' },
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  })
  if (!response.ok) throw new Error(`status ${response.status}`)
  const body = JSON.parse(await textOf(response)) as { keys?: unknown } | null
  const keys = body?.keys
  if (!Array.isArray(keys) || keys.length === 0) throw new Error('no set of keys')
  return keys.filter((key): key is JWK => typeof key === 'object' && key !== null)
}

const textOf = async (response: Response): Promise<string> => {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new Error('too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
