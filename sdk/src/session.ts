import { isRefusal, TrellisError } from './errors.ts'
import { refreshSession, signInAnonymously, signOut } from './generated/client.ts'
import type { Me, UserSession } from './generated/schemas.ts'
import { exclusively, hasSecureRandom, randomBytes, type Store } from './platform.ts'
import type { Credentials, Transport } from './transport.ts'

export type Session = {
  readonly userId: string
  readonly sessionToken: string
  readonly refreshToken: string
  /** The credential of a user who has no other: it signs the same user in again. Null once the user is known otherwise. */
  readonly anonymousId: string | null
  /** When the session token expires, in milliseconds of the server's clock. */
  readonly expiresAt: number
}

export type SessionEnd = 'signed out' | 'expired' | 'deleted'
export type SessionListener = (session: Session | null, end?: SessionEnd) => void

export type Sessions = {
  /** The stored session, whoever stored it: another tab, or the program before it was started again. */
  current(): Promise<Session | null>
  /** The session, or that of a new anonymous user. Callers at the same time get the same user. */
  ensure(): Promise<Session>
  /** The same for what nobody has asked for, such as an event that waits: null after a session has ended in this program, because who goes on is the app's to say. */
  begin(): Promise<Session | null>
  /** Stores what a sign-in answered. */
  adopt(result: UserSession): Promise<Session>
  /** Notes what the server says about the user, as after a link: who is known otherwise does not sign in by the anonymous id again. */
  know(user: Me): Promise<void>
  /** Ends the session here and on the server. Without network it ends here, and on the server when the tokens expire. */
  end(options?: { all?: boolean }): Promise<void>
  /** Ends the session here alone, and with it what would sign the same anonymous user in again. */
  forget(end: SessionEnd): Promise<void>
  /** Does what may end the account: meanwhile nothing signs its user in again. */
  leaving<T>(work: () => Promise<T>): Promise<T>
  /** Called at each change in this program, until the function that it answers is called. */
  onChange(listener: SessionListener): () => void
  readonly credentials: Credentials
}

/** A token that expires within this time is replaced before it is used. */
const margin = 30_000

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

type Claims = { readonly iat?: number; readonly exp?: number; readonly sub?: string }

/** The claims of a token, unverified: they say when it expires, and what the server's clock said. Not every platform has `atob`. */
const claimsOf = (token: string): Claims => {
  let bits = 0
  let count = 0
  let text = ''
  for (const letter of token.split('.')[1] ?? '') {
    bits = (bits << 6) | alphabet.indexOf(letter)
    count += 6
    if (count >= 8) {
      count -= 8
      text += String.fromCharCode((bits >> count) & 255)
    }
    bits &= 0xffff
  }
  try {
    return JSON.parse(text) as Claims
  } catch {
    return {}
  }
}

/** 240 bits, in letters that the server takes; without a secure source of random numbers the server makes the id. */
const newAnonymousId = () =>
  hasSecureRandom() ? `anon_${Array.from(randomBytes(40), (byte) => alphabet[byte & 63]).join('')}` : undefined

const isKnownOtherwise = (user: Me) => user.email !== null || user.phone !== null || user.auth_providers.length > 0

export const createSessions = (
  transport: Transport,
  keyHeaders: () => Readonly<Record<string, string>>,
  store: Store,
  prefix: string,
): Sessions => {
  const place = `${prefix}:session`
  const idPlace = `${prefix}:anonymous`
  const listeners = new Set<SessionListener>()
  const keyAlone: Credentials = { headers: async () => keyHeaders() }
  let known: Session | null = null
  let leavings = 0
  let hasEnded = false

  const tell = (session: Session | null, end?: SessionEnd) => {
    for (const listener of [...listeners]) listener(session, end)
  }

  const current = async (): Promise<Session | null> => {
    const text = await store.getItem(place)
    if (!text) {
      // in another tab
      if (known) hasEnded = true
      known = null
    } else if (text !== JSON.stringify(known)) {
      try {
        known = JSON.parse(text) as Session
      } catch {
        known = null
      }
    }
    return known
  }

  const save = async (session: Session | null, end?: SessionEnd) => {
    const before = known
    known = session
    hasEnded = session === null
    if (session) await store.setItem(place, JSON.stringify(session))
    else await store.removeItem(place)
    if (before?.userId !== session?.userId || end) tell(session, end)
  }

  /** The moment of issue is the server's time: apps in browsers do not see the header `Date`. */
  const sessionOf = (
    tokens: { session_token: string; refresh_token: string },
    userId: string,
    anonymousId: string | null,
  ) => {
    const { iat, exp } = claimsOf(tokens.session_token)
    if (iat !== undefined) transport.skew = iat * 1000 + 500 - transport.now()
    const expiresAt = exp === undefined ? Number.POSITIVE_INFINITY : exp * 1000
    return { userId, sessionToken: tokens.session_token, refreshToken: tokens.refresh_token, anonymousId, expiresAt }
  }

  const adoptNow = async (result: UserSession): Promise<Session> => {
    const { user } = result
    const session = sessionOf(result, user.id, isKnownOtherwise(user) ? null : user.anonymous_id)
    await save(session)
    return session
  }

  /** The id is stored before it is sent: when the answer is lost, the next attempt signs the same user in. */
  const signInAnew = async (): Promise<Session> => {
    const id = (await store.getItem(idPlace)) ?? newAnonymousId()
    if (id) await store.setItem(idPlace, id)
    const reply = await transport.send(keyAlone, signInAnonymously, {
      ...(id ? { body: { anonymous_id: id } } : {}),
      repeatable: id !== undefined,
    })
    const session = await adoptNow(reply.body.data)
    await store.removeItem(idPlace)
    return session
  }

  /** After the session has ended: an anonymous user has a credential left, anybody else has to sign in. */
  const revive = async (ended: Session): Promise<Session | null> => {
    const there = await current()
    if (there && there.refreshToken !== ended.refreshToken) return there
    if (leavings > 0) return null
    if (ended.anonymousId) {
      try {
        const body = { anonymous_id: ended.anonymousId }
        const { data } = (await transport.send(keyAlone, signInAnonymously, { body, repeatable: true })).body
        if (data.user.id === ended.userId) return await adoptNow(data)
        // the user was deleted, and this is another: whether somebody goes on as that one, the app decides (ensureSignedIn)
        await store.setItem(idPlace, ended.anonymousId)
      } catch (error) {
        if (!isRefusal(error) || error.status === 429 || error.status >= 500) throw error
      }
    }
    await save(null, 'expired')
    return null
  }

  /** One refresh for all who found that token expired, in this program and, where there are Web Locks, in all tabs. */
  const replace = (used: string): Promise<Session | null> =>
    exclusively(`${prefix}:refresh`, async () => {
      const session = await current()
      if (!session || session.sessionToken !== used) return session
      try {
        const body = { refresh_token: session.refreshToken }
        const reply = await transport.send(keyAlone, refreshSession, { body })
        const next = sessionOf(reply.body.data, session.userId, session.anonymousId)
        // somebody may have signed out or in meanwhile
        if ((await current())?.refreshToken === session.refreshToken) await save(next)
        return known
      } catch (error) {
        if (!isRefusal(error) || ![400, 401, 403].includes(error.status)) throw error
        return revive(session)
      }
    })

  const headers = async (): Promise<Readonly<Record<string, string>>> => {
    let session = await current()
    const serverTime = transport.now() + (transport.skew ?? 0)
    // the clocks are compared first: a device that is an hour ahead has not let its token expire
    const isOld = session !== null && transport.skew !== undefined && session.expiresAt - margin < serverTime
    if (session && isOld) session = await replace(session.sessionToken)
    return session ? { ...keyHeaders(), authorization: `Bearer ${session.sessionToken}` } : keyHeaders()
  }

  const renew = async (used: Readonly<Record<string, string>>): Promise<boolean> => {
    const token = used['authorization']?.slice('Bearer '.length)
    if (token === undefined) return false
    const next = await replace(token)
    return next !== null && next.sessionToken !== token
  }

  const ensure: Sessions['ensure'] = async () => {
    const session = await current()
    return session ?? exclusively(`${prefix}:sign-in`, async () => (await current()) ?? signInAnew())
  }

  return {
    credentials: { headers, renew },
    current,
    ensure,
    async begin() {
      return (await current()) ?? (hasEnded ? null : await ensure())
    },
    adopt: adoptNow,
    async know(user) {
      const session = await current()
      if (session?.userId === user.id && isKnownOtherwise(user)) await save({ ...session, anonymousId: null })
    },
    async end(options = {}) {
      if (!(await current())) return
      // that of all sessions is asked for as the user; a token that is about to expire is replaced before
      const used = options.all ? await headers().catch(() => keyHeaders()) : keyHeaders()
      const credentials: Credentials = { headers: async () => used }
      const session = await current()
      if (!session) return
      // here first: when the server closes the connection of realtime, nobody is to be signed in again
      await save(null, 'signed out')
      const body = { refresh_token: session.refreshToken, ...(options.all ? { all: true } : {}) }
      try {
        await transport.send(credentials, signOut, { body, repeatable: true })
      } catch (error) {
        if (!(error instanceof TrellisError)) throw error
      }
    },
    async leaving(work) {
      leavings += 1
      try {
        return await work()
      } finally {
        leavings -= 1
      }
    },
    async forget(end) {
      await store.removeItem(idPlace)
      await save(null, end)
    },
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
