import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { dataOf, type Reply } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { sessionUser } from '#server/http/callers.ts'
import { perIp, takeLimits } from '#server/http/limits.ts'
import type { CachedProject } from '#server/http/project_cache.ts'
import type { Caller, HandlerContext, Resolved } from '#server/http/route.ts'
import { data, JsonObject, Time, Uuid } from '#server/http/schemas.ts'

export const User = z.strictObject({
  id: Uuid,
  email: z.string().nullable(),
  phone: z.string().nullable(),
  display_name: z.string(),
  avatar_url: z.string().nullable(),
  external_id: z.string().nullable(),
  anonymous_id: z.string().nullable(),
  auth_providers: z.array(z.strictObject({ provider: z.string(), provider_id: z.string() })),
  properties: JsonObject,
  timezone: z.string().nullable(),
  email_verified: z.boolean(),
  phone_verified: z.boolean(),
  first_seen_at: Time,
  last_seen_at: Time,
})

export const AuthResult = data(
  z.strictObject({ session_token: z.string(), refresh_token: z.string(), user: User, is_new_user: z.boolean() }),
)

export const Ok = data(z.strictObject({ ok: z.literal(true) }))
export const Success = data(z.strictObject({ success: z.literal(true) }))

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

/** readings.md: anonymous, social and sign-up together, per address. */
export const newcomers = (context: HandlerContext) =>
  takeLimits(context, perIp('client signup', context.request.ip, [30, 'minute'], [500, 'day']), 'RATE_LIMITED')

/** The required audience of identity tokens, from control. */
export type SignInSettings = {
  readonly bundle_id: string | null
  readonly google_oauth_client_id: string | null
}

/** The project may have been deleted a moment ago: then its key is invalid, although it is still in the cache. */
export const settingsOf = async ({ services, resolved }: HandlerContext, failure: string): Promise<SignInSettings> => {
  const settings = dataOf<SignInSettings | null>(
    await services.database.call(
      services.control,
      'control_auth',
      { caller: 'sign_in' },
      'sign_in_settings',
      { project_id: projectOf(resolved).projectId },
      { readOnly: true, failure },
    ),
  )
  if (!settings) throw refusal(401, 'UNAUTHORIZED', 'The API key is invalid or was deactivated.')
  return settings
}
