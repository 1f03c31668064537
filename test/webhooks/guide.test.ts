import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '#server/root.ts'
import { startWebhooks } from '#test/support/webhooks.ts'

const { harness, project, receiver, watch, fire } = await startWebhooks()

test("the guide's own code accepts what is sent, and nothing else", async () => {
  const guide = await readFile(join(root, 'docs/webhooks.md'), 'utf8')
  const [, code = ''] = /```js\n([\s\S]*?)```/.exec(guide) ?? []
  const { isFromTrellis } = await import(`data:text/javascript,${encodeURIComponent(code)}`)
  const { secret } = await watch()
  await fire()
  await project.drain()
  const { headers, body } = receiver.requests[0]!
  const signature = String(headers['x-service-signature'])
  const now = harness.now().getTime() / 1000
  const raw = Buffer.from(body)
  expect(isFromTrellis(signature, raw, secret, now)).toBe(true)
  expect(isFromTrellis(signature, raw, secret, now + 300)).toBe(true)
  expect(isFromTrellis(signature, raw, secret, now + 301)).toBe(false)
  expect(isFromTrellis(signature, raw, secret, now - 301)).toBe(false)
  expect(isFromTrellis(signature, Buffer.from(`${body} `), secret, now)).toBe(false)
  expect(isFromTrellis(signature, raw, '0'.repeat(64), now)).toBe(false)
  expect(isFromTrellis(signature.replace(/v1=./, 'v1=g'), raw, secret, now)).toBe(false)
  expect(isFromTrellis(undefined, raw, secret, now)).toBe(false)
})
