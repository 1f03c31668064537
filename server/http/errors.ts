import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { failureOf } from '#server/database/failures.ts'
import { ApiError, refusal } from '#server/errors.ts'
import { type Answer, type Area, invalidBodyCode, type Route } from '#server/http/route.ts'
import { sendStream } from '#server/http/stream.ts'
import type { Services } from '#server/services.ts'

export const nothingHere = refusal(404, 'NOT_FOUND', 'There is nothing at this path.')

/** What is not HTTP, or has more than 16 KB of headers, gets a last line in our form and no further request. */
export const notHttp = (error: Error & { code?: string }, socket: Socket): void => {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const isTooLarge = error.code === 'HPE_HEADER_OVERFLOW'
  const [status, code, message] = isTooLarge
    ? (['431 Request Header Fields Too Large', 'HEADERS_TOO_LARGE', 'The headers have more than 16 KB.'] as const)
    : (['400 Bad Request', 'INVALID_INPUT', 'This is not HTTP.'] as const)
  const body = JSON.stringify({ error: { code, message } })
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}

export const unsupported = (type: string | undefined) =>
  refusal(415, 'UNSUPPORTED_MEDIA_TYPE', `Send application/json${type ? `, not ${type.slice(0, 100)}` : ''}.`)

/** Sends an envelope as it is, or a stream. */
export const send = (reply: FastifyReply, answer: Answer) => {
  if (answer.headers) reply.headers(answer.headers)
  if (typeof answer.body !== 'string') return sendStream(reply.status(answer.status), answer.body)
  return reply.status(answer.status).type('application/json; charset=utf-8').send(answer.body)
}

export const envelopeOf = (error: ApiError): string =>
  JSON.stringify({
    error: { code: error.code, message: error.message, ...(error.details ? { details: error.details } : {}) },
  })

/** What a thrown error means to whoever called. A 500 says nothing of the inside. */
export const answerOf = (
  error: unknown,
  request: FastifyRequest,
  services: Services,
  route?: Route,
  area?: Area,
): ApiError => {
  if (error instanceof ApiError) return error
  const code = (error as FastifyError).code
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return refusal(413, 'PAYLOAD_TOO_LARGE', 'The body has more than 1 MB.')
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return unsupported(request.headers['content-type'])
  if ((error as FastifyError).statusCode === 400) {
    return refusal(400, area && route ? invalidBodyCode(area, route) : 'INVALID_INPUT', 'The request cannot be read.')
  }
  if (failureOf(error).kind === 'unavailable') {
    const isTenant = request.trellisProject !== undefined
    return refusal(
      503,
      isTenant ? 'TENANT_UNAVAILABLE' : 'SERVICE_UNAVAILABLE',
      'The database is not available at the moment.',
      null,
      {
        'Retry-After': '2',
      },
    )
  }
  services.log.error({ request: request.id, error: String((error as Error)?.stack ?? error) }, 'a request failed')
  return refusal(500, route?.failure ?? 'INTERNAL_ERROR', 'Something went wrong here. The request id helps us find it.')
}
