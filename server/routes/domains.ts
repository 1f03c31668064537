import { z } from 'zod'
import { anyone, projectOwner } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { Deleted, data, Page, page, Text } from '#server/http/schemas.ts'
import { create, verify } from '#server/projects/domains.ts'

const Kind = z.enum(['email', 'site', 'function'], 'must be email, site or function')
const Domain = answer(
  'domain_json',
  {
    dns_records: z.array(
      z.strictObject({
        type: z.enum(['TXT', 'MX', 'CNAME']),
        name: z.string(),
        value: z.string(),
        purpose: z.enum(['ownership', 'dkim', 'spf', 'return_path_mx', 'return_path_spf', 'dmarc', 'routing']),
        verified: z.boolean(),
      }),
    ),
  },
  'control',
)

const projectId = ({ params }: { params: Record<string, unknown> }) => ({ project_id: params['projectId'] })

export const domains = area({
  stem: 'domains',
  title: 'Domains',
  part: 'Platform',
  about: 'Host names of a project, and their verification.',
  words: {
    domain: ['Domain', 'Such as `mail.example.com`.'],
    kind: ['For', 'Sending mail, a site, or functions.'],
  },
  routes: [
    ...group('/admin/projects/:projectId/domains', projectOwner, [
      route('POST /', 'Attach a domain; the answer names the DNS records to write', {
        handle: create,
        calls: ['domain_create'],
        body: z.object({ domain: Text(253, 1), kind: Kind }),
        example: { domain: 'mail.example.com', kind: 'email' },
        replies: { 201: data(Domain) },
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
        calls: ['domain_check_begin', 'domain_check_end'],
        replies: { 200: data(Domain) },
      }),
    ]),
  ],
})

export const tlsAsk = area({
  stem: 'domains',
  title: 'Domains',
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
