import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { consoleMark } from '#server/accounts/console_mark.ts'
import { refusal } from '#server/errors.ts'
import { envelopeOf, send } from '#server/http/errors.ts'

/** The routes of the API that begin a session, by their names in the console's path. */
const ways: Readonly<Record<string, string>> = {
  signup: '/v1/auth/developer/signup',
  login: '/v1/auth/developer/login',
  code: '/v1/auth/developer/otp/verify',
  github: '/v1/auth/developer/github/callback',
}

/** By this prefix a browser takes the cookie from this host alone: a page of a sibling host could set another one for the whole domain (RFC 6265bis). */
const cookieName = '__Host-trellis_console'
/** What former versions set. It is cleared, and never read: a sibling host may have set it. */
const formerCookie = '__Secure-trellis_console=; Path=/console/session; Max-Age=0; HttpOnly; Secure; SameSite=Strict'
const path = '/console/session'
const lifetime = 30 * 24 * 3600

const setCookie = (reply: FastifyReply, token: string) =>
  reply.header('set-cookie', [
    `${cookieName}=${token}; Path=/; Max-Age=${token === '' ? 0 : lifetime}; HttpOnly; Secure; SameSite=Strict`,
    formerCookie,
  ])

/** Null where two cookies have the name: no browser sends that of its own, and which is whose nobody can tell. */
const cookieOf = (request: FastifyRequest): string | null => {
  const tokens = (request.headers.cookie ?? '')
    .split(';')
    .map((pair) => pair.trim().split('='))
    .flatMap(([name, token]) => (name === cookieName ? [token ?? ''] : []))
  return tokens.length === 1 ? (tokens[0] ?? null) : null
}

/** A page of another origin, of the same site too, says so in one of these headers; programs send neither. */
const isForeign = ({ headers }: FastifyRequest) => {
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin') return true
  const { origin, host } = headers
  return site === undefined && origin !== undefined && origin.replace(/^https?:\/\//, '') !== host
}

/** The route of the API, as this client: its limits by address see the address of the browser. */
const ask = (
  app: FastifyInstance,
  request: FastifyRequest,
  url: string,
  payload: string | Buffer,
  more: Readonly<Record<string, string>> = {},
) => {
  const { host, 'user-agent': agent, 'x-forwarded-for': forwarded } = request.headers
  return app.inject({
    method: 'POST',
    url,
    payload,
    remoteAddress: request.raw.socket.remoteAddress ?? '127.0.0.1',
    headers: {
      'content-type': 'application/json',
      host: host ?? 'localhost',
      ...more,
      ...(agent ? { 'user-agent': agent } : {}),
      ...(forwarded ? { 'x-forwarded-for': forwarded } : {}),
    },
  })
}

type Tokens = { data: { refresh_token: string } & Record<string, unknown> }

/** Passes the answer of the API on, with the refresh token in the cookie instead of the body, where a script could read it. */
const pass = (reply: FastifyReply, answer: Awaited<ReturnType<typeof ask>>) => {
  const after = answer.headers['retry-after']
  if (after !== undefined) reply.header('retry-after', String(after))
  if (answer.statusCode >= 300) return send(reply, { status: answer.statusCode, body: answer.body })
  const { refresh_token, ...data } = (JSON.parse(answer.body) as Tokens).data
  return send(setCookie(reply, refresh_token), { status: answer.statusCode, body: JSON.stringify({ data }) })
}

/** POST /console/session/{signup,login,code,github,refresh,logout}: the session of a browser, its refresh token in an HttpOnly cookie. */
export const consoleSession = (app: FastifyInstance): void => {
  app.addHook('preHandler', async (request, reply) => {
    reply.header('cache-control', 'no-store')
    if (request.method === 'POST' && isForeign(request)) {
      const foreign = refusal(403, 'FORBIDDEN', 'Only the console of this server may use its session.')
      return send(reply, { status: foreign.status, body: envelopeOf(foreign) })
    }
    return undefined
  })
  for (const [way, url] of Object.entries(ways)) {
    app.post(`${path}/${way}`, async (request, reply) =>
      pass(reply, await ask(app, request, url, (request.body as Buffer | undefined) ?? '')),
    )
  }
  app.post(`${path}/refresh`, async (request, reply) => {
    const token = cookieOf(request)
    if (!token) {
      const none = refusal(401, 'INVALID_TOKEN', 'Nobody is signed in: sign in.')
      return send(reply, { status: none.status, body: envelopeOf(none) })
    }
    const body = JSON.stringify({ refresh_token: token })
    const answer = await ask(app, request, '/v1/auth/developer/refresh', body, {
      [consoleMark.name]: consoleMark.value,
    })
    if (answer.statusCode === 401) setCookie(reply, '')
    return pass(reply, answer)
  })
  app.post(`${path}/logout`, async (request, reply) => {
    const token = cookieOf(request)
    if (token) await ask(app, request, '/v1/auth/developer/logout', JSON.stringify({ refresh_token: token }))
    return send(setCookie(reply, ''), { status: 200, body: '{"data":{"success":true}}' })
  })
}
