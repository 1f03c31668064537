import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { root } from '#server/root.ts'
import { startHarness } from '#test/support/harness.ts'
import { providerProject, readKey, startRevenueCat, writeKey } from '#test/support/monetization.ts'

const provider = await startRevenueCat()
const harness = await startHarness({ work: true, env: { REVENUECAT_BASE_URL: provider.url } })
afterAll(() => provider.close())

test("the guide's commands can be followed twice, with workers that run", async () => {
  const project = await harness.project()
  const guide = await readFile(join(root, 'docs/monetization.md'), 'utf8')
  const [, commands = ''] = /```sh\n([\s\S]*?)```/.exec(guide) ?? []
  const env = {
    PATH: `${dirname(process.execPath)}:${process.env['PATH']}`,
    API: `${harness.url}/v1`,
    TOKEN: project.developer.accessToken,
    ID: project.id,
    RC_PROJECT: providerProject,
    RC_READ_KEY: readKey,
    RC_WRITE_KEY: writeKey,
  }
  const field = `field() { node -pe "JSON.parse(require('fs').readFileSync(0)).data.$1"; }\n`
  for (const created of [['entitlement extra'], ['entitlement extra']]) {
    const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-c', field + commands], {
      env,
      timeout: 100_000,
    })
    expect(stderr).toBe('')
    expect(stdout).toContain('"succeeded"')
    expect(provider.created).toEqual(created)
  }
  expect(provider.violations).toEqual([])
}, 240_000)
