import { z } from 'zod'
import { link, merge, setPassword } from '#server/accounts/links.ts'
import { Code, Phone } from '#server/accounts/one_time_codes.ts'
import { NewPassword, Password } from '#server/accounts/passwords.ts'
import { sessionCaller } from '#server/accounts/sessions.ts'
import { area, group, route } from '#server/http/route.ts'
import { Credential, data, Email, Text } from '#server/http/schemas.ts'
import { socialProviders } from '#server/providers/identity.ts'
import { authWords, idToken, Success, User } from '#server/routes/client_auth/shapes.ts'

const current_password = Password.optional()
const Merged = data(z.strictObject({ user: User, merged: z.record(z.string(), z.int()) }))

export const clientAuthLinks = area({
  stem: 'client_auth',
  title: 'Ways to sign in',
  part: 'People',
  about: 'Identities of an account: linking, unlinking, passwords, merging two accounts.',
  codes: 'by area',
  invalid: 'INVALID_INPUT',
  words: authWords,
  routes: [
    ...group('/client/auth', sessionCaller, [
      route('POST /link', 'Link an email, a phone, Apple, Google or a password to the signed-in user', {
        handle: link,
        calls: ['auth_link_email', 'auth_link_password'],
        operationId: 'linkIdentity',
        description:
          'Codes are asked for with `purpose: "link"`. `merge_available` in `IDENTITY_IN_USE` says that the caller is purely anonymous: sign in to the ' +
          'account that has the identity, and merge this user into it.',
        body: z.discriminatedUnion('provider', [
          z.object({
            provider: z.literal('email'),
            email: Email,
            code: Code,
            password: NewPassword.optional(),
            current_password,
          }),
          z.object({ provider: z.literal('phone'), phone: Phone, code: Code }),
          z.object({ provider: z.literal('password'), password: NewPassword, current_password }),
          z.object({ provider: z.enum(socialProviders), ...idToken }),
        ]),
        example: { provider: 'email', email: 'user@example.com', code: '123456' },
        replies: { 200: data(User) },
        refusals: { 400: ['AUDIENCE_NOT_CONFIGURED', 'WEAK_PASSWORD'], 401: ['INVALID_TOKEN'] },
      }),
      route('POST /unlink', 'Unlink a way to sign in from the signed-in user', {
        call: 'auth_unlink',
        operationId: 'unlinkIdentity',
        body: z.object({
          provider: z
            .string()
            .regex(/^[a-z][a-z0-9_-]{0,31}$/, 'must be email, phone, password, or the name of a provider')
            .meta({ examples: ['email', 'phone', 'password', ...socialProviders, 'github'] }),
          provider_id: Text(255, 1).optional(),
        }),
        example: { provider: 'google' },
        replies: { 200: data(User) },
      }),
      route('POST /password', "Set or change the signed-in user's password, and end their other sessions", {
        handle: setPassword,
        operationId: 'setPassword',
        description:
          '`current_password` is needed where a password is set and the session is older than 10 minutes since its sign-in: after a sign-in by code a ' +
          'forgotten password is set anew without it.',
        body: z.object({ password: NewPassword, current_password }),
        example: { password: 'a long passphrase' },
        replies: { 200: Success },
        refusals: { 400: ['WEAK_PASSWORD'] },
      }),
      route('POST /merge', 'Merge a purely anonymous user into the signed-in one', {
        handle: merge,
        calls: ['auth_merge'],
        operationId: 'mergeAccounts',
        body: z.object({ from_session_token: Credential }),
        example: { from_session_token: 'eyJ…' },
        replies: { 200: Merged },
      }),
    ]),
  ],
})
