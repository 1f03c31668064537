import { afterAll, expect, test } from 'vitest'
import { startHttpsReceiver } from '#test/support/https.ts'
import { ask, createTestProject, endPrograms, startServer } from '#test/support/process.ts'

afterAll(endPrograms, 60_000)

test('a receiver gets every event that was answered, each under one key, though server and worker are killed', {
  timeout: 180_000,
}, async () => {
  const receiver = await startHttpsReceiver()
  const env = { WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.caFile, LOG_LEVEL: 'silent' }
  const first = await startServer(env)
  const story = await createTestProject(first.url)
  const path = `/v1/admin/projects/${story.projectId}/webhooks`
  const made = await ask(first.url, 'POST', path, { event_name: 'precious', target_url: receiver.url }, story.developer)
  expect(made.status).toBe(201)

  const answered = new Set<string>()
  const posting = Array.from({ length: 4 }, async () => {
    for (;;) {
      const id = crypto.randomUUID()
      const answer = await ask(
        first.url,
        'POST',
        '/v1/client/events',
        { event_name: 'precious', id },
        story.user,
      ).catch(() => null)
      if (answer?.status !== 201) return
      answered.add(id)
    }
  })
  await expect.poll(() => answered.size, { timeout: 20_000 }).toBeGreaterThan(100)
  first.child.kill('SIGKILL')
  await Promise.all(posting)
  await first.ended

  await startServer({ ...env, DATA_DIR: first.dataDir })
  const received = () =>
    receiver.requests.filter((request) => answered.has(String(request.headers['x-service-event-id'])))
  await expect
    .poll(() => new Set(received().map((request) => request.headers['x-service-event-id'])).size, {
      timeout: 90_000,
      interval: 200,
    })
    .toBe(answered.size)

  const keys = new Map<unknown, Set<unknown>>()
  for (const { headers } of received()) {
    const event = headers['x-service-event-id']
    keys.set(event, (keys.get(event) ?? new Set()).add(headers['x-service-idempotency-key']))
  }
  expect([...keys.values()].every((each) => each.size === 1)).toBe(true)
  await receiver.close()
})
