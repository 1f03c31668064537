import { randomUUID } from 'node:crypto'
import { type FileHandle, mkdir, open, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { refusal } from '#server/errors.ts'
import { parseJson } from '#server/http/json.ts'
import { storeBytes } from '#server/media/bytes.ts'
import { mostBytes } from '#server/media/storage.ts'
import { invalid } from '#server/rest/auth_shapes.ts'

/** A file that came in the body of a request, before anything is registered for it. */
export type ReceivedFile = {
  readonly mimeType: string
  readonly size: number
  /** What its form says of it, where it came in one. */
  readonly metadata?: Record<string, unknown>
  read(): Readable
  /** Frees the disk: nobody else has the bytes. */
  close(): Promise<void>
}

/** What a form has beside its file. */
const mostOfForm = 65_536
const mostParts = 10
const mostMetadata = 8192

const typeOf = (header: string) => header.split(';')[0]?.trim().toLowerCase() ?? ''
/** The type of a file, with the charset of a text: browsers would read it in another one. */
export const fileType = (header: string) => {
  const [, charset] = /^[^;]*;\s*charset\s*=\s*"?([\w.-]{1,40})"?\s*(?:;|$)/.exec(header) ?? []
  const type = typeOf(header) || 'application/octet-stream'
  return charset && ['text/plain', 'application/json'].includes(type)
    ? `${type};charset=${charset.toLowerCase()}`
    : type
}
export const tooLong = () =>
  refusal(413, 'PAYLOAD_TOO_LARGE', `A file has at most ${mostBytes} bytes.`, null, { Connection: 'close' })

/** Takes a body onto the disk, under no name, so that a crash leaves nothing: raw, or the file of a form. */
export const takeFile = async (folder: string, header: string, source: Readable): Promise<ReceivedFile> => {
  await mkdir(folder, { recursive: true })
  const path = join(folder, randomUUID())
  const file = await open(path, 'wx+')
  try {
    await unlink(path)
    const isForm = typeOf(header) === 'multipart/form-data'
    const size = await storeBytes(file, source, { most: mostBytes + (isForm ? mostOfForm : 0), tooLong })
    const part = isForm
      ? await fileOfForm(file, boundaryOf(header), size)
      : { start: 0, end: size, mimeType: fileType(header), metadata: undefined }
    if (part.end === part.start) throw invalid('body', 'is empty')
    if (part.end - part.start > mostBytes) throw tooLong()
    return {
      mimeType: part.mimeType,
      size: part.end - part.start,
      ...(part.metadata ? { metadata: part.metadata } : {}),
      read: () => file.createReadStream({ start: part.start, end: part.end - 1, autoClose: false }),
      close: () => file.close(),
    }
  } catch (error) {
    await file.close()
    throw error
  }
}

/** What comes of a body until its sender ends or goes: of a file that comes in parts every byte counts. Refuses more than `most` bytes. */
export const takePiece = async (
  folder: string,
  source: Readable,
  most: number,
): Promise<Pick<ReceivedFile, 'size' | 'read' | 'close'>> => {
  await mkdir(folder, { recursive: true })
  const path = join(folder, randomUUID())
  const file = await open(path, 'wx+')
  try {
    await unlink(path)
    let isTooLong = false
    const refuse = () => {
      isTooLong = true
      return tooLong()
    }
    await storeBytes(file, source, { most, tooLong: refuse }).catch((error: unknown) => {
      if (isTooLong) throw error
    })
    const { size } = await file.stat()
    return {
      size,
      read: () => file.createReadStream({ start: 0, autoClose: false }),
      close: () => file.close(),
    }
  } catch (error) {
    await file.close()
    throw error
  }
}

const boundaryOf = (header: string): string => {
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i.exec(header) ?? []
  const boundary = quoted ?? plain
  if (!boundary) throw invalid('Content-Type', 'must name a boundary')
  return boundary
}

/** Where these bytes are first, from `from` on; -1 where they are not. */
const find = async (file: FileHandle, wanted: Buffer, from: number, size: number): Promise<number> => {
  const window = Buffer.allocUnsafe(1 << 16)
  for (let position = from; position < size; position += window.length - wanted.length) {
    const { bytesRead } = await file.read(window, 0, window.length, position)
    const at = window.subarray(0, bytesRead).indexOf(wanted)
    if (at >= 0) return position + at
    if (bytesRead < window.length) return -1
  }
  return -1
}

const bytesAt = async (file: FileHandle, start: number, length: number): Promise<Buffer> => {
  const bytes = Buffer.alloc(length)
  const { bytesRead } = await file.read(bytes, 0, length, start)
  return bytes.subarray(0, bytesRead)
}
const textAt = async (file: FileHandle, start: number, length: number): Promise<string> =>
  (await bytesAt(file, start, length)).toString('latin1')

const broken = () => invalid('body', 'is no form of a file')

/** The part of a form (RFC 7578) that is its file, by where it is, and the metadata that may stand before or after it. */
const fileOfForm = async (file: FileHandle, boundary: string, size: number) => {
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  const first = `--${boundary}`
  if ((await textAt(file, 0, first.length)) !== first) throw broken()
  let found: { start: number; end: number; mimeType: string } | undefined
  let metadata: Record<string, unknown> | undefined
  let at = first.length
  for (let parts = 0; parts <= mostParts; parts += 1) {
    const head = await textAt(file, at, 4096)
    if (head.startsWith('--')) {
      if (!found) throw broken()
      return { ...found, metadata }
    }
    const length = head.indexOf('\r\n\r\n')
    if (!head.startsWith('\r\n') || length < 0) throw broken()
    const start = at + length + 4
    // an empty body begins with the end of its headers
    const end = await find(file, delimiter, start - 2, size)
    if (end < 0) throw broken()
    const headers = head.slice(2, length)
    const [, name = ''] = /^content-disposition:.*?;\s*name="([^"]*)"/im.exec(headers) ?? []
    if (/^content-disposition:.*;\s*filename=/im.test(headers)) {
      const [, type = ''] = /^content-type:\s*(.+)$/im.exec(headers) ?? []
      found ??= { start, end: Math.max(start, end), mimeType: fileType(type) }
    } else if (name === 'metadata') {
      const size = Math.max(0, Math.min(end - start, mostMetadata + 1))
      metadata = metadataOf(await bytesAt(file, start, size))
    }
    at = end + delimiter.length
  }
  throw broken()
}

/** What an app keeps with a file: an object of JSON. */
export const metadataOf = (bytes: Buffer): Record<string, unknown> => {
  if (bytes.length > mostMetadata) throw invalid('metadata', `has more than ${mostMetadata} bytes`)
  const parsed = parseJson(bytes, 'metadata')
  if (parsed.kind === 'broken') throw invalid('metadata', 'must be JSON')
  const { value } = parsed
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw invalid('metadata', 'must be an object')
  return value as Record<string, unknown>
}
