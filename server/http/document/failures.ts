import { declaredCodes } from '#server/http/document/codes.ts'
import type { Area, Route } from '#server/http/route.ts'

type Codes = Readonly<Record<number, readonly string[]>>

/** Refusals that any operation may answer. */
const ofAll: Codes = {
  400: ['INVALID_BODY', 'INVALID_ID', 'INVALID_INPUT', 'VALIDATION_ERROR'],
  413: ['PAYLOAD_TOO_LARGE'],
  415: ['UNSUPPORTED_MEDIA_TYPE'],
  429: ['RATE_LIMITED'],
  502: ['TENANT_UNAVAILABLE'],
  503: ['SERVICE_UNAVAILABLE', 'TENANT_MIGRATION_PENDING', 'TENANT_UNAVAILABLE'],
}

type Kind = 'Failure' | 'ClientFailure' | 'PublicFailure'

/** In addition, what follows from the credential: that of a developer, of an app or its user, and none. */
const ofKind: Readonly<Record<Kind, Codes>> = {
  Failure: {
    401: ['INVALID_DEVELOPER_TOKEN'],
    403: ['DELEGATION_NOT_ALLOWED', 'PROJECT_FORBIDDEN', 'ROLE_FORBIDDEN', 'SCOPE_REQUIRED', 'SESSION_REQUIRED'],
  },
  ClientFailure: { 401: ['TOKEN_EXPIRED', 'UNAUTHORIZED'] },
  PublicFailure: {},
}

/** What decides between codes of one status. */
const because: Readonly<Record<string, string>> = {
  INVALID_BODY: 'the request is malformed',
  DELEGATION_NOT_ALLOWED: 'see `x-scope`, `x-role` and `x-delegable` of the operation',
  TENANT_UNAVAILABLE: 'users administration only',
}

const kindOf = (route: Route): Kind => {
  const schemes = route.caller.security.flatMap((way) => Object.keys(way))
  if (schemes.includes('Developer')) return 'Failure'
  return schemes.length > 0 ? 'ClientFailure' : 'PublicFailure'
}

const codesOf = (kind: Kind): Codes => ({ ...ofAll, ...ofKind[kind] })

/** The codes of a route by status, sorted, without the statuses that the document tells once for all operations of a kind. */
export const specificCodes = (area: Area, route: Route): [number, string[]][] => {
  const general = codesOf(kindOf(route))
  const all = [...declaredCodes(area, route)]
    .filter(([status]) => status !== 500)
    .sort(([a], [b]) => a - b)
    .map(([status, codes]): [number, string[]] => [status, [...codes].sort()])
  const own = all.filter(([status, codes]) => codes.some((code) => !general[status]?.includes(code)))
  if (
    [...own.map(([status]) => status), ...Object.keys(route.replies).map(Number)].some((status) => isOfCaller(status))
  )
    return own
  // readers of the document expect at least one refusal: the first that says most
  const first =
    all.find(([status]) => isOfCaller(status) && !(status in ofAll)) ?? all.find(([status]) => isOfCaller(status))
  return first ? [...own, first].sort(([a], [b]) => a - b) : own
}

const isOfCaller = (status: number) => status >= 400 && status < 500

export const codesText = (codes: readonly string[]) => codes.map((code) => `\`${code}\``).join(', ')

const retryAfter = { description: 'With 429 and 503: seconds to wait', schema: { type: 'integer' } }

/** A response to which operations refer as `default`. Its codes are told as text and, for programs, by status. */
const failure = (kind: Kind) => {
  const codes = codesOf(kind)
  const told = Object.entries(codes).map(([status, names]) => {
    const reason = because[names[0] ?? '']
    return `${status} ${codesText(names)}${reason ? ` (${reason})` : ''}`
  })
  return {
    description: `What any such operation may answer: ${told.join('; ')}; 500 with a code such as \`FETCH_FAILED\``,
    headers: { 'Retry-After': retryAfter },
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
    'x-codes': codes,
  }
}

export const failures: Readonly<Record<Kind, object>> = {
  Failure: failure('Failure'),
  ClientFailure: failure('ClientFailure'),
  PublicFailure: failure('PublicFailure'),
}

/** The reference to the response with which a route fails in ways that say nothing about the route. */
export const failureOf = (route: Route) => ({ $ref: `#/components/responses/${kindOf(route)}` })
