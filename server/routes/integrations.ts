import { z } from 'zod'
import { administrator } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { Cursor, cursorPage, Deleted, data, JsonObject, Limit } from '#server/http/schemas.ts'
import { put } from '#server/integrations/config.ts'
import { test } from '#server/integrations/credentials.ts'

const Integration = answer('integration_json', { has_credentials: z.boolean(), webhook_url: z.string().nullable() })

const Inbound = answer('inbound_event_json', { provider: z.string(), body: z.string().describe('As it was received') })

const notConfigured = { 404: ['NOT_CONFIGURED'] }
const rootUrl = ({ services }: Pick<HandlerContext, 'services'>) => ({ root_url: services.publicUrl })

export const integrations = area({
  stem: 'integrations',
  title: 'Integrations',
  part: 'Connections',
  about: 'Credentials of other services, and what they reported.',
  codes: 'by area',
  invalid: 'INVALID_CONFIG',
  rank: 'admin',
  words: {
    provider: ['Provider', 'Such as `apns`, `fcm`, `smtp` or `revenuecat`.'],
    config: ['Settings', 'Keys and the like, as the provider gives them; they are stored encrypted.'],
  },
  routes: [
    ...group('/admin/projects/:projectId/integrations', administrator, [
      route('POST /', 'Connect a provider, or replace its config', {
        handle: put,
        body: z.object({ provider: z.string().max(100, 'must have at most 100 characters'), config: JsonObject }),
        example: { provider: 'revenuecat', config: { secret_api_key: 'sk_…', webhook_secret: 'a secret' } },
        replies: { 200: data(Integration), 201: data(Integration) },
        refusals: { 400: ['PROVIDER_UNKNOWN'] },
      }),
      route('GET /', 'Connected providers, without their configs', {
        call: 'integration_list',
        codes: 'by part',
        args: rootUrl,
        replies: { 200: data(z.array(Integration)) },
      }),
      route('GET /:provider', 'A connected provider, without its config', {
        call: 'integration_get',
        codes: 'by part',
        args: rootUrl,
        replies: { 200: data(Integration) },
      }),
      route('PATCH /:provider', 'Switch a provider on or off', {
        call: 'integration_update',
        codes: 'by part',
        body: z.object({ is_active: z.boolean('must be true or false').optional() }),
        patch: true,
        example: { is_active: false },
        args: rootUrl,
        replies: { 200: data(Integration) },
      }),
      route('DELETE /:provider', 'Disconnect a provider and forget its credentials', {
        call: 'integration_delete',
        codes: 'by part',
        replies: { 200: Deleted },
      }),
      route('POST /:provider/test', 'Try the credentials of revenuecat, superwall, apns, fcm, google_play or smtp', {
        handle: test,
        codes: 'by part',
        description: 'Bad credentials are `ok: false` and not a refusal. Sends no message.',
        replies: {
          200: data(z.strictObject({ ok: z.boolean(), latency_ms: z.int(), error: z.string().nullable() })),
        },
        refusals: { 400: ['PROVIDER_UNKNOWN'], ...notConfigured },
        failure: 'FETCH_FAILED',
      }),
      route('GET /:provider/events', 'Received webhooks of a provider, newest first', {
        call: 'inbound_events',
        codes: 'by part',
        description: 'Kept for 90 days. `outcome` is null until the webhook has been processed.',
        query: { cursor: Cursor, limit: Limit(), outcome: z.string().max(64).optional() },
        replies: { 200: cursorPage(Inbound) },
      }),
      route('POST /:provider/events/:eventId/replay', 'Process a received webhook again', {
        call: 'inbound_replay',
        codes: 'by part',
        description: 'What was applied is not applied twice.',
        replies: { 202: data(Inbound) },
        failure: 'UPDATE_FAILED',
      }),
    ]),
  ],
})
