/** Under what a connection is opened: the headers of a request, or a ticket. */
import { randomBytes } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { endUser, tenantPlace } from '#server/http/callers.ts'
import { bearer } from '#server/http/credentials.ts'
import { projectIdOf } from '#server/http/project.ts'
import type { Caller, HandlerContext, Resolved } from '#server/http/route.ts'
import { uuidPattern } from '#server/http/schemas.ts'
import type { Credential } from '#server/realtime/types.ts'
import { sha256 } from '#server/secrets.ts'
import type { Services } from '#server/services.ts'

export const ticketSeconds = 60

/** What a ticket stands for, as its row keeps it. */
type Held = { readonly user_id: string; readonly sid: string; readonly expires_at: number; readonly key_hash: string }

const credentials = new WeakMap<Resolved, Credential>()

/** When a verified token ends. */
const expiryOf = (token: string): number => {
  const [, payload = ''] = token.split('.')
  return (JSON.parse(Buffer.from(payload, 'base64url').toString()) as { exp: number }).exp
}

type At = Parameters<Caller['resolve']>[2]

/** Under what the sender of a request may open a connection. */
export const credentialOfHeaders = async (request: FastifyRequest, services: Services, at: At): Promise<Credential> => {
  const resolved = await endUser.resolve(request, services, at)
  const { userId, sessionId = null } = resolved.claims
  return {
    resolved,
    userId: userId ?? '',
    sid: sessionId,
    expiresAt: sessionId === null ? null : expiryOf(bearer(request) ?? ''),
    keyHash: sha256(String(request.headers['x-api-key'])),
  }
}

const ofHeaders = async (request: FastifyRequest, services: Services, at: At) => {
  const credential = await credentialOfHeaders(request, services, at)
  credentials.set(credential.resolved, credential)
  return credential.resolved
}

/** `svc_rt_`, the project's id and 32 random bytes: a ticket comes without the key that would name the project. */
const ticketForm = /^svc_rt_([0-9a-f]{32})_[A-Za-z0-9_-]{43}$/

const invalidTicket = () =>
  refusal(401, 'UNAUTHORIZED', 'The ticket is not valid: it may be used once, within 60 seconds.')

const ofTicket = async (
  ticket: string,
  services: Pick<Services, 'areaOf' | 'checkMigrated' | 'database' | 'now' | 'projectCache'>,
  at: At,
) => {
  const [, hex = ''] = ticketForm.exec(ticket) ?? []
  const projectId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  const project = uuidPattern.test(projectId) ? await services.projectCache.byProject(projectId) : null
  if (!project) throw invalidTicket()
  const place = tenantPlace(services, project, at)
  const reply = await services.database.call(place, 'app_auth', { caller: 'edge', projectId }, 'realtime_ticket_take', {
    hash: sha256(ticket),
  })
  const held = dataOf<Held | null>(reply)
  if (!held || held.expires_at * 1000 <= services.now().getTime()) throw invalidTicket()
  const claims = { caller: 'user', userId: held.user_id, sessionId: held.sid, projectId } as const
  const resolved: Resolved = { place, role: 'app_user', claims, project }
  credentials.set(resolved, {
    resolved,
    userId: held.user_id,
    sid: held.sid,
    expiresAt: held.expires_at,
    keyHash: held.key_hash,
  })
  return resolved
}

/** A signed-in end user, by headers, or by a ticket where a client cannot set any: tokens never appear in URLs. */
export const ticketHolder: Caller = {
  ...endUser,
  name: 'ticketHolder',
  reaches: { kind: 'tenant', roles: ['app_user'] },
  resolve: (request, services, at) => {
    const { ticket } = request.query as { ticket?: unknown }
    return typeof ticket === 'string' ? ofTicket(ticket, services, at) : ofHeaders(request, services, at)
  },
}

export const credentialOf = (resolved: Resolved): Credential => {
  const credential = credentials.get(resolved)
  if (!credential) throw new Error('the caller of realtime is a ticketHolder')
  return credential
}

export const createTicket = async (context: HandlerContext) => {
  const { request, resolved, call } = context
  const project = projectIdOf(context)
  const ticket = `svc_rt_${project.replaceAll('-', '')}_${randomBytes(32).toString('base64url')}`
  const credential: Held = {
    user_id: resolved.claims.userId ?? '',
    sid: resolved.claims.sessionId ?? '',
    expires_at: expiryOf(bearer(request) ?? ''),
    key_hash: sha256(String(request.headers['x-api-key'])),
  }
  await call('realtime_ticket_add', { hash: sha256(ticket), credential })
  return { status: 201, body: JSON.stringify({ data: { ticket, expires_in: ticketSeconds } }) }
}
