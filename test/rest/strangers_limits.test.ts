import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness({ env: { GENERAL_RATE_LIMITS: 'on' } })

test('reads without a session are bounded for an address; signed-in users are not among them', async () => {
  const project = await harness.project()
  await project.admin.patch('', { rest_enabled: true, anonymous_reads: true })
  const user = await project.user()
  const nobody = { apikey: project.clientKey }
  const ask = async (headers: Record<string, string>) => fetch(`${harness.url}/rest/v1/nothing`, { headers })
  const answers = await Promise.all(Array.from({ length: 150 }, () => ask(nobody)))
  const refused = answers.filter(({ status }) => status === 429)
  expect(refused.length).toBeGreaterThan(0)
  expect(answers.filter(({ status }) => status === 404).length).toBeGreaterThanOrEqual(60)
  expect(await refused[0]?.json()).toMatchObject({ code: 'RATE_LIMITED' })
  expect((await ask({ ...nobody, authorization: `Bearer ${user.sessionToken}` })).status).toBe(404)
})
