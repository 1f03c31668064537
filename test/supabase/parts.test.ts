import { createClient } from '@supabase/supabase-js'
import { expect, test } from 'vitest'
import { newEmail, password, startStage } from '#test/support/sign_in.ts'
import { auth } from '#test/support/supabase_cases/auth.ts'
import type { World } from '#test/support/supabase_cases/case.ts'
import { storage } from '#test/support/supabase_cases/storage.ts'

const { harness, project, mail } = await startStage()
await project.admin.patch('', { rest_enabled: true })
const fresh = () =>
  createClient(harness.url, project.clientKey, { auth: { autoRefreshToken: false, persistSession: false } })
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
  own: async () => `user/${(await client.auth.getUser()).data.user?.id}`,
}

test.each([...auth, ...storage].map((one) => [one.call, one] as const))('%s', async (_call, one) => {
  const { data, error } = await one.run(world)
  if (one.refuses) return expect((error as { code?: string }).code).toMatch(new RegExp(`^(${one.refuses})$`))
  expect(error ?? null).toBeNull()
  expect(data).toMatchObject(one.gives as object)
})
