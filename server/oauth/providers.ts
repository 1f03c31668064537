/** The providers of a sign-in by redirect: which are known by name, and what of them a project stores. */
import type { Config } from '#server/config.ts'

/** A provider as SQL answers it, without its secret. */
export type StoredProvider = {
  readonly name: string
  /** Null where the name says it. */
  readonly issuer: string | null
  readonly client_id: string
  readonly has_secret: boolean
  readonly team_id: string | null
  readonly signing_key_id: string | null
  readonly scopes: readonly string[]
  readonly is_active: boolean
}

/** Known by name: their issuers, and the identities that their ID tokens give, are the same in every project. */
export const knownProviders = ['apple', 'github', 'google'] as const
type Known = (typeof knownProviders)[number]
export const isKnown = (name: string): name is Known => (knownProviders as readonly string[]).includes(name)

const usualScopes: Readonly<Record<Known, readonly string[]>> = {
  apple: ['openid', 'name', 'email'],
  github: ['read:user', 'user:email'],
  google: ['openid', 'email', 'profile'],
}

/** The scopes of a request, each once: those that the sign-in needs, the project's, and what the app asks for. */
export const scopesOf = (provider: StoredProvider, asked: readonly string[]): string => {
  const usual = isKnown(provider.name) ? usualScopes[provider.name] : usualScopes.google
  return [...new Set([...usual, ...provider.scopes, ...asked])].join(' ')
}

/** The issuer of a provider that has ID tokens; null of GitHub, whose API says who signed in. */
export const issuerOf = (
  config: Pick<Config, 'APPLE_ISSUER' | 'GOOGLE_ISSUER'>,
  { name, issuer }: Pick<StoredProvider, 'name' | 'issuer'>,
): string | null => {
  if (name === 'github') return null
  if (!isKnown(name)) return issuer
  const known = name === 'apple' ? config.APPLE_ISSUER : config.GOOGLE_ISSUER
  return /^https:\/\//.test(known) ? known : `https://${known}`
}

export const secretPurpose = (projectId: string, name: string): string => `oauth provider ${projectId} ${name}`

/** What the provider must know as a redirect URI of the client: one for each project, so that an answer for another project cannot come here. */
export const callbackUrl = (publicUrl: string, projectId: string): string =>
  `${publicUrl}/p/${projectId}/auth/v1/callback`
