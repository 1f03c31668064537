import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import { importJWK, jwtVerify, SignJWT } from 'jose'
import type { CachedProject } from '#server/http/project_cache.ts'
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
  session(project: CachedProject, claims: { userId: string; sid: string; anon: string | null }): Promise<string>
  clientRefresh(project: CachedProject, sid: string): Promise<{ token: string; hash: string }>
  verifySession(project: CachedProject, token: string): Promise<Verified<SessionClaims>>
  verifyClientRefresh(project: CachedProject, token: string): Promise<Verified<RefreshClaims>>
}

export const createTokens = (secrets: Secrets, now: () => Date): Tokens => {
  const developerKey = secrets.derive('developer access tokens')
  const developerRefreshKey = secrets.derive('developer refresh tokens')
  const privateKeys = createLru<KeyObject>(1000)
  const publicKeys = createLru<Awaited<ReturnType<typeof importJWK>>>(1000)

  const seconds = () => Math.floor(now().getTime() / 1000)
  const clientKey = (project: CachedProject) => secrets.derive(`client refresh tokens ${project.projectId}`)

  const refresh = async (key: Uint8Array, sid: string, lifetime: number, extra: Record<string, string> = {}) => {
    const token = await new SignJWT({ sid, typ: 'refresh', ...extra })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .setJti(randomUUID())
      .setIssuedAt(seconds())
      .setExpirationTime(seconds() + lifetime)
      .sign(key)
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

  const readRefresh = async (token: string, key: Uint8Array, projectId?: string): Promise<Verified<RefreshClaims>> => {
    const verified = await read(token, key, 'HS256')
    if (verified.kind !== 'valid') return verified
    const { sid, typ, pid } = verified.claims
    if (typeof sid !== 'string' || typ !== 'refresh' || (projectId && pid !== projectId)) return { kind: 'invalid' }
    return { kind: 'valid', claims: { sid } }
  }

  const privateKeyOf = (project: CachedProject): KeyObject => {
    let key = privateKeys.get(project.signing.keyId)
    if (!key) {
      key = createPrivateKey(secrets.decrypt(`signing key ${project.projectId}`, project.signing.sealed))
      privateKeys.set(project.signing.keyId, key)
    }
    return key
  }
  const publicKeyOf = async (project: CachedProject) => {
    let key = publicKeys.get(project.signing.keyId)
    if (!key) {
      key = await importJWK(project.signing.publicJwk, 'ES256')
      publicKeys.set(project.signing.keyId, key)
    }
    return key
  }

  return {
    developerAccess: (developerId, sid) =>
      new SignJWT({ sid, typ: 'access' })
        .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
        .setSubject(developerId)
        .setIssuedAt(seconds())
        .setExpirationTime(seconds() + developerAccessSeconds)
        .sign(developerKey),
    developerRefresh: (sid) => refresh(developerRefreshKey, sid, developerRefreshSeconds),
    async verifyDeveloperAccess(token) {
      const verified = await read(token, developerKey, 'HS256')
      if (verified.kind !== 'valid') return verified
      const { sub, sid, typ, iat, exp } = verified.claims
      if (typeof sub !== 'string' || typeof sid !== 'string' || typ !== 'access') return { kind: 'invalid' }
      if (typeof iat !== 'number' || typeof exp !== 'number' || iat < cutover) return { kind: 'invalid' }
      return { kind: 'valid', claims: { developerId: sub, sid, expiresAt: exp } }
    },
    verifyDeveloperRefresh: (token) => readRefresh(token, developerRefreshKey),
    session: (project, claims) =>
      new SignJWT({ pid: project.projectId, sid: claims.sid, anon: claims.anon })
        .setProtectedHeader({ alg: 'ES256', typ: 'JWT', kid: project.signing.keyId })
        .setSubject(claims.userId)
        .setIssuedAt(seconds())
        .setExpirationTime(seconds() + sessionSeconds)
        .sign(privateKeyOf(project)),
    clientRefresh: (project, sid) => refresh(clientKey(project), sid, clientRefreshSeconds, { pid: project.projectId }),
    async verifySession(project, token) {
      const verified = await read(token, await publicKeyOf(project), 'ES256')
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
    verifyClientRefresh: (project, token) => readRefresh(token, clientKey(project), project.projectId),
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
