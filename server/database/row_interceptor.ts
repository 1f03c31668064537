import type { Duplex } from 'node:stream'

/** The body of a DataRow: the number of columns, then the length (-1 for null) and the bytes of each. */
export type TakeRow = (bytes: Buffer, start: number, end: number) => void

/**
 * Intercepts messages of Postgres before pg parses them: pg makes a string of every value, which for a page of rows costs more than all
 * other work of the server on it. DataRow messages go to the callback that takes them as bytes, every other message to pg.
 */
export type RowInterceptor = {
  /** `taker` says who takes the row that comes now. Answers how to close it again. */
  open(taker: () => TakeRow | undefined): () => void
}

const interceptors = new WeakMap<Duplex, RowInterceptor>()

/** The interceptor of a connection; it is installed into the stream once, and stays. */
export const interceptorOf = (stream: Duplex): RowInterceptor => {
  const known = interceptors.get(stream)
  if (known) return known
  const made = interceptRows(stream)
  interceptors.set(stream, made)
  return made
}

const dataRow = 68

const interceptRows = (stream: Duplex): RowInterceptor => {
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
