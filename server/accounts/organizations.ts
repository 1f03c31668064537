/** Organizations and the invites to them. */
import { randomUUID } from 'node:crypto'
import { inviteToken } from '#server/derived_codes.ts'
import { asSignIn, perIp, perSubject, takeLimits } from '#server/http/limits.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { sha256 } from '#server/secrets.ts'

/** The mail's job derives the token again: it is in no row and in no payload. */
export const invite = async (context: HandlerContext) => {
  const { body, call, params, services } = context
  const id = randomUUID()
  await takeLimits(
    asSignIn(context),
    perSubject('organization invites', String(params['orgId']).toLowerCase(), [20, 'hour']),
  )
  return call('organization_invite_create', {
    organization_id: params['orgId'],
    id,
    email: body['email'],
    role: body['role'],
    sandbox_invites: services.config.SANDBOX_INVITES,
    token_hash: sha256(inviteToken(services.secrets, id)),
  })
}

export const create = ({ body, call, services }: HandlerContext) =>
  call('organization_create', { ...body, sandbox_organizations: services.config.SANDBOX_PROJECTS })

export const accept = async (context: HandlerContext) => {
  await takeLimits(asSignIn(context), perIp('organization invite accept', context.request.ip, [20, 'minute']))
  return context.call('organization_invite_accept', { token_hash: sha256(context.body['token'] as string) })
}
