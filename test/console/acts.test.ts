import { expect, test } from 'vitest'
import { fill, startConsole } from '#test/support/console.ts'

/** What people do to prompts, organizations and users in the console, by role and name. */
const { harness, project, signedIn, go, complaints } = await startConsole()
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

test('nothing of this broke the policy of the page, threw, or left the origin', () => {
  expect(user).toBeDefined()
  expect(complaints).toEqual([])
})
