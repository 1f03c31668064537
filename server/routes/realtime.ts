import { z } from 'zod'
import { administrator, sessionUser } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { data, Text } from '#server/http/schemas.ts'
import { eventStream } from '#server/http/stream.ts'
import { createTicket, ticketHolder, ticketSeconds } from '#server/realtime/credentials.ts'
import { broadcast, connect, stream } from '#server/realtime/handlers.ts'
import { limits } from '#server/realtime/protocol.ts'

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

const Rule = z.object({
  pattern: z
    .string()
    .regex(/^[A-Za-z0-9_.:*-]{1,64}$/, 'must have 1 to 64 letters, digits and _.:-, and * for any characters'),
  publish: z
    .string()
    .regex(/^(authenticated|server|role:[a-z][a-z0-9_-]{0,127})$/, 'must be authenticated, server or role:<key>'),
  presence: z.boolean().default(true),
  listen: z
    .string()
    .regex(/^(authenticated|role:[a-z][a-z0-9_-]{0,127})$/, 'must be authenticated or role:<key>')
    .optional(),
})

export const realtime = area({
  stem: 'realtime',
  title: 'Realtime',
  part: 'Reach',
  about: 'Changes and broadcasts over WebSocket and server-sent events.',
  words: {
    channel: ['Channel', 'Such as `room:lobby`.'],
    event: ['Event', 'What listeners are told has happened.'],
    payload: ['Data', 'Any JSON, as listeners get it.'],
    rules: ['Rules', 'The first that matches the name of a room decides.'],
    'rules.pattern': ['Rooms', 'A name, with * for any characters.'],
    'rules.publish': ['Who sends', '`authenticated`, `server` or `role:<key>`.'],
    'rules.listen': ['Who listens', '`authenticated` or `role:<key>`.', { unset: 'Every signed-in user' }],
    'rules.presence': ['Presence', 'Who is there is shown to the others.'],
  },
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
