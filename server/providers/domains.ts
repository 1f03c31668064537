import { generateKeyPair } from 'node:crypto'
import { promises as dns } from 'node:dns'
import { isIP } from 'node:net'
import { domainToASCII, domainToUnicode } from 'node:url'
import { promisify } from 'node:util'
import { getPublicSuffix } from 'tldts'
import { isLine } from '#server/lines.ts'

export type DomainKind = 'email' | 'site' | 'function'

/** What a check looks for. `dkim_public` is the public key in base64 (DER), for mail only. */
export type CheckedDomain = {
  readonly domain: string
  readonly kind: DomainKind
  readonly token: string
  readonly dkim_public: string | null
}

export type DnsRecord = {
  readonly type: 'TXT' | 'MX' | 'CNAME'
  readonly name: string
  readonly value: string
  readonly purpose: 'ownership' | 'dkim' | 'spf' | 'return_path_mx' | 'return_path_spf' | 'dmarc' | 'routing'
  readonly verified: boolean
}

/** `unknown`: a record was not found, and at least one name server did not answer. */
export type DomainCheck = {
  readonly records: readonly DnsRecord[]
  readonly outcome: 'found' | 'missing' | 'unknown'
  readonly error: string | null
}

export type DomainChecks = {
  /** The records that a domain needs, none of them verified. */
  records(domain: CheckedDomain): readonly DnsRecord[]
  /** Asks DNS for the records. Never rejects. */
  check(domain: CheckedDomain): Promise<DomainCheck>
}

declare module '#server/services.ts' {
  interface Services {
    readonly domains: DomainChecks
  }
}

export type DomainCheckOptions = {
  /** Name servers to ask; empty: those of the machine. */
  readonly servers: readonly string[]
  readonly siteHost: () => string
  readonly mailHost: () => string
}

/** The selector of DKIM in every domain: `svc1._domainkey.<domain>`. */
export const dkimSelector = 'svc1'
/** The name under a sending domain that bounces go to: its SPF and MX are ours alone. */
export const returnPathOf = (domain: string): string => `send.${domain}`

/** What of ASCII is in no domain name: the characters of a URL around its host, and percent signs, which encode any other. */
const foreign = /[^\P{ASCII}A-Za-z0-9.-]/u
const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** A domain in its canonical form: lower case, IDN as A-labels, no final dot. Null for addresses, single labels and public suffixes. */
export const canonicalDomain = (text: string): string | null => {
  const name = text.trim()
  // domainToASCII is the host parser of URLs: it stops at a path, decodes percent signs, and drops line breaks and tabs
  if (!isLine(text) || foreign.test(name)) return null
  const ascii = domainToASCII(name.replace(/\.$/, '')).toLowerCase()
  const labels = ascii.split('.')
  if (ascii.length > 200 || labels.length < 2 || !labels.every((each) => label.test(each))) return null
  // punycode that stands for nothing is left as it is
  if (/(^|\.)xn--/.test(domainToUnicode(ascii))) return null
  // the last label of an IPv4 address is a number, in every notation that a resolver takes
  if (isIP(ascii) || /^(\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? '')) return null
  return getPublicSuffix(ascii, { allowPrivateDomains: true }) === ascii ? null : ascii
}

/** A key pair of DKIM: RSA 2048, which every receiver takes; Ed25519 is not checked everywhere. */
export const createDkimKeys = async (): Promise<{ publicKey: string; privateKey: string }> => {
  const pair = await promisify(generateKeyPair)('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  return { publicKey: pair.publicKey.toString('base64'), privateKey: pair.privateKey }
}

type Expected = Omit<DnsRecord, 'verified'> & { readonly matches: (found: string) => boolean }

const isEqual = (wanted: string) => (found: string) => found.trim() === wanted
const isHost = (wanted: string) => (found: string) => found.toLowerCase().replace(/\.$/, '') === wanted.toLowerCase()
const tagOf = (record: string, tag: string) =>
  record
    .split(';')
    .map((part) => part.trim())
    .find((part) => part.startsWith(`${tag}=`))
    ?.slice(tag.length + 1)
    .replace(/\s/g, '')
const includes = (host: string) => (found: string) =>
  /^v=spf1(\s|$)/i.test(found) && found.toLowerCase().split(/\s+/).includes(`include:${host.toLowerCase()}`)

const txt = (name: string, value: string, purpose: DnsRecord['purpose'], matches = isEqual(value)): Expected => ({
  type: 'TXT',
  name,
  value,
  purpose,
  matches,
})

const ofMail = ({ domain, token, dkim_public }: CheckedDomain, host: string): Expected[] => {
  const path = returnPathOf(domain)
  const spf = `v=spf1 include:${host} ~all`
  return [
    txt(domain, `svc-verify=${token}`, 'ownership'),
    txt(
      `${dkimSelector}._domainkey.${domain}`,
      `v=DKIM1; k=rsa; p=${dkim_public ?? ''}`,
      'dkim',
      (found) => dkim_public !== null && tagOf(found, 'p') === dkim_public,
    ),
    txt(domain, spf, 'spf', includes(host)),
    { type: 'MX', name: path, value: `10 ${host}`, purpose: 'return_path_mx', matches: isHost(host) },
    txt(path, spf, 'return_path_spf', includes(host)),
    txt(`_dmarc.${domain}`, 'v=DMARC1; p=none', 'dmarc', (found) => /^v=DMARC1\s*(;|$)/i.test(found)),
  ]
}

// a TXT record cannot stand beside a CNAME (RFC 1034, 3.6.2): ownership is proved under a name of its own
const ofSite = ({ domain, token }: CheckedDomain, host: string): Expected[] => [
  txt(`_svc-verify.${domain}`, `svc-verify=${token}`, 'ownership'),
  { type: 'CNAME', name: domain, value: host, purpose: 'routing', matches: isHost(host) },
]

const isAbsent = (error: unknown) => ['ENOTFOUND', 'ENODATA'].includes((error as NodeJS.ErrnoException).code ?? '')

const lookUp = (resolver: dns.Resolver, { type, name }: Expected): Promise<string[]> => {
  if (type === 'TXT') return resolver.resolveTxt(name).then((found) => found.map((parts) => parts.join('')))
  if (type === 'MX') return resolver.resolveMx(name).then((found) => found.map(({ exchange }) => exchange))
  return resolver.resolveCname(name)
}

const shown = ({ matches: _matches, ...record }: Expected, verified: boolean): DnsRecord => ({ ...record, verified })

/** Checks the records of domains with name servers asked directly, so that no cache of the system and no hosts file decides. */
export const createDomainChecks = ({ servers, siteHost, mailHost }: DomainCheckOptions): DomainChecks => {
  const expected = (domain: CheckedDomain): Expected[] =>
    domain.kind === 'email' ? ofMail(domain, mailHost()) : ofSite(domain, siteHost())
  return {
    records: (domain) => expected(domain).map((record) => shown(record, false)),
    async check(domain) {
      const resolver = new dns.Resolver({ timeout: 2000, tries: 2 })
      if (servers.length > 0) resolver.setServers([...servers])
      let isUnknown = false
      const found = async (record: Expected): Promise<DnsRecord> => {
        const values = await lookUp(resolver, record).catch((error: unknown) => {
          isUnknown ||= !isAbsent(error) && record.purpose !== 'dmarc'
          return []
        })
        return shown(record, values.some(record.matches))
      }
      const records = await Promise.all(expected(domain).map(found))
      // DMARC is advice: a policy that is too strict would stop mail that the domain sends from elsewhere
      const missing = records.filter(({ verified, purpose }) => !verified && purpose !== 'dmarc')
      if (missing.length === 0) return { records, outcome: 'found', error: null }
      if (isUnknown) return { records, outcome: 'unknown', error: 'The name servers of the domain did not answer.' }
      const names = missing.map(({ type, name, purpose }) => `${type} ${name} (${purpose})`)
      return { records, outcome: 'missing', error: `Not found: ${names.join(', ')}.` }
    },
  }
}

/** Under what the private key of a domain is encrypted. */
export const dkimPurpose = (projectId: string, domain: string): string => `dkim ${projectId} ${domain}`
