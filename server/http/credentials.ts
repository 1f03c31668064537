import { hash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import type { CachedProject } from '#server/http/project_cache.ts'
import { checkRank, type OrganizationRole } from '#server/http/ranks.ts'
import type { Route } from '#server/http/route.ts'
import { uuidPattern } from '#server/http/schemas.ts'
import { allows, isDelegable, scopeNeeded } from '#server/http/scopes.ts'
import type { DeveloperCredential, HeldToken, Roles, ServiceAccount } from '#server/http/sessions.ts'
import { operatorTokenBeginning, serviceKeyBeginning, tokenBeginning } from '#server/http/tokens.ts'
import { sha256 } from '#server/secrets.ts'
import type { Services } from '#server/services.ts'

export const bearer = (request: FastifyRequest): string | null => {
  const header = request.headers.authorization
  if (!header) return null
  return /^Bearer +([^\s]+) *$/i.exec(header)?.[1] ?? ''
}

type Control = Pick<Services, 'control' | 'database'>
type Sessions = Control & Pick<Services, 'now' | 'sessions' | 'tokens'>

const ask = async <T>(services: Control, name: string, args: Record<string, string>) =>
  dataOf<T>(await services.database.call(services.control, 'control_auth', { caller: 'edge' }, name, args))

const sessionOf = async (
  services: Control & Pick<Services, 'tokens'>,
  text: string,
): Promise<DeveloperCredential | null> => {
  const verified = await services.tokens.verifyDeveloperAccess(text)
  if (verified.kind !== 'valid' || !uuidPattern.test(verified.claims.sid)) return null
  const { sid } = verified.claims
  const { is_live, roles } = await ask<{ is_live: boolean; roles: Roles }>(services, 'developer_session_check', { sid })
  return is_live ? { ...verified.claims, token: null, roles } : null
}

/** The session of an access token that a request sends although it needs none. The caller checks whether that session is live. */
export const sessionHeld = async (
  request: FastifyRequest,
  services: Pick<Services, 'tokens'>,
): Promise<string | null> => {
  const text = bearer(request)
  if (!text || text.length > 4096) return null
  const verified = await services.tokens.verifyDeveloperAccess(text)
  return verified.kind === 'valid' && uuidPattern.test(verified.claims.sid) ? verified.claims.sid : null
}

type TokenRow = {
  token_id: string
  developer_id: string
  name: string
  scopes: string[]
  project_ids: string[] | null
  expires_at: number | null
  roles: Roles
}

const tokenOf = async (services: Control, text: string): Promise<DeveloperCredential | null> => {
  const row = await ask<TokenRow | null>(services, 'token_check', { token_hash: sha256(text) })
  if (!row) return null
  const { token_id: id, name, scopes, project_ids: projectIds } = row
  return {
    developerId: row.developer_id,
    sid: null,
    token: { id, name, scopes, projectIds },
    expiresAt: row.expires_at,
    roles: row.roles,
  }
}

type OperatorRow = {
  id: string
  organization_id: string
  service_account_id: string | null
  developer_id: string | null
  scopes: string[]
  role: OrganizationRole
  project_ids: string[] | null
  label: string | null
  expires_at: number
}

const operatorOf = async (services: Control, text: string): Promise<DeveloperCredential | null> => {
  const row = await ask<OperatorRow | null>(services, 'operator_token_check', { token_hash: sha256(text) })
  if (!row) return null
  return {
    developerId: row.id,
    sid: null,
    token: { id: row.id, name: row.label ?? '', scopes: row.scopes, projectIds: row.project_ids },
    operator: {
      organizationId: row.organization_id,
      serviceAccountId: row.service_account_id,
      developerId: row.developer_id,
    },
    expiresAt: row.expires_at,
    roles: { [row.organization_id]: row.role },
  }
}

const loaderOf = (text: string) => {
  if (text.startsWith(tokenBeginning)) return tokenOf
  return text.startsWith(operatorTokenBeginning) ? operatorOf : sessionOf
}

const invalidToken = () =>
  refusal(401, 'INVALID_DEVELOPER_TOKEN', 'The developer token is missing, expired or invalid.')

/** The service account whose key a request presents; null for any other Bearer. */
export const serviceAccountOf = async (
  request: FastifyRequest,
  services: Control & Pick<Services, 'sessions'>,
): Promise<ServiceAccount | null> => {
  const text = bearer(request)
  if (!text?.startsWith(serviceKeyBeginning) || text.length > 4096) return null
  const load = () => ask<ServiceAccount | null>(services, 'service_account_check', { key_hash: sha256(text) })
  const account = await services.sessions.serviceAccounts.get(hash('sha256', text, 'base64'), load)
  if (!account) throw invalidToken()
  return account
}

const developerOf = async (request: FastifyRequest, services: Sessions): Promise<DeveloperCredential> => {
  const text = bearer(request)
  if (!text || text.length > 4096) throw invalidToken()
  const load = loaderOf(text)
  const held = await services.sessions.developers.get(hash('sha256', text, 'base64'), () => load(services, text))
  if (!held || (held.expiresAt !== null && held.expiresAt <= services.now().getTime() / 1000)) throw invalidToken()
  return held
}

const checkToken = (
  token: HeldToken,
  request: FastifyRequest,
  services: Pick<Services, 'areaOf'>,
  route: Route,
): void => {
  if (route.sessionOnly) throw sessionRequired()
  const needed = scopeNeeded(services.areaOf(route), route, request)
  if (needed !== null && !allows(token.scopes, needed)) {
    throw refusal(403, 'SCOPE_REQUIRED', `This token lacks the scope ${needed}.`, { required: needed })
  }
}

const delegationNotAllowed = () =>
  refusal(
    403,
    'DELEGATION_NOT_ALLOWED',
    'This is never delegated: an operator token cannot do it, whatever its scopes are.',
  )

export const sessionRequired = () =>
  refusal(403, 'SESSION_REQUIRED', 'A personal access token cannot do this: sign in and use the access token.')

export const projectForbidden = (message = 'You are not a member of the organization that this project belongs to.') =>
  refusal(403, 'PROJECT_FORBIDDEN', message)

/** The caller of a route of the account itself. A token that is limited to projects cannot change anything there. */
export const accountOf = async (
  request: FastifyRequest,
  services: Sessions & Pick<Services, 'areaOf'>,
  route: Route,
) => {
  const held = await developerOf(request, services)
  if (held.operator) throw delegationNotAllowed()
  if (!held.token) return held
  checkToken(held.token, request, services, route)
  const needed = scopeNeeded(services.areaOf(route), route, request)
  if (held.token.projectIds && needed?.endsWith(':write')) {
    throw projectForbidden('This token is limited to some projects and cannot change anything outside of them.')
  }
  return held
}

/** The caller of a route of a project, and the project, in whose organization they must have the role that the route needs. */
export const ownedProject = async (
  request: FastifyRequest,
  services: Sessions & Pick<Services, 'areaOf' | 'projectCache'>,
  route: Route,
) => {
  const held = await developerOf(request, services)
  if (held.operator && !isDelegable(services.areaOf(route), route)) throw delegationNotAllowed()
  const { projectId = '' } = request.params as { projectId?: string }
  const project = uuidPattern.test(projectId) ? await services.projectCache.byProject(projectId.toLowerCase()) : null
  if (!project) throw refusal(404, 'NOT_FOUND', 'There is no such project.')
  const role = held.roles[project.organizationId]
  if (!role) throw projectForbidden()
  if (held.token?.projectIds && !held.token.projectIds.includes(project.projectId)) {
    throw projectForbidden('This token is limited to other projects.')
  }
  if (held.token) checkToken(held.token, request, services, route)
  checkRank(services.areaOf(route), route, role)
  return { held, project }
}

/** The caller of a route of an organization, of which they must be a member of the role that the route needs. */
export const memberOf = async (
  request: FastifyRequest,
  services: Sessions & Pick<Services, 'areaOf'>,
  route: Route,
) => {
  const held = await accountOf(request, services, route)
  const { orgId = '' } = request.params as { orgId?: string }
  const organizationId = orgId.toLowerCase()
  const role = Object.hasOwn(held.roles, organizationId) ? held.roles[organizationId] : undefined
  if (!uuidPattern.test(orgId)) {
    const details = { field: 'orgId', reason: 'must be a uuid' }
    throw refusal(400, 'INVALID_ID', 'orgId: must be a uuid', details)
  }
  if (!role) throw refusal(404, 'NOT_FOUND', 'There is no such organization.')
  // members, invites and the trail name people and projects that are none of its business
  if (held.token?.projectIds)
    throw projectForbidden('This token is limited to some projects and reads no records of an organization.')
  checkRank(services.areaOf(route), route, role)
  return { held, organizationId }
}

/** The origin of a request, for the audit trail. */
export const originOf = (request: FastifyRequest) => ({
  ip: request.ip,
  user_agent: request.headers['user-agent']?.slice(0, 500) ?? null,
  request_id: request.id,
})

/**
 * The actor of a request, for the audit trail. The policy that restricts a limited token to its projects reads project_ids; the trail of a call for an
 * organization is that of organization_id.
 */
export const actorOf = (
  request: FastifyRequest,
  { developerId, token, operator, roles }: DeveloperCredential,
  project: CachedProject | null,
  organizationId: string | null = null,
) => {
  if (operator && token) {
    const { organizationId: home } = operator
    const name = { type: 'operator_token', id: token.id, label: token.name || null }
    return JSON.stringify({ ...name, home, role: roles[home], project_ids: [project?.projectId], ...originOf(request) })
  }
  return JSON.stringify({
    ...(token
      ? { type: 'pat', id: token.id, label: token.name, ...(token.projectIds ? { project_ids: token.projectIds } : {}) }
      : { type: 'developer', id: developerId, label: null }),
    ...(organizationId ? { organization_id: organizationId } : {}),
    ...originOf(request),
  })
}
