import { chromium, type Page } from 'playwright-core'
import { afterAll, expect, test } from 'vitest'
import { chromiumPath } from '#test/support/chromium.ts'
import { endPrograms, endServer, freePort, startServer } from '#test/support/process.ts'
import { newEmail } from '#test/support/sign_in.ts'

/** The console in a real browser, on a server that ends, and with a session that does. */
if (!chromiumPath) {
  test.skip('there is no Chromium on this machine: CHROMIUM_BIN may name one', () => undefined)
} else {
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  })
  afterAll(async () => {
    await browser.close()
    await endPrograms()
  }, 60_000)
  const PORT = String(await freePort())
  const url = `http://localhost:${PORT}`
  let server = await startServer({ PORT })
  const email = newEmail()
  const password = 'a long passphrase'
  let page: Page
  let project: string

  test('a page is there again by itself when its server is', { timeout: 120_000 }, async () => {
    page = await (await browser.newContext()).newPage()
    await page.goto(`${url}/console`)
    await page.getByRole('button', { name: 'Create an account' }).click()
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.getByLabel('Name').fill('Ada')
    await page.getByRole('button', { name: 'Create an account' }).first().click()
    await page.getByRole('heading', { name: 'Projects', exact: true }).waitFor()
    await page.getByLabel('Name').fill('Restarted')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    project = new URL(page.url()).pathname
    await page.getByRole('link', { name: 'Events live' }).click()
    await page.getByText('0 events shown').waitFor({ timeout: 30_000 })

    await endServer(server)
    await page.getByRole('alert').waitFor({ timeout: 30_000 })
    server = await startServer({ PORT, DATA_DIR: server.dataDir })
    await page.getByRole('alert').waitFor({ state: 'detached', timeout: 30_000 })
    await page.getByText('0 events shown').waitFor()
    await page.getByRole('link', { name: 'Users', exact: true }).click()
    await page.getByText('Nothing here yet.').waitFor()
    expect(new URL(page.url()).pathname).toBe(`${project}/users`)
  })

  test('a session that has ended says so, and goes on where it was after the sign-in', {
    timeout: 120_000,
  }, async () => {
    await page.getByRole('link', { name: 'Events live' }).click()
    await page.getByText('0 events shown').waitFor()
    const ask = async (method: string, path: string, body: object, token?: string) => {
      const headers = { 'content-type': 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) }
      const answer = await fetch(`${url}/v1/auth/developer/${path}`, { method, headers, body: JSON.stringify(body) })
      return (await answer.json()) as any
    }
    const elsewhere = await ask('POST', 'login', { email, password })
    const changed = { password: 'another passphrase', current_password: password }
    expect((await ask('PATCH', 'me', changed, elsewhere.data.access_token)).data.email).toBe(email)
    await page.getByText('Your session has ended: sign in again.').waitFor({ timeout: 60_000 })
    await page.getByLabel('Email').fill(email)
    await page.getByLabel('Password').fill(changed.password)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('heading', { name: 'Events live' }).waitFor()
    expect(new URL(page.url()).pathname).toBe(`${project}/live/events`)
  })
}
