/** Definitions of one project planned against another, and applied to it. */
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { tenantPlace } from '#server/http/client_credentials.ts'
import { actorOf } from '#server/http/credentials.ts'
import { callControl, projectIdOf } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'

/** Thousands of rows are compared, and each is written by the function of its own route. */
const timeoutMs = 60_000

type Options = { readonly kinds?: unknown; readonly keys?: unknown; readonly prune?: unknown }
type Done = { readonly plan_hash: string; readonly confirm_required: boolean; readonly ops: number | null }

const forbidden = (why: string) => refusal(403, 'PROJECT_FORBIDDEN', why)

/** The target of a plan: another project of the same organization, which the caller's token must not exclude. The role is the organization's. */
const targetOf = async ({ services, resolved, request, route }: HandlerContext, id: string) => {
  const { project: source, developer: held } = resolved
  const target = await services.projectCache.byProject(id.toLowerCase())
  if (!held || !target || target.organizationId !== source?.organizationId) {
    throw forbidden('The target must be a project of the same organization.')
  }
  if (held.token?.projectIds && !held.token.projectIds.includes(target.projectId)) {
    throw forbidden('This token is limited to other projects.')
  }
  const claims = { ...resolved.claims, projectId: target.projectId, actor: actorOf(request, held, target) }
  return { id: target.projectId, place: tenantPlace(services, target, route), claims }
}

export const plan = async (context: HandlerContext) => {
  const { body, call, services } = context
  const target = await targetOf(context, body['target_project_id'] as string)
  const { kinds, keys, prune } = body
  const exported = await call('promotion_export', { kinds }, { timeoutMs })
  // the text of the export, so that no number is read as a double
  const args = { source_project_id: projectIdOf(context), document: exported.body, kinds, keys, prune }
  // it writes, and undoes what it wrote: so it knows what an apply would be refused
  const answer = await services.database.call(target.place, 'app_admin', target.claims, 'promotion_plan', args, {
    readOnly: false,
    timeoutMs,
    failure: 'FETCH_FAILED',
  })
  const { plan_hash } = dataOf<{ plan_hash: string }>(answer)
  await callControl(
    context,
    'promotion_planned',
    { plan_hash, target_project_id: target.id, options: { kinds, keys, prune } },
    { failure: 'FETCH_FAILED' },
  )
  return answer
}

export const apply = async (context: HandlerContext) => {
  const { body, call, services } = context
  const { plan_hash, confirm } = body
  // the source is asked first: a database that is away is 503, whatever the hash means
  await call('promotion_export', { kinds: ['roles'] })
  const found = dataOf<{ target_project_id: string; options: Options }>(
    await callControl(context, 'promotion_find', { plan_hash }, { failure: 'UPDATE_FAILED' }),
  )
  const target = await targetOf(context, found.target_project_id)
  const { kinds, keys, prune } = found.options
  const exported = await call('promotion_export', { kinds }, { timeoutMs })
  const answer = await services.database.call(
    target.place,
    'app_admin',
    target.claims,
    'promotion_apply',
    { source_project_id: projectIdOf(context), document: exported.body, plan_hash, confirm, kinds, keys, prune },
    { timeoutMs, failure: 'UPDATE_FAILED' },
  )
  services.waker.written(target.id)
  if (answer.dueAt) services.waker.wake(target.id, answer.dueAt)
  return record(context, 'promotion.apply', target.id, dataOf<Done>(answer))
}

export const imports = async (context: HandlerContext) => {
  const { body, call, query } = context
  const { document, plan_hash, confirm, kinds, keys, prune } = body
  const dry_run = query['dry_run'] !== false
  // as text, so that no number is read as a double
  const args = { document: JSON.stringify(document), plan_hash, confirm, kinds, keys, prune, dry_run }
  const answer = await call('promotion_import', args, { timeoutMs })
  if (dry_run) return answer
  return record(context, 'promotion.import', projectIdOf(context), dataOf<Done>(answer))
}

const record = (context: HandlerContext, type: string, targetId: string, { plan_hash, ops }: Done) =>
  callControl(
    context,
    'promotion_record',
    { type, plan_hash, target_project_id: targetId, ops },
    { failure: 'UPDATE_FAILED' },
  )
