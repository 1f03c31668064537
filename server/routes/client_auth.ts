import { z } from 'zod'
import { anonymous, emailLogin, emailSignup, logout, refresh } from '#server/accounts/end_users.ts'
import { NewPassword, Password } from '#server/accounts/passwords.ts'
import { projectOf, sessionCaller } from '#server/accounts/sessions.ts'
import { appKey } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { Credential, Deleted, data, Email, Line, Page, page } from '#server/http/schemas.ts'
import { AuthResult, authWords, Success } from '#server/routes/client_auth/shapes.ts'

export const clientAuth = area({
  stem: 'client_auth',
  title: 'Sign-in of end users',
  part: 'People',
  about: 'Anonymous accounts, mail address and password, sessions and their renewal.',
  codes: 'by area',
  invalid: 'INVALID_INPUT',
  words: authWords,
  routes: [
    ...group('/client/auth', appKey, [
      route('POST /anonymous', 'Sign in without an identity, or again by anonymous id', {
        handle: anonymous,
        operationId: 'signInAnonymously',
        body: z.object({
          anonymous_id: z
            .string()
            .regex(/^anon_[A-Za-z0-9_-]{32,128}$/, 'must be anon_ and 32 to 128 of A-Z a-z 0-9 _ -')
            .optional(),
        }),
        replies: { 200: AuthResult, 201: AuthResult },
        refusals: { 403: ['USER_BANNED'] },
      }),
      route('POST /email/signup', 'Sign up with email and password', {
        handle: emailSignup,
        calls: ['auth_email_signup'],
        operationId: 'signUpWithPassword',
        body: z.object({
          email: Email,
          password: NewPassword,
          display_name: Line(100, 1).optional(),
        }),
        example: { email: 'user@example.com', password: 'a long passphrase', display_name: 'Ada' },
        replies: { 201: AuthResult },
        refusals: { 400: ['WEAK_PASSWORD'] },
      }),
      route('POST /email/login', 'Sign in with email and password', {
        handle: emailLogin,
        calls: ['auth_email_login'],
        operationId: 'signInWithPassword',
        body: z.object({ email: Email, password: Password }),
        example: { email: 'user@example.com', password: 'a long passphrase' },
        replies: { 200: AuthResult },
        refusals: { 429: ['RATE_LIMIT_EXCEEDED'] },
        failure: 'LOGIN_FAILED',
      }),
      route('POST /refresh', 'Replace both tokens of a session', {
        handle: refresh,
        calls: ['auth_refresh'],
        operationId: 'refreshSession',
        body: z.object({ refresh_token: Credential }),
        example: { refresh_token: 'eyJ…' },
        replies: { 200: data(z.strictObject({ session_token: z.string(), refresh_token: z.string() })) },
        refusals: { 401: ['REFRESH_TOKEN_REUSED'] },
        failure: 'REFRESH_FAILED',
      }),
      route('POST /logout', 'End a session, or with its own access token all sessions of its user', {
        handle: logout,
        operationId: 'signOut',
        body: z.object({ refresh_token: Credential, all: z.boolean().default(false) }),
        example: { refresh_token: 'eyJ…' },
        replies: { 200: Success },
        refusals: { 401: ['TOKEN_EXPIRED'], 403: ['SESSION_REQUIRED'] },
        failure: 'LOGOUT_FAILED',
      }),
      route('GET /sessions', "The user's live sessions, newest first", {
        call: 'auth_sessions',
        operationId: 'listSessions',
        caller: sessionCaller,
        query: Page,
        replies: {
          200: page(answer('auth_session_json', { current: z.boolean() })),
        },
        codes: 'by part',
      }),
      route('DELETE /sessions/:sessionId', "End one of the user's sessions", {
        call: 'auth_session_end',
        operationId: 'revokeSession',
        caller: sessionCaller,
        replies: { 200: Deleted },
        codes: 'by part',
      }),
      route('GET /jwks', "Public keys of the project's session tokens", {
        operationId: 'getJwks',
        handle: async ({ resolved }) => ({
          status: 200,
          body: JSON.stringify({ data: { keys: projectOf(resolved).signing.map(({ publicJwk }) => publicJwk) } }),
          headers: { 'cache-control': 'private, max-age=300' },
        }),
        replies: { 200: data(z.strictObject({ keys: z.array(z.record(z.string(), z.string())) })) },
        failure: null,
      }),
    ]),
  ],
})
