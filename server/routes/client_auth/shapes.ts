import { z } from 'zod'
import { answer } from '#server/http/interface.ts'
import { Credential, data } from '#server/http/schemas.ts'
import type { Dictionary } from '#server/http/words.ts'

/** The fields of a social sign-in and a social link, in addition to the provider's name. */
export const idToken = {
  id_token: Credential,
  nonce: Credential.optional(),
}

export const User = answer('user_json', {
  auth_providers: z.array(z.strictObject({ provider: z.string(), provider_id: z.string() })),
})

export const AuthResult = data(
  z.strictObject({ session_token: z.string(), refresh_token: z.string(), user: User, is_new_user: z.boolean() }),
)

export const Ok = data(z.strictObject({ ok: z.literal(true) }))
export const Success = data(z.strictObject({ success: z.literal(true) }))

/** What is said of signing in, in all its files. */
export const authWords: Dictionary = {
  anonymous_id: ['Anonymous id', 'The id of a device: `anon_` and 32 to 128 characters.', { unset: 'One is made' }],
  refresh_token: ['Refresh token', 'Of the session.'],
  all: ['Everywhere', 'Ends all sessions of the user.'],
  token: ['Token', 'Of the mailed link.'],
  purpose: ['For', 'Signing in, linking the address, or deleting the account.', { unset: 'Signing in' }],
  code: ['Code', 'Six digits.'],
  provider: ['Way', 'A way to sign in.'],
  current_password: ['Current password', 'Where the user has one.'],
  id_token: ['ID token', 'As Apple or Google gave it to the app.'],
  nonce: ['Nonce', 'The text that the app asked for the token with.'],
  provider_id: ['Account', 'Which of several accounts of that way.'],
  from_session_token: ['Anonymous session', 'The session token of the anonymous user.'],
}
