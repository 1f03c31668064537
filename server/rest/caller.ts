import type { FastifyRequest } from 'fastify'
import { refusal } from '#server/errors.ts'
import { appKey, appOrUser, endUser, endUserOrServer } from '#server/http/callers.ts'
import { bearer } from '#server/http/credentials.ts'
import type { CachedKey } from '#server/http/project_cache.ts'
import { addressKey } from '#server/http/rate_limiter.ts'
import { namedProject } from '#server/http/root.ts'
import { area, complete, type Resolved, route } from '#server/http/route.ts'
import type { Services } from '#server/services.ts'

const refusals = { 403: ['REST_DISABLED'], 404: ['USER_NOT_FOUND'], 413: ['PAYLOAD_TOO_LARGE'] }
const elsewhere = (file: string) => () => Promise.reject(new Error(`served by server/rest/${file}.ts`))

/**
 * What supabase-js asks for, as the program sees it: the area whose migrations a project must have, and what it may refuse. The paths below these are
 * those of PostgREST, auth-js, storage-js and realtime-js, and are served beside the declared routes.
 */
const served = complete(
  route('GET /rest/v1', 'PostgREST over the collections of a project', {
    handle: elsewhere('serve'),
    replies: {},
    failure: null,
    refusals: {
      ...refusals,
      400: ['INVALID_JSON', 'INVALID_BODY', 'INVALID_INPUT', 'RESPONSE_TOO_LARGE'],
      503: ['REST_UNAVAILABLE', 'REST_BUSY'],
    },
  }),
  endUserOrServer,
)
export const written = complete(
  route('POST /storage/v1', 'Files of a project, in the form of storage-js', {
    handle: elsewhere('storage/serve'),
    replies: {},
    failure: null,
    refusals: {
      400: ['INVALID_INPUT', 'InvalidBucketName'],
      402: ['FREE_TIER_LIMIT_REACHED'],
      403: [...refusals[403], 'AccessDenied'],
      404: [...refusals[404], 'NoSuchBucket', 'NoSuchKey', 'PROJECT_NOT_NAMED'],
      408: ['REQUEST_TIMEOUT'],
      409: ['KeyAlreadyExists', 'BucketAlreadyExists', 'ResourceNotEmpty', 'ASSET_IN_USE', 'LIMIT_REACHED'],
      413: ['EntityTooLarge'],
      415: ['InvalidMimeType'],
      503: ['UPLOAD_UNVERIFIED'],
    },
  }),
  endUserOrServer,
)
/** Its other codes are those of the routes of sign-in, which it asks. */
const signIn = complete(
  route('POST /auth/v1', 'Sign-in, in the form of auth-js', {
    handle: elsewhere('auth'),
    replies: {},
    failure: null,
    refusals: {
      400: ['INVALID_INPUT', 'weak_password', 'OAUTH_STATE_INVALID'],
      401: ['session_not_found'],
      403: refusals[403],
      404: ['PROJECT_NOT_NAMED'],
    },
  }),
  appKey,
)
const socket = complete(
  route('GET /realtime/v1/websocket', 'Channels, in the form of realtime-js', {
    handle: elsewhere('realtime'),
    replies: {},
    failure: null,
    refusals: { 400: ['INVALID_INPUT'], 403: refusals[403], 426: ['UPGRADE_REQUIRED'] },
  }),
  appKey,
)
const broadcast = complete(
  route('POST /realtime/v1/api/broadcast', 'Messages to rooms, in the form of realtime-js', {
    handle: elsewhere('broadcasts'),
    replies: {},
    failure: null,
    refusals: {
      400: ['INVALID_INPUT', 'INVALID_JSON'],
      403: [...refusals[403], 'FORBIDDEN', 'USER_MUTED'],
      404: [...refusals[404], 'NOT_FOUND'],
      413: refusals[413],
    },
  }),
  endUserOrServer,
)
export const restArea = area({
  stem: 'rest',
  title: 'supabase-js',
  unversioned: true,
  routes: [served, written, signIn, socket, broadcast],
})

/**
 * Reads the credentials of a request of supabase-js into the headers of our own routes, and refuses a project whose REST access is off. It sends the API
 * key as `apikey` and, until somebody is signed in, as the Bearer too; some clients send it as the Bearer alone. The Bearer of a signed-in user is
 * their session token. Returns what the key is, null of none.
 */
export const readCredentials = async (request: FastifyRequest, services: Services): Promise<CachedKey | null> => {
  const { headers } = request
  const key = headers['x-api-key'] ?? headers['apikey'] ?? bearer(request) ?? undefined
  headers['x-api-key'] = key
  if (headers.authorization && bearer(request) === key) delete headers.authorization
  const found = typeof key === 'string' && key.length <= 200 ? await services.projectCache.byKey(key) : null
  const named = namedProject(request.raw)
  if (found && named !== undefined && found.project.projectId !== named)
    throw refusal(401, 'UNAUTHORIZED', 'The key is of another project than the address.')
  if (found && !found.project.restEnabled) throw disabled()
  return found
}

export const disabled = () =>
  refusal(
    403,
    'REST_DISABLED',
    'The REST access of this project is off: its developer switches it on with rest_enabled.',
  )

/** So many reads without a session of one address, and of all addresses with one key: signed-in users are not among them. */
const strangersLimits = (key: CachedKey, request: FastifyRequest) => [
  { key: `stranger ${key.project.projectId} ${addressKey(request.ip)}`, perSecond: 20, burst: 60 },
  { key: `strangers ${key.keyId}`, perSecond: 200, burst: 400 },
]

export const isRead = ({ method }: FastifyRequest) => method === 'GET' || method === 'HEAD'

type CallerOptions = {
  /** Whether the request only reads. */
  readonly reads?: boolean
  /** Whether it may come without a session, where the project lets strangers read: as `app_anon`, caller `client_key`. */
  readonly takesStrangers?: boolean
}

/** The caller of a request of PostgREST: without a session a server key is itself, and a client key a stranger, or refused. */
export const callerOf = async (
  request: FastifyRequest,
  services: Services,
  { reads = isRead(request), takesStrangers = false }: CallerOptions = {},
): Promise<Resolved> => {
  const key = await readCredentials(request, services)
  const { headers } = request
  const at = { ...served, reads }
  if (headers.authorization !== undefined || headers['x-on-behalf-of'] !== undefined)
    return endUser.resolve(request, services, at)
  if (!takesStrangers || key?.keyType !== 'client' || !key.project.anonymousReads)
    return endUserOrServer.resolve(request, services, at)
  services.rateLimiter.take(strangersLimits(key, request))
  return appOrUser.resolve(request, services, at)
}
