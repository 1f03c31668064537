/** Asking the subscription provider what a user owns. */
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { projectIdOf } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { integrationPurpose } from '#server/providers/project_mail.ts'
import { type CustomerConfig, readPurchases } from '#server/providers/revenuecat_customers.ts'

/** Asks the provider what the user owns. Whatever goes wrong there changes nothing here. */
export const restore = async (context: HandlerContext) => {
  const { services, resolved } = context
  const { userId: app_user_id } = resolved.claims
  const projectId = projectIdOf(context)
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
