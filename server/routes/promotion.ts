import { z } from 'zod'
import { administrator } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { data, Json, Uuid } from '#server/http/schemas.ts'
import { apply, imports, plan } from '#server/projects/promotion.ts'

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
const Definitions = z.record(z.string(), z.record(z.string(), z.record(z.string(), Json)))
const Document = z.strictObject({ version: z.literal(1), definitions: Definitions, left_out: z.array(Blocked) })
const Sent = z.object({
  version: z.literal(1, 'must be 1'),
  definitions: Definitions,
  left_out: z.array(Blocked).max(1000, 'must have at most 1000 rows').optional(),
})
const Applied = z.strictObject({
  operation_id: Uuid,
  status: z.enum(['waiting', 'succeeded']),
  plan_hash: z.string(),
  confirm_required: z.boolean(),
})
const Hash = z.string().regex(/^[0-9a-f]{64}$/, 'must be the plan_hash of a plan')
const selection = {
  kinds: Kinds.optional(),
  keys: Keys.optional().describe('Of these kinds only these keys'),
  prune: z.boolean().optional(),
}

export const promotion = area({
  stem: 'promotion',
  title: 'Promotion',
  part: 'Platform',
  about: 'Definitions of a project as one document, and copying them to another project.',
  invalid: 'INVALID_BODY',
  words: {
    target_project_id: ['Into', 'The id of the project that is changed.'],
    kinds: ['Kinds', 'Such as `streaks` and `flags`.', { unset: 'All kinds' }],
    keys: ['Keys', 'Of these kinds only these keys, such as `{"flags": ["new_checkout"]}`.', { unset: 'All keys' }],
    prune: ['Delete the rest', 'Deletes what the source does not have.', { default: false }],
    plan_hash: ['Plan', 'The `plan_hash` of the plan that is applied.'],
    confirm: ['Confirmation', 'The same again, where the plan deletes something.'],
    document: ['Document', 'An export of definitions.'],
    'document.version': ['Version', 'Of the form of the document.'],
    definitions: ['Definitions', 'By kind and key.'],
    left_out: ['Left out', 'What the export could not contain.'],
    kind: ['Kind', 'Such as `flags`.'],
    key: ['Key', 'Of the definition.'],
    code: ['Code', 'Why, for programs.'],
  },
  routes: [
    ...group('/admin/projects/:projectId/promotion', administrator, [
      route('POST /plan', 'The differences between this project and another of the organization', {
        handle: plan,
        calls: ['promotion_plan'],
        operationId: 'planPromotion',
        description:
          'What must change in the target so that its definitions equal those of this project, matched by key or name. `diff` is `{field: [target, source]}`. Deletions only with `prune`. No definition is written.',
        body: z.object({ target_project_id: Uuid, ...selection }),
        example: { target_project_id: '00000000-0000-4000-8000-000000000000', kinds: ['segments', 'flags'] },
        readOnly: true,
        replies: { 200: data(Plan) },
      }),
      route('POST /apply', 'Apply a plan to its target, all or nothing', {
        handle: apply,
        calls: ['promotion_apply', 'promotion_export'],
        operationId: 'applyPromotion',
        description:
          'The plan is computed again first: when it differs, 409 `PLAN_CHANGED`. A plan with deletions is applied when `confirm` equals `plan_hash`; before, its operation waits.',
        body: z.object({ plan_hash: Hash, confirm: Hash.optional() }),
        example: { plan_hash: '0'.repeat(64) },
        replies: { 202: data(Applied) },
        failure: 'UPDATE_FAILED',
      }),
      route('GET /export', 'All definitions as one JSON document', {
        call: 'promotion_export',
        operationId: 'exportPromotion',
        description:
          'Sorted, by key or name, without ids, times of rows and secrets: equal configurations give equal documents. `left_out` names what cannot be copied.',
        replies: { 200: data(Document) },
      }),
      route('POST /import', 'Plan or apply a document of definitions to this project', {
        handle: imports,
        calls: ['promotion_import'],
        operationId: 'importPromotion',
        description:
          'With `dry_run=true`, the default, the plan of the document for this project; with `dry_run=false` it is applied, all or nothing. `plan_hash` makes sure that it is the plan that was seen.',
        query: {
          dry_run: z
            .enum(['true', 'false'], 'must be true or false')
            .transform((value) => value === 'true')
            .optional(),
        },
        body: z.object({ document: Sent, plan_hash: Hash.optional(), confirm: Hash.optional(), ...selection }),
        example: {
          document: {
            version: 1,
            definitions: { roles: { editor: { name: 'Editor', permissions: ['posts.write'] } } },
          },
        },
        replies: { 200: data(Plan), 202: data(Applied) },
        failure: 'UPDATE_FAILED',
      }),
    ]),
  ],
})
