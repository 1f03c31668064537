import type { SupabaseClient } from '@supabase/supabase-js'
import type { Case } from '#test/support/supabase_cases.ts'

type Client = SupabaseClient<any, any, any>

/** A signed-in client of its own, with what the calls need: mail that can be read, and another user's id. */
export type World = {
  readonly client: Client
  readonly fresh: () => Client
  readonly email: string
  readonly password: string
  /** A code that was mailed for signing in. */
  readonly code: (email: string) => Promise<string>
  readonly own: () => Promise<string>
}

/** What an app calls beside rows, as `Case` has it. `gives` is part of the data. */
export type PartCase = Pick<Case, 'part' | 'call' | 'gives' | 'refuses' | 'note'> & {
  readonly run: (world: World) => PromiseLike<{ data?: unknown; error?: unknown }>
}

const file = async ({ own }: World, name: string) => `${await own()}/${name}`
const text = { contentType: 'text/plain' }

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
    refuses: 'UNAUTHORIZED',
    note: 'codes are those of our own routes',
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
    refuses: 'INVALID_INPUT',
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
    refuses: 'INVALID_INPUT',
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
    call: 'auth.mfa.enroll(), auth.linkIdentity(), auth.admin',
    run: ({ client }) => client.auth.mfa.enroll({ factorType: 'totp' }),
    refuses: 'NOT_FOUND',
    note: 'link identities with POST /v1/client/auth/link; users are administered with the routes of developers',
  },
]

export const storage: PartCase[] = [
  {
    part: 'Files',
    call: "storage.from('media').upload('user/<id>/a.txt', body, { contentType, upsert })",
    run: async (world) =>
      world.client.storage.from('media').upload(await file(world, 'a.txt'), 'hello', { ...text, upsert: true }),
    gives: {},
    note: '`cacheControl` is not kept',
  },
  {
    part: 'Files',
    call: '.upload(path, blob)',
    run: async (world) =>
      world.client.storage
        .from('media')
        .upload(await file(world, 'b.txt'), new Blob(['hello'], { type: 'text/plain' }), { upsert: true }),
    gives: {},
  },
  {
    part: 'Files',
    call: '.upload(path, body, { metadata })',
    run: async (world) =>
      world.client.storage.from('media').upload(await file(world, 'm.txt'), 'x', { ...text, metadata: { a: 1 } }),
    refuses: 'INVALID_INPUT',
    note: 'metadata is not kept',
  },
  {
    part: 'Files',
    call: '.download(path)',
    run: async (world) => {
      const { data, error } = await world.client.storage.from('media').download(await file(world, 'a.txt'))
      return { data: { text: await data?.text() }, error }
    },
    gives: { text: 'hello' },
  },
  {
    part: 'Files',
    call: '.list(folder, { limit, offset, search, sortBy })',
    run: async (world) => {
      const { data, error } = await world.client.storage.from('media').list(await world.own(), { limit: 1 })
      return { data: { first: data?.[0]?.name }, error }
    },
    gives: { first: 'a.txt' },
    note: 'by name, ascending or descending; `search` is the beginning of a name',
  },
  {
    part: 'Files',
    call: '.createSignedUrl(path, seconds, { download, transform }), .createSignedUrls(paths, seconds)',
    run: async (world) => {
      const signed = await world.client.storage.from('media').createSignedUrl(await file(world, 'a.txt'), 60)
      return { data: { text: await (await fetch(signed.data?.signedUrl ?? '')).text() }, error: signed.error }
    },
    gives: { text: 'hello' },
    note: 'at most a day; `transform` has width, height, resize (cover, contain) and format',
  },
  {
    part: 'Files',
    call: '.info(path), .exists(path)',
    run: async (world) => world.client.storage.from('media').info(await file(world, 'a.txt')),
    gives: { size: 5 },
  },
  {
    part: 'Files',
    call: '.remove(paths)',
    run: async (world) => {
      const { data, error } = await world.client.storage.from('media').remove([await file(world, 'a.txt')])
      return { data: { removed: data?.length }, error }
    },
    gives: { removed: 1 },
    note: 'at most 100 paths',
  },
  {
    part: 'Files',
    call: '.move(), .copy(), .createSignedUploadUrl(), .getPublicUrl()',
    run: async (world) => world.client.storage.from('media').createSignedUploadUrl(await file(world, 'c.txt')),
    refuses: 'BUCKET_NOT_FOUND|NoSuchKey|NOT_FOUND',
    note: 'not served; public files have an [address of their own](media.md#public-files)',
  },
  {
    part: 'Files',
    call: "storage.from('avatars')",
    run: ({ client }) => client.storage.from('avatars').upload('x.txt', 'x', text),
    refuses: 'BUCKET_NOT_FOUND',
    note: 'the bucket is `media`',
  },
]

/** Channels: made by test/supabase/realtime, whose tests have these names. */
export const channels: Pick<Case, 'part' | 'call' | 'refuses' | 'note'>[] = [
  {
    part: 'Channels',
    call: "channel(name).on('postgres_changes', { event, schema: 'public', table, filter }, callback)",
    note: 'of collections with `realtime`; `filter` is one of eq, neq, lt, lte, gt, gte, in, is, with `not.` or without; `old` has the id alone',
  },
  { part: 'Channels', call: "channel(name).on('broadcast', { event }, callback)", note: 'the room of that name' },
  {
    part: 'Channels',
    call: "channel.send({ type: 'broadcast', event, payload })",
    note: 'JSON and ArrayBuffer; `self` and `ack`',
  },
  {
    part: 'Channels',
    call: "channel.track(state), channel.untrack(), channel.presenceState(), .on('presence', ...)",
    note: 'the key is the id of the user, whatever `presence.key` says',
  },
  {
    part: 'Channels',
    call: 'a channel without a session',
    refuses: 'UNAUTHORIZED',
    note: 'await `realtime.setAuth()` before the first `subscribe()`, else realtime-js sends the first join without its token and repeats it a second later',
  },
  {
    part: 'Channels',
    call: "on('postgres_changes') without a table",
    refuses: 'INVALID_INPUT',
    note: 'one table each',
  },
  {
    part: 'Channels',
    call: 'channel.httpSend(event, payload)',
    note: 'without a connection: a message of at most 32 KB, 20 a second of one user',
  },
  {
    part: 'Channels',
    call: 'channel(name, { config: { private: true } }) without a rule',
    refuses: 'FORBIDDEN',
    note: 'a [rule](realtime.md#channels) for the room says who listens',
  },
]
