import type { FileHandle } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/**
 * How bytes go from a file to a response and from a request to a file. The streams of Node allocate memory for each piece and leave it to the
 * garbage collector, which lets a hundred megabytes of it lie. Here the memory of a piece is used again, or given back at once.
 */

/** Large pieces make few trips to the kernel; two of them for a download, so that one is read while the other is sent. */
const large = 1 << 18
/** Downloads beyond so many large pieces get a small one each: a thousand slow readers take little memory. */
const mostLarge = 64
const small = 1 << 15

const pool: Buffer[] = []
let taken = 0

type Pieces = { readonly all: readonly Buffer[]; release(): void }

/** Pieces are given back only when nothing reads or writes them any more; else the garbage collector has them. */
const takePieces = (): Pieces => {
  if (taken + 2 > mostLarge) return { all: [Buffer.allocUnsafeSlow(small)], release: () => undefined }
  taken += 2
  const all = [0, 1].map(() => pool.pop() ?? Buffer.allocUnsafeSlow(large))
  return { all, release: () => pool.push(...all) }
}
const countDown = ({ all }: Pieces) => {
  if (all.length === 2) taken -= 2
  // what many downloads needed at once is not kept for ever
  while (pool.length > mostLarge / 4) pool.pop()
}

/** Resolves when the piece is with the kernel, and its memory may change. */
const written = (response: ServerResponse, piece: Buffer) =>
  new Promise<void>((resolve, reject) => response.write(piece, (error) => (error ? reject(error) : resolve())))

const readWhole = async (file: FileHandle, piece: Buffer, position: number): Promise<void> => {
  for (let filled = 0; filled < piece.length; ) {
    const { bytesRead } = await file.read(piece, filled, piece.length - filled, position + filled)
    if (bytesRead === 0) throw new Error('a stored file is shorter than it was')
    filled += bytesRead
  }
}

const send = async (response: ServerResponse, file: FileHandle, start: number, end: number, pieces: Pieces) => {
  let sending: Promise<void> = Promise.resolve()
  let [position, turn] = [start, 0]
  while (position <= end) {
    const piece = pieces.all[turn % pieces.all.length] as Buffer
    const part = piece.subarray(0, Math.min(piece.length, end + 1 - position))
    // with one piece, what was in it must have gone
    if (pieces.all.length === 1) await sending
    await readWhole(file, part, position)
    await sending
    if (response.destroyed) throw new Error('the reader has gone')
    sending = written(response, part)
    // it is awaited after the next piece was read
    sending.catch(() => undefined)
    position += part.length
    turn += 1
  }
  await sending
}

/**
 * The bytes of a file from `start` to `end`, both included, as a body for Fastify: a stream that writes into the response by itself when it is
 * piped, from memory that is used again. Closes the file.
 */
export const fileBody = (file: FileHandle, start: number, end: number): Readable => {
  const body = new Readable({
    read: () => undefined,
    destroy: (error, done) => void file.close().then(() => done(error), done),
  })
  const pipe = (response: ServerResponse): ServerResponse => {
    const pieces = takePieces()
    body.once('close', () => countDown(pieces))
    send(response, file, start, end, pieces).then(
      () => {
        pieces.release()
        response.end()
        body.resume().push(null)
      },
      (error: Error) => body.destroy(error),
    )
    return response
  }
  return Object.assign(body, { pipe })
}

/** Gives the memory of a piece back, where it is the piece's own. */
const give = ({ buffer, byteLength }: Buffer) => {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength && !buffer.detached) buffer.transfer(0)
}

export type Limits = {
  /** The first bytes, which are left out. */
  readonly skip?: number
  /** More bytes, those that are left out among them, are refused with `tooLong`. */
  readonly most: number
  readonly tooLong: () => Error
}

/** Writes what a request sends to a file, and answers how many bytes came. The source and its memory are used up. */
export const storeBytes = async (file: FileHandle, source: Readable, limits: Limits): Promise<number> => {
  let size = 0
  let left = limits.skip ?? 0
  const store = async (pieces: readonly Buffer[]) => {
    size += pieces.reduce((sum, piece) => sum + piece.length, 0)
    if (size > limits.most) throw limits.tooLong()
    const wanted = pieces.flatMap((piece) => {
      const rest = piece.subarray(Math.min(left, piece.length))
      left -= piece.length - rest.length
      return rest.length > 0 ? [rest] : []
    })
    if (wanted.length > 0) await writeWhole(file, wanted)
    for (const piece of pieces) give(piece)
  }
  const into = (pieces: readonly Buffer[], done: (error?: Error) => void) => void store(pieces).then(() => done(), done)
  const sink = new Writable({
    highWaterMark: large,
    write: (piece: Buffer, _encoding, done) => into([piece], done),
    writev: (all, done) =>
      into(
        all.map(({ chunk }) => chunk as Buffer),
        done,
      ),
  })
  await pipeline(source, sink)
  return size
}

/** A write may take less than it was given, at the end of the disk for instance; the next one says why. */
const writeWhole = async (file: FileHandle, pieces: readonly Buffer[]): Promise<void> => {
  const total = pieces.reduce((sum, piece) => sum + piece.length, 0)
  const { bytesWritten } = await file.writev([...pieces])
  if (bytesWritten < total) await file.writeFile(Buffer.concat(pieces).subarray(bytesWritten))
}

/** Appends the bytes of one file from `start` on to another. */
export const appendFile = async (file: FileHandle, from: FileHandle, start: number): Promise<void> => {
  const pieces = takePieces()
  try {
    const [piece] = pieces.all as [Buffer]
    for (let position = start; ; ) {
      const { bytesRead } = await from.read(piece, 0, piece.length, position)
      if (bytesRead === 0) break
      await writeWhole(file, [piece.subarray(0, bytesRead)])
      position += bytesRead
    }
    pieces.release()
  } finally {
    countDown(pieces)
  }
}
