import type { Logger } from 'pino'
import type { Place } from '#server/database/cluster.ts'
import type { Database } from '#server/database/database.ts'
import type { Resolved } from '#server/http/route.ts'
import type { ChannelEvent, ClientFrame, EventRow, Frame, Reference } from '#server/realtime/protocol.ts'
import type { Retained } from '#server/realtime/retention.ts'

// A hub, its connections and their subscriptions refer to each other.

/** How frames reach a client: a WebSocket, or the response of a stream. */
export type Transport = {
  send(frame: Frame): void
  close(code: number, reason: string): void
  /** Closes without a close frame and frees unsent data. */
  terminate(): void
  readonly unreadBytes: number
  /** Its client has closed it, or it has broken off: it will never carry anything again. */
  readonly isGone: boolean
  /** Its client cannot ping: one that is gone ends the connection when something is written to it. */
  readonly isOneWay?: boolean
}

/** Under what a connection runs, and until when. */
export type Credential = {
  readonly resolved: Resolved
  readonly userId: string
  /** The sign-in; null for a server key on behalf of the user. */
  readonly sid: string | null
  /** Unix seconds; null never. */
  readonly expiresAt: number | null
  readonly keyHash: string | null
}

/** What SQL said of a subscription: whom a row must belong to, and when to ask again. */
export type Scope = {
  readonly filter?: unknown
  readonly is_owner?: boolean
  readonly groups?: readonly string[]
  /** Of pokes of sync: the keys of the user's roles. */
  readonly roles?: readonly string[]
  readonly presence?: boolean
  /** Of a group: whose entries, and which actions, its feed is without for this user. */
  readonly unseen?: readonly string[]
  readonly hidden?: readonly string[]
  readonly me?: boolean
  readonly until?: string
}

/** What SQL answers to a subscription: missed are the events after `since`, seq is the last number of the channel. */
export type Subscribed = {
  readonly name: string
  readonly scope: Scope
  readonly seq: number
  readonly is_new: boolean
  readonly missed: readonly EventRow[]
  readonly is_lost: boolean
  readonly present: unknown
  /** The database knows who listens to the channel, until it is left. */
  readonly is_noted: boolean
}

export type Subscription = {
  readonly connection: Connection
  /** The channel as the client calls it, and as events are published to it. */
  readonly shown: string
  readonly params: object
  name: string
  scope: Scope
  groups: ReadonlySet<string> | null
  /** The text of the filter. */
  filter: string | null
  /** The number of the last event that the client has had, or needed not. */
  seq: number
  /** Only `live` ones are sent events at once: until a subscription is authorised, or authorised again, its events wait. */
  state: 'starting' | 'checking' | 'live' | 'closed'
  waiting: ChannelEvent[]
  /** How often it was to be authorised again: an earlier answer is of no use any more. */
  checks: number
  isCheckDue: boolean
  /** The answer of the database: its place in the channel, null where it was refused. */
  asked: Promise<Subscribed | null> | null
}

export type Connection = {
  readonly id: string
  readonly userId: string
  readonly credential: Credential
  readonly subscriptions: ReadonlyMap<string, Subscription>
  /** Authorises a channel and begins to listen. Rejects with what refuses it. */
  subscribe(channel: string, params: object, since: number | null, ref?: Reference): Promise<void>
  /** What a client sends, checked. By `sender` it knows its own publication again. */
  receive(frame: ClientFrame, sender?: string): void
  /** Anything from the client: it is there. */
  touch(): void
  readonly seenAt: number
  send(frame: Frame): void
  /** The subscriptions that are to be authorised again, before they hear anything later. */
  recheck(which: readonly Subscription[]): void
  /** The user may have lost rights: all subscriptions are authorised again, and presence ends where it has no right any more. */
  recheckAll(): void
  close(code: number, reason: string): void
  /** The client does not read: it is cut off. */
  dropSlow(): void
  /** The transport has ended. */
  ended(): void
  /** Ends when the transport has, before that is told. */
  endIfGone(): void
  readonly isClosed: boolean
}

/** What one project's subscribers on this server share: it reads the project's events while it has connections, and is gone afterwards. */
export type Hub = {
  readonly projectId: string
  readonly place: Place
  readonly log: Logger
  readonly now: () => Date
  readonly call: Database['call']
  /** Admits a connection; rejects with what refuses it. */
  open(credential: Credential, transport: Transport): Promise<Connection>
  remove(connection: Connection): void
  /** Keeps what is handed out from now on, for a subscription whose place in its channel is being asked for. */
  retain(): Retained
  /** From now on events reach the subscription; again when its scope or its state has changed. */
  join(subscription: Subscription): void
  leave(subscription: Subscription): void
  /** Resolves when every transaction that may not have heard of a new channel has ended, or after 6 seconds: with those that have not. */
  settle(): Promise<readonly string[]>
  /** Does `work` when these transactions have ended. */
  afterThose(transactions: readonly string[], work: () => void): void
  /** Asks the filters of these subscriptions of rows that they have not been asked of. */
  match(events: readonly ChannelEvent[], subscriptions: readonly Subscription[]): Promise<void>
  renew(credential: Credential, token: string): Promise<Credential | null>
  /** New events may be there. */
  wake(): void
  /** Checks the credentials of some connections and closes those that have ended. */
  checkCredentials(which: (credential: Credential) => boolean): Promise<void>
  closeAll(code: number, reason: string): void
  listeners(channel: string): number
  readonly size: number
}
