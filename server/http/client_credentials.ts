import { hash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { Place } from '#server/database/cluster.ts'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { bearer } from '#server/http/credentials.ts'
import type { CachedKey, CachedProject, Hold } from '#server/http/project_cache.ts'
import { onlyReads, type Route } from '#server/http/route.ts'
import { uuidPattern } from '#server/http/schemas.ts'
import type { SessionClaims } from '#server/http/tokens.ts'
import type { Services } from '#server/services.ts'

export const unauthorized = (message = 'The API key or the session is missing or invalid.') =>
  refusal(401, 'UNAUTHORIZED', message)

const seconds = (services: Pick<Services, 'now'>) => services.now().getTime() / 1000

export const keyOf = async (request: FastifyRequest, services: Pick<Services, 'projectCache'>): Promise<CachedKey> => {
  const given = request.headers['x-api-key']
  if (typeof given !== 'string' || given.length > 200) throw unauthorized('The X-Api-Key header is missing.')
  const found = await services.projectCache.byKey(given)
  if (!found) throw unauthorized('The API key is invalid or was deactivated.')
  return found
}

const heldBack: Readonly<Record<Hold, readonly [message: string, retryAfter: string]>> = {
  paused: ['This project is paused by the operator of the service.', '60'],
  moving: ['This project moves to another server: try again in a moment.', '1'],
}

/** Why a project that has no place here is not served; `details.reason` names it. */
export const unserved = ({ hold }: CachedProject, status: 502 | 503 = 503) => {
  if (!hold)
    return refusal(
      status,
      'TENANT_UNAVAILABLE',
      'The database of this project is being created: try again later.',
      null,
      { 'Retry-After': '2' },
    )
  const [message, retryAfter] = heldBack[hold]
  return refusal(status, 'TENANT_UNAVAILABLE', message, { reason: hold }, { 'Retry-After': retryAfter })
}

/** The project's database; until it is ready the response is 503 (502 if the area declares so). */
export const tenantPlace = (
  services: Pick<Services, 'areaOf' | 'checkMigrated'>,
  project: CachedProject,
  route: Route,
) => {
  if (!project.place) throw unserved(project, services.areaOf(route).unavailable)
  services.checkMigrated(project, route)
  return project.place
}

const sessionOf = async (
  request: FastifyRequest,
  services: Pick<Services, 'now' | 'sessions' | 'tokens'>,
  project: CachedProject,
): Promise<SessionClaims> => {
  const token = bearer(request)
  // SDKs made for other backends send the API key as the Bearer when nobody is signed in
  if (!token || token.length > 4096 || token === request.headers['x-api-key']) throw unauthorized('Sign in first.')
  const key = hash('sha256', token, 'base64')
  const known = services.sessions.signatures.peek(key)
  if (!known) {
    const verified = await services.tokens.verifySession(project, token)
    if (verified.kind === 'expired') throw refusal(401, 'TOKEN_EXPIRED', 'The session token has expired: refresh it.')
    if (verified.kind === 'invalid') throw unauthorized('The session token is invalid.')
    services.sessions.signatures.set(key, { ...verified.claims, projectId: project.projectId })
  }
  const claims = known ?? services.sessions.signatures.peek(key)
  if (!claims || claims.projectId !== project.projectId)
    throw unauthorized('The session token belongs to another project.')
  if (claims.expiresAt <= seconds(services))
    throw refusal(401, 'TOKEN_EXPIRED', 'The session token has expired: refresh it.')
  return claims
}

/** The claims of a session that is live, and the place of its project: queried at most every 30 seconds. */
export const liveSession = async (
  request: FastifyRequest,
  services: Pick<Services, 'areaOf' | 'checkMigrated' | 'database' | 'now' | 'sessions' | 'tokens'>,
  project: CachedProject,
  route: Route,
): Promise<{ readonly claims: SessionClaims; readonly place: Place }> => {
  const claims = await sessionOf(request, services, project)
  const place = tenantPlace(services, project, route)
  const testsSince = project.developmentSince
  const key = `${project.projectId} ${claims.sid}`
  const load = async () => {
    const reply = await services.database.call(
      place,
      'app_auth',
      { caller: 'edge', projectId: project.projectId },
      'auth_session',
      { sid: claims.sid, tests_since: testsSince },
    )
    return dataOf<{ is_live: boolean }>(reply).is_live ? { ...claims, projectId: project.projectId, testsSince } : null
  }
  const known = await services.sessions.users.get(key, load)
  const isOfNow = known === null || known.testsSince === testsSince
  // looked up before the project left development, or came back: a session for tests has ended since
  if (!isOfNow) services.sessions.users.drop(key)
  const live = isOfNow ? known : await load()
  if (!live) throw unauthorized('The session has ended: sign in again.')
  return { claims, place }
}

/** With a server key the header X-On-Behalf-Of names the user; a Bearer beside it could name another one. */
export const refuseBearer = (request: FastifyRequest): void => {
  if (!request.headers.authorization || bearer(request) === request.headers['x-api-key']) return
  throw refusal(
    400,
    'INVALID_INPUT',
    'With a server key X-On-Behalf-Of names the user: do not send a Bearer token too.',
    {
      field: 'Authorization',
      reason: 'must not be sent with X-On-Behalf-Of',
    },
  )
}

/** The user whom a server key names, and the place of the project. */
export const onBehalfOf = async (
  request: FastifyRequest,
  services: Pick<Services, 'areaOf' | 'checkMigrated' | 'database' | 'sessions'>,
  project: CachedProject,
  route: Route,
): Promise<{ readonly userId: string; readonly place: Place }> => {
  const userId = request.headers['x-on-behalf-of']
  refuseBearer(request)
  const unknown = () => refusal(404, 'USER_NOT_FOUND', 'There is no such user.')
  if (typeof userId !== 'string' || !uuidPattern.test(userId)) throw unknown()
  const place = tenantPlace(services, project, route)
  const found = await services.sessions.onBehalf.get(`${project.projectId} ${userId.toLowerCase()}`, async () => {
    const reply = await services.database.call(
      place,
      'app_server',
      { caller: 'edge', projectId: project.projectId },
      'user_exists',
      {
        user_id: userId,
      },
    )
    const { exists, is_banned: isBanned } = dataOf<{ exists: boolean; is_banned: boolean }>(reply)
    return exists ? { userId: userId.toLowerCase(), isBanned } : null
  })
  if (!found) throw unknown()
  // a session ends with the ban, also for reading; what a server key shows on behalf of the user is the app's decision
  if (found.isBanned && !onlyReads(route)) throw refusal(403, 'USER_BANNED', 'This user is banned.')
  return { userId: found.userId, place }
}
