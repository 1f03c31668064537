import type { Route } from 'playwright-core'
import { expect, test } from 'vitest'
import { fill, phone, startConsole, wide } from '#test/support/console.ts'
import { pagesOf } from '#test/support/console_pages.ts'

/** What every page shows while it loads, where the server fails, where nothing is there yet, how it moves, and at twice the size. */
const { harness, project, signedIn, go, context, complaints, at } = await startConsole()
const filled = await fill(project)
const empty = await harness.project({ developer: project.developer })
const paths = (await pagesOf(project, filled)).filter(({ path }) => !path.endsWith('/missing'))

// a query is tried three times, with seconds between: they are skipped
const browser = await context()
await browser.addInitScript(`{
  const later = window.setTimeout
  window.setTimeout = (run, ms, ...rest) => later(run, ms === 1000 || ms === 2000 ? 20 : ms, ...rest)
}`)
const page = await signedIn(browser)

const main = page.locator('main')
const loading = page.locator('main [aria-busy=true], main .mantine-Skeleton-root:not(nav *)')
const again = main.getByRole('button', { name: 'Try again' })
const tooWide = async () => (await page.evaluate('document.documentElement.scrollWidth - innerWidth')) as number
/** Whether something is true soon. */
const soon = (state: Promise<unknown>) =>
  state.then(
    () => true,
    () => false,
  )
const quiet = () => soon(expect.poll(() => loading.count(), { timeout: 5000, interval: 30 }).toBe(0) as never)

/** What becomes of the calls that read: they wait, fail, or go through. */
let mode: 'hold' | 'fail' | 'pass' = 'pass'
let held: Route[] = []
const refuse = (route: Route) =>
  route.fulfill({ status: 500, json: { error: { code: 'INTERNAL_ERROR', message: 'It broke on purpose.' } } })
await page.route('**/v1/**', async (route) => {
  if (mode === 'pass' || route.request().method() !== 'GET') return route.fallback()
  if (mode === 'fail') return refuse(route)
  held.push(route)
})

/** Pages that ask for nothing before somebody chose something, or that show what a page before them has read already. */
const asksLater = new RegExp(
  `^(${[
    ...['sql', 'api', 'push/deliveries', 'messages/friends', 'settings', 'settings/danger', 'settings/promotion'],
    ...['collections/songs/.*', 'segments/.*/edit', 'subscriptions/edit', 'moderation-rules/.*'],
  ].join('|')})$`,
)
/** Where the rows of a list were seen. */
const lists = new Set<string>()

test('every page that reads shows that it loads, says so when the server fails, and tries again', {
  timeout: 570_000,
}, async () => {
  await go(page, 'sql')
  const wrong: string[] = []
  for (const { declared, path } of paths.filter((one) => !one.path.endsWith('/new') && !asksLater.test(one.path))) {
    const place = path || 'overview'
    mode = 'hold'
    held = []
    await page.evaluate(`history.pushState({}, '', ${JSON.stringify(at(path))})`)
    if (!(await soon(expect.poll(() => held.length, { interval: 20, timeout: 5000 }).toBeGreaterThan(0) as never)))
      wrong.push(`${place}: reads nothing`)
    if (!(await soon(loading.first().waitFor({ timeout: 3000 })))) wrong.push(`${place}: nothing shows that it loads`)
    mode = 'fail'
    await Promise.all(held.map(refuse))
    if (!(await quiet())) wrong.push(`${place}: loads for ever after an error`)
    if ((await again.count()) === 0) wrong.push(`${place}: no error with "Try again"`)
    if ((await tooWide()) > 0) wrong.push(`${place}: the error is too wide`)
    await page.setViewportSize(phone)
    if ((await tooWide()) > 0) wrong.push(`${place}: the error is too wide for a phone`)
    mode = 'pass'
    // what reads again by itself may be faster
    for (let tries = 0; tries < 8 && (await again.count()) > 0; tries++) {
      await again
        .first()
        .click({ timeout: 1000 })
        .catch(() => undefined)
      if (!(await quiet())) wrong.push(`${place}: loads for ever after "Try again"`)
    }
    if ((await again.count()) > 0) wrong.push(`${place}: "Try again" does not help`)
    await page.setViewportSize(wide)
    if ((await main.locator('table[aria-rowcount]').count()) > 0) lists.add(declared)
  }
  expect(wrong).toEqual([])
  expect(lists.size).toBeGreaterThan(40)
})

test('an outage that ends by itself, as 503, is over after "Try again"', async () => {
  await page.goto(at('leaderboards'))
  await page.route('**/leaderboards?*', (route) =>
    route.fulfill({ status: 503, json: { error: { code: 'UNAVAILABLE', message: 'It is being moved.' } } }),
  )
  await page.reload()
  await main.getByRole('alert').filter({ hasText: 'The server does not answer' }).waitFor()
  await page.unroute('**/leaderboards?*')
  await again.click()
  await main.getByRole('link', { name: 'Points of the week' }).waitFor()
  expect(await main.getByRole('alert').count()).toBe(0)
})

test('every list of a project that has nothing yet says what to do first', { timeout: 300_000 }, async () => {
  const wrong: string[] = []
  await page.goto(at('', empty))
  for (const size of [wide, phone]) {
    await page.setViewportSize(size)
    for (const path of lists) {
      if (path.includes('$')) continue
      await main.locator('h1').evaluate((one: any) => one.setAttribute('data-before', ''))
      await go(page, path, empty)
      await main.locator('h1:not([data-before])').waitFor()
      await quiet()
      const place = `${path} (${size.width})`
      if ((await tooWide()) > 0) wrong.push(`${place}: too wide`)
      const rows = await main.locator('tbody tr').count()
      const says = (await main
        .locator('[data-empty]')
        .evaluateAll((all) => all.map((one: any) => one.querySelectorAll('a, button, div').length > 0))) as boolean[]
      if (rows === 0 && says.length === 0) wrong.push(`${place}: neither rows nor why there are none`)
      if (says.some((hasMore) => !hasMore)) wrong.push(`${place}: only says that nothing is there`)
    }
  }
  await page.setViewportSize(wide)
  expect(wrong).toEqual([])
})

/** Runs in the page: the fields of a form that its foot, or what stands above, hides as they get the focus. */
const hidden = `(inside) => {
  const root = document.querySelector(inside)
  // a drawer is above the bar at the top
  const above = inside === 'main' ? document.querySelector('header')?.getBoundingClientRect().bottom ?? 0 : 0
  const bar = root?.querySelector('.savebar')
  if (!bar) return []
  const found = []
  for (const field of root.querySelectorAll('input, textarea, select, button, [contenteditable=true]')) {
    if (!field.offsetParent || bar.contains(field) || field.disabled || field.tabIndex < 0) continue
    field.focus()
    const { top, bottom, height } = field.getBoundingClientRect()
    const foot = bar.getBoundingClientRect()
    const beneath = Math.min(bottom, foot.bottom) - Math.max(top, foot.top)
    if (height > 0 && (beneath > height / 2 || top + height / 2 < above))
      found.push((field.labels?.[0] ?? field).textContent || field.ariaLabel || field.name)
  }
  return found
}`

/** Drawers with a form, by the address that opens them. */
const drawers = [
  ...[
    'users?add=yes',
    'events?send=yes',
    'collections/songs/columns?column=%2B',
    'collections/songs/indexes?add=index',
  ],
  ...['onboarding/codes?defaults=yes', 'subscriptions/entitlements?grant=yes'],
]

test('at twice the size no page is wider than the screen, and the foot of a form hides none of its fields', {
  timeout: 400_000,
}, async () => {
  // a screen of 1440 x 900 at 200 %
  await page.setViewportSize({ width: 720, height: 450 })
  await page.goto(at('sql'))
  const wrong: string[] = []
  let forms = 0
  for (const path of [...paths.map((one) => one.path), ...drawers]) {
    await page.locator('main h1').evaluate((one: any) => one.setAttribute('data-before', ''))
    await go(page, path)
    await page.locator('main h1:not([data-before])').waitFor()
    const isDrawer = path.includes('=')
    if (isDrawer) await page.getByRole('dialog').waitFor()
    // a list that opens beside a field is in its place a moment later
    if (!(await soon(expect.poll(tooWide, { timeout: 2000 }).toBeLessThanOrEqual(0)))) wrong.push(`${path}: too wide`)
    const inside = isDrawer ? '[role=dialog]' : 'main'
    forms += await page.locator(`${inside} .savebar`).count()
    const out = (await page.evaluate(`(${hidden})('${inside}')`)) as string[]
    wrong.push(...out.map((field) => `${path}: hides ${field}`))
    if (isDrawer) await page.keyboard.press('Escape')
  }
  await page.setViewportSize(wide)
  expect(wrong).toEqual([])
  expect(forms).toBeGreaterThan(25)
})

test('what moves does so for those who did not ask for less motion alone', async () => {
  /** The longest time, in milliseconds, that something moves while a drawer opens. */
  const longest = async (reducedMotion: 'reduce' | 'no-preference') => {
    await page.emulateMedia({ reducedMotion })
    await go(page, 'users')
    await page.evaluate(`window.longest = 0
      window.watching = setInterval(() => {
        for (const one of document.getAnimations()) {
          const { duration } = one.effect.getComputedTiming()
          window.longest = Math.max(window.longest, Number(duration) || 0)
        }
      }, 4)`)
    await page.getByRole('button', { name: 'Add user' }).click()
    const dialog = page.getByRole('dialog', { name: 'Add user' })
    // a click waits until nothing moves any more
    await dialog.getByRole('textbox').first().click()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'hidden' })
    return (await page.evaluate('clearInterval(window.watching), window.longest')) as number
  }
  expect(await longest('no-preference')).toBeGreaterThan(100)
  expect(await longest('reduce')).toBeLessThanOrEqual(1)
})

test('nothing of this broke the policy of the page, threw, or left the origin', () => {
  expect(complaints).toEqual([])
})
