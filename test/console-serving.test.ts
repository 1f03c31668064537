import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

/** The console's files and its session, over HTTP. */
const harness = await startHarness()
const at = (path: string, init: RequestInit = {}) => fetch(`${harness.url}${path}`, init)

const post = (way: string, body: object, headers: Record<string, string> = {}) =>
  at(`/console/session/${way}`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json', ...headers },
  })
const cookieOf = (response: Response) => response.headers.get('set-cookie') ?? ''
const person = (name: string) => ({
  email: `${name}-${crypto.randomUUID()}@example.com`,
  password: 'a long passphrase here',
})

test('every path of the console is its page, with a policy that allows nothing inline', async () => {
  const page = await at('/console/projects/x/streaks')
  const html = await page.text()
  expect(page.status).toBe(200)
  const policy = page.headers.get('content-security-policy') ?? ''
  expect(policy).toContain("script-src 'self'")
  expect(policy).not.toContain('unsafe')
  expect(html).not.toMatch(/<script(?![^>]* src=)|<style|style=/)
  expect(await (await at('/console')).text()).toBe(html)
  const etag = page.headers.get('etag') ?? ''
  expect((await at('/console', { headers: { 'if-none-match': etag } })).status).toBe(304)
  const head = await at('/console', { method: 'HEAD' })
  expect([head.status, await head.text()]).toEqual([200, ''])
})

test('assets are immutable and packed, 250 KB at most, and a name that is none is 404', async () => {
  const html = await (await at('/console')).text()
  const names = [...html.matchAll(/"(\/console\/assets\/[^"]+)"/g)].map(([, name = '']) => name)
  expect(names).toHaveLength(2)
  let size = 0
  for (const name of names) {
    const asset = await at(name, { headers: { 'accept-encoding': 'gzip' } })
    expect(asset.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(asset.headers.get('content-encoding')).toBe('gzip')
    size += Number(asset.headers.get('content-length'))
    const again = await at(name, { headers: { 'if-none-match': asset.headers.get('etag') ?? '' } })
    expect(again.status).toBe(304)
  }
  expect(size).toBeGreaterThan(1000)
  expect(size).toBeLessThan(250_000)
  expect((await at('/console/assets/main-NONE.js')).status).toBe(404)
})

test('a session: the refresh token is in the cookie alone, is replaced, and ends', async () => {
  const made = await post('signup', person('ada'))
  expect(made.status).toBe(201)
  expect(cookieOf(made)).toMatch(/; Path=\/console\/session; Max-Age=\d+; HttpOnly; Secure; SameSite=Strict$/)
  const { data } = (await made.json()) as { data: Record<string, string> }
  expect(Object.keys(data).sort()).toEqual(['access_token', 'developer'])
  const cookie = cookieOf(made).split(';')[0] ?? ''
  const next = await post('refresh', {}, { cookie })
  expect(next.status).toBe(200)
  expect(Object.keys(((await next.json()) as { data: object }).data)).toEqual(['access_token'])
  const second = cookieOf(next).split(';')[0] ?? ''
  expect(second).not.toBe(cookie)
  const out = await post('logout', {}, { cookie: second })
  expect(cookieOf(out)).toContain('Max-Age=0')
  const after = await post('refresh', {}, { cookie: second })
  expect(after.status).toBe(401)
  expect(cookieOf(after)).toContain('Max-Age=0')
  expect((await post('refresh', {})).status).toBe(401)
})

test('refusals of the API pass as they are; a page of another origin is refused', async () => {
  const wrong = await post('login', person('nobody'))
  expect([wrong.status, ((await wrong.json()) as any).error.code]).toEqual([401, 'INVALID_CREDENTIALS'])
  expect(cookieOf(wrong)).toBe('')
  for (const headers of [{ 'sec-fetch-site': 'same-site' }, { origin: 'https://evil.example' }]) {
    const foreign = await post('signup', person('eve'), headers as Record<string, string>)
    expect([foreign.status, ((await foreign.json()) as any).error.code]).toEqual([403, 'FORBIDDEN'])
    expect(cookieOf(foreign)).toBe('')
  }
})
