import type { Case, World } from '#test/support/supabase_cases/case.ts'

const part = 'Not offered'

/** Calls that a client answers by itself, and those of products that are not here. */
export const named: readonly Case<World>[] = [
  {
    part: 'Sign-in',
    call: 'auth.initialize(), auth.getSession(), auth.setSession(session), auth.onAuthStateChange(callback)',
    async run({ client, fresh }) {
      const { data } = await client.auth.getSession()
      const { access_token = '', refresh_token = '' } = data.session ?? {}
      return fresh().auth.setSession({ access_token, refresh_token })
    },
    gives: { session: { token_type: 'bearer' } },
  },
  {
    part: 'Sign-in',
    call: 'auth.startAutoRefresh(), auth.stopAutoRefresh(), auth.isThrowOnErrorEnabled(), auth.dispose()',
    note: 'of the client alone',
  },
  {
    part: 'Sign-in',
    call: 'auth.getUserIdentities()',
    run: ({ client }) => client.auth.getUserIdentities(),
    gives: {},
  },
  {
    part: 'Sign-in',
    call: "auth.resend({ type: 'signup', email })",
    run: ({ fresh, email }) => fresh().auth.resend({ type: 'signup', email }),
    gives: {},
    note: 'sends a code for signing in',
  },
  {
    part: 'Sign-in',
    call: 'auth.signInWithIdToken({ provider, token })',
    note: 'Apple and Google',
  },
  {
    part: 'Channels',
    call: 'realtime.setAuth(), .connect(), .isConnected(), .isConnecting(), .isDisconnecting(), .connectionState(), .disconnect()',
    async run({ client: { realtime } }) {
      await realtime.setAuth()
      realtime.connect()
      for (let tries = 0; tries < 100 && !realtime.isConnected(); tries += 1)
        await new Promise((resolve) => setTimeout(resolve, 50))
      const data = realtime.connectionState()
      await realtime.disconnect()
      return { data }
    },
    gives: 'open',
  },
  {
    part: 'Channels',
    call: 'realtime.endpointURL(), .sendHeartbeat(), .onHeartbeat(callback), .push(), .log(), .hasLogger(), channel.copyBindings(), .teardown(), .updateJoinPayload()',
    note: 'of the client alone',
  },
  {
    part,
    call: 'auth.signInWithSSO({ domain }), auth.signInWithWeb3()',
    run: ({ fresh }) => fresh().auth.signInWithSSO({ domain: 'example.org' }),
    verdict: 'not offered',
    refuses: 'NOT_FOUND',
  },
  {
    part,
    call: 'auth.mfa.challenge(), .verify(), .unenroll(), .challengeAndVerify(), .listFactors(), .getAuthenticatorAssuranceLevel()',
    verdict: 'not offered',
    note: 'second factors',
  },
  {
    part,
    call: 'auth.registerPasskey(), auth.signInWithPasskey(), auth.passkey.startRegistration(), .verifyRegistration(), .startAuthentication(), .verifyAuthentication()',
    verdict: 'not offered',
    note: 'passkeys',
  },
  {
    part,
    call: 'auth.reauthenticate()',
    run: ({ client }) => client.auth.reauthenticate(),
    verdict: 'not offered',
    refuses: 'NOT_FOUND',
    note: 'a password is changed with `current_password`',
  },
  {
    part,
    call: 'auth.oauth.getAuthorizationDetails(), .approveAuthorization(), .denyAuthorization(), .listGrants(), .revokeGrant()',
    verdict: 'not offered',
    note: 'a project is no provider of OAuth',
  },
  {
    part,
    call: 'auth.admin.mfa.listFactors(), .deleteFactor(), auth.admin.passkey.listPasskeys(), .deletePasskey(), auth.admin.oauth.listClients(), .createClient(), .getClient(), .updateClient(), .deleteClient(), .regenerateClientSecret()',
    verdict: 'not offered',
  },
  {
    part: 'Files',
    call: 'storage.from(name).toBase64(text)',
    note: 'of the client alone',
  },
  {
    part,
    call: 'storage.getBucketLifecycle(), .updateBucketLifecycle(), .deleteBucketLifecycle(), .purgeBucketCache(), storage.from().purgeCache()',
    run: ({ server }) => server.storage.getBucketLifecycle('media'),
    verdict: 'not offered',
    refuses: 'NOT_FOUND',
    note: 'files have one version, and caches keep a public one for five minutes',
  },
  {
    part,
    call: 'storage.analytics, storage.vectors',
    verdict: 'not offered',
    note: 'collections have [columns of vectors](collections-queries.md)',
  },
  {
    part,
    call: 'functions.invoke(name), functions.setAuth()',
    verdict: 'not offered',
  },
]
