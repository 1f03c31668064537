/** What is asked of a provider, and who it says has signed in. */
import { createHash } from 'node:crypto'
import type { JWTPayload } from 'jose'
import * as openid from 'openid-client'
import { clientOf } from '#server/oauth/clients.ts'
import { callbackUrl, type StoredProvider, scopesOf } from '#server/oauth/providers.ts'
import { githubUser } from '#server/providers/github.ts'
import { displayNameOf, type Identity, identityOf } from '#server/providers/identity.ts'
import type { Services } from '#server/services.ts'

type Used = Pick<Services, 'config' | 'issuers' | 'now' | 'publicUrl' | 'secrets' | 'upstream'>

/** Both derive from the state, which the browser holds and the database has only a hash of: nobody but this server can compute them. */
const derived = ({ secrets }: Pick<Services, 'secrets'>, what: 'verifier' | 'nonce', state: string): string =>
  Buffer.from(secrets.mac(`oauth ${what}`, state), 'hex').toString('base64url')

export type Request = {
  readonly projectId: string
  readonly provider: StoredProvider
  readonly state: string
  readonly scopes: readonly string[]
  /** Parameters of the app for the provider's pages, such as login_hint. */
  readonly more: Readonly<Record<string, string>>
}

/** Where the browser goes: the provider's page of sign-in. */
export const authorizationUrl = async (services: Used, asked: Request): Promise<string> => {
  const { provider, state, scopes, more, projectId } = asked
  const parameters = {
    ...more,
    client_id: provider.client_id,
    redirect_uri: callbackUrl(services.publicUrl, projectId),
    response_type: 'code',
    scope: scopesOf(provider, scopes),
    state,
    code_challenge: createHash('sha256')
      .update(derived(services, 'verifier', state))
      .digest('base64url'),
    code_challenge_method: 'S256',
  }
  if (provider.name === 'github') {
    const url = new URL('/login/oauth/authorize', services.config.GITHUB_URL)
    url.search = new URLSearchParams(parameters).toString()
    return url.href
  }
  const { config } = await clientOf(services, provider, null)
  return openid.buildAuthorizationUrl(config, {
    ...parameters,
    nonce: derived(services, 'nonce', state),
    // Apple gives name and address only so
    ...(provider.name === 'apple' ? { response_mode: 'form_post' } : {}),
  }).href
}

export type Answered = {
  readonly projectId: string
  readonly provider: StoredProvider
  readonly secret: string | null
  readonly state: string
  /** What the provider sent with the browser. */
  readonly parameters: URLSearchParams
}

/** The person behind the provider's answer; null when the answer is not good. Throws what the provider, the network or the library says. */
export const identityBehind = async (services: Used, answered: Answered): Promise<Identity | null> => {
  const { projectId, provider, secret, state, parameters } = answered
  const redirectUri = callbackUrl(services.publicUrl, projectId)
  const verifier = derived(services, 'verifier', state)
  if (provider.name === 'github') {
    const grant = { code: parameters.get('code') ?? '', redirectUri, verifier }
    const user = await githubUser(services.upstream, { id: provider.client_id, secret: secret ?? '' }, grant, projectId)
    return user && { providerId: user.id, email: user.email, name: user.name }
  }
  const { config, keep } = await clientOf(services, provider, secret)
  const url = new URL(redirectUri)
  // of a form that Apple posts, what is no part of the answer itself stays out
  for (const name of ['code', 'state', 'iss'])
    for (const value of parameters.getAll(name)) url.searchParams.append(name, value)
  const tokens = await openid.authorizationCodeGrant(config, url, {
    expectedState: state,
    expectedNonce: derived(services, 'nonce', state),
    pkceCodeVerifier: verifier,
    idTokenExpected: true,
  })
  keep()
  const claims = tokens.claims() as JWTPayload
  const identity = identityOf({ ...claims, ...(await missing(config, tokens.access_token, claims)) })
  return identity && { ...identity, name: identity.name ?? nameIn(parameters.get('user')) }
}

/** The address, where the ID token has none: many providers keep it for the userinfo endpoint. */
const missing = async (config: openid.Configuration, accessToken: string, { sub = '', email, name }: JWTPayload) => {
  if (email !== undefined || !config.serverMetadata().userinfo_endpoint) return {}
  const found = await openid.fetchUserInfo(config, accessToken, sub)
  return { email: found.email, email_verified: found.email_verified, name: name ?? found.name }
}

/** Apple sends the name beside the code, once, from the browser: it is a name to show and proves nothing. */
const nameIn = (user: string | null): string | null => {
  if (user === null || user.length > 2000) return null
  try {
    const { name } = JSON.parse(user) as { name?: { firstName?: unknown; lastName?: unknown } }
    const parts = [name?.firstName, name?.lastName].filter((part) => typeof part === 'string')
    return parts.length > 0 ? displayNameOf(parts.join(' ')) : null
  } catch {
    return null
  }
}

/** A word for people and logs of why it failed: the library's own code, the provider's error code or a plain sentence; never what a token holds. */
export const reasonOf = (error: unknown): string => {
  const { error: told, code, message, cause } = error as Record<string, unknown>
  // a provider may write anything there, also what it was sent
  if (typeof told === 'string') return /^[\w.-]{1,60}$/.test(told) ? told : 'an error that is no code'
  if (code === undefined || (error instanceof openid.ClientError && !/^OAUTH_/.test(String(code))))
    return cause instanceof Error ? cause.message.slice(0, 200) : String(message).slice(0, 200)
  return String(code).slice(0, 100)
}
