import { request } from 'node:http'
import { setTimeout as later } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

/** One PostgREST may run: whoever keeps it keeps all others out. */
const harness = await startHarness({ env: { REST_PROCESSES: '1' } })
const projectWithRest = async () => {
  const project = await harness.project()
  await project.admin.patch('', { rest_enabled: true })
  return project
}

/** Asks, and is gone after so many milliseconds: while the key is looked up, or while PostgREST starts. */
const askAndGo = async (key: string, ms: number) => {
  const { hostname, port } = new URL(harness.url)
  const sent = request({ hostname, port, path: '/rest/v1/nothing', headers: { apikey: key } })
  sent.on('error', () => undefined)
  sent.end()
  await later(ms)
  sent.destroy()
}

test('a client that is gone before PostgREST has started keeps it for nobody', async () => {
  for (const ms of [5, 50, 150]) {
    const [left, next] = [await projectWithRest(), await projectWithRest()]
    await askAndGo(left.serverKey, ms)
    const ask = async () =>
      (await fetch(`${harness.url}/rest/v1/nothing`, { headers: { apikey: next.serverKey } })).status
    await expect.poll(ask, { timeout: 10_000, interval: 100 }).toBe(404)
  }
}, 60_000)
