/** Sign-in with the identity token of Apple or Google. */
import { newcomers, projectOf, signIn } from '#server/accounts/sessions.ts'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { displayNameOf, type Identity, type SocialProvider } from '#server/providers/identity.ts'

/** The required audience of identity tokens, from control. */
type SignInSettings = {
  readonly bundle_id: string | null
  readonly google_oauth_client_id: string | null
}

/** The project may have been deleted a moment ago: then its key is invalid, although it is still in the cache. */
const settingsOf = async ({ services, resolved }: HandlerContext, failure: string): Promise<SignInSettings> => {
  const settings = dataOf<SignInSettings | null>(
    await services.database.call(
      services.control,
      'control_auth',
      { caller: 'sign_in' },
      'sign_in_settings',
      { project_id: projectOf(resolved).projectId },
      { readOnly: true, failure },
    ),
  )
  if (!settings) throw refusal(401, 'UNAUTHORIZED', 'The API key is invalid or was deactivated.')
  return settings
}

export type IdTokenBody = { readonly provider: SocialProvider; readonly id_token: string; readonly nonce?: string }

/** Verifies an identity token against the project's audience for its provider. */
export const identityFrom = async (context: HandlerContext, body: IdTokenBody, failure: string): Promise<Identity> => {
  const settings = await settingsOf(context, failure)
  const field = body.provider === 'apple' ? 'bundle_id' : 'google_oauth_client_id'
  const audience = settings[field]
  if (!audience) {
    throw refusal(400, 'AUDIENCE_NOT_CONFIGURED', `The project has no ${field}, so no token can be meant for it.`, {
      field,
    })
  }
  const identity = await context.services.identity.verify(body.provider, {
    token: body.id_token,
    audience,
    nonce: body.nonce ?? null,
  })
  if (!identity) throw refusal(401, 'INVALID_TOKEN', 'The identity token is invalid or expired.')
  return identity
}

export const social = async (context: HandlerContext) => {
  const body = context.body as IdTokenBody & { name?: string }
  await newcomers(context)
  const identity = await identityFrom(context, body, 'LOGIN_FAILED')
  return signIn(context, 'auth_social', {
    provider: body.provider,
    provider_id: identity.providerId,
    email: identity.email,
    // Apple sends the name only to the app, and only once
    display_name: identity.name ?? (body.name === undefined ? null : displayNameOf(body.name)),
  })
}
