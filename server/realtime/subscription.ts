import { type ChannelEvent, eventFrame, limits, type Meta, readEvent, resyncFrame } from '#server/realtime/protocol.ts'
import type { Connection, Scope, Subscription } from '#server/realtime/types.ts'

export const createSubscription = (connection: Connection, shown: string, params: object): Subscription => ({
  connection,
  shown,
  params,
  name: '',
  scope: {},
  groups: null,
  filter: null,
  seq: 0,
  state: 'starting',
  waiting: [],
  checks: 0,
  isCheckDue: false,
  asked: null,
})

export const applyScope = (subscription: Subscription, scope: Scope): void => {
  subscription.scope = scope
  subscription.groups = scope.groups ? new Set(scope.groups) : null
  subscription.filter = scope.filter === undefined ? null : JSON.stringify(scope.filter)
}

/** Whether the read policy shows a row to the subscriber: decided by its owner, in memory. */
const sees = (
  { scope, groups, connection }: Subscription,
  owner: { user_id: string | null; group_id: string | null },
) =>
  (!scope.is_owner || owner.user_id === connection.userId) &&
  (groups === null || (owner.group_id !== null && groups.has(owner.group_id)))

const isAmong = ({ scope, groups, connection }: Subscription, to: NonNullable<Meta['to']>) =>
  to.users?.includes(connection.userId) ||
  to.groups?.some((group) => groups?.has(group)) ||
  to.roles?.some((role) => scope.roles?.includes(role))

/**
 * What a subscriber is told of an event: its name, null for nothing, `lost` where that cannot be decided. A row that
 * comes into a subscriber's view is an insert to them, and one that leaves it a delete, whatever happened to it.
 */
const toldOf = (subscription: Subscription, of: ChannelEvent): string | null => {
  const { meta } = of
  if (!meta || meta.sender !== undefined) return of.event
  if (meta.action !== undefined) {
    const { unseen = [], hidden = [] } = subscription.scope
    return hidden.includes(meta.action) || (meta.actor && unseen.includes(meta.actor)) ? null : of.event
  }
  if (meta.to !== undefined) return isAmong(subscription, meta.to) ? of.event : null
  if (meta.except !== undefined) return meta.except === subscription.connection.userId ? null : of.event
  if (meta.only !== undefined) return meta.only === subscription.connection.userId ? of.event : null
  const { now, was } = meta
  let isSeen = !!now && sees(subscription, now)
  let wasSeen = !!was && sees(subscription, was)
  if ((isSeen || wasSeen) && subscription.filter !== null) {
    const matched = of.matches.get(subscription.filter)
    if (!matched) return 'lost'
    isSeen &&= matched[0]
    wasSeen &&= matched[1]
  }
  if (isSeen) return wasSeen ? 'update' : 'insert'
  return wasSeen ? 'delete' : null
}

/** Sends an event to a subscriber, once and in its order, or keeps it until the subscription is authorised. */
export const deliver = (subscription: Subscription, of: ChannelEvent): void => {
  if (subscription.state === 'closed') return
  if (subscription.state !== 'live') {
    if (subscription.waiting.length >= limits.waiting) subscription.connection.dropSlow()
    else subscription.waiting.push(of)
    return
  }
  if (of.seq === null) {
    if (of.event === 'presence' && subscription.scope.presence)
      subscription.connection.send(eventFrame(of, subscription.shown, of.event))
    return
  }
  if (of.seq <= subscription.seq) return
  subscription.seq = of.seq
  const told = toldOf(subscription, of)
  if (told === 'lost') subscription.connection.send(resyncFrame(subscription.shown))
  else if (told !== null) subscription.connection.send(eventFrame(of, subscription.shown, told))
}

/** From now on events are sent as they come; first those that waited. */
export const goLive = (subscription: Subscription): void => {
  subscription.state = 'live'
  const waiting = subscription.waiting
  subscription.waiting = []
  for (const of of waiting) deliver(subscription, of)
}

/** Whether a role that decided what is shown has ended by itself, which no transaction tells. */
export const isPoked = ({ shown, scope }: Subscription, at: Date): boolean =>
  shown === 'sync' && scope.until !== undefined && Date.parse(scope.until) <= at.getTime()

export const pokeFrame = ({ shown, seq }: Subscription, at: Date) =>
  eventFrame(readEvent([shown, seq, 'poke', '{}', null, at.toISOString()]), shown, 'poke')
