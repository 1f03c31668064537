import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { fill, phone, picture, settled, startConsole, violations, wide } from '#test/support/console.ts'
import { pagesOf } from '#test/support/console_pages.ts'

/** Every page of the console, on a filled and on an empty project, light and dark, wide and on a phone. */
const { harness, project, signedIn, go, context, complaints, url } = await startConsole()
const filled = await fill(project)
const empty = await harness.project({ developer: project.developer })

const paths = await pagesOf(project, filled)

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-/
const isoTime = /\d{4}-\d\d-\d\dT\d\d:\d\d/

const settable = JSON.stringify(['Columns', 'Levels'])

/** What no page may show: raw times, identifiers as links, JSON in a frame, a column that is the same in every row. */
const roughness = async (page: Page): Promise<string[]> =>
  (await page.evaluate(`(() => {
    const wrong = []
    for (const link of document.querySelectorAll('main a, main button'))
      if (${uuid}.test(link.textContent.trim())) wrong.push('uuid as a link: ' + link.textContent)
    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node; node = walker.nextNode())
      if (${isoTime}.test(node.data) && !node.parentElement.closest('pre, code, [role=grid]')) wrong.push('raw time: ' + node.data.slice(0, 80))
    for (const pre of document.querySelectorAll('main pre'))
      if (!pre.closest('[aria-label="The same as a request"], [data-code]')) wrong.push('text in a frame: ' + pre.textContent.slice(0, 80))
    for (const table of document.querySelectorAll('main table[data-stack]')) {
      const rows = [...table.querySelectorAll('tbody tr:not([aria-hidden])')]
      // not those of which only a part is here, nor those that show what can be set
      if (rows.length < 3 || Number(table.getAttribute('aria-rowcount') ?? 0) > rows.length || ${settable}.includes(table.ariaLabel)) continue
      for (const [at, head] of [...table.querySelectorAll('thead th')].entries()) {
        const cells = rows.map((row) => row.cells[at])
        if (cells.includes(undefined)) {
          wrong.push('a row without the column of ' + table.ariaLabel + ': ' + head.textContent)
          continue
        }
        const texts = new Set(cells.map((cell) => cell.textContent.replace('—', '').trim()))
        if (at > 0 && texts.size === 1 && !cells.some((cell) => cell.querySelector('button, a, input, time')))
          wrong.push('the same in every row of ' + table.ariaLabel + ': ' + head.textContent + ' ' + [...texts])
      }
    }
    for (const alert of document.querySelectorAll('main [role=alert]'))
      if (/was refused|went wrong|is not here|Code [A-Z]+_/.test(alert.textContent)) wrong.push('an error: ' + alert.textContent.slice(0, 120))
    return wrong
  })()`)) as string[]

const hiddenTab = `[...document.querySelectorAll('.tabs [aria-current=page]')].some((tab) => {
  const { left, right } = tab.getBoundingClientRect()
  return left < -1 || right > innerWidth + 1
})`

test('the navigation has at most 30 links, and each leads to a page with a title', async () => {
  const page = await signedIn()
  await go(page, '')
  const links = page.getByRole('navigation', { name: 'Project' }).getByRole('link')
  expect(await links.count()).toBeLessThanOrEqual(30)
  expect(await links.count()).toBeGreaterThan(0)
})

/** Both colours and both sizes; at night each with each. A colour that changes on a page is for a moment neither. */
const looks = [
  ['light', wide],
  ['dark', phone],
  ...(process.env['TRELLIS_NIGHTLY'] === '1'
    ? ([
        ['dark', wide],
        ['light', phone],
      ] as const)
    : []),
] as const

test.for(
  looks.flatMap(([scheme, size]) => [
    ['filled', project, scheme, size] as const,
    ['empty', empty, scheme, size] as const,
  ]),
)(
  'every page of the %s project, %#: axe finds nothing, nothing overflows, nothing is rough',
  { timeout: 900_000 },
  async ([kind, of, colorScheme, viewport]) => {
    const page = await signedIn(await context({ colorScheme, viewport }))
    const wrong: string[] = []
    for (const { declared, path } of paths) {
      // what is about a row is not there in the empty project
      if (kind === 'empty' && declared.includes('$')) continue
      const place = `${kind} ${path || 'overview'} (${colorScheme})`
      await go(page, path, of)
      const tab = async () => (await page.title()) === `${await page.locator('h1').first().textContent()} · Trellis`
      await expect.poll(tab, { message: `${place}: the name of the tab` }).toBe(true)
      if ((await page.evaluate('document.activeElement?.id')) !== 'title')
        wrong.push(`${place}: the title has no focus`)
      wrong.push(...(await violations(page)).map((line) => `${place}: ${line}`))
      const overflow = (await page.evaluate('document.documentElement.scrollWidth - innerWidth')) as number
      if (overflow > 0) wrong.push(`${place}: ${overflow} pixels too wide`)
      if (await page.evaluate(hiddenTab)) wrong.push(`${place}: the open tab is out of sight`)
      if (!path.endsWith('/missing')) wrong.push(...(await roughness(page)).map((line) => `${place}: ${line}`))
      const name = `${declared.replace(/\$\w+/, 'one').replace(/[^\w]+/g, '-') || 'overview'}${kind === 'empty' ? '-empty' : ''}`
      await picture(page, `${name}${colorScheme === 'dark' ? '-dark' : ''}${viewport === phone ? '-phone' : ''}`)
    }
    expect(wrong).toEqual([])
  },
)

test('the search finds every page by its name, and a user by mail', async () => {
  const page = await signedIn()
  await go(page, '')
  const names = await page.getByRole('navigation', { name: 'Project' }).getByRole('link').allTextContents()
  for (const name of names) {
    await page.keyboard.press('Control+k')
    await page.getByRole('textbox', { name: 'Search' }).fill(name)
    await page
      .getByRole('dialog')
      .getByRole('button', { name: new RegExp(`^${name}`) })
      .first()
      .waitFor()
    await page.keyboard.press('Escape')
  }
  const user = filled.users[7]
  await page.keyboard.press('Control+k')
  await page.getByRole('textbox', { name: 'Search' }).fill(user?.email.split('@')[0] ?? '')
  await page
    .getByRole('dialog')
    .getByRole('button', { name: new RegExp(user?.email ?? '') })
    .waitFor()
  await page.keyboard.press('Enter')
  await page.waitForURL(`${url}/console/projects/${project.id}/users/*`)
  await settled(page)
})

test('nothing of this broke the policy of the page, threw, or left the origin', () => {
  expect(complaints).toEqual([])
})
