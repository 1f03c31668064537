import { z } from 'zod'
import { dataOf, type Reply } from '#server/database/database.ts'
import { developer } from '#server/http/callers.ts'
import { area, type HandlerContext, route } from '#server/http/route.ts'
import { Deleted, data, Line, Page, page, Time, Uuid } from '#server/http/schemas.ts'
import { Scopes } from '#server/http/scope_lists.ts'
import { createServiceKey } from '#server/http/tokens.ts'

const ServiceAccount = z.strictObject({
  id: Uuid,
  organization_id: Uuid,
  name: z.string(),
  scopes: z.array(z.string()),
  project_ids: z.array(Uuid).nullable(),
  is_active: z.boolean(),
  last_used_at: Time.nullable(),
  created_at: Time,
})
const WithKey = data(ServiceAccount.extend({ key: z.string() }))
const ProjectIds = z
  .array(Uuid)
  .min(1, 'must name at least one project, or be null')
  .max(200, 'must name at most 200 projects')
  .nullable()

/** The text of a key is in this response only. */
const withKey = async (call: Promise<Reply>, key: string) => {
  const reply = await call
  return { status: reply.status, body: JSON.stringify({ data: { ...dataOf<object>(reply), key } }) }
}

const create = (context: HandlerContext) => {
  const { text, key_hash } = createServiceKey()
  return withKey(context.call('service_account_create', { ...context.body, key_hash }), text)
}

const rotate = (context: HandlerContext) => {
  const { text, key_hash } = createServiceKey()
  const service_account_id = context.params['serviceAccountId']
  return withKey(context.call('service_account_rotate', { service_account_id, key_hash }), text)
}

const one = '/admin/service-accounts/:serviceAccountId' as const
const refusals = { 403: ['ROLE_FORBIDDEN'], 404: ['NOT_FOUND'] }

export const serviceAccounts = area({
  stem: 'service_accounts',
  title: 'Service accounts',
  part: 'Platform',
  about: 'Machines of an organization, which make operator tokens.',
  source: 'supplement',
  routes: [
    route('POST /admin/service-accounts', {
      caller: developer,
      sessionOnly: true,
      summary: 'Create a service account in an organization, as its admin; the key is shown once',
      body: z.object({
        organization_id: Uuid,
        name: Line(80, 1),
        scopes: Scopes,
        project_ids: ProjectIds.default(null),
      }),
      example: {
        organization_id: '00000000-0000-4000-8000-000000000000',
        name: 'Agents',
        scopes: ['streaks:write', 'users:read'],
      },
      handle: create,
      replies: { 201: WithKey },
      refusals: { ...refusals, 409: ['LIMIT_REACHED'] },
    }),
    route('GET /admin/service-accounts', {
      caller: developer,
      sessionOnly: true,
      summary: 'Service accounts of the organizations that the developer administrates, or of one, newest first',
      query: { ...Page, organization_id: Uuid.optional() },
      call: 'service_account_list',
      replies: { 200: page(ServiceAccount) },
    }),
    route(`GET ${one}`, {
      caller: developer,
      sessionOnly: true,
      summary: 'A service account',
      call: 'service_account_get',
      replies: { 200: data(ServiceAccount) },
    }),
    route(`PATCH ${one}`, {
      caller: developer,
      sessionOnly: true,
      summary: 'Change a service account; its live tokens may do no more than it, within 30 seconds',
      body: z.object({
        name: Line(80, 1).optional(),
        scopes: Scopes.optional(),
        project_ids: ProjectIds.optional(),
        is_active: z.boolean('must be true or false').optional(),
      }),
      example: { is_active: false },
      patch: true,
      call: 'service_account_patch',
      replies: { 200: data(ServiceAccount) },
    }),
    route(`DELETE ${one}`, {
      caller: developer,
      sessionOnly: true,
      summary: 'Delete a service account; its key and its tokens end',
      call: 'service_account_delete',
      replies: { 200: Deleted },
    }),
    route(`POST ${one}/rotate-key`, {
      caller: developer,
      sessionOnly: true,
      summary: 'Replace the key of a service account; the former key ends, live tokens do not',
      handle: rotate,
      replies: { 200: WithKey },
      refusals,
    }),
  ],
})
