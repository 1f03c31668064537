import { createClient } from '@supabase/supabase-js'
import { afterAll, expect, test } from 'vitest'
import { newEmail, password, startStage } from '#test/support/sign_in.ts'
import { auth } from '#test/support/supabase_cases/auth.ts'
import { type Client, githubProvider, githubRedirects, type World } from '#test/support/supabase_cases/case.ts'
import { named } from '#test/support/supabase_cases/named.ts'
import { matches } from '#test/support/supabase_cases/outcome.ts'
import { channels } from '#test/support/supabase_cases/realtime.ts'
import { collections } from '#test/support/supabase_cases/rows_stage.ts'
import { storage } from '#test/support/supabase_cases/storage.ts'

const { harness, project, mail } = await startStage()
await project.admin.patch('', { rest_enabled: true })
for (const collection of collections) await project.admin.post('/collections', collection)
await project.admin.put('/oauth/providers/github', githubProvider)
await project.admin.put('/oauth/redirects', githubRedirects)
const opened: Client[] = []
const withKey = (key: string, flowType: 'implicit' | 'pkce' = 'implicit') => {
  const made = createClient(`${harness.url}/p/${project.id}`, key, {
    auth: { flowType, autoRefreshToken: false, persistSession: false },
  })
  opened.push(made)
  return made
}
const fresh: World['fresh'] = (flowType) => withKey(project.clientKey, flowType)
// the server waits for open sockets when it stops
afterAll(async () => {
  for (const one of opened) await one.realtime.disconnect()
})
const client = fresh()
const email = newEmail()
await client.auth.signUp({ email, password })

const world: World = {
  client,
  fresh,
  email,
  password,
  async code(address) {
    await project.drain()
    return /^(\d{6})$/m.exec(mail.to(address).at(-1)?.text ?? '')?.[1] ?? ''
  },
  async peer() {
    const other = fresh()
    await other.auth.signUp({ email: newEmail(), password })
    return other
  },
  server: withKey(project.serverKey),
  async publicFile() {
    const place = { name: `public-${crypto.randomUUID()}`, path: 'a.txt' }
    await world.server.storage.createBucket(place.name, { public: true })
    await world.server.storage.from(place.name).upload(place.path, 'hello', { contentType: 'text/plain' })
    return place
  },
  own: async () => `user/${(await client.auth.getUser()).data.user?.id}`,
}

const made = [...channels, ...auth, ...storage, ...named].flatMap((one) =>
  one.run ? [[one.call, one, one.run] as const] : [],
)
test.each(made)('%s', async (_call, one, run) => {
  expect(matches(one, await run(world))).toBeNull()
})
