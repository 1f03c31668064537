import { expect, test } from 'vitest'
import { formParts } from '#server/console/forms.ts'
import { loadAreas } from '#server/http/areas.ts'
import { openApi } from '#server/http/openapi.ts'
import { startConsole } from '#test/support/console.ts'
import { partOf } from '../../console/src/parts/form/part_of.ts'
import { bodySchema, type Document } from '../../console/src/parts/form/schema.ts'

/** The forms that are made from the OpenAPI document. */
const { signedIn, open, go, complaints } = await startConsole()
// one session for all: sign-ins are limited
const context = (await signedIn()).context()
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
  const page = await open(context)
  const asked: string[] = []
  page.on('request', (request) => asked.push(new URL(request.url()).pathname))
  await go(page, 'leaderboards')
  await page.getByRole('button', { name: 'New leaderboard' }).first().click()
  await page.getByLabel('Name').waitFor()
  expect(asked).not.toContain('/openapi.json')
  expect(asked.some((path) => path.startsWith('/console/assets/leaderboards-'))).toBe(true)
})

/** Refusals that no test can cause in each form of a real server, such as an outage: what the form does with them. */
const refusals = [
  ['400 of a field', 'leaderboards', 400, 'VALIDATION_ERROR', 'key', /^Key/],
  ['422 of a field', 'leaderboards', 422, 'UNPROCESSABLE', 'name', /^Name/],
  ['409 that names its field', 'leaderboards', 409, 'CONFLICT', 'key', /^Key/],
  ['409 of the whole', 'leaderboards', 409, 'CONFLICT', undefined, undefined],
  ['403', 'leaderboards', 403, 'FORBIDDEN', undefined, undefined],
  ['429', 'leaderboards', 429, 'RATE_LIMIT_EXCEEDED', undefined, undefined],
  ['503', 'leaderboards', 503, 'UNAVAILABLE', undefined, undefined],
  ['400 inside of a field', 'leaderboards', 400, 'VALIDATION_ERROR', 'source.event_name', /^Event/],
  ['400 of an item of a list', 'onboarding', 400, 'VALIDATION_ERROR', 'steps[0].title', /^Title/],
  ['400 of a field that the form does not have', 'leaderboards', 400, 'VALIDATION_ERROR', 'other', undefined],
] as const

test.for(refusals)(
  'a refusal, %s: stands beside the button, and focuses its field',
  async ([, at, status, code, field, focused]) => {
    const page = await open(context)
    await go(page, `${at}/new`)
    await page.getByLabel('Name').fill('Refused')
    if (at === 'onboarding') await page.getByRole('button', { name: 'Add', exact: true }).first().click()
    await page.route(`**/v1/admin/projects/*/${at === 'onboarding' ? 'onboarding/flows' : at}`, (route) =>
      route.request().method() === 'POST'
        ? route.fulfill({
            status,
            headers: { 'retry-after': '1' },
            json: { error: { code, message: `Refused with ${status}.`, ...(field ? { details: { field } } : {}) } },
          })
        : route.fallback(),
    )
    await page.getByRole('button', { name: /^Create/ }).click()
    await page
      .locator('.savebar')
      .getByRole('alert')
      .filter({ hasText: `Refused with ${status}.` })
      .waitFor()
    const label = () => page.evaluate('document.activeElement?.labels?.[0]?.textContent ?? ""') as Promise<string>
    if (focused) await expect.poll(label, { timeout: 10_000 }).toMatch(focused)
    // what was typed is still there
    expect(await page.getByLabel('Name').inputValue()).toBe('Refused')
    await page.close({ runBeforeUnload: false })
  },
)

test('nothing of this broke the policy of the page, threw, or left the origin', () => {
  expect(complaints).toEqual([])
})
