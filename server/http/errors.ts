import { Readable } from 'node:stream'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { failureOf, sentenceOfUnavailable } from '#server/database/failures.ts'
import { ApiError, refusal } from '#server/errors.ts'
import { type Answer, type Area, invalidBodyCode, type Route } from '#server/http/route.ts'
import { sendStream } from '#server/http/stream.ts'
import type { Services } from '#server/services.ts'

export const nothingHere = refusal(404, 'NOT_FOUND', 'There is nothing at this path.')

export const unsupported = (type: string | undefined) =>
  refusal(415, 'UNSUPPORTED_MEDIA_TYPE', `Send application/json${type ? `, not ${type.slice(0, 100)}` : ''}.`)

/** Compressed bodies are refused: the limit bounds the length that is sent, not the length after decompression (a zip bomb). */
export const unsupportedEncoding = (encoding: string) =>
  refusal(
    415,
    'UNSUPPORTED_MEDIA_TYPE',
    `Send the body without Content-Encoding, not ${encoding.slice(0, 100)}.`,
    null,
    {
      'Accept-Encoding': 'identity',
    },
  )

/** Sends an envelope as text, or a stream. */
export const send = (reply: FastifyReply, answer: Answer) => {
  if (answer.headers) reply.headers(answer.headers)
  if (answer.body instanceof Readable) return sendStream(reply.status(answer.status), answer.body)
  if (!reply.hasHeader('content-type')) reply.type('application/json; charset=utf-8')
  return reply.status(answer.status).send(answer.body)
}

export const envelopeOf = (error: ApiError): string =>
  JSON.stringify({
    error: { code: error.code, message: error.message, ...(error.details ? { details: error.details } : {}) },
  })

/** A thrown error as a response. A 500 reveals nothing internal. */
export const answerOf = (
  error: unknown,
  request: FastifyRequest,
  services: Pick<Services, 'log'>,
  route?: Route,
  area?: Area,
): ApiError => {
  if (error instanceof ApiError) {
    if (!area?.notMigrated || error.code !== 'TENANT_MIGRATION_PENDING') return error
    return refusal(409, area.notMigrated, error.message, error.details, error.headers)
  }
  const code = (error as FastifyError).code
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return refusal(413, 'PAYLOAD_TOO_LARGE', 'The body has more than 1 MB.')
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return unsupported(request.headers['content-type'])
  if ((error as FastifyError).statusCode === 400) {
    return refusal(400, area && route ? invalidBodyCode(area, route) : 'INVALID_INPUT', 'The request cannot be parsed.')
  }
  if (failureOf(error).kind === 'unavailable') {
    const isTenant = request.trellisProject !== undefined
    return refusal(503, isTenant ? 'TENANT_UNAVAILABLE' : 'SERVICE_UNAVAILABLE', sentenceOfUnavailable(error), null, {
      'Retry-After': '2',
    })
  }
  services.log.error({ request: request.id, error: String((error as Error)?.stack ?? error) }, 'a request failed')
  return refusal(500, route?.failure ?? 'INTERNAL_ERROR', 'Something went wrong here. The request id helps us find it.')
}
