import { z } from 'zod'
import { refusal } from '#server/errors.ts'
import { appKey } from '#server/http/callers.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { Credential, Text } from '#server/http/schemas.ts'
import { displayNameOf, type Identity, type SocialProvider, socialProviders } from '#server/providers/identity.ts'
import { AuthResult, newcomers, settingsOf, signIn } from '#server/routes/client_auth/result.ts'

/** The fields of a social sign-in and a social link, in addition to the provider's name. */
export const idToken = {
  id_token: Credential,
  nonce: Credential.optional(),
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

const social = async (context: HandlerContext) => {
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

export const clientAuthSocial = area({
  stem: 'client_auth',
  title: 'Sign-in with Apple and Google',
  part: 'People',
  about: 'Sign-in with the identity token of a provider.',
  source: 'contract',
  invalid: 'INVALID_INPUT',
  routes: [
    ...group('/client/auth', appKey, [
      route('POST /social', 'Sign in with an identity token of Apple or Google', {
        handle: social,
        operationId: 'signInWithProvider',
        description:
          "The token's audience is the project's `bundle_id` (Apple) or `google_oauth_client_id` (Google). A token that carries a nonce needs `nonce`, " +
          'as it was given to the provider or before it was hashed with SHA-256. `name` is used where the token has none.',
        body: z.object({ provider: z.enum(socialProviders), ...idToken, name: Text(1000).optional() }),
        example: { provider: 'google', id_token: 'eyJ…' },
        replies: { 200: AuthResult, 201: AuthResult },
        refusals: {
          400: ['AUDIENCE_NOT_CONFIGURED'],
          401: ['INVALID_TOKEN'],
          403: ['USER_BANNED'],
          409: ['LINK_REQUIRED'],
        },
        failure: 'LOGIN_FAILED',
      }),
    ]),
  ],
})
