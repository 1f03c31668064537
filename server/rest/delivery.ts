import type { Frame } from '#server/realtime/protocol.ts'
import { type Change, shownChange } from '#server/rest/changes.ts'
import { metasOf, type Told } from '#server/rest/messages.ts'
import type { Format } from '#server/rest/phoenix.ts'

export const prefix = 'realtime:'

/** A channel of realtime-js, as its client has joined it. */
export type Topic = {
  readonly topic: string
  readonly joinRef: string | null
  readonly changes: readonly Change[]
  readonly isSelf: boolean
  readonly hasPresence: boolean
  /** Only a room that a rule names. */
  readonly isPrivate: boolean
  /** The channel of ours for broadcasts and presence. */
  room: string | null
  isHere: boolean
  /** Our channels that it listens to. */
  readonly listens: Set<string>
  /** What came before the answer to the join, which is the first that a client hears. */
  held: (string | Buffer)[] | null
}

/** Writes what happens on our channels to the channels of one client that listen to them. `sender` is this client. */
export const createDelivery = (format: Format, socket: { send(data: string | Buffer): void }, sender: string) => {
  const push = (to: Topic, message: string | Buffer) => {
    if (to.held) to.held.push(message)
    else socket.send(message)
  }
  const message = (to: Topic, event: string, payload: unknown) =>
    push(to, format.write({ joinRef: to.joinRef, ref: null, topic: to.topic, event, payload }))

  const tell = (to: Topic, channel: string, of: Told, frame: Frame) => {
    switch (of.type) {
      case 'event': {
        if (channel === to.room) {
          if (frame.sender !== sender || to.isSelf) push(to, format.broadcast(to.topic, of.event, of.payload))
          return
        }
        const shown = shownChange(to.changes, channel.slice('collection:'.length), of.event, of.payload, of.at)
        if (shown) message(to, 'postgres_changes', shown)
        return
      }
      case 'presence':
        if (!to.hasPresence || channel !== to.room) return
        if (of.state) return message(to, 'presence_state', metasOf(of.state))
        return message(to, 'presence_diff', { joins: metasOf(of.joins), leaves: metasOf(of.leaves) })
      case 'resync':
        return message(to, 'system', {
          ...systemOf(to, channel),
          status: 'error',
          message: 'Events are missing: fetch again.',
        })
      case 'error':
        // the client joins again, and is told by the answer what refuses it
        to.listens.delete(channel)
        message(to, 'system', { ...systemOf(to, channel), status: 'error', message: `${of.code}: ${of.message}` })
        return message(to, 'phx_error', { reason: of.code })
    }
  }
  const systemOf = (to: Topic, channel: string) => ({
    channel: to.topic.slice(prefix.length),
    extension: channel === to.room ? 'broadcast' : 'postgres_changes',
  })

  return { message, tell }
}
