import { z } from 'zod'
import { Credential, data, JsonObject, Time, Uuid } from '#server/http/schemas.ts'

/** The fields of a social sign-in and a social link, in addition to the provider's name. */
export const idToken = {
  id_token: Credential,
  nonce: Credential.optional(),
}

export const User = z.strictObject({
  id: Uuid,
  email: z.string().nullable(),
  phone: z.string().nullable(),
  display_name: z.string(),
  avatar_url: z.string().nullable(),
  external_id: z.string().nullable(),
  anonymous_id: z.string().nullable(),
  auth_providers: z.array(z.strictObject({ provider: z.string(), provider_id: z.string() })),
  properties: JsonObject,
  timezone: z.string().nullable(),
  email_verified: z.boolean(),
  phone_verified: z.boolean(),
  first_seen_at: Time,
  last_seen_at: Time,
})

export const AuthResult = data(
  z.strictObject({ session_token: z.string(), refresh_token: z.string(), user: User, is_new_user: z.boolean() }),
)

export const Ok = data(z.strictObject({ ok: z.literal(true) }))
export const Success = data(z.strictObject({ success: z.literal(true) }))
