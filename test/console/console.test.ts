import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { startConsole } from '#test/support/console.ts'
import { enrol } from '#test/support/organizations.ts'
import { newEmail } from '#test/support/sign_in.ts'

/** Sessions, refusals and hostile names, in a real browser. */
const { harness, project, url, open, signedIn, at, go, complaints, context } = await startConsole()
const hostile = '<img src=x onerror="document.title=1"><script>document.title=1</script>'

const signUp = async (page: Page, email: string) => {
  await page.getByRole('button', { name: 'Create an account' }).click()
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password', { exact: true }).fill('a long passphrase')
  await page.getByLabel('Name', { exact: true }).fill('Ada')
  await page.getByRole('button', { name: 'Create an account' }).first().click()
  await page.getByRole('heading', { name: 'Projects', exact: true }).waitFor()
}

test('somebody signs up, is still there after a reload and in another tab, and signs out of both', async () => {
  const on = await context()
  const page = await open(on)
  await page.getByLabel('Email').waitFor()
  // this server has no GitHub application
  expect(await page.getByRole('button', { name: 'Sign in with GitHub' }).count()).toBe(0)
  await signUp(page, newEmail())
  await page.reload()
  await page.getByRole('heading', { name: 'Projects', exact: true }).waitFor()
  // no script of the page can read what keeps the session
  expect(await page.evaluate('document.cookie + JSON.stringify({ ...sessionStorage })')).not.toMatch(/eyJ|_token/)
  const other = await on.newPage()
  await other.goto(`${url}/console`)
  await other.getByRole('heading', { name: 'Projects', exact: true }).waitFor()
  await page.getByRole('button', { name: 'Account' }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  for (const tab of [page, other]) await tab.getByRole('heading', { name: 'Sign in' }).waitFor()
  // where somebody chose to sign out nothing has ended by itself
  await other.getByText('Your session has ended').waitFor()
  expect(await page.getByText('Your session has ended').count()).toBe(0)
  expect(new URL(page.url()).search).toBe('')
  await page.reload()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
})

test('where the server asks to wait before a session is renewed, the page says so, stays signed in and goes on', async () => {
  const page = await signedIn()
  const renew = `fetch('/console/session/refresh', { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } })`
  const statuses = (await page.evaluate(`(async () => {
    const statuses = []
    for (let n = 0; n < 31; n += 1) statuses.push((await ${renew}).status)
    return statuses
  })()`)) as number[]
  expect(statuses.at(-1)).toBe(429)
  // the window of a minute is nearly over, so that the wait is short
  harness.advance(56)
  await page.reload()
  await page.getByRole('status').filter({ hasText: 'The server asks to wait' }).waitFor()
  harness.advance(10)
  await page.getByRole('heading', { name: 'Projects', exact: true }).waitFor()
})

test('a wrong password says so, and the page stays', async () => {
  const page = await open()
  await page.getByLabel('Email').fill(project.developer.email)
  await page.getByLabel('Password', { exact: true }).fill('another passphrase')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('alert').filter({ hasText: 'INVALID_CREDENTIALS' }).waitFor()
  expect(await page.getByLabel('Email').inputValue()).toBe(project.developer.email)
})

test('a link of a page leads to the sign-in, and from there to the page', async () => {
  const page = await open()
  await page.goto(at('leaderboards?q=x'))
  await page.getByLabel('Email').fill(project.developer.email)
  await page.getByLabel('Password', { exact: true }).fill('a long passphrase')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { name: 'Leaderboards', exact: true }).waitFor()
  expect(page.url()).toContain('/leaderboards')
})

test('a definition is created, refused at its field, changed and deleted; a hostile name is text', async () => {
  const page = await signedIn()
  await go(page, 'leaderboards')
  await page.getByRole('button', { name: 'New leaderboard' }).first().click()
  await page.getByText('Sent by your app').click()
  await page.getByLabel('Name').fill(hostile)
  const key = page.getByLabel('Key')
  await key.fill('Not a key!')
  await page.getByRole('button', { name: 'Create leaderboard' }).click()
  await expect.poll(() => key.getAttribute('aria-invalid'), { timeout: 10_000 }).toBe('true')
  await expect.poll(() => page.evaluate('document.activeElement?.name')).toBe('key')
  await key.fill('hostile')
  await page.getByRole('button', { name: 'Create leaderboard' }).click()
  await page.getByRole('heading', { name: hostile }).waitFor()
  await page.getByRole('button', { name: 'Edit' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('Harmless')
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: 'Harmless', exact: true }).waitFor()
  expect((await project.admin.get('/leaderboards/hostile')).data.name).toBe('Harmless')
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Delete leaderboard' }).click()
  const confirm = page.getByRole('dialog').getByRole('button', { name: 'Delete leaderboard' })
  expect(await confirm.isDisabled()).toBe(true)
  await page.getByLabel(/^Type/).fill('Harmless')
  await confirm.click()
  await page.getByText('No leaderboards yet').waitFor()
  expect((await project.admin.get('/leaderboards/hostile')).status).toBe(404)
  expect(await page.title()).toBe('Leaderboards · Trellis')
})

test('what was half typed is not lost by a link: the page asks', async () => {
  const page = await signedIn()
  await go(page, 'leaderboards/new')
  await page.getByLabel('Name').fill('Half')
  await page.getByRole('link', { name: 'Users', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Stay' }).click()
  expect(await page.getByLabel('Name').inputValue()).toBe('Half')
  await page.getByRole('link', { name: 'Users', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Leave' }).click()
  await page.getByRole('heading', { name: 'Users', exact: true }).waitFor()
})

test('a stranger’s project is refused as the API refuses it', async () => {
  const page = await signedIn(undefined, (await harness.developer()).email)
  await page.goto(at('users'))
  await page.getByRole('alert').filter({ hasText: 'PROJECT_FORBIDDEN' }).first().waitFor()
  expect(await page.getByRole('table').count()).toBe(0)
})

test('a viewer is told before a form that nothing can be changed; a developer is not', async () => {
  const developer = await harness.developer()
  const organization = (await project.admin.get('')).data.organization_id
  const note = 'You are a viewer of this project'
  for (const role of ['viewer', 'developer'] as const) {
    await enrol(harness, organization, developer, role)
    const page = await signedIn(undefined, developer.email)
    await go(page, 'leaderboards')
    if (role === 'viewer') await page.getByRole('note').filter({ hasText: note }).waitFor()
    else {
      await page.getByRole('button', { name: 'New leaderboard' }).first().waitFor()
      expect(await page.getByText(note).count()).toBe(0)
    }
    await page.context().close()
  }
})

test('nothing of this broke the policy of the page, threw, or left the origin', () => {
  expect(complaints).toEqual([])
})
