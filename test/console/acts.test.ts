import type { Locator } from 'playwright-core'
import { expect, test } from 'vitest'
import { fill, startConsole } from '#test/support/console.ts'

type Row = { readonly id: string; readonly name: string }

/** What people do to prompts, organizations and users in the console, by role and name. */
const { harness, project, signedIn, go, at, complaints, url } = await startConsole()
const filled = await fill(project, 20, 5)
const [user] = filled.users.slice(6) as [(typeof filled.users)[number]]
const page = await signedIn()
page.setDefaultTimeout(10_000)

test('an evaluation is written without JSON, run, and shows which answers are as expected', async () => {
  // the provider that says what it was asked is for development
  const development = await harness.project({ developer: project.developer, environment: 'development' })
  const made = await development.admin.post('/ai/prompts', {
    name: 'tutor',
    provider: 'echo',
    model: 'echo',
    system_prompt: 'You teach {{instrument|piano}}.',
  })
  expect(made.status, made.text).toBe(200)
  await page.goto(page.url().replace(/\/console.*/, '/console'))
  await page.getByRole('heading', { name: 'Projects', exact: true }).waitFor()
  await go(page, 'ai/evaluations', development)
  await page.getByText('No evaluations yet').waitFor()
  await page.getByRole('button', { name: 'New evaluation' }).first().click()
  await page.getByRole('menuitem', { name: 'tutor' }).click()
  await page.getByRole('heading', { level: 1, name: 'Evaluation of tutor' }).waitFor()
  const caseOf = (place: number) => page.getByRole('group', { name: `Case ${place}` })
  const run = page.getByRole('button', { name: /^Run/ })
  await caseOf(1).getByLabel('what a user asks').fill('Play a waltz')
  await caseOf(1).getByLabel('instrument').fill('violin')
  // nothing is asked before each case says what it expects
  await run.click()
  await page.getByText('Say what the answer must have').waitFor()
  await caseOf(1).getByRole('textbox', { name: 'Text' }).fill('waltz')
  await page.getByRole('button', { name: 'Add case' }).click()
  await caseOf(2).getByLabel('what a user asks').fill('Play a tango')
  await caseOf(2).getByRole('combobox', { name: 'The answer' }).click()
  await page.getByRole('option', { name: 'matches' }).click()
  await caseOf(2).getByRole('textbox', { name: 'Pattern' }).fill('(')
  await run.click()
  // what the server refuses stands at its case
  await caseOf(2)
    .getByText(/regular expression/)
    .waitFor()
  await caseOf(2).getByRole('textbox', { name: 'Pattern' }).fill('^Play.*waltz$')
  await page.getByRole('button', { name: 'Add case' }).click()
  await caseOf(3).getByLabel('what a user asks').fill('{"title": "Waltz"}')
  await caseOf(3).getByRole('combobox', { name: 'The answer' }).click()
  await page.getByRole('option', { name: 'is JSON with' }).click()
  await caseOf(3).getByLabel('Fields').first().fill('title')
  await page.keyboard.press('Enter')
  await page.getByText('2 times', { exact: true }).click()
  await page.getByRole('button', { name: 'Run 6 calls on version 1' }).click()
  const results = page.getByRole('table', { name: 'Results' })
  await results.waitFor()
  expect(await results.getByRole('row').count()).toBe(7)
  expect(await results.getByText('passed', { exact: true }).count()).toBe(4)
  expect(await results.getByText('failed', { exact: true }).count()).toBe(2)
  await results.getByText('Play a tango').first().waitFor()
  await page.getByText('4 of 6 passed').waitFor()
  // the list tells of the run, and the cases outlast a load
  await page.getByRole('link', { name: 'Evaluations' }).first().click()
  const list = page.getByRole('table', { name: 'Evaluations' })
  await list.getByText('4 of 6 passed').waitFor()
  await page.reload()
  await list.getByRole('link', { name: 'tutor' }).click()
  expect(await caseOf(2).getByRole('textbox', { name: 'Pattern' }).inputValue()).toBe('^Play.*waltz$')
  await page.goBack()
  await page.getByRole('button', { name: 'Remove the evaluation of tutor' }).click()
  await page.getByText('No evaluations yet').waitFor()
  await page.getByRole('button', { name: 'Undo' }).last().click()
  await list.getByText('3 cases').waitFor()
})

test('an organization shows what its projects spend, sets the limit of one, and Undo takes it away', async () => {
  const [own] = (await project.developer.get('/admin/organizations')).data as { id: string; name: string }[]
  const ceiling = async () => (await project.admin.get('/billing')).data.spend_ceiling_usd
  await page.goto(`${url}/console/account`)
  await page
    .getByRole('region', { name: 'Organizations' })
    .getByRole('link', { name: own?.name ?? '' })
    .click()
  await page.getByRole('tab', { name: 'Limits' }).click()
  await page.getByText('of at most 100').waitFor()
  const row = page.getByRole('table', { name: 'Limits of projects' }).locator('tr', {
    has: page.locator(`a[href*="${project.id}"]`),
  })
  await row.getByRole('button', { name: 'Spending limit of test' }).click()
  const dialog = page.getByRole('dialog', { name: 'Spending limit of test' })
  await dialog.getByLabel('US dollars a month').fill('50')
  // half typed work asks
  await page.keyboard.press('Escape')
  await page.getByRole('dialog', { name: 'Close without saving?' }).getByRole('button', { name: 'Stay' }).click()
  await dialog.getByRole('button', { name: 'Save' }).click()
  await row.getByText('of $50.00').waitFor()
  expect(await ceiling()).toBe(50)
  await page.getByRole('button', { name: 'Undo' }).last().click()
  await row.getByText('of $50.00').waitFor({ state: 'detached' })
  expect(await ceiling()).toBeNull()
  // one's own organization stays
  await page.getByRole('tab', { name: 'Settings' }).click()
  await page.getByText('It is your own').waitFor()
  expect(await page.getByRole('button', { name: 'Delete organization' }).isDisabled()).toBe(true)
})

test('an organization is made, renamed and deleted', async () => {
  await page.goto(`${url}/console/account`)
  await page.getByRole('button', { name: 'New organization' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('The conservatory')
  await page.getByRole('button', { name: 'Create organization' }).click()
  await page.getByRole('heading', { level: 1, name: 'The conservatory' }).waitFor()
  await page.getByRole('tab', { name: 'Limits' }).click()
  await page.getByText('It has no projects').waitFor()
  await page.getByRole('tab', { name: 'Settings' }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('The academy')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { level: 1, name: 'The academy' }).waitFor()
  await page.getByRole('button', { name: 'Delete organization' }).click()
  const dialog = page.getByRole('dialog', { name: 'Delete the organization' })
  await dialog.getByRole('textbox').fill('The academy')
  await dialog.getByRole('button', { name: 'Delete organization' }).click()
  await page.getByRole('heading', { level: 1, name: 'Your account' }).waitFor()
  await page.getByRole('link', { name: 'The academy' }).waitFor({ state: 'detached' })
  const left = (await project.developer.get('/admin/organizations')).data as { name: string }[]
  expect(left.map(({ name }) => name)).not.toContain('The academy')
})

/** Closing it asks: Stay keeps what was typed, Leave closes it. */
const guarded = async (dialog: Locator, typed: Locator, value: string) => {
  await dialog.getByRole('button', { name: 'Close' }).first().click()
  const question = page.getByRole('dialog', { name: 'Close without saving?' })
  await question.getByRole('button', { name: 'Stay' }).click()
  await question.waitFor({ state: 'detached' })
  expect(await typed.inputValue()).toBe(value)
  await dialog.getByRole('button', { name: 'Close' }).first().click()
  await question.getByRole('button', { name: 'Leave' }).click()
  await dialog.waitFor({ state: 'detached' })
}

test.for([
  ['currency', 'Give currency', 'Reason'],
  ['XP', 'XP', 'Reason'],
  ['an item', 'Item', 'How many'],
  ['an entitlement', 'Entitlement', 'Entitlement'],
] as const)('closing the dialog that gives %s asks, once something was typed', async ([what, button, name]) => {
  await page.goto(at(''))
  await go(page, `users/${user.id}`)
  const open = async () => {
    if (what === 'currency') return page.getByRole('button', { name: button }).click()
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('menuitem', { name: button, exact: true }).click()
  }
  const dialog = page.getByRole('dialog', { name: `Give ${what} to ${user.display_name}` })
  await open()
  await dialog.getByRole('button', { name: 'Close' }).first().click()
  await dialog.waitFor({ state: 'detached' })
  await open()
  const typed = dialog.getByLabel(name, { exact: true }).first()
  await typed.fill('37')
  await guarded(dialog, typed, '37')
  // what was left is not offered again
  await open()
  await typed.waitFor()
  expect(await typed.inputValue()).not.toBe('37')
})

test('half a table of scores asks before it is closed, and an imported one does not', async () => {
  await go(page, `leaderboards/${filled.board.id}`)
  const open = () => page.getByRole('button', { name: 'Import', exact: true }).first().click()
  const drawer = page.getByRole('dialog', { name: 'Import scores' })
  const text = drawer.getByRole('textbox', { name: 'Users and scores' })
  await open()
  await text.fill('half')
  await guarded(drawer, text, 'half')
  await open()
  expect(await text.inputValue()).toBe('')
  await text.fill(`user,score\n${user.id},321`)
  await drawer.getByRole('button', { name: 'Import 1 score' }).click()
  await page.getByText('1 score imported.').waitFor()
  await drawer.waitFor({ state: 'detached' })
  await page.getByRole('table').getByText('321').first().waitFor()
})

test('changed levels are not lost by a link, and saved ones come back by Undo', async () => {
  const before = (await project.admin.get('/xp/levels')).data
  await go(page, 'xp/levels')
  await page.getByRole('button', { name: 'Edit levels' }).click()
  await page.getByRole('textbox', { name: 'Name of level 2' }).fill('Apprentice')
  await page.getByRole('link', { name: 'Groups', exact: true }).click()
  const question = page.getByRole('dialog', { name: 'Leave this page?' })
  await question.getByRole('button', { name: 'Stay' }).click()
  await question.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Save levels' }).click()
  await page.getByText('The levels are saved.').waitFor()
  await page.getByText('2: Apprentice').waitFor()
  await page.getByRole('link', { name: 'Groups', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Groups' }).waitFor()
  await page.getByRole('button', { name: 'Undo' }).last().click()
  await expect.poll(async () => (await project.admin.get('/xp/levels')).data).toEqual(before)
})

test('pages that ask for the same show it, whichever was open before', async () => {
  const limit = await project.admin.put('/billing/spend-ceiling', { amount_usd: 40 })
  expect(limit.status, limit.text).toBe(200)
  await go(page, 'settings/usage')
  await page.getByRole('region', { name: 'This month' }).getByText('of $40.00').waitFor()
  await go(page, 'ai/spend')
  await page.getByText('of at most $40.00').waitFor()
  await page.getByRole('button', { name: 'Set a spending limit' }).click()
  const dialog = page.getByRole('dialog', { name: 'Spending limit' })
  await dialog.getByRole('switch', { name: 'Limit what it may spend' }).locator('..').click()
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByText('no limit for the project').waitFor()
  await go(page, 'settings/usage')
  await page.getByRole('region', { name: 'This month' }).getByText('$0.00, no limit').waitFor()

  await go(page, `users/${user.id}`)
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Role', exact: true }).click()
  await page.getByRole('dialog').getByRole('combobox', { name: 'Role' }).waitFor()
  await page.keyboard.press('Escape')
  await go(page, 'collections/songs/access')
  expect(await page.getByRole('main').getByRole('alert').count()).toBe(0)
})

test('a project is made in an organization that is chosen by name, and goes from one to another', async () => {
  const { data: made } = await project.developer.post('/admin/organizations', { name: 'The orchestra' })
  await page.goto(`${url}/console`)
  await page.getByRole('button', { name: 'New project' }).first().click()
  const drawer = page.getByRole('dialog', { name: 'New project' })
  await drawer.getByRole('combobox', { name: 'Organization' }).click()
  await page.getByRole('option', { name: 'The orchestra' }).click()
  await drawer.getByRole('textbox', { name: 'Name' }).fill('Strings')
  await drawer.getByRole('button', { name: 'Create project' }).click()
  await page.getByText('Keep these keys now').waitFor()
  const of = async () => (await project.developer.get(`/admin/projects?organization_id=${made.id}`)).data as Row[]
  expect((await of()).map(({ name }) => name)).toEqual(['Strings'])

  await page.goto(at('settings/danger'))
  await page.getByRole('button', { name: 'Transfer' }).click()
  const dialog = page.getByRole('dialog', { name: 'Transfer the project' })
  expect(await dialog.getByRole('button', { name: 'Transfer' }).isDisabled()).toBe(true)
  await dialog.getByRole('combobox', { name: 'To which organization' }).click()
  await page.getByRole('option', { name: 'The orchestra' }).click()
  await dialog.getByRole('button', { name: 'Transfer' }).click()
  await page.getByText('belongs to The orchestra now').waitFor()
  expect((await of()).map(({ id }) => id)).toContain(project.id)
  await go(page, 'team')
  await page.getByRole('link', { name: 'The organization' }).click()
  await page.getByRole('heading', { level: 1, name: 'The orchestra' }).waitFor()
})

test('nothing of this broke the policy of the page, threw, or left the origin', () => {
  expect(complaints).toEqual([])
})
