import type { Client, PartCase } from '#test/support/supabase_cases/case.ts'

/** What the address of signInWithOAuth answers, which a browser would open. */
const answerOf = async (client: Client) => {
  const { data } = await client.auth.signInWithOAuth({ provider: 'github' })
  const response = await fetch(data.url ?? '', { redirect: 'manual' })
  const location = response.headers.get('location')
  if (location) return { data: { status: response.status, host: new URL(location).host } }
  const { error_code } = (await response.json()) as { error_code?: string }
  return { error: { code: error_code } }
}

export const auth: PartCase[] = [
  {
    part: 'Sign-in',
    call: 'auth.signUp({ email, password, options: { data } })',
    run: ({ fresh, password }) =>
      fresh().auth.signUp({ email: `${crypto.randomUUID()}@example.org`, password, options: { data: { level: 1 } } }),
    gives: { user: { user_metadata: { level: 1 } }, session: { token_type: 'bearer' } },
    note: '`data` are the properties of the user; `display_name` and `avatar_url` in it are those of the profile',
  },
  {
    part: 'Sign-in',
    call: 'auth.signInAnonymously()',
    run: ({ fresh }) => fresh().auth.signInAnonymously(),
    gives: { user: { is_anonymous: true } },
  },
  {
    part: 'Sign-in',
    call: 'auth.signInWithPassword({ email, password })',
    run: ({ fresh, email, password }) => fresh().auth.signInWithPassword({ email, password }),
    gives: { user: { aud: 'authenticated' } },
  },
  {
    part: 'Sign-in',
    call: 'auth.signInWithPassword() with a wrong password',
    run: ({ fresh, email }) => fresh().auth.signInWithPassword({ email, password: 'another passphrase' }),
    refuses: 'invalid_credentials',
    note: 'codes are those of GoTrue; ours stand in `details.code` of the body',
  },
  {
    part: 'Sign-in',
    call: "auth.signInWithOtp({ email }), auth.verifyOtp({ email, token, type: 'email' })",
    run: async ({ fresh, code }) => {
      const [client, email] = [fresh(), `${crypto.randomUUID()}@example.org`]
      await client.auth.signInWithOtp({ email })
      return client.auth.verifyOtp({ email, token: await code(email), type: 'email' })
    },
    gives: { session: { token_type: 'bearer' } },
    note: 'the mail has a code; `token_hash` takes the token of a magic link of our own route',
  },
  {
    part: 'Sign-in',
    call: 'auth.signInWithOtp({ email, options: { shouldCreateUser: false } })',
    run: ({ fresh, email }) => fresh().auth.signInWithOtp({ email, options: { shouldCreateUser: false } }),
    refuses: 'validation_failed',
    note: 'it would tell who has an account',
  },
  {
    part: 'Sign-in',
    call: 'auth.resetPasswordForEmail(email)',
    run: ({ fresh, email }) => fresh().auth.resetPasswordForEmail(email),
    gives: {},
    note: "sends a code: `verifyOtp` with type 'recovery', then `updateUser({ password })` within ten minutes",
  },
  {
    part: 'Sign-in',
    call: 'auth.getUser()',
    run: ({ client }) => client.auth.getUser(),
    gives: { user: { role: 'authenticated' } },
  },
  {
    part: 'Sign-in',
    call: 'auth.getClaims()',
    run: ({ client }) => client.auth.getClaims(),
    gives: { header: { alg: 'ES256' } },
    note: 'verified with the keys of `/auth/v1/.well-known/jwks.json`',
  },
  {
    part: 'Sign-in',
    call: 'auth.refreshSession()',
    run: ({ client }) => client.auth.refreshSession(),
    gives: { session: { token_type: 'bearer' } },
  },
  {
    part: 'Sign-in',
    call: 'auth.updateUser({ data, password })',
    run: ({ client }) => client.auth.updateUser({ data: { level: 2 } }),
    gives: { user: { user_metadata: { level: 2 } } },
    note: 'a password that is set: with `current_password`, or within ten minutes of the sign-in',
  },
  {
    part: 'Sign-in',
    call: 'auth.updateUser({ email })',
    run: ({ client }) => client.auth.updateUser({ email: 'new@example.org' }),
    gives: { user: { new_email: 'new@example.org' } },
    note: 'sends a code to the new address, which `updateUser({ email, nonce: code })` brings; `phone` as well',
  },
  {
    part: 'Sign-in',
    call: 'auth.verifyOtp() of a change of address',
    run: ({ client }) => client.auth.verifyOtp({ email: 'new@example.org', token: '123456', type: 'email_change' }),
    refuses: 'validation_failed',
    note: 'it has no session: see `updateUser`',
  },
  {
    part: 'Sign-in',
    call: 'auth.signOut({ scope })',
    run: async ({ fresh }) => {
      const client = fresh()
      await client.auth.signInAnonymously()
      return { ...(await client.auth.signOut({ scope: 'local' })), data: (await client.auth.getSession()).data }
    },
    gives: { session: null },
    note: 'global, local and others',
  },
  {
    part: 'Sign-in',
    call: 'auth.unlinkIdentity(identity)',
    run: async ({ fresh, password }) => {
      const client = fresh()
      const email = `${crypto.randomUUID()}@example.org`
      const { data } = await client.auth.signUp({ email, password })
      return client.auth.unlinkIdentity(data.user?.identities?.[0] as never)
    },
    refuses: 'single_identity_not_deletable',
    note: 'of several identities one; the last one stays',
  },
  {
    part: 'Sign-in',
    call: "auth.signInWithOAuth({ provider, options: { redirectTo, scopes, queryParams } }) with flowType: 'pkce'",
    run: ({ fresh }) => answerOf(fresh('pkce')),
    gives: { status: 302, host: 'github.com' },
    note: 'a [provider](oauth.md) of the project, under the root of the project; `provider_token` is not handed on',
  },
  {
    part: 'Sign-in',
    call: "auth.signInWithOAuth() with flowType: 'implicit', the default of the client",
    run: ({ fresh }) => answerOf(fresh()),
    refuses: 'validation_failed',
    note: 'tokens in an address stay in histories, and no verifier binds them to the browser that began',
  },
  {
    part: 'Sign-in',
    call: 'auth.exchangeCodeForSession(code)',
    note: 'once, within five minutes, by the client that began',
  },
  {
    part: 'Sign-in',
    call: 'auth.exchangeCodeForSession(code) with a code that nobody got',
    run: async ({ fresh }) => {
      const client = fresh('pkce')
      await client.auth.signInWithOAuth({ provider: 'github' })
      return client.auth.exchangeCodeForSession('unknown')
    },
    refuses: 'flow_state_not_found',
  },
  {
    part: 'Sign-in',
    call: "auth.linkIdentity({ provider, options: { redirectTo, scopes } }) with flowType: 'pkce'",
    run: async ({ fresh }) => {
      const client = fresh('pkce')
      await client.auth.signInAnonymously()
      const { data, error } = await client.auth.linkIdentity({ provider: 'github' })
      return error ? { error } : { data: { host: new URL(data.url ?? '').host } }
    },
    gives: { host: 'github.com' },
    note: 'then `exchangeCodeForSession(code)`, a session of the same user; an ID token is linked by POST /v1/client/auth/link',
  },
  {
    part: 'Sign-in',
    call: 'auth.mfa.enroll()',
    run: ({ client }) => client.auth.mfa.enroll({ factorType: 'totp' }),
    refuses: 'NOT_FOUND',
  },
]
