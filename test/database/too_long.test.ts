import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness({ env: { STATEMENT_TIMEOUT_MS: '1000' } })
const project = await harness.project()

test('a call that takes too long is cancelled, changes nothing, and is told so', async () => {
  const user = await project.user()
  const url = new URL(inject('dsn'))
  url.pathname = `/${project.database}`
  const holder = new pg.Client({ connectionString: url.href })
  await holder.connect()
  await holder.query(`begin; select from app.users where id = '${user.id}' for update`)
  const answer = await project.admin.patch(`/users/${user.id}`, { display_name: 'Late' })
  await holder.end()
  expectRefusal(answer, 502, 'TENANT_UNAVAILABLE')
  expect(answer.error?.message).toContain('took longer than')
  expect((await project.admin.get(`/users/${user.id}`)).data.display_name).not.toBe('Late')
})
