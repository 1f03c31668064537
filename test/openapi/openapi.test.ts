import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { specificCodes } from '#server/http/document/failures.ts'
import { declaredCodes, fullPath } from '#server/http/openapi.ts'
import { root } from '#server/root.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const fetched = async (path: string) => (await fetch(harness.url + path)).json() as Promise<any>

test('it is served at both paths, the same', async () => {
  const [versioned, plain] = await Promise.all([fetched('/v1/openapi.json'), fetched('/openapi.json')])
  expect(versioned).toEqual(plain)
  expect(versioned).toMatchObject({ openapi: '3.1.0', info: { version: '1.0.0' } })
})

test('it is made once, and not sent to a client that has it', async () => {
  const plain = { headers: { 'accept-encoding': 'identity' } }
  const first = await fetch(`${harness.url}/openapi.json`, plain)
  const etag = first.headers.get('etag') as string
  expect(etag).toMatch(/^"[A-Za-z0-9_-]{43}"$/)
  const bytes = Buffer.from(await first.arrayBuffer())
  expect(first.headers.get('content-length')).toBe(String(bytes.length))
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    for (const path of ['/openapi.json', '/v1/openapi.json']) {
      const again = await fetch(harness.url + path, { headers: { ...plain.headers, 'If-None-Match': known } })
      expect(again.status, known).toBe(304)
      expect(await again.text()).toBe('')
      expect(again.headers.get('etag')).toBe(etag)
    }
  }
  const other = await fetch(`${harness.url}/openapi.json`, {
    headers: { ...plain.headers, 'If-None-Match': '"other"' },
  })
  expect(other.status).toBe(200)
  expect(Buffer.from(await other.arrayBuffer()).equals(bytes)).toBe(true)

  // a tenth of the bytes for a client that reads gzip, under an ETag of their own
  const packed = await fetch(`${harness.url}/openapi.json`, { headers: { 'accept-encoding': 'br;q=0.5, gzip' } })
  expect(packed.headers.get('content-encoding')).toBe('gzip')
  expect(packed.headers.get('vary')).toBe('accept-encoding')
  expect(Number(packed.headers.get('content-length'))).toBeLessThan(bytes.length / 5)
  expect(Buffer.from(await packed.arrayBuffer()).equals(bytes)).toBe(true)
  expect(packed.headers.get('etag')).toBe(etag.replace(/"$/, '-gzip"'))
  const known = { 'If-None-Match': packed.headers.get('etag') as string }
  expect((await fetch(`${harness.url}/openapi.json`, { headers: known })).status).toBe(304)
  const refused = await fetch(`${harness.url}/openapi.json`, { headers: { 'accept-encoding': 'gzip;q=0' } })
  expect(refused.headers.get('content-encoding')).toBe(null)
})

/** Paths that a parameter would fit too; an id that is a uuid is never the word that the other path has in its place. */
const given = /^Paths should resolve unambiguously.*(webhooks\/deliveries|friends\/requests)/

test('it is valid under two public validators, and keeps the recommended rules', async () => {
  const document = { ...(await fetched('/openapi.json')), servers: [{ url: 'https://api.trellis.test' }] }
  const result = await new Validator().validate(structuredClone(document))
  expect(result.errors ?? []).toEqual([])

  const folder = await mkdtemp(join(tmpdir(), 'trellis-openapi-'))
  const file = join(folder, 'openapi.json')
  await writeFile(file, JSON.stringify(document))
  const redocly = join(root, 'node_modules/@redocly/cli/bin/cli.js')
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    [redocly, 'lint', file, '--format', 'json', '--extends', 'recommended', '--max-problems', '1000'],
    {
      env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    },
  ).catch((error: { stdout: string; stderr: string }) => error)
  await rm(folder, { recursive: true })
  const problems = JSON.parse(stdout || stderr).problems.map(({ ruleId, message }: any) => `${ruleId}: ${message}`)
  expect(problems.filter((problem: string) => !given.test(problem.replace('no-ambiguous-paths: ', '')))).toEqual([])
}, 180_000)

test('every route stands in it with its caller, its statuses and the codes of each', async () => {
  const document = await fetched('/openapi.json')
  for (const area of harness.running.areas) {
    for (const route of area.routes) {
      const path = fullPath(area, route).replace(/:([A-Za-z]+)/g, '{$1}')
      const operation = document.paths[path]?.[route.method.toLowerCase()]
      expect(operation, `${route.method} ${path}`).toBeDefined()
      expect(operation.summary).toMatch(/^[A-Z]/)
      expect(operation.security ?? document.security).toEqual(route.caller.security)
      const resolve = (part: { $ref?: string }): any =>
        part.$ref ? document.components.responses[part.$ref.split('/').at(-1) ?? ''] : part
      for (const [status, codes] of specificCodes(area, route)) {
        if (route.replies[status]) continue
        const { description, content } = resolve(operation.responses[status])
        expect(description).toBe(codes.map((code) => `\`${code}\``).join(', '))
        expect(content['application/json'].schema.allOf[1].properties.error.properties.code.enum).toEqual(codes)
      }
      // what is not told with its own status is told once
      const { description: told, 'x-codes': toldCodes } = resolve(operation.responses.default)
      for (const [status, codes] of declaredCodes(area, route)) {
        if (operation.responses[status]) continue
        expect(told).toContain(String(status))
        if (status === 500) continue
        for (const code of codes) {
          expect(told).toContain(code)
          expect(toldCodes[status]).toContain(code)
        }
      }
    }
  }
})
