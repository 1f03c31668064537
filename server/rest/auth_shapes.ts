import { refusal } from '#server/errors.ts'
import { isExactNumber } from '#server/json/lossless_json.ts'

/** A user as our routes answer one. */
export type OurUser = {
  readonly id: string
  readonly email: string | null
  readonly phone: string | null
  readonly display_name: string
  readonly avatar_url: string | null
  readonly auth_providers: readonly { readonly provider: string; readonly provider_id: string }[]
  readonly properties: Readonly<Record<string, unknown>>
  readonly email_verified: boolean
  readonly phone_verified: boolean
  readonly first_seen_at: string
  readonly last_seen_at: string
}

/** What in the metadata of a user is a field of their profile here; everything else is a property. */
const profileFields = ['display_name', 'avatar_url']

const identityOf = (user: OurUser, { provider, provider_id }: OurUser['auth_providers'][number]) => ({
  id: provider_id,
  identity_id: provider_id,
  user_id: user.id,
  provider,
  identity_data: { sub: provider_id, ...(provider === 'email' ? { email: user.email } : {}) },
  created_at: user.first_seen_at,
  last_sign_in_at: user.last_seen_at,
  updated_at: user.last_seen_at,
})

/** The user object of auth-js. When an address was confirmed is not kept: a confirmed one has the time of the account. */
export const userOf = (user: OurUser, more: { readonly new_email?: string; readonly new_phone?: string } = {}) => {
  const named = user.auth_providers.filter(({ provider }) => provider !== 'anonymous')
  const providers = [...new Set(named.map(({ provider }) => provider))]
  const confirmed = (isVerified: boolean) => (isVerified ? { at: user.first_seen_at } : null)
  const [email, phone] = [confirmed(user.email_verified), confirmed(user.phone_verified)]
  return {
    id: user.id,
    aud: 'authenticated',
    role: 'authenticated',
    email: user.email ?? '',
    phone: user.phone ?? '',
    ...(email ? { email_confirmed_at: email.at } : {}),
    ...(phone ? { phone_confirmed_at: phone.at } : {}),
    ...(email || phone ? { confirmed_at: user.first_seen_at } : {}),
    ...more,
    last_sign_in_at: user.last_seen_at,
    app_metadata: { ...(providers[0] ? { provider: providers[0] } : {}), providers },
    user_metadata: {
      ...user.properties,
      display_name: user.display_name,
      ...(user.avatar_url === null ? {} : { avatar_url: user.avatar_url }),
    },
    identities: named.map((identity) => identityOf(user, identity)),
    is_anonymous: user.email === null && user.phone === null && named.length === 0,
    created_at: user.first_seen_at,
    updated_at: user.last_seen_at,
  }
}

export type Tokens = { readonly session_token: string; readonly refresh_token: string }

/** The claims of a token of our own, which was just signed or verified. */
export const claimsOf = (token: string): { readonly exp: number; readonly sid: string; readonly anon: string | null } =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

/** What auth-js reads in an access token (getClaims), beside the claims of every session token. */
export const claimsFor = (user: OurUser, sid: string, root: string) => {
  const { aud, role, email, phone, is_anonymous } = userOf(user)
  return { iss: `${root}/auth/v1`, aud, role, aal: 'aal1', session_id: sid, email, phone, is_anonymous }
}

/** The session object of auth-js. */
export const sessionOf = ({ session_token, refresh_token }: Tokens, user: OurUser, now: Date) => {
  const { exp } = claimsOf(session_token)
  return {
    access_token: session_token,
    token_type: 'bearer',
    expires_in: Math.max(1, exp - Math.floor(now.getTime() / 1000)),
    expires_at: exp,
    refresh_token,
    user: userOf(user),
  }
}

/** The change of a profile that metadata means: null where it says nothing. */
export const changeOf = (metadata: unknown): Readonly<Record<string, unknown>> | null => {
  if (metadata === undefined || metadata === null) return null
  if (typeof metadata !== 'object' || Array.isArray(metadata) || isExactNumber(metadata))
    throw invalid('data', 'must be an object')
  const entries = Object.entries(metadata)
  if (entries.length === 0) return null
  const isField = ([name]: [string, unknown]) => profileFields.includes(name)
  const properties = entries.filter((entry) => !isField(entry))
  return {
    ...Object.fromEntries(entries.filter(isField)),
    ...(properties.length > 0 ? { properties: Object.fromEntries(properties) } : {}),
  }
}

export const invalid = (field: string, reason: string) =>
  refusal(400, 'INVALID_INPUT', `${field}: ${reason}`, { field, reason })
