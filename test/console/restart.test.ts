import type { Page } from 'playwright-core'
import { afterAll, expect, test } from 'vitest'
import { launchChromium } from '#test/support/chromium.ts'
import { endPrograms, endServer, freePort, startServer } from '#test/support/process.ts'
import { newEmail } from '#test/support/sign_in.ts'

/** The console in a real browser, on a server that ends, and with a session that does. */
const browser = await launchChromium()
afterAll(endPrograms, 60_000)
const PORT = String(await freePort())
const url = `http://localhost:${PORT}`
let server = await startServer({ PORT })
const email = newEmail()
const password = 'a long passphrase'
let page: Page
let project: string

test('a project is made, and both its keys are shown once', { timeout: 120_000 }, async () => {
  page = await (await browser.newContext()).newPage()
  await page.goto(`${url}/console`)
  await page.getByRole('button', { name: 'Create an account' }).click()
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByLabel('Name', { exact: true }).fill('Ada')
  await page.getByRole('button', { name: 'Create an account' }).first().click()
  await page.getByRole('heading', { name: 'Projects', exact: true }).waitFor()
  await page.getByRole('button', { name: 'New project' }).first().click()
  await page.getByLabel('Name').fill('Restarted')
  await page.getByRole('button', { name: 'Create project' }).click()
  const dialog = page.getByRole('dialog', { name: '“Restarted” is ready' })
  await dialog.getByText('Client key').waitFor()
  expect(await dialog.getByText(/^svc_live_ck_/).count()).toBeGreaterThan(0)
  expect(await dialog.getByText(/^svc_live_sk_/).count()).toBe(1)
  const call = (await dialog.locator('pre').textContent()) ?? ''
  const [, address = ''] = /(http\S+)/.exec(call) ?? []
  const [, key = ''] = /x-api-key: ([^"]+)/.exec(call) ?? []
  const signIn = async () => (await fetch(address, { method: 'POST', headers: { 'x-api-key': key } })).text()
  // the database of a new project takes a moment
  await expect.poll(signIn, { timeout: 60_000 }).toContain('session_token')
  await dialog.getByRole('button', { name: 'Open the project' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  project = new URL(page.url()).pathname
})

test('an outage while a form is half typed: it says so, keeps what was typed, and sends when the server is back', {
  timeout: 180_000,
}, async () => {
  await page.goto(`${url}${project}/leaderboards/new`)
  await page.getByText('Sent by your app').click()
  await page.getByLabel('Name').fill('Survivor')
  await endServer(server)
  await page.getByRole('button', { name: 'Create leaderboard' }).click()
  await page.getByText('The server does not answer').first().waitFor({ timeout: 60_000 })
  expect(await page.getByLabel('Name').inputValue()).toBe('Survivor')
  server = await startServer({ PORT, DATA_DIR: server.dataDir })
  await page.getByRole('button', { name: 'Create leaderboard' }).click()
  await page.getByRole('heading', { name: 'Survivor', exact: true }).waitFor({ timeout: 60_000 })
})

test('a list is there again by itself when its server is', { timeout: 180_000 }, async () => {
  await page.goto(`${url}${project}/users`)
  await page.getByText('No users yet').or(page.getByRole('table')).first().waitFor()
  await page.goto(`${url}${project}`)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await endServer(server)
  await page.getByText('The server cannot be reached').waitFor({ timeout: 60_000 })
  server = await startServer({ PORT, DATA_DIR: server.dataDir })
  await page.getByText('The server cannot be reached').waitFor({ state: 'detached', timeout: 60_000 })
  expect(new URL(page.url()).pathname).toBe(project)
})

test('a part of a page that an outage holds back is drawn when the server is back', { timeout: 120_000 }, async () => {
  const another = await page.context().newPage()
  const chart = another.getByRole('img', { name: /^Active users:/ })
  const drawing = another.waitForResponse(
    async (response) => response.request().resourceType() === 'script' && (await response.text()).includes('recharts'),
  )
  await another.goto(`${url}${project}`)
  await chart.waitFor()
  const part = (await drawing).url()
  const isDown = (address: URL) => address.href === part || address.pathname === '/health'
  await another.route(isDown, (route) => route.abort())
  await another.reload()
  await another.getByText('The server cannot be reached').waitFor({ timeout: 30_000 })
  expect(await another.getByText('That was refused').count()).toBe(0)
  await another.unroute(isDown)
  await another.getByText('The server cannot be reached').waitFor({ state: 'detached', timeout: 30_000 })
  await chart.locator('svg').first().waitFor()
  expect(await another.getByRole('heading', { name: 'Overview' }).count()).toBe(1)
  await another.close()
})

test('a session that has ended says so, and goes on where it was after the sign-in', { timeout: 120_000 }, async () => {
  const ask = async (method: string, path: string, body: object, token?: string) => {
    const headers = { 'content-type': 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) }
    const answer = await fetch(`${url}/v1/auth/developer/${path}`, { method, headers, body: JSON.stringify(body) })
    return ((await answer.json()) as { data: Record<string, string> }).data
  }
  await page.goto(`${url}${project}/leaderboards`)
  await page.getByRole('heading', { name: 'Leaderboards', exact: true }).waitFor()
  const { access_token } = await ask('POST', 'login', { email, password })
  // a new password ends every session
  await ask('PATCH', 'me', { password: 'another passphrase', current_password: password }, access_token)
  await page.reload()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor({ timeout: 30_000 })
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password', { exact: true }).fill('another passphrase')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { name: 'Leaderboards', exact: true }).waitFor({ timeout: 30_000 })
  expect(new URL(page.url()).pathname).toBe(`${project}/leaderboards`)
})
