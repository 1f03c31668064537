import type { FastifyRequest } from 'fastify'
import { refusal } from '#server/errors.ts'
import {
  keyOf,
  liveSession,
  onBehalfOf,
  refuseBearer,
  tenantPlace,
  unauthorized,
} from '#server/http/client_credentials.ts'
import {
  accountOf,
  actorOf,
  bearer,
  memberOf,
  originOf,
  ownedProject,
  serviceAccountOf,
} from '#server/http/credentials.ts'
import type { CachedKey, CachedProject } from '#server/http/project_cache.ts'
import type { Caller, Resolved } from '#server/http/route.ts'
import type { DeveloperCredential } from '#server/http/sessions.ts'

export { tenantPlace }

const apiKey = { ApiKey: [] }
const session = { ApiKey: [], Session: [] }
const keyRefusals = {
  401: ['UNAUTHORIZED'],
  429: ['RATE_LIMITED'],
  503: ['TENANT_UNAVAILABLE', 'TENANT_MIGRATION_PENDING', 'SERVICE_UNAVAILABLE'],
}
const developerRefusals = { 401: ['INVALID_DEVELOPER_TOKEN'] }

/** An anonymous caller: sign-up, sign-in and other routes without a credential. */
export const anyone: Caller = {
  name: 'anyone',
  reaches: { kind: 'control', roles: ['control_auth'] },
  security: [],
  refusals: { 503: ['SERVICE_UNAVAILABLE'] },
  resolve: async (request, services) => ({
    place: services.control,
    role: 'control_auth',
    claims: { caller: 'sign_in', actor: JSON.stringify(originOf(request)) },
    project: null,
  }),
}

const developerClaims = (
  request: FastifyRequest,
  held: DeveloperCredential,
  project: CachedProject | null,
  organizationId: string | null = null,
) => ({
  caller: 'developer',
  developerId: held.developerId,
  sessionId: held.sid,
  actor: actorOf(request, held, project, organizationId),
  ...(project ? { projectId: project.projectId } : {}),
})

/** A developer, by session or personal access token, for routes of the account itself. */
export const developer: Caller = {
  name: 'developer',
  reaches: { kind: 'control', roles: ['control_developer'] },
  security: [{ Developer: [] }],
  refusals: { ...developerRefusals, 503: ['SERVICE_UNAVAILABLE'] },
  takesTokens: true,
  async resolve(request, services, route) {
    const held = await accountOf(request, services, route)
    return {
      place: services.control,
      role: 'control_developer',
      claims: developerClaims(request, held, null),
      project: null,
      developer: held,
    }
  },
}

/** Who makes operator tokens: a developer by session, or a service account by its key, which opens nothing else. */
export const delegator: Caller = {
  ...developer,
  name: 'delegator',
  security: [{ Developer: [] }, { ServiceAccount: [] }],
  async resolve(request, services, route) {
    const account = await serviceAccountOf(request, services)
    if (!account) return developer.resolve(request, services, route)
    const actor = { type: 'service_account', id: account.id, label: account.name, ...originOf(request) }
    return {
      place: services.control,
      role: 'control_developer',
      claims: { caller: 'developer', actor: JSON.stringify(actor) },
      project: null,
    }
  },
}

const ownerRefusals = { ...developerRefusals, 403: ['PROJECT_FORBIDDEN'], 404: ['NOT_FOUND'] }

/** A member of an organization, for its records. */
export const organizationMember: Caller = {
  name: 'organizationMember',
  reaches: { kind: 'control', roles: ['control_developer'] },
  security: [{ Developer: [] }],
  refusals: { ...developerRefusals, 404: ['NOT_FOUND'], 503: ['SERVICE_UNAVAILABLE'] },
  takesTokens: true,
  guards: 'organization',
  async resolve(request, services, route) {
    const { held, organizationId } = await memberOf(request, services, route)
    return {
      place: services.control,
      role: 'control_developer',
      claims: developerClaims(request, held, null, organizationId),
      project: null,
      developer: held,
    }
  },
}

/** A member of the project's organization, for the project's records in control. */
export const projectOwner: Caller = {
  name: 'projectOwner',
  guards: 'project',
  reaches: { kind: 'control', roles: ['control_developer'] },
  security: [{ Developer: [] }],
  refusals: { ...ownerRefusals, 503: ['SERVICE_UNAVAILABLE'] },
  takesTokens: true,
  async resolve(request, services, route) {
    const { held, project } = await ownedProject(request, services, route)
    const claims = developerClaims(request, held, project)
    return { place: services.control, role: 'control_developer', claims, project, developer: held }
  },
}

/** A member of the project's organization, acting in the project's own database. */
export const administrator: Caller = {
  name: 'administrator',
  guards: 'project',
  reaches: { kind: 'tenant', roles: ['app_admin'] },
  security: [{ Developer: [] }],
  refusals: { ...ownerRefusals, 503: ['SERVICE_UNAVAILABLE', 'TENANT_UNAVAILABLE', 'TENANT_MIGRATION_PENDING'] },
  takesTokens: true,
  async resolve(request, services, route) {
    const { held, project } = await ownedProject(request, services, route)
    return {
      place: tenantPlace(services, project, route),
      role: 'app_admin',
      claims: developerClaims(request, held, project),
      project,
      developer: held,
    }
  },
}

/** The project's owner, reading the project's own database with queries of their own. */
export const dashboard: Caller = {
  ...administrator,
  name: 'dashboard',
  reaches: { kind: 'tenant', roles: ['app_dashboard'] },
  resolve: async (request, services, route) => ({
    ...(await administrator.resolve(request, services, route)),
    role: 'app_dashboard',
  }),
}

/** A request with an API key, which is resolved once for each request. */
type Keyed = CachedKey & {
  readonly request: FastifyRequest
  readonly services: Parameters<Caller['resolve']>[1]
  readonly route: Parameters<Caller['resolve']>[2]
}

const byKey =
  (resolve: (keyed: Keyed) => Promise<Resolved> | Resolved): Caller['resolve'] =>
  async (request, services, route) =>
    resolve({ ...(await keyOf(request, services)), request, services, route })

const namesUser = ({ keyType, request }: Keyed): boolean =>
  keyType === 'server' && request.headers['x-on-behalf-of'] !== undefined

const asNobody = (
  { services, project, route }: Keyed,
  role: 'app_anon' | 'app_auth' | 'app_server',
  caller: string,
): Resolved => ({
  place: tenantPlace(services, project, route),
  role,
  claims: { caller, projectId: project.projectId },
  project,
})

const asSession = async ({ request, services, project, route }: Keyed): Promise<Resolved> => {
  const { claims, place } = await liveSession(request, services, project, route)
  const { userId, sid: sessionId } = claims
  return {
    place,
    role: 'app_user',
    claims: { caller: 'user', userId, sessionId, projectId: project.projectId },
    project,
  }
}

const asNamedUser = async ({ request, services, project, route }: Keyed): Promise<Resolved> => {
  const { userId, place } = await onBehalfOf(request, services, project, route)
  return {
    place,
    role: 'app_user',
    claims: { caller: 'server_key_user', userId, projectId: project.projectId },
    project,
  }
}

const asEndUser = (keyed: Keyed) => (namesUser(keyed) ? asNamedUser(keyed) : asSession(keyed))

const asServersUser = (keyed: Keyed) => {
  if (keyed.keyType !== 'server') throw refusal(403, 'SERVER_KEY_REQUIRED', 'Only a server key may do this.')
  if (!namesUser(keyed)) throw unauthorized('X-On-Behalf-Of must name the user.')
  return asNamedUser(keyed)
}

/** An app in which nobody is signed in: any API key of the project. */
export const appKey: Caller = {
  name: 'appKey',
  reaches: { kind: 'tenant', roles: ['app_auth'] },
  security: [apiKey],
  refusals: keyRefusals,
  resolve: byKey((keyed) => asNobody(keyed, 'app_auth', 'sign_in')),
}

/** A signed-in end user, or a server key on behalf of one. */
export const endUser: Caller = {
  name: 'endUser',
  reaches: { kind: 'tenant', roles: ['app_user'] },
  security: [session, { ApiKey: [], OnBehalfOf: [] }],
  refusals: { ...keyRefusals, 400: ['INVALID_INPUT'], 401: ['UNAUTHORIZED', 'TOKEN_EXPIRED'], 404: ['USER_NOT_FOUND'] },
  resolve: byKey(asEndUser),
}

/** Any API key of the project, with its user, where there is one: for responses that are the same for everybody until they sign in. */
export const appOrUser: Caller = {
  ...endUser,
  name: 'appOrUser',
  reaches: { kind: 'tenant', roles: ['app_anon', 'app_user'] },
  security: [apiKey, session, { ApiKey: [], OnBehalfOf: [] }],
  resolve: byKey((keyed) => {
    const { keyType, request } = keyed
    const { authorization } = request.headers
    if (namesUser(keyed) || (authorization && bearer(request) !== request.headers['x-api-key'])) return asEndUser(keyed)
    return asNobody(keyed, 'app_anon', keyType === 'server' ? 'server_key' : 'client_key')
  }),
}

/** A signed-in end user with their own session: a server key cannot act for them here. */
export const sessionUser: Caller = {
  name: 'sessionUser',
  reaches: { kind: 'tenant', roles: ['app_user'] },
  security: [session],
  refusals: {
    ...keyRefusals,
    400: ['INVALID_INPUT'],
    401: ['UNAUTHORIZED', 'TOKEN_EXPIRED'],
    403: ['SESSION_REQUIRED'],
  },
  resolve: byKey((keyed) => {
    if (!namesUser(keyed)) return asSession(keyed)
    refuseBearer(keyed.request)
    throw refusal(403, 'SESSION_REQUIRED', "This needs the user's own session: a server key cannot do it for them.")
  }),
}

/** A signed-in end user, or a server key with or without a user. */
export const endUserOrServer: Caller = {
  ...endUser,
  name: 'endUserOrServer',
  reaches: { kind: 'tenant', roles: ['app_user', 'app_server'] },
  security: [session, { ApiKey: [], OnBehalfOf: [] }, apiKey],
  resolve: byKey((keyed) => {
    const isServer = keyed.keyType === 'server' && !namesUser(keyed) && !keyed.request.headers.authorization
    return isServer ? asNobody(keyed, 'app_server', 'server_key') : asEndUser(keyed)
  }),
}

/** Server keys only, on behalf of a user. A client key is refused, with or without a session. */
export const serverForUser: Caller = {
  name: 'serverForUser',
  reaches: { kind: 'tenant', roles: ['app_user'] },
  security: [{ ApiKey: [], OnBehalfOf: [] }],
  refusals: { ...keyRefusals, 400: ['INVALID_INPUT'], 403: ['SERVER_KEY_REQUIRED'], 404: ['USER_NOT_FOUND'] },
  resolve: byKey(asServersUser),
}

/** Like the previous one, with or without a user. */
export const serverAlone: Caller = {
  ...serverForUser,
  name: 'serverAlone',
  reaches: { kind: 'tenant', roles: ['app_user', 'app_server'] },
  security: [{ ApiKey: [], OnBehalfOf: [] }, apiKey],
  resolve: byKey((keyed) =>
    keyed.keyType === 'server' && !namesUser(keyed)
      ? asNobody(keyed, 'app_server', 'server_key')
      : asServersUser(keyed),
  ),
}
