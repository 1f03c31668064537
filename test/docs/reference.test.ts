import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()

test('the reference page asks nothing of other hosts, and its policy lets its own scripts run', async () => {
  const page = await fetch(`${harness.url}/docs`)
  const html = await page.text()
  expect(page.status).toBe(200)
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(html).not.toMatch(/(src|href)="(https?:)?\/\//)
  expect(html).toContain('"url": "/openapi.json"')

  const policy = page.headers.get('content-security-policy') ?? ''
  const inline = /<script type="text\/javascript">([\s\S]*?)<\/script>/.exec(html)?.[1] ?? ''
  expect(inline).toContain('createApiReference')
  expect(policy).toContain(`script-src 'self' 'sha256-${createHash('sha256').update(inline).digest('base64')}'`)
  expect(policy).toContain("default-src 'none'")
  expect(policy).not.toContain('http')
})

test('its script comes from here, packed for whoever takes it', async () => {
  const script = /<script src="([^"]+)">/.exec(await (await fetch(`${harness.url}/docs`)).text())?.[1] ?? ''
  const packed = await fetch(harness.url + script)
  expect(packed.headers.get('content-encoding')).toBe('gzip')
  const refused = await fetch(harness.url + script, { headers: { 'accept-encoding': 'gzip;q=0' } })
  expect(refused.headers.get('content-encoding')).toBeNull()
  const plain = await fetch(harness.url + script, { headers: { 'accept-encoding': 'identity' } })
  expect(plain.headers.get('content-encoding')).toBeNull()
  const text = await plain.text()
  expect(text).toContain('createApiReference')
  expect(await packed.text()).toBe(text)
})
