import { z } from 'zod'
import { Scopes } from '#server/accounts/scope_lists.ts'
import { createServiceAccount, rotateServiceAccount } from '#server/accounts/tokens.ts'
import { developer } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { Deleted, data, Line, Page, page, Uuid } from '#server/http/schemas.ts'

const ServiceAccount = answer(
  'service_account_json',
  { scopes: z.array(z.string()), project_ids: z.array(Uuid).nullable() },
  'control',
)
const WithKey = data(ServiceAccount.extend({ key: z.string() }))
const ProjectIds = z
  .array(Uuid)
  .min(1, 'must name at least one project, or be null')
  .max(200, 'must name at most 200 projects')
  .nullable()

const refusals = { 403: ['ROLE_FORBIDDEN'], 404: ['NOT_FOUND'] }

export const serviceAccounts = area({
  stem: 'service_accounts',
  title: 'Service accounts',
  part: 'Platform',
  about: 'Machines of an organization, which make operator tokens.',
  words: {
    name: ['Name', 'What the program is, such as `Agents`.'],
    scopes: ['Scopes', 'What it may do, such as `users:read`.'],
    project_ids: ['Projects', 'The ids of the only projects that it reaches.', { unset: 'All of the organization' }],
  },
  routes: [
    ...group('/admin/service-accounts', developer, [
      route('POST /', 'Create a service account in an organization, as its admin; the key is shown once', {
        handle: createServiceAccount,
        sessionOnly: true,
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
        replies: { 201: WithKey },
        refusals: { ...refusals, 409: ['LIMIT_REACHED'] },
      }),
      route(
        'GET /',
        'Service accounts of the organizations that the developer administrates, or of one, newest first',
        {
          call: 'service_account_list',
          sessionOnly: true,
          query: { ...Page, organization_id: Uuid.optional() },
          replies: { 200: page(ServiceAccount) },
        },
      ),
      route('GET /:serviceAccountId', 'A service account', {
        call: 'service_account_get',
        sessionOnly: true,
        replies: { 200: data(ServiceAccount) },
      }),
      route(
        'PATCH /:serviceAccountId',
        'Change a service account; its live tokens may do no more than it, within 30 seconds',
        {
          call: 'service_account_patch',
          sessionOnly: true,
          body: z.object({
            name: Line(80, 1).optional(),
            scopes: Scopes.optional(),
            project_ids: ProjectIds.optional(),
            is_active: z.boolean('must be true or false').optional(),
          }),
          example: { is_active: false },
          patch: true,
          replies: { 200: data(ServiceAccount) },
        },
      ),
      route('DELETE /:serviceAccountId', 'Delete a service account; its key and its tokens end', {
        call: 'service_account_delete',
        sessionOnly: true,
        replies: { 200: Deleted },
      }),
      route(
        'POST /:serviceAccountId/rotate-key',
        'Replace the key of a service account; the former key ends, live tokens do not',
        {
          handle: rotateServiceAccount,
          sessionOnly: true,
          replies: { 200: WithKey },
          refusals,
        },
      ),
    ]),
  ],
})
