/** Projects from creation to deletion, their keys and the state of their databases. */
import { randomUUID } from 'node:crypto'
import { dataOf } from '#server/database/database.ts'
import { tenantName } from '#server/database/names.ts'
import { ApiError, refusal } from '#server/errors.ts'
import { asSignIn, perSubject, refundLimits, takeLimits } from '#server/http/limits.ts'
import { projectIdOf } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { createApiKey, createSigningKey } from '#server/http/tokens.ts'
import type { BilledProject } from '#server/providers/billing.ts'
import type { Services } from '#server/services.ts'

/** The text of a key is in this response only. */
export const create = async (context: HandlerContext) => {
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

export const createKey = async (context: HandlerContext) => {
  const { key_type, environment } = context.body as {
    key_type: 'client' | 'server'
    environment: 'development' | 'production'
  }
  const { text: key, ...stored } = createApiKey(key_type, environment)
  const reply = await context.call('api_key_create', { project_id: context.params['projectId'], ...stored })
  return { status: reply.status, body: JSON.stringify({ data: { key, ...dataOf<object>(reply) } }) }
}

/** The new key is of the type and the environment of the one that it replaces. */
export const rotateKey = async (context: HandlerContext) => {
  const which = { project_id: context.params['projectId'], key_id: context.params['keyId'] }
  const former = dataOf<{ key_type: 'client' | 'server'; environment: 'development' | 'production' }>(
    await context.call('api_key_to_rotate', which, { readOnly: true }),
  )
  const { text: key, key_prefix, key_hash } = createApiKey(former.key_type, former.environment)
  const reply = await context.call('api_key_rotate', { ...which, ...context.body, key_prefix, key_hash })
  return { status: reply.status, body: JSON.stringify({ data: { key, ...dataOf<object>(reply) } }) }
}

/** The project from control, its integrations from its own database, once it exists. */
export const get = async (context: HandlerContext) => {
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
const before = async <T>(
  services: Pick<Services, 'log'>,
  code: string,
  message: string,
  work: () => Promise<T>,
): Promise<T> => {
  try {
    return await work()
  } catch (error) {
    services.log.error({ error: (error as Error).message }, message)
    throw refusal(502, code, message)
  }
}

/** In this order: cancel the subscription, find the files to purge, delete the project. Each step is idempotent. */
export const remove = async ({ call, params, services }: HandlerContext) => {
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
export const provisioningStatus = async ({ call, params, services }: HandlerContext) => {
  const args = { project_id: params['projectId'] }
  const reply = await call('provisioning_status', args)
  if (dataOf<{ status: string }>(reply).status === 'provisioning') return reply
  const hasChanged = await services.fleet.confirm(String(params['projectId'])).catch(() => false)
  return hasChanged ? call('provisioning_status', args) : reply
}

export const reprovision = async (context: HandlerContext) => {
  const { body, call, services } = context
  // the id as control stores it: the path may contain capitals, and the database's name is derived from it
  const id = projectIdOf(context)
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
