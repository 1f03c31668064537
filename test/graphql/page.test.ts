import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

/** The editor in a browser: what is served, and under which policy. */
const harness = await startHarness()
const page = '/v1/admin/projects/00000000-0000-0000-0000-000000000000/graphql'
const get = (path: string, headers: Record<string, string> = {}) => fetch(new URL(path, harness.url), { headers })

test('a browser gets a page of this origin alone, without a script in it', async () => {
  const response = await get(page, { accept: 'text/html,application/xhtml+xml;q=0.9' })
  const html = await response.text()
  const policy = response.headers.get('content-security-policy') ?? ''
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  expect(policy).toContain("default-src 'none'; script-src 'self'; worker-src 'self'")
  expect(policy).not.toMatch(/script-src[^;]*unsafe|https?:|\*/)
  expect(html).not.toMatch(/<script(?![^>]*\bsrc=)|\son[a-z]+=|https?:\/\//)
  const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path = '']) => path)
  expect(files).toHaveLength(3)
  for (const file of files) {
    const served = await get(file)
    expect([file, served.status]).toEqual([file, 200])
    expect(served.headers.get('content-type')).toMatch(/^text\/(css|javascript); charset=utf-8$/)
    expect((await served.text()).length).toBeGreaterThan(20)
  }
})

test('what the page loads is there, packed or not', async () => {
  const script = await (await get('/docs/graphiql/page.js')).text()
  const names = [...script.matchAll(/'(\w+\.js)'/g)].map(([, name = '']) => name)
  expect(names.sort()).toEqual(['editorWorker.js', 'graphqlWorker.js', 'jsonWorker.js', 'ruru.js'])
  for (const name of names) {
    const served = await get(`/docs/graphiql/${name}`, { 'accept-encoding': 'br' })
    expect([name, served.status, served.headers.get('content-encoding')]).toEqual([name, 200, 'br'])
    expect((await served.text()).length).toBeGreaterThan(100_000)
  }
  const plain = await get('/docs/graphiql/ruru.css', { 'accept-encoding': 'identity' })
  expect(plain.headers.get('content-encoding')).toBeNull()
  expect((await plain.arrayBuffer()).byteLength).toBe(Number(plain.headers.get('content-length')))
})

test('no other file is', async () => {
  for (const name of ['none.js', 'ruru.js.map', '..%2fgraphql.ts', '__proto__', 'constructor']) {
    const response = await get(`/docs/graphiql/${name}`)
    expect([name, response.status]).toEqual([name, 404])
  }
})
