import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { root } from '#server/database/files.ts'
import { declaredCodes, fullPath } from '#server/http/openapi.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const fetched = async (path: string) => (await fetch(harness.url + path)).json() as Promise<any>

test('it is served at both paths, the same', async () => {
  const [versioned, plain] = await Promise.all([fetched('/v1/openapi.json'), fetched('/openapi.json')])
  expect(versioned).toEqual(plain)
  expect(versioned).toMatchObject({ openapi: '3.1.0', info: { version: '1.0.0' } })
})

test('it is valid under two public validators', async () => {
  const document = await fetched('/openapi.json')
  const result = await new Validator().validate(structuredClone(document))
  expect(result.errors ?? []).toEqual([])

  const folder = await mkdtemp(join(tmpdir(), 'trellis-openapi-'))
  const file = join(folder, 'openapi.json')
  await writeFile(file, JSON.stringify(document))
  const redocly = join(root, 'node_modules/@redocly/cli/bin/cli.js')
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    [redocly, 'lint', file, '--format', 'json', '--extends', 'spec'],
    {
      env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    },
  ).catch((error: { stdout: string; stderr: string }) => error)
  await rm(folder, { recursive: true })
  expect(JSON.parse(stdout || stderr).problems.filter((problem: any) => problem.severity === 'error')).toEqual([])
}, 60_000)

test('every route stands in it with its caller, its statuses and the codes of each', async () => {
  const document = await fetched('/openapi.json')
  for (const area of harness.running.areas) {
    for (const route of area.routes) {
      const path = fullPath(area, route).replace(/:([A-Za-z]+)/g, '{$1}')
      const operation = document.paths[path]?.[route.method.toLowerCase()]
      expect(operation, `${route.method} ${path}`).toBeDefined()
      expect(operation.summary).toMatch(/^[A-Z]/)
      expect(operation.security).toEqual(route.caller.security)
      for (const [status, codes] of declaredCodes(area, route)) {
        if (route.replies[status]) continue
        expect(operation.responses[status].description).toBe(
          [...codes]
            .sort()
            .map((code) => `\`${code}\``)
            .join(', '),
        )
      }
    }
  }
})

test('operation ids are unique', async () => {
  const document = await fetched('/openapi.json')
  const ids = Object.values(document.paths).flatMap((operations: any) =>
    Object.values(operations).map((o: any) => o.operationId),
  )
  expect(new Set(ids).size).toBe(ids.length)
})
