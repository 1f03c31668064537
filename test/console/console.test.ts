import { chromium, type Page } from 'playwright-core'
import { afterAll, expect, test } from 'vitest'
import { chromiumPath } from '#test/support/chromium.ts'
import { startHarness } from '#test/support/harness.ts'
import { newEmail } from '#test/support/sign_in.ts'

/** The console in a real browser. */
if (!chromiumPath) {
  test.skip('there is no Chromium on this machine: CHROMIUM_BIN may name one', () => undefined)
} else {
  const harness = await startHarness()
  const project = await harness.project()
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  })
  afterAll(() => browser.close())

  /** A page of a person of its own, and what the browser complains of in it: a broken policy, an error of a script. */
  const open = async () => {
    // the cookie is Secure: the name of this machine counts as a safe origin, its address does not
    const url = harness.url.replace('127.0.0.1', 'localhost')
    const context = await browser.newContext()
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('console', (message) => {
      if (/Content Security Policy|Trusted/i.test(message.text())) complaints.push(message.text())
    })
    await page.goto(`${url}/console`)
    return { page, complaints, url, context }
  }
  const signIn = async (page: Page, email: string) => {
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill('a long passphrase')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { name: 'Projects' }).waitFor()
  }

  test('somebody signs up, is still there after a reload and in another tab, and signs out of both', async () => {
    const { page, complaints, url, context } = await open()
    await page.getByRole('button', { name: 'Create an account' }).click()
    await page.getByLabel('Email').fill(newEmail())
    await page.getByLabel('Password').fill('a long passphrase')
    await page.getByLabel('Name').fill('Ada')
    // this server has no GitHub application
    expect(await page.getByRole('button', { name: 'Sign in with GitHub' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Create an account' }).first().click()
    await page.getByRole('heading', { name: 'Projects' }).waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'Projects' }).waitFor()
    // no script of the page can read what keeps the session
    expect(await page.evaluate('document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage })')).toBe('{}')
    const other = await context.newPage()
    await other.goto(`${url}/console`)
    await other.getByRole('heading', { name: 'Projects' }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    for (const tab of [page, other]) await tab.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.reload()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(complaints).toEqual([])
  })

  test('a wrong password says so, and the page stays', async () => {
    const { page } = await open()
    await page.getByLabel('Email').fill(project.developer.email)
    await page.getByLabel('Password').fill('another passphrase')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('alert').filter({ hasText: 'INVALID_CREDENTIALS' }).waitFor()
    expect(await page.getByLabel('Email').inputValue()).toBe(project.developer.email)
  })

  test('rows of an area are created, refused at their field, changed and deleted; a hostile name is text', async () => {
    const { page, complaints, url } = await open()
    await signIn(page, project.developer.email)
    await page.goto(`${url}/console/projects/${project.id}`)
    await page.getByRole('link', { name: 'Segments', exact: true }).click()
    await page.getByText('Nothing here yet.').waitFor()
    const hostile = '<img src=x onerror="document.title=1"><script>document.title=1</script>'
    const create = async (key: string) => {
      await page.getByRole('link', { name: /^(Create|Define|Add) a segment/i }).click()
      await page.getByLabel('Key').fill(key)
      await page.getByLabel('Name').fill(hostile)
      await page.getByLabel('Rules').fill('{"and": []}')
      await page.locator('main form button[type=submit]').click()
    }
    await create('Not a key!')
    const field = page.getByLabel('Key')
    await expect.poll(() => field.getAttribute('aria-invalid'), { timeout: 10_000 }).toBe('true')
    await field.fill('pros')
    await page.locator('main form button[type=submit]').click()
    await page.getByText('Done.').waitFor()
    await page.getByRole('link', { name: 'Back to the list' }).click()
    await page.getByRole('cell', { name: hostile }).waitFor()
    await page.getByRole('link', { name: hostile }).click()
    await page.getByRole('heading', { name: hostile }).waitFor()
    await page.getByLabel('Name').fill('Professionals')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Professionals' }).waitFor()
    expect((await project.admin.get('/segments/pros')).data.name).toBe('Professionals')
    page.on('dialog', (dialog) => void dialog.accept())
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('Nothing here yet.').waitFor()
    expect((await project.admin.get('/segments/pros')).status).toBe(404)
    expect(await page.title()).toBe('Trellis console')
    expect(complaints).toEqual([])
  })

  test('a stranger’s project is refused as the API refuses it, and a narrow window scrolls in one direction', async () => {
    const { page, url } = await open()
    await signIn(page, (await harness.developer()).email)
    await page.goto(`${url}/console/projects/${project.id}/users`)
    await page.getByRole('alert').filter({ hasText: 'PROJECT_FORBIDDEN' }).first().waitFor()
    await page.setViewportSize({ width: 375, height: 700 })
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(375)
  })
}
