import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import { importJWK, jwtVerify, SignJWT } from 'jose'
import type { CachedProject, SigningKey } from '#server/http/project_cache.ts'
import { createLru } from '#server/lru.ts'
import { type Secrets, sha256 } from '#server/secrets.ts'

export type SessionClaims = {
  readonly userId: string
  readonly sid: string
  readonly anon: string | null
  readonly expiresAt: number
}
export type RefreshClaims = { readonly sid: string }
export type DeveloperClaims = { readonly developerId: string; readonly sid: string; readonly expiresAt: number }

/** The result of verifying a token. */
export type Verified<T> =
  | { readonly kind: 'valid'; readonly claims: T }
  | { readonly kind: 'expired' }
  | { readonly kind: 'invalid' }

export const developerAccessSeconds = 24 * 3600
export const developerRefreshSeconds = 30 * 24 * 3600
export const sessionSeconds = 3600
export const clientRefreshSeconds = 90 * 24 * 3600

/** Longer than four times any token of ours: a longer text is refused without verifying its signature. */
const longestToken = 4096

/** Access tokens from before sessions existed are refused (contract, Authentication 3). */
const cutover = Date.parse('2026-10-15T00:00:00Z') / 1000

export type Tokens = {
  developerAccess(developerId: string, sid: string): Promise<string>
  developerRefresh(sid: string): Promise<{ token: string; hash: string }>
  verifyDeveloperAccess(token: string): Promise<Verified<DeveloperClaims>>
  verifyDeveloperRefresh(token: string): Promise<Verified<RefreshClaims>>
  /** `more`: claims beside ours, for a client that reads the token itself. */
  session(
    project: CachedProject,
    claims: { userId: string; sid: string; anon: string | null },
    more?: Readonly<Record<string, unknown>>,
  ): Promise<string>
  clientRefresh(project: CachedProject, sid: string): Promise<{ token: string; hash: string }>
  verifySession(project: CachedProject, token: string): Promise<Verified<SessionClaims>>
  verifyClientRefresh(project: CachedProject, token: string): Promise<Verified<RefreshClaims>>
}

declare module '#server/services.ts' {
  interface Services {
    readonly tokens: Tokens
  }
}

export const createTokens = (secrets: Secrets, now: () => Date): Tokens => {
  const developerPurpose = 'developer access tokens'
  const developerRefreshPurpose = 'developer refresh tokens'
  const privateKeys = createLru<KeyObject>(1000)
  const publicKeys = createLru<Awaited<ReturnType<typeof importJWK>>>(1000)

  const seconds = () => Math.floor(now().getTime() / 1000)
  const clientPurpose = (project: CachedProject) => `client refresh tokens ${project.projectId}`
  const keys = createLru<{ readonly current: string; readonly all: Uint8Array[] }>(2000)
  /** The keys of a purpose, the current one first. */
  const keysOf = (purpose: string): Uint8Array[] => {
    const known = keys.get(purpose)
    if (known?.current === secrets.current) return known.all
    const made = { current: secrets.current, all: secrets.deriveAll(purpose) }
    keys.set(purpose, made)
    return made.all
  }
  const keyOf = (purpose: string): Uint8Array => keysOf(purpose)[0]!

  const refresh = async (purpose: string, sid: string, lifetime: number, extra: Record<string, string> = {}) => {
    const token = await new SignJWT({ sid, typ: 'refresh', ...extra })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .setJti(randomUUID())
      .setIssuedAt(seconds())
      .setExpirationTime(seconds() + lifetime)
      .sign(keyOf(purpose))
    return { token, hash: sha256(token) }
  }

  const read = async (token: string, key: Parameters<typeof jwtVerify>[1], algorithm: string) => {
    if (token.length > longestToken) return { kind: 'invalid' } as const
    try {
      const { payload } = await jwtVerify(token, key, { algorithms: [algorithm], currentDate: now() })
      return { kind: 'valid', claims: payload } as const
    } catch (error) {
      const isExpired = (error as { code?: string }).code === 'ERR_JWT_EXPIRED'
      return isExpired ? ({ kind: 'expired' } as const) : ({ kind: 'invalid' } as const)
    }
  }

  /** Of a token that any of the keys has signed. */
  const readSigned = async (token: string, purpose: string) => {
    for (const key of keysOf(purpose)) {
      const verified = await read(token, key, 'HS256')
      if (verified.kind !== 'invalid') return verified
    }
    return { kind: 'invalid' } as const
  }

  const readRefresh = async (token: string, purpose: string, projectId?: string): Promise<Verified<RefreshClaims>> => {
    const verified = await readSigned(token, purpose)
    if (verified.kind !== 'valid') return verified
    const { sid, typ, pid } = verified.claims
    if (typeof sid !== 'string' || typ !== 'refresh' || (projectId && pid !== projectId)) return { kind: 'invalid' }
    return { kind: 'valid', claims: { sid } }
  }

  const signingKeyOf = ({ projectId, signing }: CachedProject): { keyId: string; key: KeyObject } => {
    const found = signing.find(({ useFrom }) => useFrom <= now().getTime()) ?? signing.at(-1)
    if (!found) throw new Error(`the project ${projectId} has no signing key`)
    let key = privateKeys.get(found.keyId)
    if (!key) {
      key = createPrivateKey(secrets.decrypt(`signing key ${projectId}`, found.sealed))
      privateKeys.set(found.keyId, key)
    }
    return { keyId: found.keyId, key }
  }
  const publicKeyOf = async ({ keyId, publicJwk }: SigningKey) => {
    let key = publicKeys.get(keyId)
    if (!key) {
      key = await importJWK(publicJwk, 'ES256')
      publicKeys.set(keyId, key)
    }
    return key
  }
  /** Of a session token that one of the project's keys has signed. */
  const readSession = async ({ signing }: CachedProject, token: string) => {
    for (const key of signing) {
      const verified = await read(token, await publicKeyOf(key), 'ES256')
      if (verified.kind !== 'invalid' || key === signing.at(-1)) return verified
    }
    return { kind: 'invalid' } as const
  }

  return {
    developerAccess: (developerId, sid) =>
      new SignJWT({ sid, typ: 'access' })
        .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
        .setSubject(developerId)
        .setIssuedAt(seconds())
        .setExpirationTime(seconds() + developerAccessSeconds)
        .sign(keyOf(developerPurpose)),
    developerRefresh: (sid) => refresh(developerRefreshPurpose, sid, developerRefreshSeconds),
    async verifyDeveloperAccess(token) {
      const verified = await readSigned(token, developerPurpose)
      if (verified.kind !== 'valid') return verified
      const { sub, sid, typ, iat, exp } = verified.claims
      if (typeof sub !== 'string' || typeof sid !== 'string' || typ !== 'access') return { kind: 'invalid' }
      if (typeof iat !== 'number' || typeof exp !== 'number' || iat < cutover) return { kind: 'invalid' }
      return { kind: 'valid', claims: { developerId: sub, sid, expiresAt: exp } }
    },
    verifyDeveloperRefresh: (token) => readRefresh(token, developerRefreshPurpose),
    session: async (project, claims, more = {}) => {
      const { keyId, key } = signingKeyOf(project)
      return new SignJWT({ ...more, pid: project.projectId, sid: claims.sid, anon: claims.anon })
        .setProtectedHeader({ alg: 'ES256', typ: 'JWT', kid: keyId })
        .setSubject(claims.userId)
        .setIssuedAt(seconds())
        .setExpirationTime(seconds() + sessionSeconds)
        .sign(key)
    },
    clientRefresh: (project, sid) =>
      refresh(clientPurpose(project), sid, clientRefreshSeconds, { pid: project.projectId }),
    async verifySession(project, token) {
      const verified = await readSession(project, token)
      if (verified.kind !== 'valid') return verified
      const { sub, sid, pid, anon, exp } = verified.claims
      if (typeof sub !== 'string' || typeof sid !== 'string' || pid !== project.projectId || typeof exp !== 'number') {
        return { kind: 'invalid' }
      }
      return {
        kind: 'valid',
        claims: { userId: sub, sid, anon: typeof anon === 'string' ? anon : null, expiresAt: exp },
      }
    },
    verifyClientRefresh: (project, token) => readRefresh(token, clientPurpose(project), project.projectId),
  }
}

/** The ES256 key pair of a new project; the private key is returned only encrypted. */
export const createSigningKey = (secrets: Secrets, projectId: string) => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keyId = randomBytes(12).toString('base64url')
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  return {
    key_id: keyId,
    public_jwk: { ...publicKey.export({ format: 'jwk' }), kid: keyId, alg: 'ES256', use: 'sig' },
    sealed: secrets.encrypt(`signing key ${projectId}`, pem),
  }
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Random letters and digits without bias: about 5.95 bits each. */
export const randomText = (length: number): string => {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length * 2)) if (byte < 248 && text.length < length) text += alphabet[byte % 62]
  }
  return text
}

/** A new API key: the text is shown once, the hash is stored. */
export const createApiKey = (type: 'client' | 'server', environment: 'development' | 'production') => {
  const beginning = `svc_${environment === 'production' ? 'live' : 'dev'}_${type === 'client' ? 'ck' : 'sk'}_`
  const text = beginning + randomText(40)
  return { text, key_prefix: text.slice(0, beginning.length + 6), key_hash: sha256(text), key_type: type, environment }
}

/** How personal access tokens begin. */
export const tokenBeginning = 'svc_dpat_'
export const serviceKeyBeginning = 'svc_dsvc_'
export const operatorTokenBeginning = 'svc_dop_'

/** A new personal access token: the text is shown once, the hash is stored. */
export const createPersonalToken = () => {
  const text = tokenBeginning + randomText(40)
  return { text, token_prefix: text.slice(0, 16), token_hash: sha256(text) }
}

/** The key of a service account. */
export const createServiceKey = () => {
  const text = serviceKeyBeginning + randomText(40)
  return { text, key_hash: sha256(text) }
}

export const createOperatorToken = () => {
  const text = operatorTokenBeginning + randomText(40)
  return { text, token_hash: sha256(text) }
}
