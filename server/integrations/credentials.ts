/** Whether the stored credentials of a provider work. */
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { projectIdOf } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'
import type { SmtpConfig } from '#server/providers/mail.ts'
import { integrationPurpose } from '#server/providers/project_mail.ts'
import { type FcmConfig, serviceAccountProblem } from '#server/providers/push/fcm.ts'
import { providerOf, type Sealed } from '#server/providers/push/gateway.ts'
import type { Services } from '#server/services.ts'

/** Calls the provider with the stored credentials, which only workers may read. */
export const test = async (context: HandlerContext) => {
  const { services, params } = context
  const provider = String(params['provider'])
  const asked = await context.call('integration_sealed', { provider }, { role: 'app_worker', readOnly: true })
  if (provider === 'log') return tested(true, 0, null)
  const projectId = projectIdOf(context)
  const { config_sealed } = dataOf<{ config_sealed: string }>(asked)
  const began = performance.now()
  const error = await problemOf(services, projectId, provider, config_sealed)
  return tested(error === null, Math.round(performance.now() - began), error)
}

/** What the provider has against its credentials, null when nothing. */
const problemOf = async (
  services: Pick<Services, 'config' | 'mail' | 'now' | 'outbound' | 'secrets' | 'upstream'>,
  projectId: string,
  provider: string,
  config_sealed: string,
) => {
  if (provider === 'smtp') {
    const config = services.secrets.decrypt(integrationPurpose(projectId, provider), config_sealed)
    return services.mail.verify(JSON.parse(config) as SmtpConfig).then(
      () => null,
      // a server answers what it likes
      (error: Error) => error.message.slice(0, 1000),
    )
  }
  if (provider === 'apns' || provider === 'fcm') {
    const sealed: Sealed = { provider, config_sealed }
    const { outcome, code } = await providerOf(services, projectId, sealed).check()
    return outcome === 'sent' ? null : (code ?? outcome)
  }
  const opened = () =>
    JSON.parse(services.secrets.decrypt(integrationPurpose(projectId, provider), config_sealed)) as Record<
      string,
      string
    >
  if (provider === 'google_play') {
    const config = opened() as unknown as FcmConfig
    return serviceAccountProblem(config, 'https://www.googleapis.com/auth/androidpublisher', services)
  }
  if (provider === 'revenuecat' || provider === 'superwall') return keyProblem(services, projectId, provider, opened())
  throw refusal(400, 'PROVIDER_UNKNOWN', 'The credentials of this provider cannot be tested.')
}

/** Reads the smallest list that the key opens. */
const keyProblem = async (
  { upstream }: Pick<Services, 'upstream'>,
  projectId: string,
  provider: 'revenuecat' | 'superwall',
  config: Readonly<Record<string, string>>,
) => {
  const { project_id: rcProject, secret_api_key, api_key } = config
  const answer = await upstream.call({
    provider,
    projectId,
    method: 'GET',
    ...(rcProject && provider === 'revenuecat'
      ? { path: '/v2/projects/{project}/customers', params: { project: rcProject }, query: { limit: 1 } }
      : { path: '/v2/projects', query: { limit: 1 } }),
    headers: { authorization: `Bearer ${provider === 'revenuecat' ? secret_api_key : api_key}` },
    timeoutMs: 10_000,
  })
  if (answer.failure !== null) return answer.reason
  if (answer.status === 401 || answer.status === 403) return 'INVALID_CREDENTIALS'
  return answer.status === 200 ? null : `HTTP_${answer.status}`
}

const tested = (ok: boolean, latency_ms: number, error: string | null) => ({
  status: 200,
  body: JSON.stringify({ data: { ok, latency_ms, error } }),
})
