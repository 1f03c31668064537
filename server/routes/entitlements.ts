import { z } from 'zod'
import { endUser } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { data, Flag } from '#server/http/schemas.ts'
import { restore } from '#server/integrations/restore.ts'
import { Entitlement } from '#server/routes/entitlements/shapes.ts'

export const entitlements = area({
  stem: 'entitlements',
  title: 'Entitlements',
  part: 'Economy',
  about: 'What a user may use because of a purchase.',
  codes: 'by area',
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
        codes: 'by part',
        params: { entitlementId: z.string() },
        replies: { 200: data(Entitlement) },
      }),
    ]),
  ],
})
