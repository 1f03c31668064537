import type { FastifyRequest } from 'fastify'
import { refusal } from '#server/errors.ts'
import { endUser, endUserOrServer } from '#server/http/callers.ts'
import { bearer } from '#server/http/credentials.ts'
import { area, type Resolved, route } from '#server/http/route.ts'
import type { Services } from '#server/services.ts'

/**
 * What `{root_url}/rest/v1` is to the program: the area whose migrations a project must have. Its paths are PostgREST's, and served by
 * server/rest/serve.ts.
 */
const served = route('GET /rest/v1', {
  caller: endUserOrServer,
  summary: 'PostgREST over the collections of a project',
  handle: () => Promise.reject(new Error('served by server/rest/serve.ts')),
  replies: {},
})
/** The same for what writes by itself. */
export const written = route('POST /rest/v1', {
  caller: endUserOrServer,
  summary: 'Files of a project, in the form of storage-js',
  handle: () => Promise.reject(new Error('served by server/rest/storage.ts')),
  replies: {},
})
export const door = area({
  stem: 'rest',
  title: 'REST door',
  source: 'supplement',
  unversioned: true,
  routes: [served, written],
})

/**
 * Reads the credentials of a request of supabase-js into the headers of our own routes, and refuses a project whose door is off. It sends the API
 * key as `apikey` and, until somebody is signed in, as the Bearer too; some clients send it as the Bearer alone. The Bearer of a signed-in user is
 * their session token.
 */
export const readCredentials = async (request: FastifyRequest, services: Services): Promise<void> => {
  const { headers } = request
  const key = headers['x-api-key'] ?? headers['apikey'] ?? bearer(request) ?? undefined
  headers['x-api-key'] = key
  if (headers.authorization && bearer(request) === key) delete headers.authorization
  const found = typeof key === 'string' && key.length <= 200 ? await services.projectCache.byKey(key) : null
  if (found && !found.project.restEnabled) throw disabled()
}

export const disabled = () =>
  refusal(403, 'REST_DISABLED', 'The REST door of this project is off: its developer switches it on with rest_enabled.')

/** The caller of a request of PostgREST: without a session a server key is itself, and a client key nobody. */
export const callerOf = async (request: FastifyRequest, services: Services): Promise<Resolved> => {
  await readCredentials(request, services)
  const { headers } = request
  return headers.authorization === undefined && headers['x-on-behalf-of'] === undefined
    ? endUserOrServer.resolve(request, services, served)
    : endUser.resolve(request, services, served)
}
