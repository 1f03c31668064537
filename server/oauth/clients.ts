/** The client of an OpenID provider: discovery, keys and client authentication, all through the SSRF filter. */
import { importPKCS8, SignJWT } from 'jose'
import * as openid from 'openid-client'
import { createLru } from '#server/lru.ts'
import { issuerOf, type StoredProvider } from '#server/oauth/providers.ts'
import type { Outbound } from '#server/providers/outbound.ts'
import type { Services } from '#server/services.ts'

type Known = {
  readonly metadata: openid.ServerMetadata
  keys?: openid.ExportedJWKSCache | undefined
  readonly at: number
}

export type Issuers = {
  /** What an issuer publishes about itself, an hour old at most. Rejects with an error of openid-client or of the request. */
  find(issuer: string): Promise<Known>
  /** Asked anew, whatever is known. */
  ask(issuer: string): Promise<Known>
  readonly fetch: openid.CustomFetch
}

declare module '#server/services.ts' {
  interface Services {
    readonly issuers: Issuers
  }
}

const freshMs = 3600_000
const timeoutSeconds = 10

/** An issuer whose metadata name another one, as those do that stand for many tenants. */
export class IssuerMismatch extends Error {}

export const createIssuers = (outbound: Pick<Outbound, 'fetch'>, now: () => Date): Issuers => {
  const known = createLru<Known>(1000)
  const asking = new Map<string, Promise<Known>>()
  const fetch: openid.CustomFetch = (url, { method, headers, body }) =>
    outbound.fetch(url, {
      method: method === 'POST' ? 'POST' : 'GET',
      headers: {
        ...(body ? { 'content-type': 'application/x-www-form-urlencoded' } : {}),
        ...Object.fromEntries(new Headers(headers)),
      },
      ...(body ? { body: String(body) } : {}),
    })

  const ask = async (issuer: string): Promise<Known> => {
    const options = { [openid.customFetch]: fetch, timeout: timeoutSeconds }
    const found = await openid.discovery(new URL(issuer), 'discovery', undefined, openid.None(), options)
    const metadata = { ...found.serverMetadata() }
    if (metadata.issuer !== issuer) throw new IssuerMismatch(metadata.issuer.slice(0, 200))
    const entry = { metadata, at: now().getTime() }
    known.set(issuer, entry)
    return entry
  }
  return {
    fetch,
    ask,
    find(issuer) {
      const held = known.get(issuer)
      if (held && Math.abs(now().getTime() - held.at) < freshMs) return Promise.resolve(held)
      const running = asking.get(issuer) ?? ask(issuer).finally(() => asking.delete(issuer))
      asking.set(issuer, running)
      return running
    },
  }
}

/** Apple takes no secret but a token of five minutes, signed with a key of the developer's account. */
const appleSecret = async (provider: StoredProvider, key: string, issuer: string, now: Date): Promise<string> => {
  const seconds = Math.floor(now.getTime() / 1000)
  return new SignJWT()
    .setProtectedHeader({ alg: 'ES256', kid: provider.signing_key_id ?? '' })
    .setIssuer(provider.team_id ?? '')
    .setSubject(provider.client_id)
    .setAudience(issuer)
    .setIssuedAt(seconds)
    .setExpirationTime(seconds + 300)
    .sign(await importPKCS8(key, 'ES256'))
}

const authenticationOf = (metadata: openid.ServerMetadata, secret: string | null): openid.ClientAuth => {
  if (secret === null) return openid.None()
  // OpenID Connect Discovery 1.0, 3: Basic is what is meant where nothing is said
  const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
  return methods.includes('client_secret_post') ? openid.ClientSecretPost(secret) : openid.ClientSecretBasic(secret)
}

export type Client = { readonly config: openid.Configuration; readonly keep: () => void }

/** The client of a provider that has an issuer. `keep` remembers the keys that a check has fetched. */
export const clientOf = async (
  { config, issuers, now }: Pick<Services, 'config' | 'issuers' | 'now'>,
  provider: StoredProvider,
  secret: string | null,
  isAsked = false,
): Promise<Client> => {
  const issuer = issuerOf(config, provider) ?? ''
  const entry = await (isAsked ? issuers.ask(issuer) : issuers.find(issuer))
  const signs = provider.name === 'apple' && secret !== null && provider.team_id !== null
  const used = signs ? await appleSecret(provider, secret, issuer, now()) : secret
  const skew = Math.round((now().getTime() - Date.now()) / 1000)
  const metadata = { [openid.clockSkew]: skew }
  const client = new openid.Configuration(
    entry.metadata,
    provider.client_id,
    metadata,
    authenticationOf(entry.metadata, used),
  )
  client[openid.customFetch] = issuers.fetch
  client.timeout = timeoutSeconds
  // the ID token comes over TLS from the provider itself; its signature is verified all the same
  openid.enableNonRepudiationChecks(client)
  if (entry.keys) openid.setJwksCache(client, entry.keys)
  const keep = () => {
    entry.keys = openid.getJwksCache(client)
  }
  return { config: client, keep }
}
