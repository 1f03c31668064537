/** The settings of a sign-in by redirect, as administrators change and try them. */
import { importPKCS8 } from 'jose'
import * as openid from 'openid-client'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { projectIdOf } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { clientOf, IssuerMismatch } from '#server/oauth/clients.ts'
import { callbackUrl, isKnown, issuerOf, type StoredProvider, secretPurpose } from '#server/oauth/providers.ts'
import { entryOf } from '#server/oauth/redirects.ts'
import { reasonOf } from '#server/oauth/sign_ins.ts'
import type { Services } from '#server/services.ts'

export type Given = {
  readonly issuer?: string
  readonly client_id: string
  /** Null removes the stored one. */
  readonly client_secret?: string | null
  readonly team_id?: string
  readonly signing_key_id?: string
  readonly scopes: string[]
  readonly is_active: boolean
}

const invalid = (field: string, reason: string) =>
  refusal(400, 'VALIDATION_ERROR', `${field}: ${reason}`, { field, reason })

/** Ways to sign in that are no provider: an identity has the name of its way. */
const taken = ['anonymous', 'email', 'password', 'phone']

/** OpenID Connect Discovery 1.0, 2: a URL of a host, a port and a path. It is kept as it is written, for it is compared so. */
const isIssuer = (text: string): boolean => {
  const url = /[\\?#]/.test(text) ? null : URL.parse(text)
  return url !== null && url.username === '' && url.password === ''
}

const checkGiven = (name: string, { issuer, team_id, signing_key_id }: Given): void => {
  if (taken.includes(name)) throw invalid('name', `must not be ${taken.join(', ')}`)
  if (isKnown(name) && issuer !== undefined) throw invalid('issuer', `is known of ${name}`)
  if (!isKnown(name) && issuer === undefined) throw invalid('issuer', `is required: ${name} is a name of your own`)
  if (issuer !== undefined && !isIssuer(issuer))
    throw invalid('issuer', 'must be the address of a host, without user, query and fragment')
  if ((team_id === undefined) !== (signing_key_id === undefined))
    throw invalid(team_id === undefined ? 'team_id' : 'signing_key_id', 'is required beside the other one')
  if (name !== 'apple' && team_id !== undefined) throw invalid('team_id', 'is for apple alone')
}

export const putProvider = async (context: HandlerContext) => {
  const name = String(context.params['name'])
  const given = context.body as unknown as Given
  checkGiven(name, given)
  const { publicUrl, secrets } = context.services
  const { client_secret, ...rest } = given
  if (given.team_id !== undefined && typeof client_secret === 'string')
    await importPKCS8(client_secret, 'ES256').catch(() => {
      throw invalid('client_secret', 'must be the text of the .p8 file, as team_id is given')
    })
  const sealed = client_secret && secrets.encrypt(secretPurpose(projectIdOf(context), name), client_secret)
  return context.call('oauth_provider_put', {
    name,
    ...rest,
    scopes: JSON.stringify(given.scopes),
    callback_url: callbackUrl(publicUrl, projectIdOf(context)),
    ...(sealed ? { secret_sealed: sealed, key_id: secrets.current } : {}),
    ...(client_secret === null ? { keeps_secret: false } : {}),
  })
}

export const callbackOf = ({ services, resolved }: Pick<HandlerContext, 'services' | 'resolved'>) => ({
  callback_url: callbackUrl(services.publicUrl, projectIdOf({ resolved })),
})

export const putRedirects = async (context: HandlerContext) => {
  const { addresses } = context.body as { addresses: string[] }
  const entries = addresses.map((address, at) => {
    const found = entryOf(address)
    if ('problem' in found) throw invalid(`addresses.${at}`, found.problem)
    return found.entry
  })
  return context.call('oauth_redirects_put', {
    addresses: JSON.stringify([...new Set(entries)]),
    ...callbackOf(context),
  })
}

type Problem = { readonly error: string; readonly message: string }
const problem = (error: string, message: string): Problem => ({ error, message })

const secretMissing = problem('secret_missing', 'Enter the client secret: without it the provider refuses the code.')

/** Asks the provider for tokens with a code that there is none of: whether it is the code that the provider refuses, or the client. */
const probeProblem = async (services: Services, projectId: string, { provider, secret }: Asked) => {
  const redirect_uri = callbackUrl(services.publicUrl, projectId)
  if (provider.name === 'github') return githubProblem(services, projectId, provider, secret ?? '', redirect_uri)
  let client: openid.Configuration
  try {
    client = (await clientOf(services, provider, secret, true)).config
  } catch (error) {
    return discoveryProblem(services, provider, error)
  }
  try {
    const parameters = { code: 'trellis-test', redirect_uri, code_verifier: 'trellis-test-'.repeat(4) }
    await openid.genericGrantRequest(client, 'authorization_code', parameters)
    return null
  } catch (error) {
    const told = (error as { error?: unknown; cause?: { error?: unknown } }).error
    if (told === 'invalid_grant') return null
    const reason = reasonOf(error)
    if (told === 'invalid_client' || told === 'unauthorized_client')
      return problem('client_refused', `The provider does not accept the client id with this secret: ${reason}.`)
    return problem('provider_refused', `The provider has refused the test: ${reason}.`)
  }
}

const discoveryProblem = ({ config }: Pick<Services, 'config'>, provider: StoredProvider, error: unknown): Problem => {
  const issuer = issuerOf(config, provider)
  if (error instanceof IssuerMismatch)
    return problem('issuer_mismatch', `${issuer} says that its issuer is ${error.message}: enter it so.`)
  if ((error as { code?: unknown }).code === 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED') {
    const { body } = ((error as Error).cause ?? {}) as { body?: { issuer?: unknown } }
    const told = String(body?.issuer ?? 'another').slice(0, 200)
    return problem('issuer_mismatch', `${issuer} says that its issuer is ${told}: enter it so.`)
  }
  return problem('discovery_unreachable', `${issuer}/.well-known/openid-configuration: ${reasonOf(error)}.`)
}

const githubProblem = async (
  { upstream }: Pick<Services, 'upstream'>,
  projectId: string,
  { client_id }: StoredProvider,
  client_secret: string,
  redirect_uri: string,
): Promise<Problem | null> => {
  const answer = await upstream.call({
    provider: 'github',
    projectId,
    method: 'POST',
    path: '/login/oauth/access_token',
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body: new URLSearchParams({ client_id, client_secret, code: 'trellis-test', redirect_uri }).toString(),
    timeoutMs: 10_000,
  })
  if (answer.failure !== null) return problem('discovery_unreachable', `GitHub does not answer: ${answer.reason}.`)
  const { error } = (answer.json() ?? {}) as { error?: unknown }
  if (error === 'bad_verification_code') return null
  if (error === 'redirect_uri_mismatch')
    return problem('redirect_refused', `GitHub does not know the callback: enter ${redirect_uri} there.`)
  return answer.status === 404 || error === 'incorrect_client_credentials'
    ? problem('client_refused', 'GitHub does not accept the client id with this secret.')
    : problem('provider_refused', `GitHub has answered with status ${answer.status}.`)
}

type Asked = { readonly provider: StoredProvider; readonly secret: string | null }

const problemOf = async (services: Services, projectId: string, asked: Asked, redirects: number) => {
  const { provider, secret } = asked
  if (isKnown(provider.name) && secret === null) return secretMissing
  const found = await probeProblem(services, projectId, asked)
  // a provider without one's secret may be a public client, or not: it says so itself
  if (found?.error === 'client_refused' && secret === null) return secretMissing
  if (found) return found
  return redirects === 0
    ? problem('no_redirect_address', 'The provider is fine. Add the address of the app to the redirect addresses.')
    : null
}

/** Tries a provider as it is stored: `ok`, or what is wrong. */
export const test = async (context: HandlerContext) => {
  const { services, params } = context
  const name = String(params['name'])
  const projectId = projectIdOf(context)
  const { provider, secret_sealed, redirects } = dataOf<{
    provider: StoredProvider
    secret_sealed: string | null
    redirects: number
  }>(await context.call('oauth_provider_sealed', { name }, { role: 'app_worker', readOnly: true }))
  const secret = secret_sealed === null ? null : services.secrets.decrypt(secretPurpose(projectId, name), secret_sealed)
  const began = performance.now()
  const found = await problemOf(services, projectId, { provider, secret }, redirects)
  const { error = null, message = null } = found ?? {}
  const latency_ms = Math.round(performance.now() - began)
  return { status: 200, body: JSON.stringify({ data: { ok: found === null, latency_ms, error, message } }) }
}
