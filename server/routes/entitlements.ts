import { z } from 'zod'
import { endUser } from '#server/http/callers.ts'
import { area, route } from '#server/http/route.ts'
import { data, Flag, Time } from '#server/http/schemas.ts'

export const Entitlement = z.strictObject({
  entitlement_id: z.string(),
  is_active: z.boolean(),
  product_id: z.string().nullable(),
  store: z.string(),
  purchase_date: Time,
  expiration_date: Time.nullable(),
  period_type: z.string(),
})

export const entitlements = area({
  stem: 'entitlements',
  title: 'Entitlements',
  source: 'contract',
  invalid: 'INVALID_INPUT',
  routes: [
    route('GET /client/entitlements', {
      caller: endUser,
      summary: "The caller's entitlements",
      query: { active_only: Flag().describe('Only those that are active now') },
      call: 'entitlements_list',
      replies: { 200: data(z.array(Entitlement)) },
      failure: 'LIST_FAILED',
    }),
    route('GET /client/entitlements/:entitlementId', {
      caller: endUser,
      source: 'supplement',
      summary: "One of the caller's entitlements, which may have ended",
      params: { entitlementId: z.string() },
      call: 'entitlement_get',
      replies: { 200: data(Entitlement) },
      refusals: { 404: ['NOT_FOUND'] },
      failure: 'FETCH_FAILED',
    }),
  ],
})
