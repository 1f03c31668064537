/** Opening a connection over HTTP, and publishing from a server. */
import type { FastifyRequest } from 'fastify'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { jsonSize } from '#server/http/json.ts'
import { projectIdOf } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { upgradeOf } from '#server/http/upgrade.ts'
import { credentialOf } from '#server/realtime/credentials.ts'
import { limits } from '#server/realtime/protocol.ts'
import { openStream, readPlaces } from '#server/realtime/stream.ts'
import { openWebSocket } from '#server/realtime/websocket.ts'

/** What ws would refuse by itself, as a page of HTML, after the connection has been admitted. */
export const checkHandshake = ({ headers }: FastifyRequest): void => {
  if (!['8', '13'].includes(headers['sec-websocket-version'] ?? ''))
    throw refusal(
      426,
      'UPGRADE_REQUIRED',
      'This path speaks version 13 of the WebSocket protocol: send Sec-WebSocket-Version: 13.',
      null,
      {
        Upgrade: 'websocket',
        'Sec-WebSocket-Version': '13',
      },
    )
  if (/^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? '')) return
  const reason = 'must be 16 bytes in base64'
  throw refusal(400, 'INVALID_INPUT', `Sec-WebSocket-Key: ${reason}`, { field: 'Sec-WebSocket-Key', reason })
}

export const connect = async ({ request, resolved, services }: HandlerContext) => {
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

export const stream = async ({ request, resolved, services, query }: HandlerContext) => {
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

export const broadcast = async (context: HandlerContext) => {
  const { services, call, body } = context
  const { channel, event, payload } = body as { channel: string; event: string; payload: unknown }
  const text = JSON.stringify(payload ?? null)
  if (jsonSize(payload ?? null).bytes > limits.payloadBytes)
    throw refusal(400, 'VALIDATION_ERROR', 'payload: must have at most 32 KB', {
      field: 'payload',
      reason: 'must have at most 32 KB',
    })
  const args = { channel, event, payload: text, server_id: services.realtime.serverId }
  const { others } = dataOf<{ others: number }>(await call('realtime_broadcast', args))
  const own = services.realtime.listeners(projectIdOf(context), channel)
  return { status: 202, body: JSON.stringify({ data: { delivered_to: own + others } }) }
}
