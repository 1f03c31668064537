import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { endUser } from '#server/http/callers.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { data, Flag, Time } from '#server/http/schemas.ts'
import { integrationPurpose } from '#server/providers/project_mail.ts'
import { type CustomerConfig, readPurchases } from '#server/providers/revenuecat_customers.ts'

export const Entitlement = z.strictObject({
  entitlement_id: z.string(),
  is_active: z.boolean(),
  product_id: z.string().nullable(),
  store: z.string(),
  purchase_date: Time,
  expiration_date: Time.nullable(),
  period_type: z.string(),
})

/** Asks the provider what the user owns. Whatever goes wrong there changes nothing here. */
const restore = async (context: HandlerContext) => {
  const { services, resolved } = context
  const { userId: app_user_id } = resolved.claims
  const projectId = resolved.project?.projectId ?? ''
  const worker = { role: 'app_worker', as: { ...resolved, claims: { caller: 'worker', projectId } } } as const
  const begun = dataOf<{ config_sealed: string; names: string[]; asked_at: string }>(
    await context.call('restore_begin', { app_user_id }, worker),
  )
  const opened = services.secrets.decrypt(integrationPurpose(projectId, 'revenuecat'), begun.config_sealed)
  const found = await readPurchases(services.upstream, projectId, JSON.parse(opened) as CustomerConfig, begun.names)
  if (found.failure !== null)
    throw refusal(502, 'RESTORE_UPSTREAM_FAILED', 'The subscription provider did not answer: try again later.', {
      reason: found.failure,
    })
  return context.call(
    'subscriptions_restore',
    {
      app_user_id,
      names: JSON.stringify(begun.names),
      purchases: JSON.stringify(found.purchases),
      is_known: found.isKnown,
      asked_at: begun.asked_at,
    },
    // an event may move a purchase to another user meanwhile
    { ...worker, retries: 5 },
  )
}

export const entitlements = area({
  stem: 'entitlements',
  title: 'Entitlements',
  part: 'Economy',
  about: 'What a user may use because of a purchase.',
  source: 'contract',
  invalid: 'INVALID_INPUT',
  routes: [
    ...group('/client/entitlements', endUser, [
      route('GET /', "The caller's entitlements", {
        call: 'entitlements_list',
        query: { active_only: Flag().describe('Only those that are active now') },
        replies: { 200: data(z.array(Entitlement)) },
      }),
      route('POST /restore', "Bring the caller's purchases up to date with the subscription provider", {
        handle: restore,
        description:
          'Answers when the provider has. Purchases that ended there end here; without its answer nothing changes. At most ten times a minute.',
        replies: { 200: data(z.strictObject({ restored_count: z.int(), entitlements: z.array(Entitlement) })) },
        refusals: { 409: ['RESTORE_UNAVAILABLE'], 502: ['RESTORE_UPSTREAM_FAILED'] },
        failure: 'RESTORE_FAILED',
      }),
      route('GET /:entitlementId', "One of the caller's entitlements, which may have ended", {
        call: 'entitlement_get',
        source: 'supplement',
        params: { entitlementId: z.string() },
        replies: { 200: data(Entitlement) },
      }),
    ]),
  ],
})
