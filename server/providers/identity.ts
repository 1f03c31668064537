import { createHash, timingSafeEqual } from 'node:crypto'
import { type JWTPayload, jwtVerify } from 'jose'
import type { Logger } from 'pino'
import { refusal } from '#server/errors.ts'
import { asLine } from '#server/lines.ts'
import { type Algorithm, createKeyset, type Keyset } from '#server/providers/keysets.ts'

export const socialProviders = ['apple', 'google'] as const
export type SocialProvider = (typeof socialProviders)[number]

/** A person's identity as the provider asserts it. */
export type Identity = {
  readonly providerId: string
  /** Only an address that the provider has verified; null otherwise. */
  readonly email: string | null
  readonly name: string | null
}

export type Presented = {
  readonly token: string
  /** The required audience of the token: the project's bundle_id or google_oauth_client_id. */
  readonly audience: string
  readonly nonce: string | null
}

export type IdentityProviders = {
  /** Null when the token is invalid for any reason. Throws 503 when the provider's keys are unavailable. */
  verify(provider: SocialProvider, presented: Presented): Promise<Identity | null>
}

declare module '#server/services.ts' {
  interface Services {
    readonly identity: IdentityProviders
  }
}

export type IdentityOptions = {
  readonly apple: { readonly jwksUrl: string; readonly issuer: string }
  readonly google: { readonly jwksUrl: string; readonly issuer: string }
  readonly now: () => Date
  readonly log: Pick<Logger, 'warn'>
}

/** Providers' tokens have about 1,000 characters. */
const longestToken = 16_384

const algorithms: Algorithm[] = ['RS256', 'ES256']
/** How far a provider's clock may be ahead of ours. The expiry of a token has no such tolerance. */
const skewSeconds = 60

/** Identity tokens of Apple and Google (OpenID Connect Core 1.0, 3.1.3.7). */
export const createIdentityProviders = ({ apple, google, now, log }: IdentityOptions): IdentityProviders => {
  const providers: Record<SocialProvider, { keys: Keyset; issuers: string[] }> = {
    apple: { keys: createKeyset({ url: apple.jwksUrl, now, log }), issuers: [apple.issuer] },
    google: { keys: createKeyset({ url: google.jwksUrl, now, log }), issuers: spellings(google.issuer) },
  }
  return {
    async verify(provider, presented) {
      const { keys, issuers } = providers[provider]
      const payload = await payloadOf(presented, keys, issuers, now())
      return payload && isFor(payload, presented, now()) ? identityOf(payload) : null
    },
  }
}

/** Google's issuer is https://accounts.google.com or accounts.google.com. */
const spellings = (issuer: string): string[] => [...new Set([issuer, issuer.replace(/^https:\/\//, '')])]

const payloadOf = async (presented: Presented, keys: Keyset, issuers: string[], now: Date) => {
  if (presented.token.length > longestToken) return null
  let outage: Error | undefined
  try {
    const verified = await jwtVerify(
      presented.token,
      async ({ kid, alg }) => {
        if (!kid) throw new Error('no key id')
        const key = await keys.key(kid, alg as Algorithm).catch((error: Error) => {
          outage = error
          throw error
        })
        if (!key) throw new Error('unknown key')
        return key
      },
      {
        algorithms,
        issuer: issuers,
        audience: presented.audience,
        requiredClaims: ['sub', 'iat', 'exp'],
        currentDate: now,
        clockTolerance: skewSeconds,
      },
    )
    return verified.payload
  } catch {
    if (!outage) return null
    throw refusal(503, 'SERVICE_UNAVAILABLE', 'The identity provider cannot be reached: try again.', null, {
      'Retry-After': '30',
    })
  }
}

/** The claims that the library which verifies the signature does not check. */
const isFor = (payload: JWTPayload, { audience, nonce }: Presented, now: Date): boolean => {
  const seconds = now.getTime() / 1000
  // a token with several audiences is issued to another party as well
  const isOurs = payload.aud === audience || (Array.isArray(payload.aud) && payload.aud.length === 1)
  const isAlive = (payload.exp ?? 0) > seconds && (payload.iat ?? Number.POSITIVE_INFINITY) <= seconds + skewSeconds
  return isOurs && isAlive && isNonce(payload['nonce'], nonce)
}

/** Compares the nonce as it was sent, or its SHA-256 in hex. A token that contains a nonce is invalid without it. */
const isNonce = (claimed: unknown, sent: string | null): boolean => {
  if (sent === null) return claimed === undefined
  if (typeof claimed !== 'string') return false
  return isSame(claimed, sent) || isSame(claimed.toLowerCase(), createHash('sha256').update(sent).digest('hex'))
}

const isSame = (a: string, b: string): boolean => {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

// control characters and lone surrogates, which Postgres cannot store or a screen cannot show
const odd = /[\p{Cc}\p{Cs}]/u
const everyOdd = new RegExp(odd, 'gu')

/** The identity that verified claims assert; null when they name nobody who can be stored. */
export const identityOf = (payload: JWTPayload): Identity | null => {
  const { sub, email, email_verified: verified, name } = payload
  if (typeof sub !== 'string' || sub === '' || sub.length > 255 || odd.test(sub)) return null
  // Apple sends this boolean as a string
  const isVerified = verified === true || verified === 'true'
  return {
    providerId: sub,
    // an address that cannot be stored unchanged is dropped: a converted one might belong to another person
    email: isVerified && typeof email === 'string' && email.length <= 254 && !odd.test(email) ? email : null,
    name: typeof name === 'string' ? displayNameOf(name) : null,
  }
}

/** A name as a display name: one line of at most 100 characters, or null when nothing is left. */
export const displayNameOf = (name: string): string | null =>
  [...asLine(name.replace(everyOdd, ' '))].slice(0, 100).join('').trim() || null
