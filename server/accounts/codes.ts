/** Sign-in of end users by codes and magic links. */
import { randomBytes, randomUUID } from 'node:crypto'
import { type CodeScope, codeHash, newCode, sealPurpose } from '#server/accounts/one_time_codes.ts'
import { projectOf, sessionCaller, signIn } from '#server/accounts/sessions.ts'
import { acceptedArray } from '#server/http/languages.ts'
import { perIp, takeLimits } from '#server/http/limits.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { sha256 } from '#server/secrets.ts'

/** The database counts requests by address, in the request's own transaction: over the limit nothing is sent, and the response is the same. */
const requestsPerIp = (context: HandlerContext, what: string) =>
  takeLimits(context, perIp(`client ${what}`, context.request.ip, [10, 'minute'], [200, 'day']), 'RATE_LIMITED')

type Purpose = CodeScope['purpose']

/** A code for an address. For the purposes that need a session, the calling session requests it. */
export const requestCode = async (context: HandlerContext, channel: CodeScope['channel']) => {
  const { services, resolved, request, body, route } = context
  const { purpose } = body as { purpose: Purpose }
  const address = body[channel] as string
  const as = purpose === 'sign_in' ? resolved : await sessionCaller.resolve(request, services, route)
  await requestsPerIp(context, 'code request')
  const { projectId } = projectOf(resolved)
  const [id, code] = [randomUUID(), newCode()]
  const scope = { projectId, purpose, channel, address, userId: as.claims.userId ?? null }
  return context.call(
    'auth_code_request',
    {
      id,
      channel,
      address,
      purpose,
      secret_hash: codeHash(services.secrets, scope, code),
      sealed: services.secrets.encrypt(sealPurpose(projectId, id), code),
      locales: acceptedArray(request),
    },
    { as },
  )
}

export const verifyCode = async (context: HandlerContext, channel: CodeScope['channel']) => {
  const address = context.body[channel] as string
  await takeLimits(context, perIp('client code verify', context.request.ip, [20, 'minute']), 'RATE_LIMITED')
  const { projectId } = projectOf(context.resolved)
  const scope = { projectId, purpose: 'sign_in', channel, address, userId: null } as const
  return signIn(context, 'auth_code_sign_in', {
    channel,
    address,
    secret_hash: codeHash(context.services.secrets, scope, context.body['code'] as string),
  })
}

export const requestMagicLink = async (context: HandlerContext) => {
  const { services, resolved, body } = context
  await requestsPerIp(context, 'magic link')
  const [id, token] = [randomUUID(), randomBytes(32).toString('base64url')]
  return context.call('auth_magic_link_request', {
    id,
    email: body['email'],
    secret_hash: sha256(token),
    sealed: services.secrets.encrypt(sealPurpose(projectOf(resolved).projectId, id), token),
    locales: acceptedArray(context.request),
  })
}
