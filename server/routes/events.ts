import { z } from 'zod'
import { refusal } from '#server/errors.ts'
import { endUserOrServer } from '#server/http/callers.ts'
import { area, type HandlerContext, route } from '#server/http/route.ts'
import { data, JsonObject, Time, Uuid } from '#server/http/schemas.ts'
import { sha256 } from '#server/secrets.ts'

const Event = z.strictObject({
  id: Uuid,
  app_user_id: Uuid,
  event_name: z.string(),
  properties: JsonObject,
  occurred_at: Time,
  source: z.enum(['client', 'server', 'webhook', 'system']),
  session_id: Uuid.nullable(),
})
const Effects = z.strictObject({
  streaks: z
    .array(z.looseObject({ key: z.string(), status: z.string(), current_count: z.int(), change: z.string() }))
    .optional(),
  xp: JsonObject.optional(),
  achievements: z.array(JsonObject).optional(),
  challenges: z.array(JsonObject).optional(),
  leaderboards: z.array(JsonObject).optional(),
  league: JsonObject.optional(),
  currencies: z.array(JsonObject).optional(),
})
const Single = z.strictObject({ event: Event, clock_adjusted: z.literal(true).optional(), effects: Effects })
const Batch = z.strictObject({
  accepted: z.int(),
  duplicates: z.int(),
  rejected: z.int(),
  results: z.array(
    z.strictObject({
      index: z.int(),
      id: Uuid.optional(),
      status: z.enum(['accepted', 'duplicate', 'rejected']),
      clock_adjusted: z.literal(true).optional(),
      code: z.string().optional(),
      message: z.string().optional(),
    }),
  ),
  effects: Effects.optional(),
})
const Answer = data(z.union([Single, Batch]))

const NewEvent = z.object({
  event_name: z.string().min(1).max(255),
  properties: JsonObject.optional(),
  occurred_at: z.iso.datetime({ offset: true }).optional(),
  id: Uuid.optional(),
  session_id: Uuid.optional(),
  app_user_id: Uuid.optional(),
})
const Documented = z.union([
  NewEvent.extend({ historical: z.boolean().optional() }),
  z.object({
    events: z.array(NewEvent).min(1).max(1000),
    include_effects: z.boolean().optional(),
    historical: z.boolean().optional(),
  }),
])

/** Supplement 0.6: 1 to 255 printable ASCII characters. */
const keyOf = ({ request }: HandlerContext): string | undefined => {
  const key = request.headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key !== 'string' || !/^[ -~]{1,255}$/.test(key)) {
    throw refusal(400, 'VALIDATION_ERROR', 'Idempotency-Key: must be 1 to 255 printable ASCII characters', {
      field: 'Idempotency-Key',
      reason: 'must be 1 to 255 printable ASCII characters',
    })
  }
  return key
}

export const events = area({
  stem: 'events',
  title: 'Events',
  source: 'supplement',
  routes: [
    route('POST /client/events', {
      caller: endUserOrServer,
      summary: 'Record one event, or a batch, and see what it moved',
      // every item is judged by SQL, on its own, so that good ones of a batch are stored
      body: z.looseObject({}),
      documentedBody: Documented,
      example: { event_name: 'lesson_completed', properties: { lesson: 3 } },
      handle: (context) => {
        const key = keyOf(context)
        // as it was sent: a number that JavaScript cannot hold arrives whole, and nothing is written out again
        const body = String(context.request.body ?? '') || '{}'
        return context.call('events_post', {
          body,
          idempotency_key: key,
          body_hash: key === undefined ? undefined : sha256(body),
        })
      },
      replies: { 200: Answer, 201: Answer },
      refusals: {
        400: ['VALIDATION_ERROR', 'INVALID_BODY', 'BATCH_TOO_LARGE', 'EVENT_TOO_OLD', 'RESERVED_EVENT_NAME'],
        409: ['EVENT_ID_CONFLICT', 'IDEMPOTENCY_CONFLICT'],
      },
      ceiling: 'events',
      failure: 'CREATE_FAILED',
    }),
  ],
})
