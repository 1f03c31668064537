import { z } from 'zod'
import { administrator } from '#server/http/callers.ts'
import { idempotency } from '#server/http/idempotency.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { AnyId, between, data, Text, Uuid } from '#server/http/schemas.ts'
import { Entitlement, Grant } from '#server/routes/entitlements/shapes.ts'

const grant = (context: HandlerContext) =>
  context.call('user_entitlement_grant', {
    user_id: context.params['userId'],
    patch: context.body,
    ...idempotency(context, 'INVALID_BODY'),
  })
/** Routes that say the code by the part of a request answer INVALID_ID; the others INVALID_USER_ID, in SQL. */
const ofUser = { userId: Uuid }

export const entitlementsAdmin = area({
  stem: 'entitlements',
  title: 'Entitlements (admin)',
  part: 'Economy',
  about: 'Grants and withdrawals of entitlements.',
  codes: 'by area',
  invalid: 'INVALID_BODY',
  unavailable: 502,
  words: {
    entitlement_id: ['Entitlement', 'A right to a feature, such as `premium`.'],
    expiration_date: ['Ends at', 'The moment at which the access ends.', { unset: 'For life' }],
    duration_days: ['Days', 'For how many days from now, in place of an end.', { unset: 'For life' }],
    product_id: ['Product', 'What was bought, for the records.'],
  },
  routes: [
    ...group('/admin/projects/:projectId/users', administrator, [
      route('POST /:userId/entitlements', 'Grant an entitlement, or extend an earlier promotional grant', {
        handle: grant,
        calls: ['user_entitlement_grant'],
        operationId: 'grantUserEntitlement',
        description:
          'Without `expiration_date` and `duration_days` for life. Never shortens a grant, never changes a purchase. Accepts an Idempotency-Key.',
        params: { userId: AnyId },
        body: z.object({
          entitlement_id: Text(128, 1),
          expiration_date: z.string().max(40, 'must be an ISO 8601 time').nullable().optional(),
          duration_days: between(1, 36_500).optional(),
          product_id: Text(255, 1).nullable().optional(),
          reason: Text(500).nullable().optional(),
        }),
        example: { entitlement_id: 'premium', duration_days: 30, reason: 'support' },
        replies: { 200: data(Entitlement), 201: data(Entitlement) },
      }),
      route('GET /:userId/entitlements', "A user's entitlements, each with its grants", {
        call: 'user_entitlements',
        codes: 'by part',
        replies: { 200: data(z.array(Entitlement.extend({ grants: z.array(Grant) }))) },
      }),
      route(
        'DELETE /:userId/entitlements/:entitlementId',
        'Remove the promotional grants of an entitlement; purchases stay',
        {
          call: 'user_entitlement_delete',
          operationId: 'revokeUserEntitlement',
          codes: 'by part',
          params: { ...ofUser, entitlementId: z.string() },
          replies: { 200: data(z.strictObject({ deleted: z.literal(true), still_active: z.boolean() })) },
        },
      ),
    ]),
  ],
})
