import type { Duplex } from 'node:stream'
import type { TakeRow } from '#server/database/call.ts'

/**
 * A tap on what Postgres sends, before pg reads it: pg makes a string of every value, which for a page of rows costs more than all
 * else that the server does for it. Rows that somebody takes as bytes go to him, every other message goes to pg.
 */
export type Tap = {
  /** `taker` says who takes the row that comes now. Answers how to close it again. */
  open(taker: () => TakeRow | undefined): () => void
}

const taps = new WeakMap<Duplex, Tap>()

/** The tap of a connection; it is let into the stream once, and stays. */
export const tapOf = (stream: Duplex): Tap => {
  const known = taps.get(stream)
  if (known) return known
  const made = tapInto(stream)
  taps.set(stream, made)
  return made
}

const dataRow = 68

const tapInto = (stream: Duplex): Tap => {
  const readers = stream.listeners('data') as ((chunk: Buffer) => void)[]
  const pass = (chunk: Buffer) => {
    for (const reader of readers) reader.call(stream, chunk)
  }
  let taker: (() => TakeRow | undefined) | undefined
  /** A message whose end has not come yet, and how many bytes it has to have, or at least has. */
  let parts: Buffer[] = []
  let had = 0
  let needed = 0

  const read = (bytes: Buffer) => {
    let passed = 0
    let at = 0
    while (at + 5 <= bytes.length) {
      const end = at + 1 + bytes.readInt32BE(at + 1)
      if (end > bytes.length) break
      if (taker && bytes[at] === dataRow) {
        // what came before it decides whose it is
        if (at > passed) pass(bytes.subarray(passed, at))
        passed = at
        const take = taker?.()
        if (take) {
          take(bytes, at + 5, end)
          passed = end
        }
      }
      at = end
    }
    if (at > passed) pass(bytes.subarray(passed, at))
    if (at === bytes.length) return
    const rest = bytes.subarray(at)
    parts = [rest]
    had = rest.length
    needed = had < 5 ? 5 : 1 + rest.readInt32BE(1)
  }

  stream.on('data', (chunk: Buffer) => {
    if (had === 0) return read(chunk)
    parts.push(chunk)
    had += chunk.length
    if (had < needed) return
    const bytes = Buffer.concat(parts)
    parts = []
    had = 0
    read(bytes)
  })
  for (const reader of readers) stream.removeListener('data', reader)

  return {
    open(wanted) {
      taker = wanted
      return () => {
        if (taker === wanted) taker = undefined
      }
    },
  }
}
