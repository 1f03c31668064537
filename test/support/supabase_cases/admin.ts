import type { PartCase, World } from '#test/support/supabase_cases/case.ts'

const part = 'Users, with the server key'
const email = () => `${crypto.randomUUID()}@example.org`

/** A user whom the server key has made. */
const made = async ({ server }: World) => {
  const { data } = await server.auth.admin.createUser({ email: email() })
  return data.user?.id as string
}

export const admin: PartCase[] = [
  {
    part,
    call: 'auth.admin.createUser({ email, phone, password, email_confirm, phone_confirm, user_metadata, ban_duration })',
    run: ({ server, password }) =>
      server.auth.admin.createUser({ email: email(), password, email_confirm: true, user_metadata: { level: 1 } }),
    gives: { user: { user_metadata: { level: 1 } } },
    note: '`ban_duration` is none or ten years and more (`87600h`): a ban has no end, until it is lifted',
  },
  {
    part,
    call: 'auth.admin.createUser({ id, app_metadata, role, password_hash })',
    run: ({ server }) => server.auth.admin.createUser({ email: email(), app_metadata: { plan: 'pro' } }),
    verdict: 'not offered',
    refuses: 'validation_failed',
    note: 'ids are made here; [roles](roles.md) stand for `app_metadata` and `role`',
  },
  {
    part,
    call: 'auth.admin.getUserById(id)',
    run: async (world) => world.server.auth.admin.getUserById(await made(world)),
    gives: { user: { aud: 'authenticated' } },
  },
  {
    part,
    call: 'auth.admin.listUsers({ page, perPage })',
    run: async (world) => {
      await made(world)
      return world.server.auth.admin.listUsers({ page: 1, perPage: 1 })
    },
    gives: { users: [{ aud: 'authenticated' }] },
    note: 'newest first, at most 100 a page',
  },
  {
    part,
    call: 'auth.admin.updateUserById(id, attributes)',
    run: async (world) => world.server.auth.admin.updateUserById(await made(world), { user_metadata: { level: 2 } }),
    gives: { user: { user_metadata: { level: 2 } } },
    note: 'metadata is merged, a null removes its key; a new password ends the sessions',
  },
  {
    part,
    call: 'auth.admin.deleteUser(id)',
    run: async (world) => world.server.auth.admin.deleteUser(await made(world)),
    gives: {},
    note: 'with all data of the user; `shouldSoftDelete` is refused',
  },
  {
    part,
    call: 'auth.admin.inviteUserByEmail(email, { data })',
    run: ({ server }) => server.auth.admin.inviteUserByEmail(email(), { data: { team: 'red' } }),
    gives: { user: { user_metadata: { team: 'red' } } },
    note: "mails a link where the project has `magic_link_redirect_url`, else a code; `redirectTo` is the project's own; an address of a server asks for ten mails a minute",
  },
  {
    part,
    call: "auth.admin.generateLink({ type: 'magiclink', email })",
    run: ({ server }) => server.auth.admin.generateLink({ type: 'magiclink', email: email() }),
    gives: { properties: { verification_type: 'magiclink' } },
    note: 'also signup, invite and recovery; a change of address takes its code as nonce. `action_link` is null without `magic_link_redirect_url`',
  },
  {
    part,
    call: 'auth.admin.signOut(token, scope)',
    run: async ({ server, fresh }) => {
      const { data } = await fresh().auth.signInAnonymously()
      return server.auth.admin.signOut(data.session?.access_token ?? '')
    },
    gives: null,
  },
  {
    part,
    call: 'auth.admin without the server key',
    run: ({ client }) => client.auth.admin.listUsers(),
    refuses: 'not_admin',
  },
]
