/** A sign-in by redirect of an app user: begun, answered by the provider, exchanged by the app. */
import { createHash, randomBytes } from 'node:crypto'
import { newcomers, projectOf, signIn } from '#server/accounts/sessions.ts'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { perIp, takeLimits } from '#server/http/limits.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { type StoredProvider, secretPurpose } from '#server/oauth/providers.ts'
import { redirectTo, withAnswer } from '#server/oauth/redirects.ts'
import { authorizationUrl, identityBehind, reasonOf } from '#server/oauth/sign_ins.ts'
import type { Identity } from '#server/providers/identity.ts'
import { sha256 } from '#server/secrets.ts'

const random = () => randomBytes(32).toString('base64url')

export const unreachable = () =>
  refusal(503, 'SERVICE_UNAVAILABLE', 'The identity provider cannot be reached: try again.', null, {
    'Retry-After': '30',
  })

export type Beginning = {
  readonly provider: string
  readonly redirect_to?: string | undefined
  readonly code_challenge: string
  readonly code_challenge_method: 'S256' | 'plain'
  readonly scopes?: readonly string[] | undefined
  readonly login_hint?: string | undefined
  readonly prompt?: string | undefined
}

/** `url` is null when the provider cannot be reached: the app hears so at its own address. */
export type Begun = { readonly url: string | null; readonly returning: string }

/** Stores a flow, and answers where the browser goes. `more`: further parameters of the provider's page. */
export const beginFlow = async (
  context: HandlerContext,
  asked: Beginning,
  more: Readonly<Record<string, string>> = {},
): Promise<Begun> => {
  const { call, request, resolved, services } = context
  await takeLimits(context, perIp('client oauth', request.ip, [60, 'minute'], [1000, 'day']), 'RATE_LIMITED')
  const { provider, redirects } = dataOf<{ provider: StoredProvider; redirects: string[] }>(
    await call('oauth_offer', { provider: asked.provider }, { readOnly: true }),
  )
  const returning = redirectTo(redirects, asked.redirect_to)
  if (returning === null)
    throw refusal(400, 'REDIRECT_NOT_ALLOWED', 'The project does not allow this redirect address.', {
      field: 'redirect_to',
    })
  const state = random()
  const { projectId } = projectOf(resolved)
  const url = await authorizationUrl(services, {
    projectId,
    provider,
    state,
    scopes: asked.scopes ?? [],
    more: {
      ...more,
      ...(asked.login_hint === undefined ? {} : { login_hint: asked.login_hint }),
      ...(asked.prompt === undefined ? {} : { prompt: asked.prompt }),
    },
  }).catch((error) => {
    services.log.warn({ project: projectId, provider: provider.name, error: reasonOf(error) }, 'sign-in not begun')
    return null
  })
  if (url === null) return { url, returning }
  const method = asked.code_challenge_method.toLowerCase()
  const flow = { provider: provider.name, challenge: asked.code_challenge, challenge_method: method }
  await call('oauth_flow_begin', { ...flow, state_hash: sha256(state), redirect_to: returning }, { readOnly: false })
  return { url, returning }
}

export const begin = async (context: HandlerContext) => {
  const { url } = await beginFlow(context, context.body as unknown as Beginning)
  if (url === null) throw unreachable()
  return { status: 200, body: JSON.stringify({ data: { url } }) }
}

type Taken = {
  readonly id: string
  readonly redirect_to: string
  readonly is_first: boolean
  readonly is_expired: boolean
  readonly provider: StoredProvider | null
  readonly secret_sealed: string | null
}

/** An error as GoTrue sends one to the app (RFC 6749, 4.1.2.1): the word of OAuth, its own, and a sentence. */
const failed = (error: string, error_code: string, error_description: string) => ({
  error,
  error_code,
  error_description,
})
const badState = (why: string) => failed('invalid_request', 'bad_oauth_state', why)

/** What the provider says of itself, as far as it can be shown. */
const worded = (text: string | null, most: number) => (text ?? '').replace(/[^\x20-\x7e]+/g, ' ').slice(0, most)

/**
 * The answer of a provider, which a browser brings: where the browser goes next. Refuses a state that nobody knows: then there is no address to return to.
 */
export const answerFlow = async (context: HandlerContext, parameters: URLSearchParams): Promise<string> => {
  const { call } = context
  const state = parameters.get('state') ?? ''
  const hash = sha256(state.slice(0, 200))
  const flow = dataOf<Taken | null>(await call('oauth_flow_take', { state_hash: hash }, { readOnly: false }))
  if (!flow) throw refusal(400, 'OAUTH_STATE_INVALID', 'No sign-in was begun with this state: begin again.')
  return withAnswer(flow.redirect_to, await outcomeOf(context, flow, state, parameters))
}

const outcomeOf = async (
  context: HandlerContext,
  flow: Taken,
  state: string,
  parameters: URLSearchParams,
): Promise<Readonly<Record<string, string>>> => {
  if (!flow.is_first) return badState('This sign-in was answered before: begin again.')
  if (flow.is_expired) return badState('This sign-in took longer than ten minutes: begin again.')
  if (!flow.provider) return failed('invalid_request', 'provider_disabled', 'This provider is switched off.')
  const told = parameters.get('error')
  if (told !== null) {
    const said = worded(parameters.get('error_description'), 300) || 'The provider has refused the sign-in.'
    return failed(worded(told, 60) || 'server_error', 'bad_oauth_callback', said)
  }
  if (!parameters.get('code')) return failed('invalid_request', 'bad_oauth_callback', 'The provider has sent no code.')
  const found = await identityOf(context, flow, flow.provider, state, parameters)
  if ('error' in found) return found
  const code = random()
  await context.call(
    'oauth_flow_identify',
    {
      flow_id: flow.id,
      code_hash: sha256(code),
      provider_id: found.providerId,
      email: found.email,
      display_name: found.name,
    },
    { readOnly: false },
  )
  return { code }
}

const identityOf = async (
  { resolved, services }: HandlerContext,
  { secret_sealed }: Taken,
  provider: StoredProvider,
  state: string,
  parameters: URLSearchParams,
): Promise<Identity | ReturnType<typeof failed>> => {
  const { projectId } = projectOf(resolved)
  const secret =
    secret_sealed === null ? null : services.secrets.decrypt(secretPurpose(projectId, provider.name), secret_sealed)
  const rejected = failed('server_error', 'bad_oauth_callback', 'The answer of the provider is not valid.')
  try {
    return (await identityBehind(services, { projectId, provider, secret, state, parameters })) ?? rejected
  } catch (error) {
    services.log.warn({ project: projectId, provider: provider.name, error: reasonOf(error) }, 'sign-in not finished')
    return rejected
  }
}

export const exchange = async (context: HandlerContext) => {
  const { code, code_verifier } = context.body as { code: string; code_verifier: string }
  await newcomers(context)
  return signIn(context, 'oauth_exchange', {
    code_hash: sha256(code),
    verifier: code_verifier,
    verifier_s256: createHash('sha256').update(code_verifier).digest('base64url'),
  })
}
