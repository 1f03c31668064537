import { isRefusal } from './errors.ts'
import { deleteMe, linkIdentity, mergeAccounts } from './generated/client.ts'
import type { LinkIdentityInput, Me, UserSessionReply } from './generated/schemas.ts'
import type { Operation } from './operation.ts'
import { defaultStore } from './page_store.ts'
import type { Store } from './platform.ts'
import { createSessions, type Session, type SessionEnd, type Sessions } from './session.ts'
import {
  type Answer,
  type Call,
  type CallOptions,
  createTransport,
  type Input,
  type Transport,
  type TransportOptions,
} from './transport.ts'
import { createZone, deviceZone } from './zone.ts'

export type AppOptions = TransportOptions & {
  /** The client key of the project. */
  readonly key: string
  /** Where the session, unsent events and cached values are kept: a page's IndexedDB, elsewhere memory. */
  readonly store?: Store | undefined
  /** Shown in the list of a user's devices, and a condition of flags. */
  readonly platform?: string | undefined
  readonly appVersion?: string | undefined
  /** The zone of the device, asked at each call: by default the one that `Intl` knows. */
  readonly timeZone?: (() => string | undefined) | undefined
}

/** Where one side of the SDK keeps what it needs; not for apps. */
export type Inside = {
  readonly transport: Transport
  readonly sessions: Sessions
  readonly store: Store
  readonly prefix: string
  send<I, R>(operation: Operation<I, R>, input?: Input & CallOptions): Promise<Answer<R>>
}

export type App = {
  /** Calls an operation as the signed-in user, or with the key alone while nobody is signed in. */
  readonly call: Call
  /** Who is signed in, or null. */
  session(): Promise<Session | null>
  /** Who is signed in, else a new anonymous user, who may be linked to an identity later. */
  ensureSignedIn(): Promise<Session>
  /** Signs in by an operation that answers a session, such as `signInWithPassword`. `merge` brings an anonymous user's progress along. */
  signIn<I>(operation: Operation<I, UserSessionReply>, input: I & { merge?: boolean }): Promise<Session>
  /** Gives the user an identity: the user, the session and everything stay as they are. 409 `IDENTITY_IN_USE` is for `signIn` with `merge`. */
  link(identity: LinkIdentityInput): Promise<Me>
  signOut(options?: { all?: boolean }): Promise<void>
  /** Called when another user is signed in, and with null when nobody is any more. */
  onSession(listener: (session: Session | null, end?: SessionEnd) => void): () => void
  /** The server's time in milliseconds, however wrong the device's clock is. */
  now(): number
  readonly inside: Inside
}

/** The app of a project, for its users. Everything else takes it: `createEvents(app)`, `createConfig(app)`, `createRealtime(app)`. */
export const createApp = (options: AppOptions): App => {
  if (!options.url || !options.key)
    throw new TypeError('createApp needs the url of the server and the key of the project.')
  const transport = createTransport(options)
  const store = options.store ?? defaultStore()
  // a session of one project is never used with the key of another
  const prefix = `trellis:${options.key.slice(-12)}`
  const key: Record<string, string> = { 'x-api-key': options.key }
  if (options.platform) key['x-service-platform'] = key['x-platform'] = options.platform
  if (options.appVersion) key['x-service-app-version'] = key['x-app-version'] = options.appVersion
  const zoneOf = options.timeZone ?? deviceZone
  const keyHeaders = () => {
    const zone = zoneOf()
    return zone === undefined ? key : { ...key, 'x-service-timezone': zone }
  }
  const sessions = createSessions(transport, keyHeaders, store, prefix)
  const send: Inside['send'] = (operation, input) => transport.send(sessions.credentials, operation, input)
  const keyAlone = { headers: async () => keyHeaders() }
  const zone = createZone(send, sessions, store, prefix, zoneOf)

  const merge = async (anonymous: Session) => {
    try {
      await send(mergeAccounts, { body: { from_session_token: anonymous.sessionToken } })
    } catch (error) {
      // a user with an identity of their own keeps their progress to themselves
      if (!isRefusal(error, 'MERGE_NOT_ALLOWED')) throw error
    }
  }

  return {
    async call(operation, ...[input]) {
      zone.check()
      if ((operation as string) !== (deleteMe as string)) return (await send(operation, input)).body
      // afterwards nobody is left who could be signed in
      return sessions.leaving(async () => {
        const { body } = await send(operation, input)
        await sessions.forget('deleted')
        await zone.forget()
        return body
      })
    },
    session: sessions.current,
    async ensureSignedIn() {
      const session = await sessions.ensure()
      await zone.keep()
      return session
    },
    async signIn(operation, input) {
      const { merge: isMerged, ...rest } = input as { merge?: boolean }
      // its token must be one that the server takes when the other session is there
      if (isMerged) await sessions.credentials.headers()
      const before = await sessions.current()
      const reply = await transport.send(keyAlone, operation, rest)
      const session = await sessions.adopt(reply.body.data)
      if (isMerged && before?.anonymousId && before.userId !== session.userId) await merge(before)
      await zone.keep()
      return session
    },
    async link(identity) {
      const { body } = await send(linkIdentity, { body: identity })
      await sessions.know(body.data)
      return body.data
    },
    async signOut(options) {
      await sessions.end(options)
      await zone.forget()
    },
    onSession: sessions.onChange,
    now: () => transport.now() + (transport.skew ?? 0),
    inside: { transport, sessions, store, prefix, send },
  }
}

export type ServerOptions = TransportOptions & {
  /** The server key of the project. Never put it into an app. */
  readonly key: string
}

/** A server of the project's own: `call` with the server key, `as(userId)` on behalf of a user. */
export const createServer = (options: ServerOptions): { call: Call; as(userId: string): { call: Call } } => {
  const transport = createTransport(options)
  const callWith = (headers: Readonly<Record<string, string>>): Call => {
    const credentials = { headers: async () => headers }
    return async (operation, ...[input]) => (await transport.send(credentials, operation, input)).body
  }
  return {
    call: callWith({ 'x-api-key': options.key }),
    as: (userId) => ({ call: callWith({ 'x-api-key': options.key, 'x-on-behalf-of': userId }) }),
  }
}

export type DeveloperOptions = TransportOptions & {
  /** An access token, a personal access token, or what answers one. None for sign-up and sign-in. */
  readonly token?: string | (() => string | undefined | Promise<string | undefined>) | undefined
  /** Called when the server does not take the token (401). True if there is a new one: the call is then sent again. */
  readonly renew?: (() => Promise<boolean>) | undefined
}

/** For consoles and command lines: `call` with a developer's token, and the operations of `trellis-sdk/admin`. */
export const createDeveloper = ({ token, renew, ...options }: DeveloperOptions): { call: Call } => {
  const transport = createTransport(options)
  const credentials = {
    async headers(): Promise<Record<string, string>> {
      const value = typeof token === 'function' ? await token() : token
      return value ? { authorization: `Bearer ${value}` } : {}
    },
    ...(renew ? { renew } : {}),
  }
  return { call: async (operation, ...[input]) => (await transport.send(credentials, operation, input)).body }
}
