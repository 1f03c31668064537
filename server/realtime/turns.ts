import { type Frame, messageOf } from '#server/realtime/protocol.ts'

/**
 * What is sent to one socket within a turn of the event loop is written together: a write to a socket costs some ten microseconds, however
 * little it has, and sending to a thousand sockets is little else.
 */
let due: (() => void)[] = []

/** Runs at the end of this turn. */
export const atEndOfTurn = (write: () => void): void => {
  if (due.push(write) === 1) setImmediate(writeAll)
}
const writeAll = () => {
  const writes = due
  due = []
  for (const write of writes) write()
  joined.clear()
}

/** Sequences of frames that were joined in this turn, by their first one. */
const joined = new Map<Frame, { readonly frames: readonly Frame[]; readonly bytes: Buffer }[]>()
/** Sockets that begin with the same frame and go on differently: more of them are not looked through. */
const alternatives = 8

const areSame = (one: readonly Frame[], other: readonly Frame[]) =>
  one.length === other.length && one.every((frame, index) => frame === other[index])

/** The messages of frames as one buffer, which all sockets share that get the same frames in this turn: readers of a channel do. */
export const joinedOf = (frames: readonly [Frame, ...Frame[]]): Buffer => {
  const [first] = frames
  if (frames.length === 1) return messageOf(first)
  const known = joined.get(first)
  const same = known?.find((one) => areSame(one.frames, frames))
  if (same) return same.bytes
  const bytes = Buffer.concat(frames.map(messageOf))
  if (!known) joined.set(first, [{ frames, bytes }])
  else if (known.length < alternatives) known.push({ frames, bytes })
  return bytes
}
