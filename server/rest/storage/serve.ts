import type { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { refusal } from '#server/errors.ts'
import { contextOf, takeRateLimits } from '#server/http/app.ts'
import { answerOf, nothingHere } from '#server/http/errors.ts'
import { mostBytes as mostJson } from '#server/http/json.ts'
import { discardBody } from '#server/http/protocol.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import { cutOffSilence } from '#server/media/serve.ts'
import { invalid } from '#server/rest/auth_shapes.ts'
import { callerOf, restArea, written } from '#server/rest/caller.ts'
import {
  createBucket,
  deleteBucket,
  emptyBucket,
  getBucket,
  listBuckets,
  updateBucket,
} from '#server/rest/storage/buckets.ts'
import type { At, Handler } from '#server/rest/storage/context.ts'
import { sendRefusal } from '#server/rest/storage/failures.ts'
import { copy, move } from '#server/rest/storage/moves.ts'
import { get, info, list, listV2, removeMany, render } from '#server/rest/storage/objects.ts'
import { getPublic } from '#server/rest/storage/public.ts'
import { abandonUpload, appendUpload, createUpload, findUpload } from '#server/rest/storage/resumable.ts'
import { getSigned, putSigned, sign, signMany, signUpload } from '#server/rest/storage/signed.ts'
import { upload } from '#server/rest/storage/upload.ts'
import type { Services } from '#server/services.ts'

const prefix = '/storage/v1'
const discardMs = 30_000

/** The first that fits: its groups are the bucket and the key. */
const handlers: readonly (readonly [string, RegExp, Handler])[] = [
  ['GET', /^bucket\/?$/, listBuckets],
  ['POST', /^bucket\/?$/, createBucket],
  ['GET', /^bucket\/([^/]+)$/, getBucket],
  ['PUT', /^bucket\/([^/]+)$/, updateBucket],
  ['DELETE', /^bucket\/([^/]+)$/, deleteBucket],
  ['POST', /^bucket\/([^/]+)\/empty$/, emptyBucket],
  ['POST', /^upload\/resumable\/?$/, createUpload],
  ['PATCH', /^upload\/resumable\/([\w-]+)$/, appendUpload],
  ['HEAD', /^upload\/resumable\/([\w-]+)$/, findUpload],
  ['DELETE', /^upload\/resumable\/([\w-]+)$/, abandonUpload],
  ['POST', /^object\/list\/([^/]+)$/, list],
  ['POST', /^object\/list-v2\/([^/]+)$/, listV2],
  ['POST', /^object\/sign\/([^/]+)$/, signMany],
  ['POST', /^object\/sign\/([^/]+)\/(.+)$/, sign],
  ['POST', /^object\/upload\/sign\/([^/]+)\/(.+)$/, signUpload],
  ['POST', /^object\/move$/, move],
  ['POST', /^object\/copy$/, copy],
  ['GET', /^object\/info\/(?:authenticated\/)?([^/]+)\/(.+)$/, info],
  ['GET', /^render\/image\/authenticated\/([^/]+)\/(.+)$/, render],
  ['GET', /^object\/(?:authenticated\/)?([^/]+)\/(.+)$/, get],
  ['HEAD', /^object\/(?:authenticated\/)?([^/]+)\/(.+)$/, get],
  ['DELETE', /^object\/([^/]+)$/, removeMany],
  ['POST', /^object\/([^/]+)\/(.+)$/, upload],
  ['PUT', /^object\/([^/]+)\/(.+)$/, upload],
]

/** They take the body as it comes. */
const streamed = new Set<Handler>([upload, createUpload, appendUpload])

const handlerOf = (method: string, path: string): readonly [Handler, At] => {
  for (const [of, form, handler] of handlers) {
    const [whole, bucket = '', key = ''] = of === method ? (form.exec(path) ?? []) : []
    if (whole !== undefined) return [handler, { bucket, key }]
  }
  throw nothingHere
}

/** `/storage/v1/*`: files in the form of storage-js, over the media area. */
export const serveStorage = (services: Services) => async (app: FastifyInstance) => {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
  app.setErrorHandler((error, request, reply) => sendRefusal(reply, answerOf(error, request, services)))
  app.route({
    method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
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

/** Addresses that need no credentials: of public files, and those that were signed. */
const withoutCredentials = (services: Services, path: string, request: FastifyRequest, reply: FastifyReply) => {
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  const [whole, kind = '', open, bucket = '', key = ''] =
    /^(object|render\/image|object\/upload)\/(public|sign)\/([^/]+)\/(.+)$/.exec(path) ?? []
  const at = { bucket, key }
  if (whole === undefined) return null
  if (kind === 'object/upload') return request.method === 'PUT' ? putSigned(services, at, request, reply) : null
  if (!isRead) return null
  return open === 'public'
    ? getPublic(services, at, kind === 'render/image', request, reply)
    : getSigned(services, at, request, reply)
}

const answer = async (services: Services, request: FastifyRequest, reply: FastifyReply) => {
  const path = (request.params as { '*': string })['*']
  const isPublic = /^(object|render\/image)\/public\//.test(path)
  const address = addressKey(request.ip)
  services.rateLimiter.take([
    isPublic
      ? { key: `ip ${address} public`, perSecond: 100, burst: 600 }
      : { key: `ip ${address}`, perSecond: 60, burst: 200 },
  ])
  const open = withoutCredentials(services, path, request, reply)
  if (open) return open
  // lists and signed URLs are asked for with POST, and read
  const reads =
    !['POST', 'PUT', 'PATCH', 'DELETE'].includes(request.method) || /^object\/(list|list-v2|sign)\//.test(path)
  const resolved = await callerOf(request, services, { reads })
  request.trellisProject = resolved.project?.projectId
  request.trellisCaller = resolved.claims.caller
  takeRateLimits({}, resolved, services)
  const [handler, at] = handlerOf(request.method, path)
  const body = streamed.has(handler) ? {} : await jsonOf(request.body as Readable | undefined)
  const input = { params: {}, query: {}, body, sent: body, text: '' }
  return handler(contextOf(restArea, written, input, request, resolved, services), at, reply)
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
