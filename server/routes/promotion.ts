import { z } from 'zod'
import { refusal } from '#server/errors.ts'
import { administrator } from '#server/http/callers.ts'
import { tenantPlace } from '#server/http/client_credentials.ts'
import { actorOf } from '#server/http/credentials.ts'
import { area, type HandlerContext, type Route, route } from '#server/http/route.ts'
import { data, Json, Uuid } from '#server/http/schemas.ts'

const Kinds = z
  .array(z.string().max(63, 'is too long'))
  .min(1, 'must name a kind')
  .max(100, 'must name at most 100 kinds')
const Keys = z.record(
  z.string().max(63, 'is too long'),
  z.array(z.string().max(300, 'is too long')).max(5000, 'must have at most 5000 keys'),
)
const Blocked = z.strictObject({ kind: z.string(), key: z.string(), code: z.string(), reason: z.string() })
const Plan = z.strictObject({
  plan_hash: z.string(),
  clean: z.boolean(),
  ops: z.array(
    z.strictObject({
      op: z.enum(['create', 'update', 'delete']),
      kind: z.string(),
      key: z.string(),
      diff: z.record(z.string(), z.tuple([Json, Json])),
    }),
  ),
  blocked: z.array(Blocked),
})
const Document = z.strictObject({
  version: z.literal(1),
  definitions: z.record(z.string(), z.record(z.string(), z.record(z.string(), Json))),
  left_out: z.array(Blocked),
})

const forbidden = (why: string) => refusal(403, 'PROJECT_FORBIDDEN', why)

/** The target of a plan: another project of the same organization, which the caller's token must not exclude. The role is the organization's. */
const targetOf = async ({ services, resolved, body }: HandlerContext, at: Route) => {
  const { project: source, developer: held } = resolved
  const target = await services.projectCache.byProject((body['target_project_id'] as string).toLowerCase())
  if (!held || !target || target.organizationId !== source?.organizationId) {
    throw forbidden('The target must be a project of the same organization.')
  }
  if (held.token?.projectIds && !held.token.projectIds.includes(target.projectId)) {
    throw forbidden('This token is limited to other projects.')
  }
  return { target, held, place: tenantPlace(services, target, at) }
}

const plan = async (context: HandlerContext) => {
  const { body, call, resolved, services, request } = context
  const { target, held, place } = await targetOf(context, planned)
  const { kinds, keys, prune } = body
  const exported = await call('promotion_export', { kinds })
  const claims = { ...resolved.claims, projectId: target.projectId, actor: actorOf(request, held, target) }
  // the text of the export, so that no number is read as a double
  const args = { source_project_id: resolved.project?.projectId, document: exported.body, kinds, keys, prune }
  return services.database.call(place, 'app_admin', claims, 'promotion_plan', args, {
    readOnly: true,
    failure: 'FETCH_FAILED',
  })
}

const planned: Route = route('POST /admin/projects/:projectId/promotion/plan', {
  operationId: 'planPromotion',
  caller: administrator,
  summary: 'The differences between this project and another of the organization',
  description:
    'What must change in the target so that its definitions equal those of this project, matched by key or name. `diff` is `{field: [target, source]}`. Deletions only with `prune`. Nothing is written.',
  body: z.object({
    target_project_id: Uuid,
    kinds: Kinds.optional(),
    keys: Keys.optional().describe('Of these kinds only these keys'),
    prune: z.boolean().optional(),
  }),
  example: { target_project_id: '00000000-0000-4000-8000-000000000000', kinds: ['segment', 'flag'] },
  handle: plan,
  readOnly: true,
  replies: { 200: data(Plan) },
  refusals: { 409: ['LIMIT_REACHED'] },
  failure: 'FETCH_FAILED',
})

export const promotion = area({
  stem: 'promotion',
  title: 'Promotion',
  part: 'Platform',
  about: 'Definitions of a project as one document, and what another project lacks of them.',
  source: 'supplement',
  invalid: 'INVALID_BODY',
  routes: [
    planned,
    route('GET /admin/projects/:projectId/promotion/export', {
      operationId: 'exportPromotion',
      caller: administrator,
      summary: 'All definitions as one JSON document',
      description:
        'Sorted, by key or name, without ids, times of rows and secrets: equal configurations give equal documents. `left_out` names what cannot be copied.',
      call: 'promotion_export',
      replies: { 200: data(Document) },
      refusals: { 409: ['LIMIT_REACHED'] },
      failure: 'FETCH_FAILED',
    }),
  ],
})
