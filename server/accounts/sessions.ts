/** Sessions of end users: who holds one, what a sign-in creates, and the device that it came from. */
import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { dataOf, type Reply } from '#server/database/database.ts'
import { sessionUser } from '#server/http/callers.ts'
import { perIp, takeLimits } from '#server/http/limits.ts'
import type { CachedProject } from '#server/http/project_cache.ts'
import type { Caller, HandlerContext, Resolved } from '#server/http/route.ts'

export const projectOf = ({ project }: Resolved): CachedProject => {
  if (!project) throw new Error('this route needs an API key')
  return project
}

/** The user of the session, in the role that may change how they sign in. */
export const sessionCaller: Caller = {
  ...sessionUser,
  reaches: { kind: 'tenant', roles: ['app_auth'] },
  resolve: async (request, services, route) => ({
    ...(await sessionUser.resolve(request, services, route)),
    role: 'app_auth',
  }),
}

const header = (request: FastifyRequest, name: string): string | undefined => {
  const value = request.headers[name]
  return typeof value === 'string' ? value : undefined
}

const label = (text: string | undefined): string | undefined =>
  text
    ?.replace(/[^\x20-\x7e]/g, '')
    .trim()
    .slice(0, 50) || undefined

/** Headers in which networks in front of us name the caller's country. Trusted only if proxies are trusted. */
const countryHeaders = ['cf-ipcountry', 'cloudfront-viewer-country', 'x-vercel-ip-country']

/** The device of a new session, as far as the app and the network identify it. */
export const deviceOf = ({ request, services }: HandlerContext) => {
  const countries = services.config.TRUST_PROXY === false ? [] : countryHeaders.map((name) => header(request, name))
  return {
    platform: label(header(request, 'x-service-platform')),
    app_version: label(header(request, 'x-service-app-version')),
    // XX and T1 are Cloudflare's codes for unknown and Tor
    ip_country: countries.find((country) => /^(?!XX)[A-Z]{2}$/.test(country ?? '')),
  }
}

type SignedIn = { user: { id: string; anonymous_id: string | null }; is_new_user: boolean }

/** Creates the tokens of a session whose refresh hash the function stores with it. Refusals of the function are returned unchanged. */
export const signIn = async (context: HandlerContext, name: string, args: Record<string, unknown>) => {
  const { tokens } = context.services
  const project = projectOf(context.resolved)
  const sid = randomUUID()
  const refresh = await tokens.clientRefresh(project, sid)
  const reply: Reply = await context.call(name, { sid, refresh_hash: refresh.hash, device: deviceOf(context), ...args })
  if (reply.status >= 400) return reply
  const { user, is_new_user } = dataOf<SignedIn>(reply)
  const session_token = await tokens.session(project, { userId: user.id, sid, anon: user.anonymous_id })
  return {
    status: reply.status,
    body: JSON.stringify({ data: { session_token, refresh_token: refresh.token, user, is_new_user } }),
  }
}

/** What the access of Supabase's clients changes beside, in the same transaction: no route takes it from a client. */
export const profileOf = ({ body }: HandlerContext) =>
  body['profile'] === undefined ? {} : { profile: body['profile'] }

/** Anonymous, social and sign-up together, per address. */
export const newcomers = (context: HandlerContext) =>
  takeLimits(context, perIp('client signup', context.request.ip, [30, 'minute'], [500, 'day']), 'RATE_LIMITED')
