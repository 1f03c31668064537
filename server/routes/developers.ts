import { z } from 'zod'
import { heldToken, login, logout, patch, refresh, removeAccount, signup } from '#server/accounts/developers.ts'
import { InviteCode } from '#server/accounts/invite_codes.ts'
import { NewPassword, Password } from '#server/accounts/passwords.ts'
import { Developer, SignedIn } from '#server/accounts/sign_in.ts'
import { anyone, developer } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { Credential, Deleted, data, Email, Line, Page, page, Time, Uuid } from '#server/http/schemas.ts'

const Me = Developer.extend({
  organizations: z.array(z.strictObject({ id: Uuid, name: z.string(), role: z.string() })),
  token: z.strictObject({
    type: z.enum(['session', 'pat']),
    scopes: z.array(z.string()).nullable(),
    expires_at: Time.nullable(),
  }),
})
const Session = z.strictObject({
  id: Uuid,
  created_at: Time,
  last_used_at: Time,
  ip: z.string().nullable(),
  user_agent: z.string().nullable(),
  current: z.boolean(),
})

/** A schema of its own: every other deletion answers 200. */
const AccountDeleted = data(z.strictObject({ deleted: z.literal(true).describe('The account is gone.') }))

const limited = { 429: ['RATE_LIMIT_EXCEEDED'] }

const RefreshToken = z.object({ refresh_token: Credential })

export const developers = area({
  stem: 'developers',
  title: 'Developer accounts',
  part: 'Platform',
  about: 'Accounts of the developers who own projects: sign-up, sign-in, sessions.',
  codes: 'by area',
  invalid: 'INVALID_INPUT',
  scopeArea: 'account',
  words: {
    invite_code: ['Invite code', 'Where sign-up is by invitation.'],
    refresh_token: ['Refresh token', 'Of the session.'],
    name: ['Name', 'Your name, as your team sees it.'],
    current_password: ['Current password', 'Your password as it is now.'],
    confirm: ['Confirmation', 'The address of the account again.'],
  },
  routes: [
    ...group('/auth/developer', developer, [
      route('POST /signup', 'Create a developer account and sign in to it', {
        handle: signup,
        calls: ['developer_signup'],
        operationId: 'signUpDeveloper',
        caller: anyone,
        body: z.object({
          email: Email,
          password: NewPassword,
          name: Line(200).optional(),
          invite_code: InviteCode.optional(),
        }),
        example: { email: 'you@example.com', password: 'a long passphrase', name: 'You' },
        replies: { 201: SignedIn },
        refusals: { 400: ['WEAK_PASSWORD'], 429: ['RATE_LIMIT_EXCEEDED'] },
      }),
      route('POST /login', 'Sign in with email and password', {
        handle: login,
        calls: ['developer_login'],
        operationId: 'signInDeveloper',
        caller: anyone,
        body: z.object({ email: Email, password: Password }),
        example: { email: 'you@example.com', password: 'a long passphrase' },
        replies: { 200: SignedIn },
        refusals: { 429: ['RATE_LIMIT_EXCEEDED'] },
        failure: 'LOGIN_FAILED',
      }),
      route('POST /refresh', 'Replace both tokens of a session', {
        handle: refresh,
        calls: ['developer_refresh'],
        operationId: 'refreshDeveloperSession',
        caller: anyone,
        body: RefreshToken,
        example: { refresh_token: 'eyJ…' },
        replies: { 200: data(z.strictObject({ access_token: z.string(), refresh_token: z.string() })) },
        refusals: { 429: ['RATE_LIMIT_EXCEEDED'] },
        failure: 'REFRESH_FAILED',
      }),
      route('POST /logout', 'End the session', {
        handle: logout,
        operationId: 'signOutDeveloper',
        caller: anyone,
        body: RefreshToken,
        example: { refresh_token: 'eyJ…' },
        replies: { 200: data(z.strictObject({ success: z.literal(true) })) },
        failure: 'LOGOUT_FAILED',
      }),
      route('GET /me', 'The current developer, and the token of the request', {
        call: 'developer_me',
        operationId: 'getDeveloper',
        scope: null,
        args: ({ resolved }) => ({ token: heldToken(resolved) }),
        replies: { 200: data(Me) },
      }),
      route('PATCH /me', 'Change the name or the password; a new password ends all other sessions', {
        handle: patch,
        operationId: 'updateDeveloper',
        codes: 'by part',
        body: z.object({
          name: Line(200).nullable().optional(),
          password: NewPassword.optional(),
          current_password: Password.optional(),
        }),
        example: { name: 'You' },
        replies: { 200: data(Me) },
        refusals: {
          400: ['WEAK_PASSWORD'],
          401: ['INVALID_CREDENTIALS'],
          403: ['SESSION_REQUIRED'],
          ...limited,
        },
      }),
      route('GET /sessions', "The developer's live sessions, newest first", {
        call: 'developer_session_list',
        operationId: 'listDeveloperSessions',
        codes: 'by part',
        sessionOnly: true,
        query: Page,
        replies: { 200: page(Session) },
      }),
      route('DELETE /sessions/:sessionId', 'End a session', {
        call: 'developer_session_end',
        operationId: 'revokeDeveloperSession',
        codes: 'by part',
        sessionOnly: true,
        replies: { 200: Deleted },
      }),
      route(
        'POST /account/delete',
        'Delete the account with its sessions, tokens, personal organization and audit trail',
        {
          handle: removeAccount,
          operationId: 'deleteDeveloperAccount',
          codes: 'by part',
          sessionOnly: true,
          body: z.object({ confirm: Email, current_password: Password.optional() }),
          example: { confirm: 'you@example.com', current_password: 'a long passphrase' },
          replies: { 202: AccountDeleted },
          refusals: { 401: ['INVALID_CREDENTIALS'], 409: ['PROJECTS_EXIST', 'LAST_OWNER'], ...limited },
          failure: 'DELETE_FAILED',
        },
      ),
    ]),
  ],
})
