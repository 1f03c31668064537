import { z } from 'zod'
import { sessionCaller } from '#server/accounts/sessions.ts'
import { administrator, appKey } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { Deleted, data } from '#server/http/schemas.ts'
import { begin, exchange } from '#server/oauth/flows.ts'
import { callbackOf, putProvider, putRedirects, test } from '#server/oauth/settings.ts'
import { AuthResult } from '#server/routes/client_auth/shapes.ts'

const Name = z.string().regex(/^[a-z][a-z0-9_-]{0,31}$/, 'must match ^[a-z][a-z0-9_-]{0,31}$')
const Scopes = z
  .array(z.string().regex(/^[!#-[\]-~]{1,100}$/, 'must be a scope: 1 to 100 characters of ASCII without spaces'))
  .max(20, 'must have at most 20 items')
const ascii = (most: number, reason = `must be 1 to ${most} characters of ASCII without spaces`) =>
  z
    .string()
    .regex(new RegExp(`^[!-~]{1,${most}}$`), reason)
    .meta({ maxLength: most })
/** RFC 7636, 4.1: unreserved characters alone. */
const Challenge = z.string().regex(/^[A-Za-z0-9._~-]{43,128}$/, 'must be 43 to 128 of A-Z a-z 0-9 . _ ~ -')

const Provider = answer('oauth_provider_json', {
  has_secret: z.boolean(),
  scopes: z.array(z.string()),
  callback_url: z.string(),
})
const Redirects = data(z.strictObject({ addresses: z.array(z.string()), callback_url: z.string() }))
/** Titles: another route answers a url too, and gives the SDK's types their name. */
const BegunReply = data(z.strictObject({ url: z.string() }).meta({ title: 'RedirectSignInBegun' })).meta({
  title: 'RedirectSignInBegunReply',
})
const Beginning = z.object({
  provider: Name,
  redirect_to: z.string().max(2000, 'must have at most 2000 characters').optional(),
  code_challenge: Challenge,
  code_challenge_method: z.literal('S256').default('S256'),
  scopes: Scopes.optional(),
  login_hint: z.string().max(254, 'must have at most 254 characters').optional(),
  prompt: ascii(100).optional(),
})
const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'

export const oauth = area({
  stem: 'oauth',
  title: 'Sign-in by redirect',
  part: 'People',
  about: 'Users sign in at Google, Apple, GitHub or any OpenID provider, and come back to the app.',
  rank: 'admin',
  words: {
    issuer: [
      'Issuer',
      'The address of the provider, such as `https://login.example.com`.',
      { unset: 'As the name says' },
    ],
    client_id: ['Client id', 'As the provider gave it; of Apple the Services ID.'],
    client_secret: [
      'Client secret',
      'As the provider gave it, of Apple the text of the .p8 file; it is stored encrypted and not shown again. Null removes the stored one.',
      { unset: 'As it is' },
    ],
    team_id: ['Team id', 'Of the developer account at Apple.', { unset: 'None' }],
    signing_key_id: ['Key id', 'Of the .p8 file of Apple.', { unset: 'None' }],
    scopes: ['Scopes', 'What is asked of the provider beside the usual.'],
    addresses: ['Redirect addresses', 'Where a sign-in may return to, the default first.'],
    provider: ['Provider', 'Its name in this project.'],
    redirect_to: ['Return to', 'One of the redirect addresses.', { unset: 'The first one' }],
    code_challenge: ['Code challenge', 'The SHA-256 of the code verifier in base64url (PKCE).'],
    code_challenge_method: ['Method', 'How the challenge was made.'],
    login_hint: ['Login hint', 'The address that the provider fills in.', { unset: 'None' }],
    prompt: ['Prompt', 'What the provider asks again, such as `select_account`.', { unset: 'As the provider does' }],
    code: ['Code', 'As the app got it when the sign-in returned.'],
    code_verifier: ['Code verifier', 'The text whose challenge began the sign-in.'],
  },
  routes: [
    ...group('/admin/projects/:projectId/oauth', administrator, [
      route('GET /providers', 'Providers of sign-in by redirect by name, without their secrets', {
        call: 'oauth_provider_list',
        operationId: 'listOauthProviders',
        description: '`callback_url` is what the provider must know as the redirect URI of its client.',
        args: callbackOf,
        replies: { 200: data(z.array(Provider)) },
      }),
      route('PUT /providers/:name', 'Set a provider: google, apple, github, or an OpenID provider by its issuer', {
        handle: putProvider,
        calls: ['oauth_provider_put'],
        operationId: 'putOauthProvider',
        body: z.object({
          issuer: z
            .string()
            .regex(/^https:\/\/[!-~]{1,492}$/, 'must begin with https:// and have at most 500 characters')
            .optional(),
          client_id: ascii(500),
          client_secret: z
            .string()
            .regex(/^[!-~](?:[\r\n -~]*[\r\n!-~])?$/, 'must be ASCII without spaces around it')
            .max(5000, 'must have at most 5000 characters')
            .nullable()
            .optional(),
          team_id: ascii(64).optional(),
          signing_key_id: ascii(64).optional(),
          scopes: Scopes.default([]),
          is_active: z.boolean('must be true or false').default(true),
        }),
        example: { issuer: 'https://login.example.com', client_id: 'orchard', client_secret: 'a secret' },
        replies: { 200: data(Provider), 201: data(Provider) },
      }),
      route('DELETE /providers/:name', 'Forget a provider and its secret; users keep their identities', {
        call: 'oauth_provider_delete',
        operationId: 'deleteOauthProvider',
        replies: { 200: Deleted },
      }),
      route(
        'POST /providers/:name/test',
        'Try a provider: its discovery, its issuer, and whether it takes the client',
        {
          handle: test,
          operationId: 'testOauthProvider',
          description:
            'What is wrong is `ok: false` and not a refusal: `error` is secret_missing, discovery_unreachable, issuer_mismatch, client_refused, redirect_refused, ' +
            'provider_refused or no_redirect_address, and `message` says it. Nobody is signed in.',
          replies: {
            200: data(
              z.strictObject({
                ok: z.boolean(),
                latency_ms: z.int(),
                error: z.string().nullable(),
                message: z.string().nullable(),
              }),
            ),
          },
          failure: 'FETCH_FAILED',
        },
      ),
      route('GET /redirects', 'Where a sign-in by redirect may return to', {
        call: 'oauth_redirects',
        operationId: 'getOauthRedirects',
        args: callbackOf,
        replies: { 200: Redirects },
      }),
      route('PUT /redirects', 'Replace the addresses that a sign-in by redirect may return to; at most 50', {
        handle: putRedirects,
        operationId: 'putOauthRedirects',
        description:
          'An address is compared whole; one that ends in `/*` allows every path below. It begins with https://, with the scheme of an app, or with http:// of ' +
          'localhost.',
        body: z.object({
          addresses: z
            .array(z.string().max(500, 'must have at most 500 characters'))
            .max(50, 'must have at most 50 items'),
        }),
        example: { addresses: ['https://app.example.com/signed-in', 'com.example.app://signed-in'] },
        replies: { 200: Redirects },
      }),
    ]),
    ...group('/client/auth/oauth', appKey, [
      route('POST /begin', 'Begin a sign-in by redirect: open the url in a browser', {
        handle: begin,
        calls: ['oauth_offer'],
        operationId: 'beginRedirectSignIn',
        description:
          'The browser returns to `redirect_to` with `code`, or with `error`, `error_code` and `error_description`. The url is good for ten minutes and one ' +
          'answer of the provider.',
        body: Beginning,
        example: { provider: 'google', redirect_to: 'com.example.app://signed-in', code_challenge: challenge },
        replies: { 200: BegunReply },
        refusals: { 400: ['REDIRECT_NOT_ALLOWED'] },
        failure: 'LOGIN_FAILED',
      }),
      route('POST /link', 'Begin to link a provider to the signed-in user: open the url in a browser', {
        handle: begin,
        calls: ['oauth_offer'],
        operationId: 'linkByRedirect',
        caller: sessionCaller,
        description:
          'As begin. The exchange links what the provider says to the user whose session began, and signs in as that user: 409 `IDENTITY_IN_USE` where another ' +
          'user has it.',
        body: Beginning,
        example: { provider: 'github', redirect_to: 'com.example.app://signed-in', code_challenge: challenge },
        replies: { 200: BegunReply },
        refusals: { 400: ['REDIRECT_NOT_ALLOWED'] },
        failure: 'LOGIN_FAILED',
      }),
      route('POST /exchange', 'Finish a sign-in by redirect: the code and its verifier become a session, once', {
        handle: exchange,
        calls: ['oauth_exchange', 'auth_social'],
        operationId: 'finishRedirectSignIn',
        body: z.object({
          code: z.string().min(1, 'is required').max(200, 'must have at most 200 characters'),
          code_verifier: Challenge,
        }),
        example: { code: 'q0…', code_verifier: challenge },
        replies: { 200: AuthResult, 201: AuthResult },
        failure: 'LOGIN_FAILED',
      }),
    ]),
  ],
})
