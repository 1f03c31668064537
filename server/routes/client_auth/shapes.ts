import { z } from 'zod'
import { answer } from '#server/http/interface.ts'
import { Credential, data } from '#server/http/schemas.ts'

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
