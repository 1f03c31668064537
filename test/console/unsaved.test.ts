import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { fill, startConsole } from '#test/support/console.ts'

/** Half-typed work is not lost without a question, in forms of every kind. */
const { project, signedIn, go, at, complaints } = await startConsole()
await fill(project, 20, 10)
const page = await signedIn()
page.setDefaultTimeout(10_000)

const navigation = page.getByRole('navigation', { name: 'Project' })
const field = (name: string | RegExp, within: Page = page) => within.getByRole('textbox', { name })

test.for([
  ['leaderboards/new', 'Name'],
  ['flags/new', 'Name'],
  ['collections/new', 'Name'],
  ['segments/new', 'Name'],
  ['moderation-rules/new', 'Name'],
  ['push/new?step=1', 'Title'],
  ['collections/songs/access', 'Description'],
  ['settings/sign-in', 'Redirect addresses'],
] as const)('%s: a link asks, Stay keeps what was typed, Leave goes on', async ([path, name]) => {
  await go(page, path)
  const link = navigation.getByRole('link', { name: 'Groups', exact: true })
  await link.click()
  // nothing was typed
  await page.getByRole('heading', { level: 1, name: 'Groups' }).waitFor()
  await go(page, path)
  await field(name).first().fill('Half typed')
  const typed = await field(name).first().inputValue()
  await link.click()
  const question = page.getByRole('dialog', { name: 'Leave this page?' })
  await question.getByRole('button', { name: 'Stay' }).click()
  await question.waitFor({ state: 'detached' })
  expect(await field(name).first().inputValue()).toBe(typed)
  await link.click()
  await question.getByRole('button', { name: 'Leave' }).click()
  await page.getByRole('heading', { level: 1, name: 'Groups' }).waitFor()
})

test.for([
  ['users?add=yes', 'Add user', 'Email'],
  ['collections/songs?row=new', 'New row of songs', 'title'],
  ['collections/songs/columns?column=%2B', 'New column of songs', 'Name'],
  ['config?key=%2B', 'New config key', 'Key'],
  ['flags/new_checkout?rule=0', 'Rule 1', 'From this version of the app on'],
  ['event-definitions?define=%2B', 'Define an event', 'Event'],
  ['ai/providers?connect=openai', 'Connect OpenAI', 'API key'],
  ['settings/integrations?connect=apns', 'Connect Apple push (APNs)', 'Key id'],
  ['currencies/ledger?give=yes', 'Give a currency', 'Reason'],
  ['settings/sign-in?set=new', 'Add an OpenID provider', 'Name'],
] as const)('%s: closing the drawer asks', async ([path, title, name]) => {
  await go(page, path)
  const drawer = page.getByRole('dialog', { name: title })
  const typed = drawer.getByLabel(name, { exact: true }).or(drawer.getByRole('textbox', { name })).first()
  await typed.waitFor()
  await page.keyboard.press('Escape')
  // nothing was typed
  await drawer.waitFor({ state: 'detached' })
  await go(page, '')
  await go(page, path)
  await typed.fill('half')
  await page.keyboard.press('Escape')
  const question = page.getByRole('dialog', { name: 'Close without saving?' })
  await question.waitFor()
  // Escape answers the question, and closes nothing else
  await page.keyboard.press('Escape')
  await question.waitFor({ state: 'detached' })
  expect(await typed.inputValue()).toBe('half')
  await drawer.getByRole('button', { name: 'Close' }).first().click()
  await question.getByRole('button', { name: 'Leave' }).click()
  await drawer.waitFor({ state: 'detached' })
})

test('the browser’s "back" asks before it closes a drawer with unsaved work', async () => {
  await page.goto(at('users'))
  await page.getByRole('button', { name: 'Add user', exact: true }).first().click()
  const email = page.getByRole('dialog', { name: 'Add user' }).getByRole('textbox', { name: 'Email' })
  await email.fill('half')
  await page.goBack()
  const question = page.getByRole('dialog', { name: 'Leave this page?' })
  await question.getByRole('button', { name: 'Stay' }).click()
  await question.waitFor({ state: 'detached' })
  expect(await email.inputValue()).toBe('half')
  expect(page.url()).toContain('add=yes')
  await page.goBack()
  await question.getByRole('button', { name: 'Leave' }).click()
  await email.waitFor({ state: 'detached' })
  expect(page.url()).not.toContain('add=yes')
})

test('what was saved is not asked for: neither in a drawer nor on a page', async () => {
  await go(page, 'config?key=%2B')
  await page.getByRole('dialog').getByLabel('Key').fill('saved_key')
  await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await go(page, 'segments/new')
  await field('Name').first().fill('Kept')
  await page.getByText('A list by hand').click()
  await page.getByRole('button', { name: 'Create segment' }).click()
  await page.getByRole('heading', { level: 1, name: 'Kept' }).waitFor()
  await navigation.getByRole('link', { name: 'Groups', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Groups' }).waitFor()
  expect(await page.getByRole('dialog').count()).toBe(0)
})

test('closing the tab asks in the words of the browser', async () => {
  const other = await page.context().newPage()
  await other.goto(at('flags/new'))
  await field('Name', other).fill('Half typed')
  const asked = new Promise<string>((resolve) =>
    other.once('dialog', async (dialog) => {
      resolve(dialog.type())
      await dialog.dismiss()
    }),
  )
  await other.close({ runBeforeUnload: true })
  expect(await asked).toBe('beforeunload')
  expect(await field('Name', other).inputValue()).toBe('Half typed')
})

test('nothing of this broke the policy of the page, threw, or left the origin', () => {
  expect(complaints).toEqual([])
})
