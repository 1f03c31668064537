import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Claims } from '#server/database/call.ts'
import type { Place, Role } from '#server/database/cluster.ts'
import type { CallSettings, Lines, Reply } from '#server/database/database.ts'
import type { Arguments } from '#server/database/statements.ts'
import { mergeRefusals, refusalsOf } from '#server/http/interface.ts'
import type { CachedProject } from '#server/http/project_cache.ts'
import type { OrganizationRole } from '#server/http/ranks.ts'
import { Uuid } from '#server/http/schemas.ts'
import type { DeveloperCredential } from '#server/http/sessions.ts'
import type { Dictionary, Form } from '#server/http/words.ts'
import type { Services } from '#server/services.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type Shape = Readonly<Record<string, z.ZodType>>

/** The resolved caller of a request, and the target of its call. */
export type Resolved = {
  readonly place: Place
  readonly role: Role
  readonly claims: Omit<Claims, 'role'>
  readonly project: CachedProject | null
  /** The developer's credential, if the caller is a developer. */
  readonly developer?: DeveloperCredential
}

/** A kind of caller: how its credentials are read, how the document describes them, and its refusals. */
export type Caller = {
  readonly name: string
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly refusals: Readonly<Record<number, readonly string[]>>
  /** The databases and roles of its calls: the possible results of `resolve`. */
  readonly reaches: { readonly kind: Place['kind']; readonly roles: readonly Role[] }
  /** Whether the credential is a developer's Bearer, which may be a personal access token. */
  readonly takesTokens?: boolean
  /** Whether the route is one of a project or an organization, so that the caller's role in the organization decides. */
  readonly guards?: 'project' | 'organization'
  readonly resolve: (request: FastifyRequest, services: Services, route: Route) => Promise<Resolved>
}

/** Exact limits, counted in the database: one attempt against all of these, or against none. */
export type Limit = { readonly key: string; readonly max: number; readonly seconds: number }

/** The response of a route: an envelope as text or bytes, or a stream made by `streamRows` of server/http/stream.ts. */
export type Answer = {
  readonly status: number
  readonly body: string | Buffer | Readable
  readonly headers?: Record<string, string> | null
  /** With 101: takes the connection over. */
  readonly takeOver?: () => void
}

export type Input = {
  readonly params: Record<string, unknown>
  readonly query: Record<string, unknown>
  readonly body: Record<string, unknown>
  /** The body as the caller sent it, before its schema: with unknown keys and without defaults. */
  readonly sent: unknown
  /** The JSON text of the body; empty without one. */
  readonly text: string
}

/** What is done with every answer of a database, whoever asked. */
export type Accounted = Pick<Reply, 'milliseconds' | 'dueAt' | 'changed'>

export type HandlerContext = Input & {
  readonly request: FastifyRequest
  readonly services: Services
  readonly resolved: Resolved
  /** The route that was asked for: a handler resolves another caller by it. */
  readonly route: Route
  /** The route's call as this caller, or another function of the same database; `as` acts as the user named in the body. */
  readonly call: (
    name: string,
    args: Arguments,
    settings?: CallSettings & { role?: Role; as?: Resolved },
  ) => Promise<Reply>
  /** A batch of an export as this caller: the lines of a function that returns `api.lines`, passed on without parsing. */
  readonly lines: (name: string, args: Arguments) => Promise<Lines>
  /** Another call of the same database as this caller, with the settings of the route's: its time is counted, and what it changed is told. */
  readonly accounted: <T extends Accounted>(call: (settings: CallSettings) => Promise<T>) => Promise<T>
}

/** One of the five routes of an entity that developers define, see server/http/definitions.ts. */
export type OfDefinition = { readonly kind: string; readonly verb: 'create' | 'list' | 'get' | 'update' | 'delete' }

export type Declaration = {
  readonly caller: Caller
  /** What a client does with it, a line of the document. */
  readonly summary: string
  /** The name of its operation in the document, where the rule of server/http/document/operation_ids.ts makes an awkward one. */
  readonly operationId?: string
  readonly description?: string
  /** The parameters of the path that are neither a text nor, where the name ends in Id or is `id`, a uuid. */
  readonly params?: Shape
  readonly query?: Shape
  readonly headers?: Shape
  /** Schema of the JSON body; a route without one accepts none, or ignores it. */
  readonly body?: z.ZodType
  /** An empty body is refused, even if the schema accepts `{}`. */
  readonly needsBody?: boolean
  /** The call takes the text of the body, a JSON object, which is validated as JSON but not parsed. */
  readonly takesText?: boolean
  /**
   * U+0000 and halves of surrogate pairs in texts of the body are removed, not refused: what crashed must not be lost. A text stands in their place, so that
   * a handler finds which part of the body had them.
   */
  readonly cleansText?: string | true
  /**
   * Content types of a file that is sent instead of JSON. The handler gets CSV, NDJSON and gzip as the stream `request.body`, and limits its size; other
   * types as bytes.
   */
  readonly uploads?: readonly string[]
  /** Words for the fields of the body, where they are not those of the area. */
  readonly words?: Dictionary
  /** The fields of the body with their words, in the sections and the order of a form. */
  readonly form?: Form
  /** The kind of definitions whose columns have the defaults of the body, where the route is not one of `definitions`. */
  readonly defaultsOf?: string
  /** Shown in the document instead of `body` when SQL validates the items individually. */
  readonly documentedBody?: z.ZodType
  /** A valid body, shown in the document; tests use it to pass the validation. */
  readonly example?: Readonly<Record<string, unknown>> | readonly unknown[]
  /** The body of a PATCH is passed whole, as `patch`, so that absent and null differ. */
  readonly patch?: boolean
  readonly call?: string
  /** The verb and the kind of definitions that the route serves: for tests that run over all of them. */
  readonly definition?: OfDefinition
  /** Arguments of the call in addition to params, query and body. */
  readonly args?: (context: Input & { request: FastifyRequest; services: Services; resolved: Resolved }) => Arguments
  readonly handle?: (context: HandlerContext) => Promise<Answer>
  /** Functions that the handler calls, whose refusals are the route's too. */
  readonly calls?: readonly string[]
  readonly replies: Readonly<Record<number, z.ZodType>>
  /** Responses with a content-type of the handler's own are those of another server, passed on with its status. */
  readonly relays?: boolean
  /** Refusals of the server, beside those of the function that it calls, which the function's comment names. */
  readonly refusals?: Readonly<Record<number, readonly string[]>>
  /** Code of a 500, if it is not the usual one of `usualFailure`; null: INTERNAL_ERROR, which the document does not list. */
  readonly failure?: string | null
  /** Code of invalid input; by default the area's. */
  readonly invalid?: string
  readonly invalidQuery?: string
  /** Code of malformed JSON and of a body that is not an object; by default the area's. */
  readonly invalidBody?: string
  /** How the codes of invalid input are chosen, if not as by the area's other routes. */
  readonly codes?: Codes
  /** Whether the route writes nothing: true for a POST that only reads, for which a token needs only the read scope. */
  readonly readOnly?: boolean
  /** Whether the caller only reads, although the call stores something, such as an evaluation; otherwise the method and `readOnly` say it. */
  readonly reads?: boolean
  /** May be answered by a replica, some seconds late: exports and statistics. */
  readonly stale?: boolean
  /** Scope that a personal access token needs, if it is not the area's `:read` or `:write`; null: any token is accepted. */
  readonly scope?: `${string}:${'read' | 'write'}` | null
  /** The lowest role that may call the route, if it is not the default of server/http/ranks.ts. */
  readonly rank?: OrganizationRole
  /** Operator tokens are refused with 403 DELEGATION_NOT_ALLOWED, although the area is one that scopes name. */
  readonly neverDelegated?: boolean
  /** Personal access tokens are refused with 403 SESSION_REQUIRED. */
  readonly sessionOnly?: boolean
  /** The general rate limit that the route counts against: events have their own. */
  readonly ceiling?: 'general' | 'events' | 'none'
}

export type Route = Omit<Declaration, 'failure' | 'refusals'> & {
  readonly method: Method
  /** All refusals, those of the function that it calls as well. */
  readonly refusals: Readonly<Record<number, readonly string[]>>
  /** The refusals that its declaration names. */
  readonly own: Readonly<Record<number, readonly string[]>>
  readonly failure: string | null
  /** Fastify's syntax, under /v1: `/client/streaks/:idOrKey`. */
  readonly path: string
}

/** Whether a route changes nothing for its caller. Everything else is a write, which a banned user does not make, nor a server key on behalf of one. */
export const onlyReads = (route: Pick<Route, 'method' | 'readOnly' | 'reads'>): boolean =>
  route.reads ?? (route.method === 'GET' || route.readOnly === true)

/** Whether a server key may call a route on behalf of a user, and so of a banned one. */
export const actsForUsers = (route: Route): boolean =>
  route.caller.security.some((schemes) => 'OnBehalfOf' in schemes) && !onlyReads(route)

/** The parts of the API, in the order of the document. */
export const parts = [
  'People',
  'Data',
  'Engagement',
  'Economy',
  'Social',
  'Reach',
  'Content',
  'Connections',
  'Platform',
] as const
type Part = (typeof parts)[number]

/**
 * The code of invalid input: `by part` of the request (a malformed id is 400 INVALID_ID, a query INVALID_INPUT, a body that is no object INVALID_BODY, a field
 * VALIDATION_ERROR), or one that the area names for all, with 404 for a malformed id: `by area`, as older areas have it.
 */
export type Codes = 'by part' | 'by area'

/** An area: its stem in every layer, and the properties that its routes share. */
export type Area = {
  readonly stem: string
  readonly title: string
  /** The part of the API under which the document lists the title, and what the title is about; of areas with one title, one says it. */
  readonly part?: Part
  readonly about?: string
  /** Words for the fields of bodies, by name: what is the same everywhere stands in server/http/words.ts. */
  readonly words?: Dictionary
  /** How the codes of invalid input are chosen; `by part` if nothing is said. */
  readonly codes?: Codes
  /** The area's code of invalid input, where codes are chosen by area; INVALID_INPUT if nothing is said. */
  readonly invalid?: string
  readonly invalidBody?: string
  /** Code of malformed JSON, if the area has a separate one; otherwise that of an invalid body. */
  readonly invalidJson?: string
  /** Paths are declared without the prefix /v1. */
  readonly unversioned?: boolean
  /** Status for a tenant that cannot be reached; 502 in the users administration. */
  readonly unavailable?: 502 | 503
  /** Code of a 409, where the area has one in place of 503 TENANT_MIGRATION_PENDING. */
  readonly notMigrated?: string
  /** The area's name in the scopes of tokens; by default its stem. */
  readonly scopeArea?: string
  /** The lowest role that may call the area's routes other than GET, if it is not the default of server/http/ranks.ts. */
  readonly rank?: OrganizationRole
  readonly routes: readonly Route[]
}

declare module '#server/services.ts' {
  interface Services {
    readonly areas: readonly Area[]
    readonly areaOf: (route: Route) => Area
    /** Throws 503 TENANT_MIGRATION_PENDING when a route's area needs a newer schema than the tenant has. */
    readonly checkMigrated: (project: CachedProject, route: Route) => void
  }
}

/** The code of a 500 by what the route does: it lists, fetches, creates, deletes or changes. */
const usualFailure = (method: Method, { replies, readOnly }: Declaration): string => {
  if (method === 'DELETE') return 'DELETE_FAILED'
  if (method === 'POST' && (201 in replies || 202 in replies)) return 'CREATE_FAILED'
  if (method !== 'GET') return readOnly ? 'FETCH_FAILED' : 'UPDATE_FAILED'
  const answered = replies[200]
  const data = answered instanceof z.ZodObject ? (answered.shape as Shape)['data'] : undefined
  return data instanceof z.ZodArray ? 'LIST_FAILED' : 'FETCH_FAILED'
}

/** What a route says itself: its group gives the caller, unless it names another. */
type OfGroup = Omit<Declaration, 'caller' | 'summary'> & { readonly caller?: Caller }

/** A route as it is declared, before its group completes it. */
export type Declared = {
  readonly method: Method
  /** The rest of the path, below the group's. */
  readonly path: string
  readonly declaration: OfGroup & { readonly summary: string }
}

/** Declares a route of a group: `route('POST /:idOrKey/qualify', 'Count one act', { call: 'streak_qualify', ... })`. */
export const route = (signature: `${Method} /${string}`, summary: string, declaration: OfGroup): Declared => {
  const [method, path] = signature.split(' ') as [Method, string]
  return { method, path, declaration: { ...declaration, summary } }
}

/** What the routes of a group share: the caller, or an object with the caller and other properties. */
type Shared = Pick<Declaration, 'caller'> & Partial<Omit<Declaration, 'summary' | 'call' | 'handle' | 'replies'>>

/** The routes below a path that one kind of caller may use: `...group('/client/streaks', endUser, [...])`. `GET /` is the path itself. */
export const group = (prefix: string, by: Caller | Shared, routes: readonly Declared[]): Route[] =>
  routes.map((declared) => complete(declared, by, prefix))

/** A route with what its group gives it. */
export const complete = (declared: Declared, by: Caller | Shared, prefix = ''): Route => {
  const { method } = declared
  const path = prefix && declared.path === '/' ? prefix : `${prefix}${declared.path}`
  const declaration: Declaration = { ...('resolve' in by ? { caller: by } : by), ...declared.declaration }
  if (!declaration.call === !declaration.handle)
    throw new Error(`${method} ${path} needs a call or a handler, and only one`)
  const { failure = usualFailure(method, declaration) } = declaration
  const { refusals: own = {} } = declaration
  const params = { ...idsOf(path), ...declaration.params }
  return {
    ...declaration,
    ...(Object.keys(params).length > 0 ? { params } : {}),
    method,
    path,
    failure,
    refusals: mergeRefusals(calledRefusals(declaration), own),
    own,
  }
}

/** The ids that a path names; the project's is read with the credentials. */
const idsOf = (path: string): Shape =>
  Object.fromEntries(
    [...path.matchAll(/:(id\b|\w+Id\b)/g)].flatMap(([, name = '']) => (name === 'projectId' ? [] : [[name, Uuid]])),
  )

/** What the functions of a route refuse. Those of definitions serve all kinds: what a kind refuses stands in its declaration. */
const calledRefusals = ({ call, calls = [], caller, definition }: Called) =>
  [...(call && !definition ? [call] : []), ...calls]
    .map((name) => refusalsOf(caller.reaches.kind, name))
    .reduce((all, of) => mergeRefusals(all, of), {})

type Called = Pick<Declaration, 'call' | 'calls' | 'caller' | 'definition'>

/** A route as if its declaration named no refusals. */
export const withoutOwn = (of: Route): Route => ({ ...of, refusals: calledRefusals(of), own: {} })

/** The export of every file of server/routes. */
export const area = (declared: Area): Area => declared

export const isArea = (value: unknown): value is Area =>
  typeof value === 'object' && value !== null && 'stem' in value && 'routes' in value

/** Whether a route chooses the codes of invalid input by the part of the request. */
export const choosesByPart = (of: Pick<Area, 'codes'>, at: Pick<Route, 'codes'>): boolean =>
  (at.codes ?? of.codes ?? 'by part') === 'by part'

/** The code for invalid input in a part of the request. */
export const invalidCode = (of: Area, at: Route, part: 'params' | 'query' | 'body'): string => {
  if (part === 'query' && at.invalidQuery) return at.invalidQuery
  if (at.invalid) return at.invalid
  if (choosesByPart(of, at)) return part === 'query' ? 'INVALID_INPUT' : 'VALIDATION_ERROR'
  return of.invalid ?? 'INVALID_INPUT'
}

export const invalidBodyCode = (of: Area, at: Route): string => {
  if (at.invalidBody) return at.invalidBody
  if (choosesByPart(of, at)) return 'INVALID_BODY'
  return of.invalidBody ?? of.invalid ?? 'INVALID_INPUT'
}

export const invalidJsonCode = (of: Area, at: Route): string => of.invalidJson ?? invalidBodyCode(of, at)
