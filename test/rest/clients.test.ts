import { createClient } from '@supabase/supabase-js'
import { expect, test } from 'vitest'
import { startCollections } from '#test/support/definitions.ts'
import { rows } from '#test/support/supabase_cases/groups.ts'
import { matches } from '#test/support/supabase_cases/outcome.ts'
import { collections, fill, functions, untilCallable } from '#test/support/supabase_cases/rows_stage.ts'

const { harness, project, define } = await startCollections()
await project.admin.patch('', { rest_enabled: true })
const user = await project.user()
const client = createClient(harness.url, project.clientKey, { accessToken: async () => user.sessionToken })

for (const collection of collections) await define(collection)
await fill(client)
await project.sql(functions)
await untilCallable(client)

const made = rows.flatMap((one) => (one.run ? [[one.part, one.call, one, one.run] as const] : []))
test.each(made)('%s: %s', async (_part, _call, one, run) => {
  expect(matches(one, await run(client))).toBeNull()
})

test('an outcome that is not as the table says is told', () => {
  const error = { code: 'PGRST116', message: 'none' }
  expect(matches({ gives: [{ a: 1 }] }, { data: [{ a: 1, b: 2 }] })).toBeNull()
  expect(matches({ gives: [{ a: 1 }] }, { data: [{ a: 1 }, { a: 1 }] })).toMatch(/^gives/)
  expect(matches({ gives: null }, { data: null })).toBeNull()
  expect(matches({ gives: { a: { b: 1 } } }, { data: { a: { b: 2 } } })).toMatch(/^gives/)
  expect(matches({ gives: [] }, { error })).toBe('refused with PGRST116')
  expect(matches({ refuses: '42501|PGRST116' }, { error })).toBeNull()
  expect(matches({ refuses: '42501' }, { error })).toMatch(/in place of 42501$/)
  expect(matches({ refuses: '42501' }, { data: [] })).toMatch(/^refused with nothing/)
})
