import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { bundleApp } from '#test/support/bundle.ts'
import { phone, picture, settled, startConsole, violations, wide } from '#test/support/console.ts'
import { diagnosticsOf } from '#test/support/diagnostics.ts'
import { sourceMapsOf } from '#test/support/source_maps.ts'

const { harness, project, signedIn, go, context, complaints } = await startConsole()
const { send, issues } = diagnosticsOf(project)
const { upload } = sourceMapsOf(harness, project)
const app = await bundleApp()

test('an issue shows the source of its frames, and the raw stack on request', async () => {
  await send({ message: 'A price below zero', stack: app.stack, app_version: '3.1.0' })
  const [{ id }] = await issues()
  const page = await signedIn()
  await go(page, `diagnostics/${id}`)
  const stack = page.getByRole('region', { name: 'Stack' })
  await stack.getByText('trellis sourcemaps push --release 3.1.0').waitFor()
  expect(await stack.getByText(/main\.js:1:/).count()).toBe(1)

  await upload('3.1.0', 'assets/main.js', await readFile(app.map, 'utf8'))
  await page.reload()
  await settled(page)
  const here = stack.locator('[data-here]')
  await here.first().waitFor()
  // the first frame is open
  expect(await here.filter({ visible: true }).allTextContents()).toEqual([
    expect.stringContaining("here:   if (item.price < 0) throw new RangeError('A price below zero')"),
  ])
  await stack.getByText('totalOfCart').first().click()
  await here.filter({ hasText: 'sum += priceOfItem(item)', visible: true }).waitFor()
  expect(await stack.getByText('trellis sourcemaps push').count()).toBe(0)
  expect(await violations(page)).toEqual([])
  await picture(page, 'diagnostics-issue')

  await stack.getByText('Raw', { exact: true }).click()
  await stack.getByText('RangeError: A price below zero').waitFor()
  expect(await here.count()).toBe(0)
  expect(complaints).toEqual([])
})

test.each([
  ['light', wide],
  ['dark', wide],
  ['light', phone],
] as const)('in %s at %j axe finds nothing and nothing overflows', async (colorScheme, viewport) => {
  const [{ id }] = await issues()
  const page = await signedIn(await context({ colorScheme, viewport }))
  await go(page, `diagnostics/${id}`)
  await settled(page)
  expect(await violations(page)).toEqual([])
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
  await picture(page, `diagnostics-${colorScheme}-${viewport.width}`)
})
