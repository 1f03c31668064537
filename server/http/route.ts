import type { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { Claims } from '#server/database/call.ts'
import type { Role } from '#server/database/cluster.ts'
import type { Arguments, CallSettings, Place, Reply } from '#server/database/database.ts'
import type { Answered, Question } from '#server/database/statements.ts'
import type { DeveloperCredential } from '#server/http/credentials.ts'
import type { CachedProject } from '#server/http/project_cache.ts'
import type { Services } from '#server/services.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type Shape = Readonly<Record<string, z.ZodType>>

/** Who a request turned out to be, and where its call goes. */
export type Resolved = {
  readonly place: Place
  readonly role: Role
  readonly claims: Omit<Claims, 'role'>
  readonly project: CachedProject | null
  /** Whose Bearer it is, where it is a developer's. */
  readonly developer?: DeveloperCredential
}

/** A kind of caller: how its credentials are read, how the document describes them, what they may be refused with. */
export type Caller = {
  readonly name: string
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly refusals: Readonly<Record<number, readonly string[]>>
  /** Where its calls go, and as which roles: what `resolve` may answer. */
  readonly reaches: { readonly kind: Place['kind']; readonly roles: readonly Role[] }
  /** A developer's Bearer, which may be a personal access token. */
  readonly takesTokens?: boolean
  readonly resolve: (request: FastifyRequest, services: Services, route: Route) => Promise<Resolved>
}

/** Counted in the database, exactly: one attempt against each of these, or against none. */
export type Limit = { readonly key: string; readonly max: number; readonly seconds: number }

/** What a route answers with: an envelope as text or as its bytes, or a stream that `streamRows` of server/http/stream.ts makes. */
export type Answer = {
  readonly status: number
  readonly body: string | Buffer | Readable
  readonly headers?: Record<string, string> | null
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

export type HandlerContext = Input & {
  readonly request: FastifyRequest
  readonly services: Services
  readonly resolved: Resolved
  /** The route's call as this caller, or another function of the same place; `as` for who the body asks to be taken for. */
  readonly call: (
    name: string,
    args: Arguments,
    settings?: CallSettings & { role?: Role; as?: Resolved },
  ) => Promise<Reply>
  /** A question to a collection, as this caller, by the statement that was compiled for its shape. */
  readonly ask: (question: Question) => Promise<Answered>
}

/** One of the five routes of an entity that developers define, see server/http/definitions.ts. */
export type OfDefinition = { readonly kind: string; readonly verb: 'create' | 'list' | 'get' | 'update' | 'delete' }

export type Declaration = {
  readonly caller: Caller
  readonly summary: string
  readonly description?: string
  readonly params?: Shape
  readonly query?: Shape
  readonly headers?: Shape
  /** Schema of the JSON body; a route without one takes none, or ignores what it gets. */
  readonly body?: z.ZodType
  /** An empty body is refused, although the schema takes `{}`. */
  readonly needsBody?: boolean
  /** The call takes the text of the body, a JSON object, and not what it says: the text is checked and not parsed. */
  readonly takesText?: boolean
  /** Types of a file that the body is instead of JSON. The handler gets CSV and NDJSON as a stream, `request.body`, and bounds it; others as bytes. */
  readonly uploads?: readonly string[]
  /** Shown in the document instead of `body` where SQL validates the items one by one. */
  readonly documentedBody?: z.ZodType
  /** A good body, shown in the document; tests use it to get past the checks of form. */
  readonly example?: Readonly<Record<string, unknown>> | readonly unknown[]
  /** A PATCH sends its body whole, as `patch`, so that absent and null differ. */
  readonly patch?: boolean
  readonly call?: string
  /** What the route does to which kind of definitions: for tests that run over all of them. */
  readonly definition?: OfDefinition
  /** Arguments of the call beyond params, query and body. */
  readonly args?: (context: Input & { request: FastifyRequest; services: Services; resolved: Resolved }) => Arguments
  readonly handle?: (context: HandlerContext) => Promise<Answer>
  readonly replies: Readonly<Record<number, z.ZodType>>
  readonly refusals?: Readonly<Record<number, readonly string[]>>
  /** Code of a 500. */
  readonly failure?: string
  /** Code of invalid input; by default the area's. */
  readonly invalid?: string
  readonly invalidQuery?: string
  /** Code of broken JSON and of a body that is not an object; by default the area's. */
  readonly invalidBody?: string
  readonly source?: 'contract' | 'supplement'
  /** Writes nothing: true for a POST that only reads, which then needs a token's read scope only. */
  readonly readOnly?: boolean
  /** Scope that a personal access token needs, where it is not the area's `:read` or `:write`; null: any token will do. */
  readonly scope?: `${string}:${'read' | 'write'}` | null
  /** Personal access tokens are refused with 403 SESSION_REQUIRED. */
  readonly sessionOnly?: boolean
  /** Which general rate limit the route counts against: events have one of their own. */
  readonly ceiling?: 'general' | 'events' | 'none'
}

export type Route = Declaration & {
  readonly method: Method
  /** Fastify's form, under /v1: `/client/streaks/:idOrKey`. */
  readonly path: string
}

/** An area: its stem in every layer, and what its routes share. */
export type Area = {
  readonly stem: string
  readonly title: string
  readonly source: 'contract' | 'supplement'
  /** General code of invalid input: the contract's area names one, the supplement's is VALIDATION_ERROR. */
  readonly invalid?: string
  readonly invalidBody?: string
  /** Code of broken JSON, where the area lists one of its own; else that of a wrong body. */
  readonly invalidJson?: string
  /** Paths are declared without the prefix /v1. */
  readonly unversioned?: boolean
  /** Status of a tenant that cannot be reached; the users administration has 502. */
  readonly unavailable?: 502 | 503
  /** How scopes of tokens name the area; by default its stem. */
  readonly scopeArea?: string
  readonly routes: readonly Route[]
}

/** Declares a route: `route('POST /client/streaks/:idOrKey/qualify', {...})`. */
export const route = (signature: `${Method} /${string}`, declaration: Declaration): Route => {
  const [method, path] = signature.split(' ') as [Method, string]
  if (!declaration.call === !declaration.handle) throw new Error(`${signature} needs a call or a handler, and only one`)
  return { ...declaration, method, path }
}

/** What every file of server/routes exports. */
export const area = (declared: Area): Area => declared

export const isArea = (value: unknown): value is Area =>
  typeof value === 'object' && value !== null && 'stem' in value && 'routes' in value

/** The code for invalid input at a place of the request, after readings.md and supplement 0.2. */
export const invalidCode = (of: Area, at: Route, part: 'params' | 'query' | 'body'): string => {
  if (part === 'query' && at.invalidQuery) return at.invalidQuery
  if (at.invalid) return at.invalid
  const source = at.source ?? of.source
  if (source === 'supplement') return part === 'query' ? 'INVALID_INPUT' : 'VALIDATION_ERROR'
  return of.invalid ?? 'INVALID_INPUT'
}

export const invalidBodyCode = (of: Area, at: Route): string => {
  if (at.invalidBody) return at.invalidBody
  if ((at.source ?? of.source) === 'supplement') return 'INVALID_BODY'
  return of.invalidBody ?? of.invalid ?? 'INVALID_INPUT'
}

export const invalidJsonCode = (of: Area, at: Route): string => of.invalidJson ?? invalidBodyCode(of, at)
