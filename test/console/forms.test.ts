import { expect, test } from 'vitest'
import { formParts } from '#server/console/forms.ts'
import { loadAreas } from '#server/http/areas.ts'
import { openApi } from '#server/http/openapi.ts'
import { startConsole } from '#test/support/console.ts'
import { partOf } from '../../console/src/parts/form/part_of.ts'
import { bodySchema, type Document } from '../../console/src/parts/form/schema.ts'

/** The forms that are made from the OpenAPI document. */
const { signedIn, go, complaints } = await startConsole()
const document = (await openApi(await loadAreas(), '')) as Document

/** The bodies that a developer sends, as `POST /v1/...`. */
const operations = Object.entries(document.paths)
  .filter(([path]) => /^\/v1\/(admin|auth\/developer)\//.test(path))
  .flatMap(([path, item]) => Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`))
  .filter((operation) => !/^(GET|DELETE) /.test(operation) && bodySchema(operation, document) !== undefined)

test('the part of the document that a form loads says the same of its body as the whole', () => {
  const parts = formParts(document as never, partOf)
  expect(operations.length).toBeGreaterThan(150)
  for (const operation of operations) {
    const part = parts.get(partOf(operation.split(' ')[1] ?? ''))
    expect(part, operation).toBeDefined()
    const own = { paths: part?.paths, components: { schemas: part?.schemas } } as Document
    expect(bodySchema(operation, own), operation).toEqual(bodySchema(operation, document))
  }
})

test('a form is there without the whole document', async () => {
  const page = await signedIn()
  const asked: string[] = []
  page.on('request', (request) => asked.push(new URL(request.url()).pathname))
  await go(page, 'leaderboards')
  await page.getByRole('button', { name: 'New leaderboard' }).first().click()
  await page.getByLabel('Name').waitFor()
  expect(asked).not.toContain('/openapi.json')
  expect(asked.some((path) => path.startsWith('/console/assets/leaderboards-'))).toBe(true)
})

test('nothing of this broke the policy of the page, threw, or left the origin', () => {
  expect(complaints).toEqual([])
})
