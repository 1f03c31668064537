/** auth.admin of auth-js, with a server key, by the routes of administrators: one handler for each path. */
import { randomBytes, randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { codeHash, newCode } from '#server/accounts/one_time_codes.ts'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { keyOf, tenantPlace } from '#server/http/client_credentials.ts'
import { originOf } from '#server/http/credentials.ts'
import type { Caller, Route } from '#server/http/route.ts'
import { magicLinkUrl } from '#server/providers/sign_in_messages.ts'
import type { AdministeredUser, Context, Fields, Handler, LinkSettings, MadeLink } from '#server/rest/auth_context.ts'
import { changeOf, invalid, userOf } from '#server/rest/auth_shapes.ts'
import { sha256 } from '#server/secrets.ts'
import type { Services } from '#server/services.ts'

/** A server key as an administrator of the users of its project, in the audit trail by its id. Other keys are refused 403. */
export const serverAdministrator: Caller = {
  name: 'serverAdministrator',
  reaches: { kind: 'tenant', roles: ['app_admin'] },
  security: [{ ApiKey: [] }],
  refusals: { 401: ['UNAUTHORIZED'], 403: ['FORBIDDEN'] },
  async resolve(request, services, route) {
    const { keyId, keyType, project } = await keyOf(request, services)
    const { authorization, 'x-on-behalf-of': onBehalf } = request.headers
    if (keyType !== 'server' || authorization !== undefined || onBehalf !== undefined)
      throw refusal(403, 'FORBIDDEN', 'Users are administered with a server key, and in the name of no user.')
    const actor = JSON.stringify({ type: 'server_key', id: keyId, label: null, ...originOf(request) })
    return {
      place: tenantPlace(services, project, route),
      role: 'app_admin',
      claims: { caller: 'developer', projectId: project.projectId, actor },
      project,
    }
  },
}

/** A user as auth.admin shows one: a ban has no end here. */
const administered = (user: AdministeredUser) => ({
  ...userOf(user),
  ...(user.is_banned ? { banned_until: '9999-12-31T23:59:59Z' } : {}),
})

const hours = /^(\d{1,9})h$/
/** Ten years: a shorter ban would not end by itself. */
const leastHours = 87_600

const bannedBy = (duration: unknown): boolean | undefined => {
  if (duration === undefined) return undefined
  if (duration === 'none') return false
  const [, given] = hours.exec(typeof duration === 'string' ? duration : '') ?? []
  if (given === undefined || Number(given) < leastHours)
    throw invalid('ban_duration', `must be none, or at least ${leastHours}h: a ban has no end here, until it is lifted`)
  return true
}

const refused: Readonly<Record<string, string>> = {
  id: 'is made here',
  password_hash: 'is not taken: send the password, or a code at the first sign-in',
  nonce: 'is not taken',
}

/** The fields of our own routes that a body of auth.admin means. */
const fieldsOf = (body: Fields): Fields => {
  for (const [name, reason] of Object.entries(refused)) if (body[name] !== undefined) throw invalid(name, reason)
  const { app_metadata, role, ban_duration, email, phone, password, email_confirm, phone_confirm } = body
  if (app_metadata !== undefined && app_metadata !== null && Object.keys(app_metadata as object).length > 0)
    throw invalid('app_metadata', 'is not kept: give the user roles')
  if (role !== undefined && role !== 'authenticated' && role !== '')
    throw invalid('role', 'must be authenticated: give the user roles')
  const given = {
    email,
    phone,
    password,
    verify_email: email_confirm,
    verify_phone: phone_confirm,
    is_banned: bannedBy(ban_duration),
  }
  const named = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== ''))
  return { ...named, ...changeOf(body['user_metadata'] ?? body['data']) }
}

const idOf = (request: FastifyRequest): { userId: string } => {
  const [, , userId = ''] = (request.params as { '*': string })['*'].split('/')
  return { userId }
}

const create = async ({ ask }: Context, body: Fields): Promise<AdministeredUser> => {
  const fields = fieldsOf(body)
  if ((fields['email'] ?? fields['phone'] ?? null) === null)
    throw invalid('email', 'or phone is needed: app users without either sign in anonymously')
  // our own route takes no ban: with a second request there would be a time without it
  const taken = fields['is_banned'] === undefined ? {} : { alsoTaken: { is_banned: z.boolean() } }
  return ask<AdministeredUser>('userCreate', { body: fields, ...taken })
}

const createUser: Handler = async (context) => administered(await create(context, context.body))

const getUser: Handler = async ({ ask, request }) =>
  administered(await ask<AdministeredUser>('userGet', { params: idOf(request) }))

const updateUser: Handler = async ({ ask, request, body }) => {
  const fields = fieldsOf(body)
  return administered(
    await ask<AdministeredUser>('userUpdate', { params: idOf(request), body: { ...fields, merge_properties: true } }),
  )
}

const deleteUser: Handler = async ({ ask, request, body }) => {
  // what is not plainly false is not taken for it: nothing brings the user back
  if (![undefined, null, false].includes(body['should_soft_delete'] as null))
    throw invalid('should_soft_delete', 'must be false: a deleted user is gone with all of their data')
  await ask('userDelete', { params: idOf(request) })
  return {}
}

const mostUsers = 100

const wholeFrom = (text: string | undefined, otherwise: number, name: string): number => {
  if (text === undefined || text === '') return otherwise
  if (!/^[1-9]\d{0,6}$/.test(text)) throw invalid(name, 'must be a whole number from 1')
  return Number(text)
}

/** Pages of at most 100; auth-js reads how many there are from the headers. */
const listUsers: Handler = async ({ list, query, request, header }) => {
  const page = wholeFrom(query['page'], 1, 'page')
  const size = Math.min(mostUsers, wholeFrom(query['per_page'], 50, 'per_page'))
  const { data, total } = await list<AdministeredUser>('userList', {
    query: { limit: String(size), offset: String((page - 1) * size), sort: '-created_at' },
  })
  const last = Math.max(1, Math.ceil(total / size))
  const link = (to: number, rel: string) =>
    `<${request.protocol}://${request.host}/auth/v1/admin/users?page=${to}&per_page=${size}>; rel="${rel}"`
  header('x-total-count', String(total))
  header('link', [...(page < last ? [link(page + 1, 'next')] : []), link(last, 'last')].join(', '))
  return { users: data.map(administered), aud: 'authenticated' }
}

/** A new user, to whom a link is mailed, or a code where the project has no address for links. */
const invite: Handler = async (context) => {
  const { email, data } = context.body
  const made = await create(context, { email, data })
  const { magic_link_redirect_url } = await context.mailed()
  await context.ask(magic_link_redirect_url === null ? 'emailCode' : 'linkRequest', { body: { email } })
  return { ...administered(made), invited_at: made.first_seen_at }
}

const linkTypes = ['signup', 'invite', 'magiclink', 'recovery']

/** A link and a code that nobody mails. A user who is not there is created, except for a recovery. */
const generateLink: Handler = async (context) => {
  const { type, email, password, data } = context.body
  if (typeof type !== 'string' || !linkTypes.includes(type))
    throw invalid('type', `must be one of ${linkTypes.join(', ')}: a change of address takes its code as nonce`)
  if (typeof email !== 'string') throw invalid('email', 'must be a mail address')
  const make = () =>
    create(context, { email, data, ...(type === 'signup' && password !== undefined ? { password } : {}) })
  if (type === 'signup' || type === 'invite') await make()
  const made = await context.link(email).catch(async (error) => {
    if (type !== 'magiclink' || error.code !== 'NOT_FOUND') throw error
    // of two who ask at once for a new address one makes the user
    await make().catch((conflict) => {
      if (conflict.code !== 'USER_ALREADY_EXISTS') throw conflict
    })
    return context.link(email)
  })
  return { ...administered(made.user), ...made.properties, verification_type: type }
}

/** A link and a code for the user of an address: what is stored, and what only the caller gets. */
export const makeLink = async (
  request: FastifyRequest,
  services: Services,
  route: Route,
  email: string,
): Promise<MadeLink> => {
  const { place, role, claims, project } = await serverAdministrator.resolve(request, services, route)
  const projectId = project?.projectId ?? ''
  const [token, code] = [randomBytes(32).toString('base64url'), newCode()]
  const scope = { projectId, purpose: 'sign_in', channel: 'email', address: email, userId: null } as const
  const made = await services.database.call(place, role, claims, 'user_link', {
    email,
    link_id: randomUUID(),
    link_hash: sha256(token),
    code_id: randomUUID(),
    code_hash: codeHash(services.secrets, scope, code),
  })
  const { magic_link_redirect_url: url } = await linkSettings(services, projectId)
  return {
    user: dataOf<AdministeredUser>(made),
    properties: {
      action_link: url === null ? null : magicLinkUrl(url, token),
      email_otp: code,
      hashed_token: token,
      redirect_to: url,
    },
  }
}

/** Where links of the project lead. */
export const linkSettings = async ({ database, control }: Services, projectId: string) =>
  dataOf<LinkSettings>(
    await database.call(
      control,
      'control_auth',
      { caller: 'sign_in' },
      'sign_in_settings',
      { project_id: projectId },
      { readOnly: true },
    ),
  )

const handlers: Readonly<Record<string, Handler>> = {
  'GET /admin/users': listUsers,
  'POST /admin/users': createUser,
  'GET /admin/users/:id': getUser,
  'PUT /admin/users/:id': updateUser,
  'DELETE /admin/users/:id': deleteUser,
  'POST /admin/generate_link': generateLink,
  'POST /invite': invite,
}

/** The handler of a path of auth.admin. */
export const adminHandlerOf = (method: string, path: string): Handler | undefined =>
  handlers[`${method} /${path.replace(/^admin\/users\/[^/]+$/, 'admin/users/:id')}`]
