/** Domains of a project: their keys and DNS records. */
import { randomBytes } from 'node:crypto'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import { projectIdOf } from '#server/http/project.ts'
import type { HandlerContext } from '#server/http/route.ts'
import {
  type CheckedDomain,
  canonicalDomain,
  createDkimKeys,
  type DomainKind,
  dkimPurpose,
} from '#server/providers/domains.ts'

const invalidDomain = () => {
  const reason = 'must be a domain name that is registered: no address, no public suffix'
  return refusal(400, 'VALIDATION_ERROR', `domain: ${reason}`, { field: 'domain', reason })
}

/** The private key is encrypted before it leaves this process, and never shown. */
export const create = async (context: HandlerContext) => {
  const { body, call, services } = context
  const { domain: sent, kind } = body as { domain: string; kind: DomainKind }
  const domain = canonicalDomain(sent)
  if (!domain) throw invalidDomain()
  const projectId = projectIdOf(context)
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
export const verify = async ({ params, call, resolved, services }: HandlerContext) => {
  const at = { project_id: resolved.project?.projectId, domain_id: params['domainId'] }
  const begun = dataOf<CheckedDomain>(await call('domain_check_begin', at))
  const { records, outcome, error } = await services.domains.check(begun)
  return call('domain_check_end', { ...at, records: JSON.stringify(records), outcome, error })
}
