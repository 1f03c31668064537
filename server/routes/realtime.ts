import { randomBytes } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { administrator, endUser, sessionUser, tenantPlace } from '#server/http/callers.ts'
import { bearer } from '#server/http/credentials.ts'
import { jsonSize } from '#server/http/json.ts'
import { area, type Caller, group, type HandlerContext, type Resolved, route } from '#server/http/route.ts'
import { data, Text, uuidPattern } from '#server/http/schemas.ts'
import { eventStream } from '#server/http/stream.ts'
import { upgradeOf } from '#server/http/upgrade.ts'
import type { Credential } from '#server/realtime/connection.ts'
import { limits } from '#server/realtime/protocol.ts'
import { openStream, readPlaces } from '#server/realtime/stream.ts'
import { openWebSocket } from '#server/realtime/websocket.ts'
import { sha256 } from '#server/secrets.ts'
import type { Services } from '#server/services.ts'

const ticketSeconds = 60

/** What a ticket stands for, as its row keeps it. */
type Held = { readonly user_id: string; readonly sid: string; readonly expires_at: number; readonly key_hash: string }

const credentials = new WeakMap<Resolved, Credential>()

/** When a verified token ends. */
const expiryOf = (token: string): number => {
  const [, payload = ''] = token.split('.')
  return (JSON.parse(Buffer.from(payload, 'base64url').toString()) as { exp: number }).exp
}

type At = Parameters<Caller['resolve']>[2]

/** Under what the sender of a request may open a connection. */
export const credentialOfHeaders = async (request: FastifyRequest, services: Services, at: At): Promise<Credential> => {
  const resolved = await endUser.resolve(request, services, at)
  const { userId, sessionId = null } = resolved.claims
  return {
    resolved,
    userId: userId ?? '',
    sid: sessionId,
    expiresAt: sessionId === null ? null : expiryOf(bearer(request) ?? ''),
    keyHash: sha256(String(request.headers['x-api-key'])),
  }
}

const ofHeaders = async (request: FastifyRequest, services: Services, at: At) => {
  const credential = await credentialOfHeaders(request, services, at)
  credentials.set(credential.resolved, credential)
  return credential.resolved
}

/** `svc_rt_`, the project's id and 32 random bytes: a ticket comes without the key that would name the project. */
const ticketForm = /^svc_rt_([0-9a-f]{32})_[A-Za-z0-9_-]{43}$/

const invalidTicket = () =>
  refusal(401, 'UNAUTHORIZED', 'The ticket is not valid: it may be used once, within 60 seconds.')

const ofTicket = async (ticket: string, services: Services, at: At) => {
  const [, hex = ''] = ticketForm.exec(ticket) ?? []
  const projectId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  const project = uuidPattern.test(projectId) ? await services.projectCache.byProject(projectId) : null
  if (!project) throw invalidTicket()
  const place = tenantPlace(services, project, at)
  const reply = await services.database.call(place, 'app_auth', { caller: 'edge', projectId }, 'realtime_ticket_take', {
    hash: sha256(ticket),
  })
  const held = dataOf<Held | null>(reply)
  if (!held || held.expires_at * 1000 <= services.now().getTime()) throw invalidTicket()
  const claims = { caller: 'user', userId: held.user_id, sessionId: held.sid, projectId } as const
  const resolved: Resolved = { place, role: 'app_user', claims, project }
  credentials.set(resolved, {
    resolved,
    userId: held.user_id,
    sid: held.sid,
    expiresAt: held.expires_at,
    keyHash: held.key_hash,
  })
  return resolved
}

/** A signed-in end user, by headers, or by a ticket where a client cannot set any: tokens never appear in URLs. */
const ticketHolder: Caller = {
  ...endUser,
  name: 'ticketHolder',
  reaches: { kind: 'tenant', roles: ['app_user'] },
  resolve: (request, services, at) => {
    const { ticket } = request.query as { ticket?: unknown }
    return typeof ticket === 'string' ? ofTicket(ticket, services, at) : ofHeaders(request, services, at)
  },
}

const credentialOf = (resolved: Resolved): Credential => {
  const credential = credentials.get(resolved)
  if (!credential) throw new Error('the caller of realtime is a ticketHolder')
  return credential
}

/** What ws would refuse by itself, as a page of HTML, after the connection has been admitted. */
export const checkHandshake = ({ headers }: FastifyRequest): void => {
  if (!['8', '13'].includes(headers['sec-websocket-version'] ?? ''))
    throw refusal(426, 'UPGRADE_REQUIRED', 'This path speaks version 13 of the WebSocket protocol.', null, {
      Upgrade: 'websocket',
      'Sec-WebSocket-Version': '13',
    })
  if (/^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '')) return
  const reason = 'must be 16 bytes in base64'
  throw refusal(400, 'INVALID_INPUT', `Sec-WebSocket-Key: ${reason}`, { field: 'Sec-WebSocket-Key', reason })
}

const connect = async ({ request, resolved, services }: HandlerContext) => {
  const upgrade = upgradeOf(request.raw)
  if (!upgrade)
    throw refusal(
      426,
      'UPGRADE_REQUIRED',
      'This path speaks WebSocket; GET /client/realtime/stream speaks HTTP.',
      null,
      {
        Upgrade: 'websocket',
      },
    )
  checkHandshake(request)
  const takeOver = await openWebSocket(services.realtime, credentialOf(resolved), upgrade)
  return { status: 101, body: '', takeOver }
}

const Ticket = z.string().max(200).optional().describe('Of POST /client/realtime/tickets, in place of headers.')
const Channels = z
  .string()
  .max(12_900)
  .transform((text) => [...new Set(text.split(',').filter(Boolean))])
  .refine((names) => names.length > 0 && names.length <= limits.channels, `must name 1 to ${limits.channels} channels`)
  .describe('Names of channels, joined by commas.')
const Since = z
  .string()
  .max(16_000)
  .optional()
  .describe('Where to go on: `channel=seq` joined by commas, as the last `id` of the stream was.')

const stream = async ({ request, resolved, services, query }: HandlerContext) => {
  const last = request.headers['last-event-id']
  const { since: asked, channels } = query as { since?: string; channels: string[] }
  const since = readPlaces(typeof last === 'string' && last !== '' ? last : (asked ?? ''))
  if (!since)
    throw refusal(400, 'INVALID_INPUT', 'since: must be channel=seq, joined by commas', {
      field: 'since',
      reason: 'must be channel=seq, joined by commas',
    })
  const body = await openStream(services.realtime, credentialOf(resolved), channels, since)
  return {
    status: 200,
    body,
    headers: { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' },
  }
}

const createTicket = async ({ request, resolved, call }: HandlerContext) => {
  const project = resolved.project?.projectId ?? ''
  const ticket = `svc_rt_${project.replaceAll('-', '')}_${randomBytes(32).toString('base64url')}`
  const credential: Held = {
    user_id: resolved.claims.userId ?? '',
    sid: resolved.claims.sessionId ?? '',
    expires_at: expiryOf(bearer(request) ?? ''),
    key_hash: sha256(String(request.headers['x-api-key'])),
  }
  await call('realtime_ticket_add', { hash: sha256(ticket), credential })
  return { status: 201, body: JSON.stringify({ data: { ticket, expires_in: ticketSeconds } }) }
}

const broadcast = async ({ services, resolved, call, body }: HandlerContext) => {
  const { channel, event, payload } = body as { channel: string; event: string; payload: unknown }
  const text = JSON.stringify(payload ?? null)
  if (jsonSize(payload ?? null).bytes > limits.payloadBytes)
    throw refusal(400, 'VALIDATION_ERROR', 'payload: must have at most 32 KB', {
      field: 'payload',
      reason: 'must have at most 32 KB',
    })
  const args = { channel, event, payload: text, server_id: services.realtime.serverId }
  const { others } = dataOf<{ others: number }>(await call('realtime_broadcast', args))
  const own = services.realtime.listeners(resolved.project?.projectId ?? '', channel)
  return { status: 202, body: JSON.stringify({ data: { delivered_to: own + others } }) }
}

const Rule = z.object({
  pattern: z
    .string()
    .regex(/^[A-Za-z0-9_.:*-]{1,64}$/, 'must have 1 to 64 letters, digits and _.:-, and * for any characters'),
  publish: z
    .string()
    .regex(/^(authenticated|server|role:[a-z][a-z0-9_-]{0,127})$/, 'must be authenticated, server or role:<key>'),
  presence: z.boolean().default(true),
})

export const realtime = area({
  stem: 'realtime',
  title: 'Realtime',
  part: 'Reach',
  about: 'Changes and broadcasts over WebSocket and server-sent events.',
  source: 'supplement',
  routes: [
    ...group('/client/realtime', ticketHolder, [
      route('GET /', 'Open a WebSocket', {
        handle: connect,
        operationId: 'connectRealtime',
        description: 'Frames, channels and close codes: docs/realtime.md. A sixth connection of a user is refused.',
        query: { ticket: Ticket },
        replies: { 101: z.string() },
        refusals: { 426: ['UPGRADE_REQUIRED'] },
        failure: null,
      }),
      route('GET /stream', 'Listen to channels as server-sent events', {
        handle: stream,
        operationId: 'streamRealtime',
        description: 'As the WebSocket, for listening alone. `Last-Event-ID` is `since`.',
        query: { ticket: Ticket, channels: Channels, since: Since },
        replies: { 200: eventStream() },
        refusals: {
          403: ['FORBIDDEN', 'NOT_A_PARTICIPANT'],
          404: ['COLLECTION_NOT_FOUND', 'CONVERSATION_NOT_FOUND', 'NOT_FOUND'],
        },
        failure: null,
      }),
      route('POST /tickets', 'Get a ticket for one connection', {
        handle: createTicket,
        caller: sessionUser,
        description:
          'For clients that cannot set headers: a ticket may be used once, within 60 seconds, as `?ticket=`.',
        replies: { 201: data(z.strictObject({ ticket: z.string(), expires_in: z.literal(ticketSeconds) })) },
      }),
    ]),
    ...group('/admin/projects/:projectId/realtime', administrator, [
      route('POST /broadcast', 'Publish an event to a channel', {
        handle: broadcast,
        description:
          '`delivered_to` counts the connections that listen to it; those of other server processes as of at most ten seconds ago.',
        body: z.object({
          channel: Text(128, 1),
          event: z.string().regex(/^[A-Za-z0-9_.:-]{1,64}$/, 'must have 1 to 64 letters, digits and _.:-'),
          payload: z.unknown(),
        }),
        example: { channel: 'room:lobby', event: 'notice', payload: { text: 'The server restarts at noon.' } },
        replies: { 202: data(z.strictObject({ delivered_to: z.int() })) },
      }),
      route('GET /stats', 'Connections, channels and events', {
        call: 'realtime_stats',
        replies: {
          200: data(
            z.strictObject({
              connections: z.int(),
              users: z.int(),
              channels: z.int(),
              messages_per_second: z.number(),
            }),
          ),
        },
        failure: 'LIST_FAILED',
      }),
      route('PUT /rooms', 'Replace the rules for rooms', {
        call: 'realtime_rooms_put',
        description:
          'The first rule whose pattern fits the name of a room holds. Without one, everybody who listens publishes and may be present.',
        body: z.object({ rules: z.array(Rule).max(100, 'must have at most 100 rules') }),
        example: { rules: [{ pattern: 'lobby-*', publish: 'authenticated', presence: true }] },
        replies: { 200: data(z.strictObject({ rules: z.array(Rule) })) },
      }),
    ]),
  ],
})
