import { createHmac } from 'node:crypto'
import type { Claims } from '#server/database/call.ts'
import { createLru } from '#server/lru.ts'

/** Who a request of PostgREST runs as: the role, and what internal.rest_begin sets. */
export type RestClaims = Pick<Claims, 'caller' | 'userId' | 'sessionId' | 'projectId'> & {
  readonly role: 'app_rest' | 'app_server' | 'app_anon'
}

export type RestTokens = { tokenFor(claims: RestClaims): string }

const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
const header = encoded({ alg: 'HS256', typ: 'JWT' })

/** A token is used for this long and valid for twice as long: a request may wait for a connection. */
const usedMs = 30_000

export type RestTokenOptions = {
  readonly secret: string
  readonly timeoutMs: number
  /** The time that a test harness passes, ISO 8601, or null. */
  readonly clock: () => string | null
}

/** Tokens between the server and one process of PostgREST, whose secret nobody else has. Never sent to a client. */
export const createRestTokens = ({ secret, timeoutMs, clock }: RestTokenOptions): RestTokens => {
  const kept = createLru<string>(1000, { ttlMs: usedMs })
  return {
    tokenFor({ role, caller, userId, sessionId, projectId }) {
      const at = clock()
      const key = `${role} ${caller} ${userId} ${sessionId} ${at}`
      const known = kept.get(key)
      if (known) return known
      const claims = {
        role,
        caller,
        user_id: userId ?? '',
        session_id: sessionId ?? '',
        project_id: projectId ?? '',
        clock: at ?? '',
        timeout_ms: String(timeoutMs),
        exp: Math.floor((Date.now() + 2 * usedMs) / 1000),
      }
      const signed = `${header}.${encoded(claims)}`
      const token = `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
      kept.set(key, token)
      return token
    },
  }
}
