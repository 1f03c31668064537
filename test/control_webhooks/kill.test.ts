import { afterAll, expect, test } from 'vitest'
import { startHttpsReceiver } from '#test/support/https.ts'
import { ask, createTestProject, endPrograms, startServer } from '#test/support/process.ts'

afterAll(endPrograms, 60_000)

test('a receiver hears of every change, each time under one key, though the server is killed between deliveries', {
  timeout: 180_000,
}, async () => {
  const receiver = await startHttpsReceiver({
    // slow enough that a delivery is under way whenever the server is killed
    handler: (_request, response) => setTimeout(() => response.end('ok'), 100),
  })
  const env = { WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.caFile, LOG_LEVEL: 'silent' }
  const first = await startServer(env)
  const { developer, projectId } = await createTestProject(first.url)
  const made = await ask(
    first.url,
    'POST',
    '/v1/admin/control-plane-webhooks',
    { event_types: ['audit.event'], target_url: receiver.url },
    developer,
  )
  expect(made.status).toBe(201)
  const path = `/v1/admin/projects/${projectId}`
  const names = Array.from({ length: 30 }, (_, n) => `name ${n}`)
  for (const name of names) expect((await ask(first.url, 'PATCH', path, { name }, developer)).status).toBe(200)
  await expect.poll(() => receiver.requests.length, { timeout: 60_000, interval: 20 }).toBeGreaterThan(4)
  first.child.kill('SIGKILL')
  await first.ended

  await startServer({ ...env, DATA_DIR: first.dataDir })
  const came = () =>
    receiver.requests.map(({ headers, body }) => ({
      key: headers['x-service-idempotency-key'],
      event: headers['x-service-event-id'],
      name: JSON.parse(String(body)).data.changes?.name?.[1],
    }))
  const missing = () => {
    const received = new Set(came().map(({ name }) => name))
    return names.filter((name) => !received.has(name))
  }
  // the jobs of the killed server are taken over when it has been silent for some seconds
  await expect.poll(missing, { timeout: 120_000, interval: 200 }).toEqual([])
  const keys = new Map<unknown, Set<unknown>>()
  for (const { key, event } of came()) keys.set(event, (keys.get(event) ?? new Set()).add(key))
  expect([...keys.values()].every((each) => each.size === 1)).toBe(true)
  await receiver.close()
})
