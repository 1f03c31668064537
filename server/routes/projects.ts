import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { tenantName } from '#server/database/prepare.ts'
import { ApiError, refusal } from '#server/errors.ts'
import { developer, projectOwner } from '#server/http/callers.ts'
import { asSignIn, perSubject, refundLimits, takeLimits } from '#server/http/limits.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { data, Email, Line, Text, Time, Uuid } from '#server/http/schemas.ts'
import { Environment, Platform, Project } from '#server/http/shapes.ts'
import { createApiKey, createSigningKey } from '#server/http/tokens.ts'
import type { BilledProject } from '#server/providers/billing.ts'
import type { Services } from '#server/services.ts'

const KeyType = z.enum(['client', 'server'], 'must be client or server')
const ProvisioningStatus = z.enum(['provisioning', 'ready', 'failed'])

const ApiKey = z.strictObject({
  id: Uuid,
  key_prefix: z.string(),
  key_type: KeyType,
  environment: Environment,
  is_active: z.boolean(),
  created_at: Time,
  last_used_at: Time.nullable(),
})
const Integration = z.strictObject({
  id: Uuid,
  provider: z.string(),
  is_active: z.boolean(),
  has_credentials: z.boolean(),
  webhook_url: z.string().nullable(),
  created_at: Time,
  updated_at: Time,
})
const NewKey = z.strictObject({ key: z.string(), prefix: z.string(), type: KeyType })
const Step = z.strictObject({
  name: z.enum(['create_database', 'run_migrations', 'create_roles', 'seed_defaults', 'verify']),
  status: z.enum(['pending', 'running', 'succeeded', 'failed']),
  started_at: Time.nullable(),
  finished_at: Time.nullable(),
})
const Provisioning = z.strictObject({
  status: ProvisioningStatus,
  workflow_id: z.string().nullable(),
  current_step: z.string().nullable(),
  steps: z.array(Step),
  attempt: z.int(),
  is_stalled: z.boolean(),
  started_at: Time.nullable(),
  completed_at: Time.nullable(),
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  data_lost_at: Time.optional(),
})

/** A web page or an app's own scheme; never a scheme that a browser would execute or that reads files. It is mailed unchanged. */
const RedirectUrl = Line(2048).refine(
  (value) => URL.canParse(value) && !/^(javascript|data|vbscript|file|blob):$/.test(new URL(value).protocol),
  'must be a URL',
)
const shared = { bundle_id: Text(255).nullable().optional(), google_oauth_client_id: Text(255).nullable().optional() }

/** The text of a key is in this response only. */
const create = async (context: HandlerContext) => {
  const { services, body, resolved } = context
  const { config } = services
  const perDay = perSubject('developer projects', String(resolved.developer?.developerId), [
    config.ACCOUNT_PROJECTS_PER_DAY,
    'day',
  ])
  await takeLimits(asSignIn(context), perDay)
  const id = randomUUID()
  const environment = (body['environment'] ?? 'production') as 'development' | 'production'
  const keys = [createApiKey('client', environment), createApiKey('server', environment)] as const
  const made = context.call('project_create', {
    id,
    ...body,
    sandbox_projects: config.SANDBOX_PROJECTS,
    account_projects: config.ACCOUNT_PROJECTS,
    database_name: tenantName(config.DATABASE_PREFIX, id),
    keys: keys.map(({ text: _text, ...stored }) => stored),
    signing: createSigningKey(services.secrets, id),
  })
  const reply = await made.catch(async (error) => {
    await refundLimits(asSignIn(context), perDay)
    throw error
  })
  const { project, provisioning_status } = dataOf<{ project: unknown; provisioning_status: string }>(reply)
  const [client, server] = keys.map((key) => ({ key: key.text, prefix: key.key_prefix, type: key.key_type }))
  return {
    status: reply.status,
    body: JSON.stringify({ data: { project, api_keys: { client, server }, provisioning_status } }),
  }
}

const createKey = async (context: HandlerContext) => {
  const { key_type, environment } = context.body as {
    key_type: 'client' | 'server'
    environment: 'development' | 'production'
  }
  const { text: key, ...stored } = createApiKey(key_type, environment)
  const reply = await context.call('api_key_create', { project_id: context.params['projectId'], ...stored })
  return { status: reply.status, body: JSON.stringify({ data: { key, ...dataOf<object>(reply) } }) }
}

/** The project from control, its integrations from its own database, once it exists. */
const get = async (context: HandlerContext) => {
  const { services, resolved } = context
  const reply = await context.call('project_get', { project_id: context.params['projectId'] })
  const project = resolved.project
  const integrations = project?.place
    ? await services.database
        .call(
          project.place,
          'app_admin',
          resolved.claims,
          'integration_list',
          { root_url: services.publicUrl },
          { readOnly: true, failure: 'FETCH_FAILED' },
        )
        .then((answer) => dataOf<unknown[]>(answer))
    : []
  return { status: 200, body: JSON.stringify({ data: { ...dataOf<object>(reply), integrations } }) }
}

/** Runs a step that must precede a deletion; its errors are outages of external services, which a retry may overcome. */
const before = async <T>(services: Services, code: string, message: string, work: () => Promise<T>): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    services.log.error({ error: (error as Error).message }, message)
    throw refusal(502, code, message)
  }
}

/** In this order: cancel the subscription, find the files to purge, delete the project. Each step is idempotent. */
const remove = async ({ call, params, services }: HandlerContext) => {
  const project = dataOf<BilledProject>(
    await call('project_removable', { project_id: params['projectId'] }, { readOnly: true }),
  )
  const subscription = await before(
    services,
    'BILLING_CANCEL_FAILED',
    'The subscription could not be cancelled; nothing was deleted.',
    async () => {
      const ending = await services.billing.cancelAtPeriodEnd(project)
      return ending && { ends_at: ending.endsAt.toISOString() }
    },
  )
  const locations = await before(
    services,
    'TENANT_RESOURCE_DELETE_FAILED',
    'The stored files could not be found; try again.',
    () => services.files.locations(project.id),
  )
  const reply = await call('project_delete', { project_id: project.id, locations })
  return { status: 200, body: JSON.stringify({ data: { ...dataOf<object>(reply), subscription } }) }
}

/** `ready` is returned only if the database exists. */
const provisioningStatus = async ({ call, params, services }: HandlerContext) => {
  const args = { project_id: params['projectId'] }
  const reply = await call('provisioning_status', args)
  if (dataOf<{ status: string }>(reply).status === 'provisioning') return reply
  const hasChanged = await services.fleet.confirm(String(params['projectId'])).catch(() => false)
  return hasChanged ? call('provisioning_status', args) : reply
}

const reprovision = async ({ body, call, resolved, services }: HandlerContext) => {
  // the id as control stores it: the path may contain capitals, and the database's name is derived from it
  const id = resolved.project?.projectId ?? ''
  await services.fleet.confirm(id).catch((error: Error) => {
    services.log.warn({ project: id, error: error.message }, 'whether the database is there is not known')
    if (error instanceof ApiError && error.status === 500) throw refusal(500, 'UPDATE_FAILED', error.message)
    throw refusal(503, 'TENANT_UNAVAILABLE', 'The database is not available at the moment.', null, {
      'Retry-After': '5',
    })
  })
  const database_name = tenantName(services.config.DATABASE_PREFIX, id)
  return call('reprovision', { project_id: id, database_name, workflow_id: body['workflow_id'] })
}

const projectId = ({ params }: { params: Record<string, unknown> }) => ({ project_id: params['projectId'] })

export const projects = area({
  stem: 'projects',
  title: 'Projects',
  part: 'Platform',
  about: 'Projects, their keys and the state of their databases.',
  source: 'contract',
  invalid: 'INVALID_INPUT',
  routes: [
    ...group('/admin/projects', developer, [
      route('POST /', 'Create a project with a client key and a server key', {
        handle: create,
        body: z.object({
          name: Line(200, 1),
          ...shared,
          platform: Platform.optional(),
          environment: Environment.optional(),
          organization_id: Uuid.optional(),
        }),
        example: { name: 'My app', environment: 'development' },
        replies: {
          201: data(
            z.strictObject({
              project: Project,
              api_keys: z.strictObject({ client: NewKey, server: NewKey }),
              provisioning_status: z.enum(['provisioning', 'failed']),
            }),
          ),
        },
        refusals: {
          403: ['INVITE_REQUIRED', 'ROLE_FORBIDDEN'],
          404: ['NOT_FOUND'],
          409: ['LIMIT_REACHED'],
          429: ['RATE_LIMIT_EXCEEDED'],
        },
      }),
      route('GET /', "Projects of the developer's organizations, or of one of them, newest first", {
        call: 'project_list',
        query: { organization_id: Uuid.optional() },
        replies: {
          200: data(
            z.array(
              Project.pick({ id: true, name: true, tier: true, effective_tier: true, comped: true, created_at: true }),
            ),
          ),
        },
      }),
    ]),
    ...group('/admin/projects/:projectId', projectOwner, [
      route('GET /', 'A project with its API keys and integrations', {
        handle: get,
        operationId: 'getProject',
        replies: { 200: data(Project.extend({ api_keys: z.array(ApiKey), integrations: z.array(Integration) })) },
        refusals: { 503: ['TENANT_UNAVAILABLE', 'TENANT_MIGRATION_PENDING'] },
      }),
      route('PATCH /', 'Change the given fields of a project', {
        call: 'project_patch',
        operationId: 'updateProject',
        body: z.object({
          name: Line(200, 1).optional(),
          ...shared,
          platform: Platform.optional(),
          environment: Environment.optional(),
          default_from_email: Email.nullable().optional(),
          default_from_name: Line(80).nullable().optional(),
          default_reply_to: Email.nullable().optional(),
          magic_link_redirect_url: RedirectUrl.nullable().optional(),
          auth_email_brand_name: Line(80).nullable().optional(),
          user_search_enabled: z.boolean('must be true or false').optional(),
          graphql_enabled: z.boolean('must be true or false').optional(),
          rest_enabled: z.boolean('must be true or false').optional(),
        }),
        example: { name: 'My other app' },
        patch: true,
        args: projectId,
        replies: { 200: data(z.strictObject({ id: Uuid, name: z.string(), updated_at: Time })) },
      }),
      route(
        'DELETE /',
        'Delete a project: its keys stop at once, its database and files are removed in the background',
        {
          handle: remove,
          operationId: 'deleteProject',
          sessionOnly: true,
          rank: 'owner',
          replies: {
            200: data(
              z.strictObject({
                deleted: z.literal(true),
                file_purge: z.strictObject({ locations: z.int() }),
                subscription: z.strictObject({ ends_at: Time }).nullable(),
              }),
            ),
          },
          refusals: {
            409: ['PROVISIONING_IN_PROGRESS', 'FUNCTION_DOMAINS_ATTACHED'],
            502: ['BILLING_CANCEL_FAILED', 'TENANT_RESOURCE_DELETE_FAILED'],
          },
        },
      ),
    ]),
    ...group('/admin/projects/:projectId', projectOwner, [
      route('POST /api-keys', 'Create another API key; its text is shown once', {
        handle: createKey,
        rank: 'admin',
        body: z.object({ key_type: KeyType, environment: Environment }),
        example: { key_type: 'client', environment: 'production' },
        replies: {
          201: data(z.strictObject({ key: z.string(), prefix: z.string(), type: KeyType, environment: Environment })),
        },
      }),
      route('DELETE /api-keys/:keyId', 'Deactivate an API key at once', {
        call: 'api_key_deactivate',
        operationId: 'revokeApiKey',
        rank: 'admin',
        args: projectId,
        replies: { 200: data(ApiKey) },
      }),
      route('GET /provisioning-status', "The progress of creating the project's database", {
        handle: provisioningStatus,
        operationId: 'getProvisioningStatus',
        replies: { 200: data(Provisioning) },
        source: 'contract',
      }),
      route(
        'POST /reprovision',
        "Create the project's database again: from the first step that failed, or an empty one if it was lost",
        {
          handle: reprovision,
          operationId: 'reprovisionProject',
          body: z.object({ workflow_id: Text(200, 1).optional() }),
          replies: {
            202: data(
              z.strictObject({
                provisioning_status: z.literal('provisioning'),
                workflow_id: z.string(),
                attempt: z.int(),
                data_lost: z.literal(true).optional(),
              }),
            ),
          },
          refusals: { 409: ['ALREADY_PROVISIONED', 'ALREADY_RUNNING'], 503: ['TENANT_UNAVAILABLE'] },
          failure: 'UPDATE_FAILED',
        },
      ),
    ]),
  ],
})
