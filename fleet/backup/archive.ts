import { createHash } from 'node:crypto'
import { PassThrough, Readable, type Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress, createZstdDecompress, constants as zlib } from 'node:zlib'
import { Decrypter, Encrypter } from 'age-encryption'
import tar from 'tar-stream'
import { StartError } from '#server/errors.ts'

/** One file or folder of a backup. A file has exactly `size` bytes. */
export type Entry =
  | { readonly name: string; readonly mode: number; readonly type: 'directory' }
  | {
      readonly name: string
      readonly mode: number
      readonly type: 'file'
      readonly size: number
      readonly body: Buffer | AsyncIterable<Buffer>
    }

/** The last entry: a SHA-256 of each file, as `sha256sum -c` reads them. An archive without it is not whole. */
const sumsName = 'SHA256SUMS'
const ageHeader = 'age-encryption.org/v1'
const notWhole = 'This backup is not whole: it ends too early.'

const encrypter = (recipients: readonly string[]): Encrypter => {
  const age = new Encrypter()
  for (const recipient of recipients) {
    try {
      age.addRecipient(recipient)
    } catch {
      throw new StartError(
        `${recipient.slice(0, 12)}… is no recipient of age: it begins with age1, and age-keygen prints it.`,
      )
    }
  }
  return age
}

/**
 * Writes entries as tar, compressed by zstd, and encrypted by age for the recipients, if there are any, into `sink`. Memory is constant. What `fill` puts is read
 * at the speed of the sink. Throws what `fill` throws; then `sink` is destroyed.
 */
export const writeArchive = async (
  sink: Writable,
  recipients: readonly string[],
  fill: (put: (entry: Entry) => Promise<void>) => Promise<void>,
): Promise<void> => {
  const age = encrypter(recipients)
  const pack = tar.pack()
  const sums: string[] = []
  const put = async (entry: Entry) => {
    if (entry.type === 'directory') {
      await new Promise<void>((resolve, reject) => {
        pack.entry({ name: entry.name, mode: entry.mode, type: 'directory' }, (error) =>
          error ? reject(error) : resolve(),
        )
      })
      return
    }
    const { name, mode, size, body } = entry
    const hash = createHash('sha256')
    const ended = Promise.withResolvers<void>()
    const into = pack.entry({ name, mode, size, type: 'file' }, (error) =>
      error ? ended.reject(error) : ended.resolve(),
    )
    // reported where it is awaited
    ended.promise.catch(() => undefined)
    await pipeline(
      Buffer.isBuffer(body) ? Readable.from(body.length > 0 ? [body] : []) : body,
      async function* (chunks) {
        for await (const chunk of chunks) {
          hash.update(chunk)
          yield chunk
        }
      },
      into,
    )
    await ended.promise
    sums.push(`${hash.digest('hex')}  ${name}\n`)
  }
  const filled = async () => {
    try {
      await fill(put)
      const body = Buffer.from(sums.join(''))
      await put({ name: sumsName, mode: 0o600, type: 'file', size: body.length, body })
      pack.finalize()
    } catch (error) {
      pack.destroy(error as Error)
      throw error
    }
  }
  const compress = createZstdCompress({ params: { [zlib.ZSTD_c_compressionLevel]: 3 } })
  const send = async () => {
    if (recipients.length === 0) return pipeline(pack, compress, sink)
    const plain = new PassThrough()
    const compressing = pipeline(pack, compress, plain)
    compressing.catch(() => undefined)
    const encrypted = await age.encrypt(Readable.toWeb(plain) as ReadableStream<Uint8Array>)
    await pipeline(Readable.fromWeb(encrypted as Parameters<typeof Readable.fromWeb>[0]), sink)
    await compressing
  }
  const sending = send()
  sending.catch(() => undefined)
  const [first, second] = await Promise.allSettled([filled(), sending])
  // what the filling met explains what the sink met, unless the sink ended first
  const failure = [first, second].find((each) => each.status === 'rejected')
  if (failure?.status !== 'rejected') return
  const cut = (failure.reason as NodeJS.ErrnoException).code === 'ERR_STREAM_PREMATURE_CLOSE'
  throw cut && second.status === 'rejected' ? second.reason : failure.reason
}

export type ReadEntry = {
  readonly name: string
  readonly mode: number
  readonly type: 'file' | 'directory'
  readonly size: number
  readonly body: AsyncIterable<Buffer>
}

/** The first bytes of a stream, and the stream with them. */
const peek = async (source: Readable, length: number): Promise<[Buffer, Readable]> => {
  const iterator = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const parts: Buffer[] = []
  let size = 0
  while (size < length) {
    const { value, done } = await iterator.next()
    if (done) break
    parts.push(value)
    size += value.length
  }
  const all = async function* () {
    yield* parts
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value
  }
  return [Buffer.concat(parts).subarray(0, length), Readable.from(all())]
}

const decrypted = async (source: Readable, identities: readonly string[]): Promise<Readable> => {
  const [head, whole] = await peek(source, ageHeader.length)
  if (head.toString('latin1') !== ageHeader) {
    if (head.length === 0) throw new StartError('This backup is empty.')
    return whole
  }
  if (identities.length === 0)
    throw new StartError('This backup is encrypted: name the file with its identity by --identity.')
  const age = new Decrypter()
  for (const identity of identities) age.addIdentity(identity)
  try {
    const plain = await age.decrypt(Readable.toWeb(whole) as ReadableStream<Uint8Array>)
    return Readable.fromWeb(plain as Parameters<typeof Readable.fromWeb>[0])
  } catch {
    throw new StartError('None of the identities opens this backup.')
  }
}

/** Where a name of an archive may lead: below, and nowhere else. */
const isSafe = (name: string) =>
  name.length < 1000 &&
  name.split('/').every((part) => part !== '' && part !== '.' && part !== '..' && !/[\\\0]/.test(part))

const checkSums = (text: string, seen: ReadonlyMap<string, string>) => {
  const lines = text.split('\n').filter(Boolean)
  const listed = new Map(lines.map((line) => [line.slice(66), line.slice(0, 64)]))
  for (const [name, sum] of listed)
    if (seen.get(name) !== sum)
      throw new StartError(`This backup is damaged: ${name} ${seen.has(name) ? 'has another checksum' : 'is missing'}.`)
  for (const name of seen.keys())
    if (!listed.has(name)) throw new StartError(`This backup is damaged: ${name} is not in its list of checksums.`)
}

/**
 * Reads an archive once, from its beginning to its end, and gives each entry to `take`, which reads the body of each file. A checksum is known at the end: what
 * was taken is to be trusted when this resolves, and not before.
 */
export const readArchive = async (
  source: Readable,
  identities: readonly string[],
  take: (entry: ReadEntry) => Promise<void>,
): Promise<void> => {
  const seen = new Map<string, string>()
  let sums: string | undefined
  const plain = await decrypted(source, identities)
  const extract = tar.extract()
  const reading = pipeline(plain, createZstdDecompress(), extract)
  reading.catch(() => undefined)
  try {
    for await (const stream of extract) {
      const { header } = stream
      const name = header.name.replace(/\/$/, '')
      const type = header.type === 'directory' ? 'directory' : 'file'
      if (!isSafe(name) || !['file', 'directory'].includes(String(header.type)) || sums !== undefined || seen.has(name))
        throw new StartError(`This backup has an entry that none of ours has: ${JSON.stringify(header.name)}.`)
      const hash = createHash('sha256')
      const body = (async function* () {
        for await (const chunk of stream as AsyncIterable<Buffer>) {
          hash.update(chunk)
          yield chunk
        }
      })()
      if (name === sumsName) sums = (await buffer(body)).toString('utf8')
      else {
        await take({ name, mode: header.mode ?? 0o600, type, size: header.size ?? 0, body })
        for await (const _ of body) _.length
        if (type === 'file') seen.set(name, hash.digest('hex'))
      }
      stream.resume()
    }
    await reading
  } catch (error) {
    throw readable(error)
  }
  if (sums === undefined) throw new StartError(notWhole)
  checkSums(sums, seen)
}

/** What a damaged archive makes of the libraries that read it, as a sentence. */
const readable = (error: unknown): unknown => {
  if (error instanceof StartError) return error
  const { code = '', message } = error as NodeJS.ErrnoException
  if (code === 'ENOSPC' || code === 'EACCES' || code === 'ENOENT') return error
  if (/unexpected end|premature|truncated/i.test(`${code} ${message}`)) return new StartError(notWhole)
  if (/zstd|ZSTD|tar|checksum|decrypt|authenti|invalid|header|final chunk|stream/i.test(`${code} ${message}`))
    return new StartError(`This backup is damaged, or is none: ${message}`)
  return error
}

/** Identities of age in a file, as `age-keygen` writes it: a line each, and comments. */
export const readIdentities = (text: string): string[] => {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line && !line.startsWith('#'))
  if (lines.length === 0 || lines.some((line) => !line.startsWith('AGE-SECRET-KEY-')))
    throw new StartError('The file of --identity holds no identity of age: a line that begins with AGE-SECRET-KEY-.')
  return lines
}
