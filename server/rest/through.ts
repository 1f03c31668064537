import type { FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { ApiError, refusal } from '#server/errors.ts'
import { serve } from '#server/http/app.ts'
import { answerOf } from '#server/http/errors.ts'
import type { Area, Caller, Route } from '#server/http/route.ts'
import { exactJson } from '#server/json/lossless_json.ts'
import type { Services } from '#server/services.ts'

/** One of our own routes, by its signature: adapters name the routes that they adapt. */
export const routeOf = (areas: readonly Area[], signature: string): Route => {
  const found = areas.flatMap(({ routes }) => routes).find(({ method, path }) => `${method} ${path}` === signature)
  if (!found) throw new Error(`there is no route ${signature}`)
  return found
}

export type Asked = {
  readonly body?: unknown
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, unknown>>
  /** The token of a session that has just begun: from here on the request is that of its user. */
  readonly session?: string
  /** Who asks, where it is not the caller of the route. */
  readonly as?: Caller
  /** Fields that the body may have beside those of the route, where another caller than its own asks. */
  readonly alsoTaken?: Readonly<Record<string, z.ZodType>>
  /** What the handler of the route gets beside its body, which no client can send to the route itself. */
  readonly beside?: Readonly<Record<string, unknown>>
}

export type Answered = { readonly status: number; readonly body: { readonly data: unknown } & Record<string, unknown> }

/**
 * Asks a route of ours as the sender of this request: its caller, limits, validation, call and codes are those of the route. Every refusal is
 * thrown.
 */
export const through = async (
  services: Services,
  request: FastifyRequest,
  route: Route,
  { body, params = {}, query = {}, session, as, alsoTaken, beside }: Asked = {},
): Promise<Answered> => {
  const area = services.areaOf(route)
  if (session !== undefined) request.headers.authorization = `Bearer ${session}`
  const sent = { params, query, body: body === undefined ? undefined : Buffer.from(JSON.stringify(body)) }
  try {
    // a caller is resolved for the route itself, by which its area is found
    const asked = as
      ? {
          ...route,
          caller: { ...as, resolve: () => as.resolve(request, services, route) },
          ...(alsoTaken ? { body: (route.body as z.ZodObject).extend(alsoTaken) } : {}),
        }
      : route
    const answer = await serve(area, beside ? withMore(asked, beside) : asked, request, services, sent)
    const read = exactJson(answer.body.toString()) as Answered['body'] & { error?: Refused }
    if (answer.status >= 400 && read.error) throw refusedWith(answer.status, read.error, answer.headers)
    return { status: answer.status, body: read }
  } catch (error) {
    throw error instanceof ApiError && !area.notMigrated ? error : answerOf(error, request, services, route, area)
  }
}

const withMore = (route: Route, more: Readonly<Record<string, unknown>>): Route => {
  const { handle } = route
  if (!handle) throw new Error(`${route.path} has no handler that could get more`)
  return { ...route, handle: (context) => handle({ ...context, body: { ...context.body, ...more } }) }
}

type Refused = { readonly code: string; readonly message: string; readonly details?: Record<string, unknown> }

/** A refusal that the database returned: it was to be remembered. */
const refusedWith = (status: number, { code, message, details }: Refused, headers?: Record<string, string> | null) =>
  refusal(status, code, message, details ?? null, headers ?? undefined)
