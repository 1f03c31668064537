import { z } from 'zod'
import { anyone } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { data } from '#server/http/schemas.ts'
import { receive } from '#server/integrations/inbound.ts'

const Received = data(z.strictObject({ received: z.literal(true) }))
const shared = {
  caller: anyone,
  // whatever stands in its place, also two of them, names no project
  query: { project_id: z.unknown().meta({ type: 'string' }).optional().describe('The id of the project') },
  refusals: {
    400: ['MISSING_PROJECT'],
    401: ['INVALID_SIGNATURE'],
    404: ['NOT_CONFIGURED'],
    429: ['RATE_LIMITED'],
    503: ['TENANT_UNAVAILABLE', 'TENANT_MIGRATION_PENDING'],
  },
  invalid: 'INVALID_BODY',
  ceiling: 'none',
  failure: 'WEBHOOK_PROCESSING_FAILED',
} as const

export const inboundWebhooks = area({
  stem: 'integrations',
  title: 'Inbound webhooks',
  part: 'Connections',
  about: 'Where other services report events.',
  codes: 'by area',
  unversioned: true,
  words: {
    event: ['Event', 'As the provider sends it.'],
    id: ['Id', 'Of the event at the provider: it counts once.'],
    type: ['Kind', 'What happened.'],
  },
  routes: group('/webhooks', shared, [
    route('POST /revenuecat', 'Events of the subscription provider', {
      operationId: 'receiveRevenuecatEvents',
      replies: { 200: Received },
      description:
        '`Authorization: Bearer <webhook_secret>` of the `revenuecat` integration. The event is stored, then answered, then processed; one with a known `event.id` changes nothing. At most 100 a second for each project.',
      documentedBody: z.object({ event: z.looseObject({ id: z.string(), type: z.string() }) }),
      handle: (context) => receive(context, 'revenuecat'),
    }),
    route('POST /superwall', 'Events of the paywall provider', {
      operationId: 'receiveSuperwallEvents',
      replies: { 200: Received },
      description:
        '`X-Superwall-Signature` is the HMAC-SHA-256 of the raw body under `webhook_secret` of the `superwall` integration, in hexadecimal. A body with `event` and `user_id` makes one engagement event, `paywall.<event>`. At most 100 a second for each project.',
      documentedBody: z.looseObject({ id: z.string().optional(), event: z.string(), user_id: z.string() }),
      handle: (context) => receive(context, 'superwall'),
    }),
  ]),
})
