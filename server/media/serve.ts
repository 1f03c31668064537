import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { unserved } from '#server/http/client_credentials.ts'
import { isKnown } from '#server/http/conditional.ts'
import { envelopeOf } from '#server/http/errors.ts'
import { discardBody } from '#server/http/protocol.ts'
import { sendStream } from '#server/http/stream.ts'
import { fileBody } from '#server/media/bytes.ts'
import type { FileStorage } from '#server/media/files.ts'
import type { ObjectLink, UploadLink, Verified } from '#server/media/links.ts'
import { isSameFor, partOf, rangeOf } from '#server/media/ranges.ts'
import { mostBytes } from '#server/media/storage.ts'
import type { Services } from '#server/services.ts'

/** A sender that is silent for so long, or takes so long for the whole, is cut off: a byte now and then must not hold a connection for days. */
const silentMs = 30_000
const longestMs = 3_600_000
/** The rest of an upload that is refused may come for so long. */
const discardMs = 30_000
/** Signed URLs that this server gives to a storage, which then sends the bytes. */
const passedOnSeconds = 300

/** Aborted when the client disconnects; when the answer is complete nobody listens any more. */
const goneSignal = (reply: FastifyReply): AbortSignal => {
  const controller = new AbortController()
  reply.raw.once('close', () => controller.abort())
  return controller.signal
}

const forbidden = () => refusal(403, 'FORBIDDEN', 'The URL was altered, has expired, or is for another method or file.')
/** What another variant took the place of, between its making and its sending: there is an image. */
const replaced = () =>
  refusal(503, 'IMAGES_BUSY', 'Too many variants of this image are asked for at once.', null, { 'Retry-After': '5' })
const nothingThere = () => refusal(404, 'NOT_FOUND', 'There is no such file.')
const invalid = (field: string, reason: string) =>
  refusal(400, 'INVALID_INPUT', `${field}: ${reason}`, { field, reason })

type Projects = Pick<Services, 'database' | 'projectCache'>
type Uploads = Projects & Pick<Services, 'media'>
type Links = Uploads & Pick<Services, 'now'>

/**
 * `/storage/*`: sends and takes bytes for whoever has a signed URL. A download asks no database. The types of files are those that were
 * registered: nothing is sniffed, and a file that a browser opens can run nothing.
 */
export const serveMedia = (services: Links) => async (app: FastifyInstance) => {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
  app.route({
    method: ['GET', 'HEAD', 'PUT', 'POST', 'PATCH', 'DELETE'],
    url: '/storage/*',
    config: { isSlow: true },
    handler: async (request, reply) => {
      try {
        return await answerStorage(services, request, reply)
      } finally {
        discardBody(request.raw, discardMs)
      }
    },
  })
}

const answerStorage = async (services: Links, request: FastifyRequest, reply: FastifyReply) => {
  const link = services.media.links.verify(request.raw.url ?? '', request.method)
  if (!link) throw forbidden()
  request.trellisProject = link.projectId
  if (link.op === 'get') return download(services, link, request, reply)
  return request.method === 'HEAD' ? answerOffset(services, link, reply) : takeUpload(services, link, request, reply)
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The body may come for as long as its sender is not silent: the route itself says when it is. */
    isSlow?: boolean
  }
}

const inline = /^(image\/(?!svg)|audio\/|video\/|application\/pdf$|text\/plain$)/

/** What is derived from an image has another format, and so another ending. */
const nameOf = ({ filename, object }: Pick<ObjectLink, 'filename' | 'object'>): string => {
  const [, ending] = /\.([a-z]+)$/.exec(object) ?? []
  return ending ? `${filename.replace(/\.[^./\\]*$/, '')}.${ending}` : filename
}

/**
 * The file's own name, in ASCII for old programs and in full (RFC 6266, RFC 8187); a folder in it is none. A browser is shown what cannot run anything,
 * and saves the rest.
 */
export const dispositionOf = (link: Pick<ObjectLink, 'filename' | 'object' | 'mimeType'>): string => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not stand in a name
  const name = nameOf(link).replaceAll(/[\u0000-\u001f\u007f/\\]/g, '_') || 'file'
  const kind = inline.test(link.mimeType) ? 'inline' : 'attachment'
  const plain = name.replaceAll(/[^A-Za-z0-9 ._-]/gu, '_')
  const full = encodeURIComponent(name).replace(
    /['()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return `${kind}; filename="${plain}"${plain === name ? '' : `; filename*=UTF-8''${full}`}`
}

/** A PDF viewer does not run in a sandbox. */
const policyOf = (mimeType: string) =>
  `default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'${mimeType === 'application/pdf' ? '' : '; sandbox'}`

export type Sending = {
  readonly disposition?: string
  /** Of a file that anybody may read: for how many seconds a cache keeps it, and where a storage sends the bytes, for how many it keeps the way there. */
  readonly shared?: { readonly seconds: number; readonly redirectSeconds: number; readonly signedSeconds: number }
  /** Asked before a variant is made. */
  readonly admit?: () => void
}

/** Sends the bytes that a link leads to, or where they are. */
export const download = async (
  services: Pick<Services, 'media' | 'now'>,
  asked: Omit<Extract<Verified, { op: 'get' }>, 'op'>,
  request: FastifyRequest,
  reply: FastifyReply,
  { disposition, shared, admit }: Sending = {},
) => {
  const { storage } = services.media
  const link =
    asked.variant === null
      ? asked
      : await services.media.variantOf(asked, asked.variant, { ...(admit ? { admit } : {}), signal: goneSignal(reply) })
  const isElsewhere = services.media.uploads === null
  const headers = {
    'cache-control': shared
      ? `public, max-age=${isElsewhere ? shared.redirectSeconds : shared.seconds}`
      : 'private, max-age=300',
    'content-type': link.mimeType,
    'content-disposition': disposition ?? dispositionOf(link),
    'content-security-policy': policyOf(link.mimeType),
  }
  const until = new Date(services.now().getTime() + (shared?.signedSeconds ?? passedOnSeconds) * 1000)
  const shown = {
    contentType: link.mimeType,
    disposition: headers['content-disposition'],
    cacheControl: headers['cache-control'],
  }
  const elsewhere = storage.downloadUrl(link, until, shown, request.method === 'HEAD')
  if (elsewhere) {
    if (shared) reply.header('cache-control', headers['cache-control'])
    return reply.redirect(await elsewhere, 302)
  }
  const found = await storage.stat(link)
  const missing = asked.variant === null ? nothingThere : replaced
  if (!found) throw missing()
  const etag = `"${link.object}"`
  reply.headers({
    ...headers,
    etag,
    'last-modified': found.modifiedAt.toUTCString(),
    'accept-ranges': 'bytes',
  })
  if (isKnown(request.headers['if-none-match'], etag)) return reply.status(304).removeHeader('content-type').send('')
  const range = isSameFor(request.headers, etag, found.modifiedAt) ? rangeOf(request.headers.range, found.size) : null
  if (range === 'unsatisfiable') {
    const error = refusal(416, 'RANGE_NOT_SATISFIABLE', 'The file has no byte of this range.')
    return reply
      .status(416)
      .headers({ 'content-range': `bytes */${found.size}`, 'content-type': 'application/json; charset=utf-8' })
      .removeHeader('content-disposition')
      .send(envelopeOf(error))
  }
  const { start, end } = range ?? { start: 0, end: found.size - 1 }
  reply.status(range ? 206 : 200).header('content-length', end - start + 1)
  if (range) reply.header('content-range', `bytes ${start}-${end}/${found.size}`)
  if (request.method === 'HEAD') return reply.send('')
  const file = await filesOf(services)
    .open(link)
    .catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'ENOENT' ? missing() : error
    })
  return sendStream(reply, fileBody(file, start, end))
}

/** Only where this server stores files itself does it sign URLs for uploads, and send bytes. */
const filesOf = ({ media }: Pick<Services, 'media'>): FileStorage => {
  if (!media.uploads) throw forbidden()
  return media.uploads
}

/** An upload URL ends when its upload is committed, or its asset deleted. */
const checkOpen = async (services: Projects, { projectId, assetId, version, mimeType }: UploadLink) => {
  const project = await services.projectCache.byProject(projectId)
  if (!project) throw forbidden()
  if (!project.place) throw unserved(project)
  const open = await services.database.call(
    project.place,
    'app_worker',
    { caller: 'worker', projectId },
    'media_upload_open',
    { asset_id: assetId, version, mime_type: mimeType },
    { readOnly: true },
  )
  if (!dataOf<boolean>(open)) throw forbidden()
}

const answerOffset = async (services: Uploads, link: UploadLink, reply: FastifyReply) => {
  await checkOpen(services, link)
  reply.header('upload-offset', await filesOf(services).offset(link))
  return reply.status(200).send('')
}

const takeUpload = async (services: Uploads, link: UploadLink, request: FastifyRequest, reply: FastifyReply) => {
  const { headers } = request
  const files = filesOf(services)
  if (headers['content-type']?.trim().toLowerCase() !== link.mimeType)
    throw invalid('Content-Type', `must be ${link.mimeType}, as it was registered`)
  const source = request.body as Readable | undefined
  const length = headers['content-length'] === undefined ? null : Number(headers['content-length'])
  const range = headers['content-range'] === undefined ? undefined : partOf(headers['content-range'])
  if (range === null) throw invalid('Content-Range', 'must be bytes <first>-<last>/<size of the file>')
  checkSize(link, range ? range.total : length)
  if (range && length !== null && length !== range.end - range.start + 1)
    throw invalid('Content-Length', 'must be the length of Content-Range')
  await checkOpen(services, link)
  if (!source) throw invalid('body', 'is empty')
  const stop = cutOffSilence(source)
  try {
    if (!range) return sendStored(reply, await files.receive(link, source))
    const whole = await files.finish(link, range.total)
    const known = whole ?? (await files.offset(link))
    // an upload of no registered size has the one that its first part named
    if (whole === null ? known > range.total : whole !== range.total)
      throw invalid('Content-Range', `must fit to the ${known} bytes that have come`)
    // a part that came before is not stored again; one after a gap waits until the gap is filled
    if (range.start > known || range.end < known) {
      source.resume()
      return sendOffset(reply, known, range.total)
    }
    return sendOffset(reply, await files.receivePart(link, source, range.start, range.end, range.total), range.total)
  } finally {
    stop()
  }
}

const checkSize = ({ sizeBytes }: UploadLink, size: number | null) => {
  if (size === null) return
  if (size === 0) throw invalid('body', 'is empty')
  if (size > mostBytes) throw invalid('body', 'has more than 50 MB')
  if (sizeBytes !== null && size !== sizeBytes)
    throw invalid('body', `must have ${sizeBytes} bytes, as it was registered`)
}

const sendStored = (reply: FastifyReply, size: number) => reply.status(200).send({ data: { size_bytes: size } })

/** 308 without a Location: send the rest, from Upload-Offset on. */
const sendOffset = (reply: FastifyReply, offset: number, total: number) => {
  if (offset >= total) return sendStored(reply, total)
  return reply
    .status(308)
    .headers({ 'upload-offset': offset, ...(offset > 0 ? { range: `bytes=0-${offset - 1}` } : {}) })
    .send('')
}

/** An abandoned upload ends, and its temporary file goes with it. */
export const cutOffSilence = (source: Readable, limits = { silentMs, longestMs }): (() => void) => {
  const end = () => source.destroy(refusal(408, 'REQUEST_TIMEOUT', 'The file did not come whole in time.'))
  const silence = setTimeout(end, limits.silentMs)
  const whole = setTimeout(end, limits.longestMs)
  const refresh = () => silence.refresh()
  source.on('data', refresh)
  // listening alone would let the bytes flow before somebody takes them
  source.pause()
  return () => {
    clearTimeout(silence)
    clearTimeout(whole)
    source.off('data', refresh)
  }
}
