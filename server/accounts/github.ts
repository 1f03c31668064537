/** Sign-in of developers with GitHub (OAuth with PKCE). */
import { createHash, randomBytes } from 'node:crypto'
import { inviteHash, isBlank, requestAccess } from '#server/accounts/invite_codes.ts'
import { signInTokens, visitor, withTokens } from '#server/accounts/sign_in.ts'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { perIp, takeLimits } from '#server/http/limits.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { type GithubClient, githubUser } from '#server/providers/github.ts'
import { sha256 } from '#server/secrets.ts'
import type { Services } from '#server/services.ts'

const clientOf = ({ config }: Pick<Services, 'config'>): GithubClient => {
  const { GITHUB_CLIENT_ID: id, GITHUB_CLIENT_SECRET: secret } = config
  if (!id || !secret) throw refusal(400, 'PROVIDER_NOT_CONFIGURED', 'This server has no GitHub application.')
  return { id, secret }
}

/** The PKCE verifier of a sign-in (RFC 7636): only this server can compute it from the state that the browser holds. */
const verifierOf = ({ secrets }: Pick<Services, 'secrets'>, state: string): string =>
  Buffer.from(secrets.mac('github verifier', state), 'hex').toString('base64url')

export const start = async (context: HandlerContext) => {
  const { call, query, request, services } = context
  const client = clientOf(services)
  await takeLimits(context, perIp('github start', request.ip, [20, 'minute']))
  const redirect = String(query['redirect_uri'])
  const state = randomBytes(32).toString('base64url')
  await call('github_start', { state_hash: sha256(state), redirect_uri: redirect }, { readOnly: false })
  const url = new URL('/login/oauth/authorize', services.config.GITHUB_URL)
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: client.id,
    redirect_uri: redirect,
    scope: 'read:user user:email',
    state,
    code_challenge: createHash('sha256').update(verifierOf(services, state)).digest('base64url'),
    code_challenge_method: 'S256',
  }).toString()
  return { status: 200, body: JSON.stringify({ data: { authorize_url: url.href, state } }) }
}

const refused = (message: string) => refusal(401, 'INVALID_CREDENTIALS', message)

export const callback = async (context: HandlerContext) => {
  const { body, call, request, services } = context
  const { code, state, invite_code } = body as { code: string; state: string; invite_code?: string }
  const client = clientOf(services)
  await takeLimits(context, perIp('github callback', request.ip, [20, 'minute']))
  const begun = dataOf<{ redirect_uri: string } | null>(await call('github_state_take', { state_hash: sha256(state) }))
  if (!begun)
    throw refused('This sign-in was not begun here, was finished, or took longer than ten minutes: start again.')
  const grant = { code, redirectUri: begun.redirect_uri, verifier: verifierOf(services, state) }
  const user = await githubUser(services.upstream, client, grant)
  if (!user) throw refused('GitHub does not accept this code: start again.')
  if (!user.email)
    throw refused('The primary address of this GitHub account is not verified: verify it at GitHub first.')
  const tokens = await signInTokens(context)
  const reply = await call('github_sign_in', {
    ...tokens.stored,
    provider_id: user.id,
    email: user.email,
    name: user.name,
    signup_mode: services.config.SIGNUP_MODE,
    request_access: requestAccess(services),
    ...(invite_code === undefined || isBlank(invite_code) ? {} : { invite_hash: inviteHash(invite_code) }),
    ...visitor(context),
  })
  return withTokens(context, reply, tokens)
}
