import { z } from 'zod'
import { social } from '#server/accounts/identity_tokens.ts'
import { appKey } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { Text } from '#server/http/schemas.ts'
import { socialProviders } from '#server/providers/identity.ts'
import { AuthResult, authWords, idToken } from '#server/routes/client_auth/shapes.ts'

export const clientAuthSocial = area({
  stem: 'client_auth',
  title: 'Sign-in with Apple and Google',
  part: 'People',
  about: 'Sign-in with the identity token of a provider.',
  codes: 'by area',
  invalid: 'INVALID_INPUT',
  words: authWords,
  routes: [
    ...group('/client/auth', appKey, [
      route('POST /social', 'Sign in with an identity token of Apple or Google', {
        handle: social,
        calls: ['auth_social'],
        operationId: 'signInWithProvider',
        description:
          "The token's audience is the project's `bundle_id` (Apple) or `google_oauth_client_id` (Google). A token that carries a nonce needs `nonce`, " +
          'as it was given to the provider or before it was hashed with SHA-256. `name` is used where the token has none.',
        body: z.object({ provider: z.enum(socialProviders), ...idToken, name: Text(1000).optional() }),
        example: { provider: 'google', id_token: 'eyJ…' },
        replies: { 200: AuthResult, 201: AuthResult },
        refusals: { 400: ['AUDIENCE_NOT_CONFIGURED'], 401: ['INVALID_TOKEN'] },
        failure: 'LOGIN_FAILED',
      }),
    ]),
  ],
})
