import { join } from 'node:path'
import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { fetch } from 'undici'
import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { ApiError, refusal } from '#server/errors.ts'
import { contextOf, takeRateLimits } from '#server/http/app.ts'
import { answerOf, nothingHere } from '#server/http/errors.ts'
import { mostBytes as mostJson } from '#server/http/json.ts'
import { projectIdOf } from '#server/http/project.ts'
import { discardBody } from '#server/http/protocol.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { commitArrived, isFree, linked, remove, type Signable, type Upload } from '#server/media/assets.ts'
import { cutOffSilence, dispositionOf, download } from '#server/media/serve.ts'
import { variantText } from '#server/media/variants.ts'
import { invalid } from '#server/rest/auth_shapes.ts'
import { callerOf, disabled, restArea, written } from '#server/rest/caller.ts'
import { notKept, type ReceivedFile, takeFile } from '#server/rest/uploads.ts'
import type { Services } from '#server/services.ts'

const prefix = '/storage/v1'
const bucket = 'media'
const putSeconds = 600
const mostSeconds = 86_400
const discardMs = 30_000
/** A user sends so many files at once. */
const mostAtOnce = 4

type Handler = (context: HandlerContext, path: string, reply: FastifyReply) => Promise<unknown>

const bodyOf = <T extends z.ZodType>({ body }: HandlerContext, shape: T): z.output<T> => {
  const parsed = shape.safeParse(body)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw invalid(issue?.path.join('.') || 'body', issue?.message ?? 'is not valid')
}

const found = async (context: HandlerContext, key: string, seconds = 3600): Promise<Signable> =>
  dataOf<Signable>(
    await context.call(
      'media_presign',
      { bucket, key, method: 'GET', is_free: isFree(context), seconds },
      { readOnly: true },
    ),
  )

const linkTo = (context: HandlerContext, asset: Signable, variant: string | null = null) => ({
  projectId: projectIdOf(context),
  key: asset.key,
  assetId: asset.asset_id,
  object: asset.object,
  mimeType: asset.mime_type,
  filename: asset.filename,
  variant,
})

/** Files that a user sends at this moment. */
const sending = new Map<string, number>()

const upload: Handler = async (context, key, reply) => {
  const { request, services, resolved } = context
  if (request.headers['x-metadata'] !== undefined) throw notKept()
  const who = resolved.claims.userId ?? projectIdOf(context)
  const count = sending.get(who) ?? 0
  if (count >= mostAtOnce)
    throw refusal(429, 'RATE_LIMITED', `Send at most ${mostAtOnce} files at once.`, null, { 'Retry-After': '1' })
  sending.set(who, count + 1)
  const source = request.body as Readable
  const stop = cutOffSilence(source)
  let file: ReceivedFile | undefined
  try {
    file = await takeFile(join(services.config.DATA_DIR, 'received'), request.headers['content-type'] ?? '', source)
    const asset_id = await store(context, key, file)
    return reply.send({ Id: asset_id, Key: `${bucket}/${key}` })
  } finally {
    stop()
    await file?.close()
    const left = (sending.get(who) ?? 1) - 1
    if (left > 0) sending.set(who, left)
    else sending.delete(who)
  }
}

/** Registers a file that has come, stores it, and commits it: what a client of our own routes does in three requests. */
const store = async (context: HandlerContext, key: string, file: ReceivedFile): Promise<string> => {
  const { request, services } = context
  const is_free = isFree(context)
  const { uploads, storage } = services.media
  const opened = dataOf<Upload>(
    await context.call('media_presign', {
      bucket,
      key,
      method: 'PUT',
      content_type: file.mimeType,
      size_bytes: file.size,
      replaces: request.method === 'PUT' || request.headers['x-upsert'] === 'true',
      is_free,
      // the URL of another server's storage is used here and given to nobody: nobody has to wait until it has expired
      seconds: uploads ? putSeconds : 0,
    }),
  )
  const link = {
    projectId: projectIdOf(context),
    key: opened.key,
    assetId: opened.asset_id,
    version: opened.version,
    mimeType: opened.mime_type,
    sizeBytes: opened.size_bytes,
  }
  if (uploads) await uploads.receive(link, file.read())
  else await sendOn(await storage.uploadUrl(link, new Date(services.now().getTime() + putSeconds * 1000)), file)
  await commitArrived(context, opened, { is_free })
  return opened.asset_id
}

/** To a storage of another server, as a client would. */
const sendOn = async (url: string | null, file: ReceivedFile): Promise<void> => {
  const failed = () =>
    refusal(503, 'UPLOAD_UNVERIFIED', 'The storage did not take the file: send it again.', null, { 'Retry-After': '2' })
  const headers = { 'content-type': file.mimeType, 'content-length': String(file.size) }
  const answer = await fetch(url ?? '', { method: 'PUT', headers, body: file.read(), duplex: 'half' }).catch(() => null)
  await answer?.body?.cancel()
  if (!answer?.ok) throw failed()
}

const get: Handler = async (context, key, reply) => {
  const link = { op: 'get', ...linkTo(context, await found(context, key)) } as const
  return download(context.services, link, context.request, reply)
}

type Asset = {
  readonly id: string
  readonly filename: string
  readonly mime_type: string
  readonly size_bytes: number
  readonly created_at: string
  readonly updated_at: string
}

const assetOf = async (context: HandlerContext, { asset_id }: Signable): Promise<Asset> =>
  dataOf<Asset>(await linked(context, 'media_lookup', { asset_id }, { readOnly: true }))

/** A file as storage-js shows one. Nobody counts reads: it was accessed when it was changed. */
const objectOf = (name: string, of: Asset & { readonly version?: string }) => ({
  name,
  id: of.id,
  created_at: of.created_at,
  updated_at: of.updated_at,
  last_accessed_at: of.updated_at,
  metadata: {
    eTag: `"${of.version ?? of.id}"`,
    size: of.size_bytes,
    mimetype: of.mime_type,
    cacheControl: 'max-age=300',
    lastModified: of.updated_at,
    contentLength: of.size_bytes,
    httpStatusCode: 200,
  },
})

const info: Handler = async (context, key, reply) => {
  const signable = await found(context, key)
  const version = signable.object
  const asset = await assetOf(context, signable)
  const { metadata, ...of } = objectOf(key, { ...asset, version })
  return reply.send({
    ...of,
    version,
    bucket_id: bucket,
    size: asset.size_bytes,
    content_type: asset.mime_type,
    cache_control: metadata.cacheControl,
    etag: metadata.eTag,
    last_modified: asset.updated_at,
    metadata: {},
  })
}

const Listing = z.object({
  prefix: z.string().max(1024).default(''),
  search: z.string().max(255).nullish(),
  limit: z.int().min(1).max(1000).default(100),
  offset: z.int().min(0).max(10_000).default(0),
  sortBy: z
    .object({
      column: z.literal('name', 'must be name').nullish(),
      order: z.enum(['asc', 'desc'], 'must be asc or desc').nullish(),
    })
    .nullish(),
})

const list: Handler = async (context, _key, reply) => {
  const { prefix: folder, search, limit, offset, sortBy } = bodyOf(context, Listing)
  const listed = await context.call(
    'media_names',
    {
      folder: folder.replace(/^\/+|\/+$/g, ''),
      beginning: search ?? '',
      is_descending: sortBy?.order === 'desc',
      page_offset: offset,
      page_limit: limit,
    },
    { readOnly: true },
  )
  const names = dataOf<(Asset & { readonly name: string; readonly version: string })[]>(listed)
  const folderOf = (name: string) => ({
    name,
    id: null,
    updated_at: null,
    created_at: null,
    last_accessed_at: null,
    metadata: null,
  })
  return reply.send(names.map((one) => (one.id === undefined ? folderOf(one.name) : objectOf(one.name, one))))
}

const Seconds = z
  .int('must be a whole number')
  .min(1)
  .transform((seconds) => Math.min(seconds, mostSeconds))
const Paths = z.array(z.string().max(1100)).min(1).max(100, 'must have at most 100 paths')

/** Our own signed URL as the token of another one, which storage-js completes: it is relative, and its path is not encoded. */
const signedUrl = (context: HandlerContext, asset: Signable, variant: string | null = null): string => {
  const url = context.services.media.links.download(linkTo(context, asset, variant), new Date(asset.expires_at))
  const token = Buffer.from(url.slice(context.services.publicUrl.length)).toString('base64url')
  return `/object/sign/${bucket}/${asset.key}?token=${token}`
}

const Transform = z.strictObject({
  width: z.int().min(1).max(4096).optional(),
  height: z.int().min(1).max(4096).optional(),
  resize: z.enum(['cover', 'contain'], 'must be cover or contain').optional(),
  format: z.enum(['webp', 'jpeg', 'png', 'avif'], 'must be webp, jpeg, png or avif').optional(),
})

const sign: Handler = async (context, key, reply) => {
  const { expiresIn, transform } = bodyOf(context, z.object({ expiresIn: Seconds, transform: Transform.optional() }))
  const asset = await found(context, key, expiresIn)
  if (!transform) return reply.send({ signedURL: signedUrl(context, asset) })
  if (!asset.mime_type.startsWith('image/')) throw invalid('transform', 'only images are changed')
  const { width: w, height: h, resize: fit, format } = transform
  const wanted = Object.fromEntries(Object.entries({ w, h, fit, format }).filter(([, value]) => value !== undefined))
  return reply.send({ signedURL: signedUrl(context, asset, variantText(wanted)) })
}

const signMany: Handler = async (context, _key, reply) => {
  const { expiresIn, paths } = bodyOf(context, z.object({ expiresIn: Seconds, paths: Paths }))
  const signed = []
  for (const path of paths) {
    const one = await found(context, path, expiresIn).catch(refusedOne)
    signed.push(
      'asset_id' in one
        ? { error: null, path, signedURL: signedUrl(context, one) }
        : { error: one.message, path, signedURL: null },
    )
  }
  return reply.send(signed)
}

/** What one of many is refused with; anything else fails them all. */
const refusedOne = (error: unknown): ApiError => {
  if (error instanceof ApiError && error.status < 500) return error
  throw error
}

const removeMany: Handler = async (context, _key, reply) => {
  const { prefixes } = bodyOf(context, z.object({ prefixes: Paths }))
  const removed = []
  for (const key of prefixes) {
    const asset = await found(context, key).catch(refusedOne)
    // what is not there is not listed as removed, as storage-js expects
    if (!('asset_id' in asset)) {
      if (asset.status === 404) continue
      throw asset
    }
    const shown = objectOf(key, await assetOf(context, asset))
    await remove({ ...context, params: { assetId: asset.asset_id } })
    removed.push({ ...shown, bucket_id: bucket })
  }
  return reply.send(removed)
}

/** Whoever has a signed URL reads the file, for as long as the REST access of the project is on. */
const getSigned = async (services: Services, request: FastifyRequest, reply: FastifyReply, key: string) => {
  const { token = '', download: name } = request.query as { token?: string; download?: string }
  const link = services.media.links.verify(Buffer.from(String(token), 'base64url').toString(), 'GET')
  if (link?.op !== 'get' || link.key !== key)
    throw refusal(403, 'FORBIDDEN', 'The URL was altered, has expired, or is for another file.')
  request.trellisProject = link.projectId
  const project = await services.projectCache.byProject(link.projectId)
  if (!project?.restEnabled) throw disabled()
  if (name !== undefined) {
    const saved = { ...link, mimeType: 'application/octet-stream' }
    const named = String(name) === '' ? saved : { ...saved, filename: String(name), object: '' }
    return download(services, link, request, reply, { disposition: dispositionOf(named) })
  }
  return download(services, link, request, reply)
}

const handlers: readonly (readonly [string, RegExp, Handler])[] = [
  ['POST', /^object\/list\/media()$/, list],
  ['POST', /^object\/sign\/media()$/, signMany],
  ['POST', /^object\/sign\/media\/(.+)$/, sign],
  ['GET', /^object\/info\/(?:authenticated\/)?media\/(.+)$/, info],
  ['GET', /^object\/(?:authenticated\/)?media\/(.+)$/, get],
  ['HEAD', /^object\/(?:authenticated\/)?media\/(.+)$/, get],
  ['DELETE', /^object\/media()$/, removeMany],
  ['POST', /^object\/media\/(.+)$/, upload],
  ['PUT', /^object\/media\/(.+)$/, upload],
]

const handlerOf = (method: string, path: string): readonly [Handler, string] => {
  for (const [of, form, handler] of handlers) {
    const [, key] = of === method ? (form.exec(path) ?? []) : []
    if (key !== undefined) return [handler, key]
  }
  if (
    /^object\/(sign\/|list\/|info\/|authenticated\/)?[^/]+/.test(path) &&
    !/^object\/([a-z]+\/)*media(\/|$)/.test(path)
  )
    throw refusal(404, 'BUCKET_NOT_FOUND', 'There is no such bucket: apps use media.')
  throw nothingHere
}

/** `/storage/v1/*`: files in the form of storage-js, over the media area. */
export const serveStorage = (services: Services) => async (app: FastifyInstance) => {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
  app.setErrorHandler((error, request, reply) => sendRefusal(reply, answerOf(error, request, services)))
  app.route({
    method: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'],
    url: `${prefix}/*`,
    config: { isSlow: true },
    handler: async (request, reply) => {
      try {
        return await answer(services, request, reply)
      } finally {
        discardBody(request.raw, discardMs)
      }
    },
  })
}

const answer = async (services: Services, request: FastifyRequest, reply: FastifyReply) => {
  services.rateLimiter.take([{ key: `ip ${addressKey(request.ip)}`, perSecond: 60, burst: 200 }])
  const path = (request.params as { '*': string })['*']
  const [, signed] = /^object\/sign\/media\/(.+)$/.exec(path) ?? []
  if (signed !== undefined && (request.method === 'GET' || request.method === 'HEAD'))
    return getSigned(services, request, reply, signed)
  // lists and signed URLs are asked for with POST, and read
  const reads = !['POST', 'PUT', 'DELETE'].includes(request.method) || /^object\/(list|sign)\//.test(path)
  const resolved = await callerOf(request, services, { reads })
  request.trellisProject = resolved.project?.projectId
  request.trellisCaller = resolved.claims.caller
  takeRateLimits({}, resolved, services)
  const [handler, key] = handlerOf(request.method, path)
  const body = handler === upload ? {} : await jsonOf(request.body as Readable | undefined)
  const input = { params: {}, query: {}, body, sent: body, text: '' }
  return handler(contextOf(restArea, written, input, request, resolved, services), key, reply)
}

/** A small body, which this route takes as a stream as it takes files. */
const jsonOf = async (source: Readable | undefined): Promise<Record<string, unknown>> => {
  if (!source) return {}
  const stop = cutOffSilence(source)
  try {
    const pieces: Buffer[] = []
    let size = 0
    for await (const piece of source) {
      size += piece.length
      if (size > mostJson)
        throw refusal(413, 'PAYLOAD_TOO_LARGE', 'The body has more than 1 MB.', null, { Connection: 'close' })
      pieces.push(piece)
    }
    return size === 0 ? {} : JSON.parse(Buffer.concat(pieces).toString())
  } catch (error) {
    throw error instanceof SyntaxError ? invalid('body', 'must be JSON') : error
  } finally {
    stop()
  }
}

/** By this code storage-js itself knows that there is no file. */
const codeOf = (error: ApiError) => (error.code === 'NOT_FOUND' && error !== nothingHere ? 'NoSuchKey' : error.code)

const sendRefusal = (reply: FastifyReply, error: ApiError) => {
  const { status, message, headers } = error
  if (headers) reply.headers(headers)
  const code = codeOf(error)
  return reply
    .status(status)
    .type('application/json; charset=utf-8')
    .send({ statusCode: String(status), error: code, message, code })
}
