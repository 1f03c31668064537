import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { type ApiError, refusal } from '#server/errors.ts'
import { takeRateLimits } from '#server/http/app.ts'
import { answerOf } from '#server/http/errors.ts'
import { checkJson, jsonSize, mostBytes } from '#server/http/json.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import { limits } from '#server/realtime/protocol.ts'
import { callerOf } from '#server/rest/caller.ts'
import { Broadcast, checked, roomName } from '#server/rest/messages.ts'
import { bytesKey } from '#server/rest/phoenix.ts'
import type { Services } from '#server/services.ts'

const Message = Broadcast.extend({
  topic: z.string().regex(roomName, 'must name a room: 1 to 64 letters, digits and _.:-'),
  private: z.boolean().nullish(),
})
type Message = z.infer<typeof Message>

const Messages = z.object({
  messages: z
    .array(Message)
    .min(1, 'must have at least one message')
    .max(limits.publishesPerSecond, `must have at most ${limits.publishesPerSecond} messages`),
})

const path = '/realtime/v1/api/broadcast'

/**
 * `POST /realtime/v1/api/broadcast`: what a client sends to rooms without a connection: a list of messages, or the payload of one whose room and event
 * stand in the path. All messages are published, or none.
 */
export const serveBroadcasts = (services: Services) => async (app: FastifyInstance) => {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: mostBytes }, (_request, bytes, done) =>
    done(null, bytes),
  )
  app.setErrorHandler((error, request, reply) => sendRefusal(reply, answerOf(error, request, services)))
  app.route({
    method: 'POST',
    url: path,
    handler: (request, reply) => answer(services, request, reply, () => checked(Messages, jsonOf(request)).messages),
  })
  app.route<{ Params: { topic: string; event: string }; Querystring: Readonly<Record<string, string>> }>({
    method: 'POST',
    url: `${path}/:topic/events/:event`,
    handler: (request, reply) =>
      answer(services, request, reply, () => [
        checked(Message, {
          ...request.params,
          payload: isBytes(request) ? { [bytesKey]: bodyOf(request).toString('base64') } : jsonOf(request),
          private: request.query['private'] === 'true',
          // a time to live is asked for as persist[ttl]
          persist: Object.keys(request.query).some((name) => name.startsWith('persist')),
        }),
      ]),
  })
}

/** Clients show `error`, which is a text to them. */
const sendRefusal = (reply: FastifyReply, { status, code, message, headers }: ApiError) => {
  if (headers) reply.headers(headers)
  const body = { code, message, error: `${code}: ${message}` }
  return reply.status(status).type('application/json; charset=utf-8').send(JSON.stringify(body))
}

const bodyOf = ({ body }: FastifyRequest): Buffer => (Buffer.isBuffer(body) ? body : Buffer.alloc(0))
const isBytes = ({ headers }: FastifyRequest) => headers['content-type'] === 'application/octet-stream'
const jsonOf = (request: FastifyRequest): unknown => {
  const body = bodyOf(request)
  const read = checkJson(body)
  if (read.kind === 'broken') throw refusal(400, 'INVALID_JSON', read.reason)
  return JSON.parse(body.toString())
}

const answer = async (
  services: Services,
  request: FastifyRequest,
  reply: FastifyReply,
  messagesOf: () => readonly Message[],
) => {
  services.rateLimiter.take([{ key: `ip ${addressKey(request.ip)}`, perSecond: 60, burst: 200 }])
  const resolved = await callerOf(request, services)
  const { claims, place, project, role } = resolved
  request.trellisProject = project?.projectId
  request.trellisCaller = claims.caller
  takeRateLimits({}, resolved, services)
  const messages = messagesOf()
  const pace = { perSecond: limits.publishesPerSecond, burst: limits.publishesPerSecond }
  // a server key has the pace of its project, as every other call of it
  if (claims.userId)
    for (const _ of messages) services.rateLimiter.take([{ key: `broadcast ${claims.userId}`, ...pace }])
  const sent = messages.map(({ topic, event, payload = null, private: isPrivate }) => {
    if (jsonSize(payload).bytes > limits.payloadBytes)
      throw refusal(413, 'PAYLOAD_TOO_LARGE', 'A payload has at most 32 KB.')
    return { channel: `room:${topic}`, event, payload, private: isPrivate === true }
  })
  await services.database.call(place, role, claims, 'realtime_send', { messages: JSON.stringify(sent) })
  return reply.status(202).send()
}
