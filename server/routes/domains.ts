import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { anyone, projectOwner } from '#server/http/callers.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { Deleted, data, Page, page, Text, Time, Uuid } from '#server/http/schemas.ts'
import {
  type CheckedDomain,
  canonicalDomain,
  createDkimKeys,
  type DomainKind,
  dkimPurpose,
} from '#server/providers/domains.ts'

const Kind = z.enum(['email', 'site', 'function'], 'must be email, site or function')
const Domain = z.strictObject({
  id: Uuid,
  domain: z.string(),
  kind: Kind,
  status: z.enum(['pending', 'verified', 'failed']),
  dns_records: z.array(
    z.strictObject({
      type: z.enum(['TXT', 'MX', 'CNAME']),
      name: z.string(),
      value: z.string(),
      purpose: z.enum(['ownership', 'dkim', 'spf', 'return_path_mx', 'return_path_spf', 'dmarc', 'routing']),
      verified: z.boolean(),
    }),
  ),
  verified_at: Time.nullable(),
  last_checked_at: Time.nullable(),
  error: z.string().nullable(),
  created_at: Time,
})

const invalidDomain = () => {
  const reason = 'must be a domain name that is registered: no address, no public suffix'
  return refusal(400, 'VALIDATION_ERROR', `domain: ${reason}`, { field: 'domain', reason })
}

/** The private key is encrypted before it leaves this process, and never shown. */
const create = async ({ body, call, resolved, services }: HandlerContext) => {
  const { domain: sent, kind } = body as { domain: string; kind: DomainKind }
  const domain = canonicalDomain(sent)
  if (!domain) throw invalidDomain()
  const projectId = resolved.project?.projectId ?? ''
  const keys = kind === 'email' ? await createDkimKeys() : null
  const token = randomBytes(16).toString('hex')
  const dkim_public = keys?.publicKey ?? null
  return call('domain_create', {
    project_id: projectId,
    domain,
    kind,
    token,
    records: JSON.stringify(services.domains.records({ domain, kind, token, dkim_public })),
    dkim_public,
    dkim_sealed: keys && services.secrets.encrypt(dkimPurpose(projectId, domain), keys.privateKey),
  })
}

/** DNS is asked between two transactions: no connection and no lock waits for a name server. */
const verify = async ({ params, call, resolved, services }: HandlerContext) => {
  const at = { project_id: resolved.project?.projectId, domain_id: params['domainId'] }
  const begun = dataOf<CheckedDomain>(await call('domain_check_begin', at))
  const { records, outcome, error } = await services.domains.check(begun)
  return call('domain_check_end', { ...at, records: JSON.stringify(records), outcome, error })
}

const projectId = ({ params }: { params: Record<string, unknown> }) => ({ project_id: params['projectId'] })

export const domains = area({
  stem: 'domains',
  title: 'Domains',
  part: 'Platform',
  about: 'Host names of a project, and their verification.',
  source: 'supplement',
  routes: [
    ...group('/admin/projects/:projectId/domains', projectOwner, [
      route('POST /', 'Attach a domain; the answer names the DNS records to write', {
        handle: create,
        body: z.object({ domain: Text(253, 1), kind: Kind }),
        example: { domain: 'mail.example.com', kind: 'email' },
        replies: { 201: data(Domain) },
        refusals: { 409: ['DOMAIN_TAKEN', 'CONFLICT', 'LIMIT_REACHED'] },
      }),
      route('GET /', 'The domains of a project, newest first', {
        call: 'domain_list',
        query: { ...Page, kind: Kind.optional() },
        args: projectId,
        replies: { 200: page(Domain) },
      }),
      route('GET /:domainId', 'A domain', { call: 'domain_get', args: projectId, replies: { 200: data(Domain) } }),
      route('DELETE /:domainId', 'Detach a domain', {
        call: 'domain_delete',
        args: projectId,
        replies: { 200: Deleted },
      }),
      route('POST /:domainId/verify', 'Check the DNS records of a domain now, at most once in ten seconds', {
        handle: verify,
        replies: { 200: data(Domain) },
        refusals: { 409: ['DOMAIN_TAKEN'] },
      }),
    ]),
  ],
})

export const tlsAsk = area({
  stem: 'domains',
  title: 'Domains',
  source: 'supplement',
  unversioned: true,
  routes: [
    ...group('/internal/tls-ask', anyone, [
      route('GET /', 'Whether a reverse proxy may obtain a certificate for a name', {
        call: 'tls_ask',
        operationId: 'checkTlsDomain',
        description: "For Caddy's on-demand TLS: 200 for a verified domain of a site or of functions, else 404.",
        query: { domain: Text(253, 1) },
        replies: { 200: data(z.strictObject({ domain: z.string() })) },
        ceiling: 'none',
      }),
    ]),
  ],
})
