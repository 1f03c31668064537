import { z } from 'zod'
import { callback, start } from '#server/accounts/github.ts'
import { InviteCode } from '#server/accounts/invite_codes.ts'
import { SignedIn } from '#server/accounts/sign_in.ts'
import { anyone } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { data } from '#server/http/schemas.ts'

const limited = { 429: ['RATE_LIMIT_EXCEEDED'] }
const RedirectUri = z.url({ protocol: /^https?$/ }).max(2048)

export const github = area({
  stem: 'github',
  title: 'Sign-in with GitHub',
  part: 'Platform',
  about: 'Developers sign in with the verified primary address of their GitHub account.',
  scopeArea: 'account',
  words: {
    code: ['Code', 'As GitHub gave it.'],
    state: ['State', 'As the start of the sign-in gave it.'],
    invite_code: ['Invite code', 'Where sign-up is by invitation.'],
  },
  routes: [
    ...group('/auth/developer', anyone, [
      route(
        'GET /github/start',
        'Begin a sign-in: send the browser to authorize_url, and keep state in it to compare on return',
        {
          handle: start,
          operationId: 'startGithubSignIn',
          query: { redirect_uri: RedirectUri },
          replies: { 200: data(z.strictObject({ authorize_url: z.string(), state: z.string() })) },
          refusals: { 400: ['PROVIDER_NOT_CONFIGURED'], ...limited },
        },
      ),
      route(
        'POST /github/callback',
        'Finish a sign-in with the code and the state that GitHub returned; a new developer gets an account',
        {
          handle: callback,
          operationId: 'finishGithubSignIn',
          body: z.object({
            code: z.string().min(1, 'is required').max(1000, 'must have at most 1000 characters'),
            state: z.string().min(1, 'is required').max(200, 'must have at most 200 characters'),
            invite_code: InviteCode.optional(),
          }),
          example: { code: '0123456789abcdef', state: 'q0…' },
          replies: { 200: SignedIn, 201: SignedIn },
          refusals: {
            400: ['PROVIDER_NOT_CONFIGURED', 'DISPOSABLE_EMAIL'],
            401: ['INVALID_CREDENTIALS'],
            403: ['INVITE_REQUIRED', 'INVITE_INVALID', 'SIGNUPS_CLOSED'],
            409: ['EMAIL_EXISTS'],
            ...limited,
          },
          failure: 'LOGIN_FAILED',
        },
      ),
    ]),
  ],
})
