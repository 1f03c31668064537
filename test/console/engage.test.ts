import type { Locator } from 'playwright-core'
import { expect, test } from 'vitest'
import { fill, settled, startConsole } from '#test/support/console.ts'
import { filterOf, filterWords, groupOf } from '../../console/src/parts/form/filter.ts'
import { giftsOf, rewardOf, rewardWords } from '../../console/src/parts/form/reward.ts'

/** Boards, streaks, XP, achievements, codes and balances in the console, by the jobs that people come for. */
const { project, signedIn, go, complaints } = await startConsole()
const filled = await fill(project, 60, 0)
const page = await signedIn()

const list = async (path: string) => (await project.admin.get(path)).data as readonly Record<string, any>[]
const named = async (path: string, name: string) => (await list(path)).find((row) => row['name'] === name)
const title = (name: string | RegExp) => page.getByRole('heading', { level: 1, name })
const box = (name: string) => page.getByRole('combobox', { name, exact: true })
const choose = async (from: Locator, option: string) => {
  await from.click()
  await page.getByRole('option', { name: option, exact: true }).click()
}

test('a board is made in at most seven clicks, and nothing of JSON is typed', async () => {
  await go(page, '')
  let clicks = 0
  const click = async (target: Locator) => {
    clicks += 1
    await target.click()
  }
  await click(page.getByRole('link', { name: 'Leaderboards', exact: true }))
  await click(page.getByRole('button', { name: 'New leaderboard' }).first())
  await click(page.getByRole('textbox', { name: /^Name/ }))
  await page.keyboard.type('Best quizzes')
  await click(page.getByRole('combobox', { name: /^Event/ }))
  await click(page.getByRole('option', { name: 'quiz_passed' }))
  await click(page.getByRole('combobox', { name: 'Property with the score' }))
  await page.keyboard.type('score')
  await page.keyboard.press('Escape')
  expect(await page.locator('.code').count()).toBe(0)
  await click(page.getByRole('button', { name: 'Create leaderboard' }))
  await title('Best quizzes').waitFor()
  expect(clicks).toBeLessThanOrEqual(7)
  expect(await named('/leaderboards', 'Best quizzes')).toMatchObject({
    key: 'best-quizzes',
    period: 'weekly',
    source: { type: 'event', event_name: 'quiz_passed', value_property: 'score' },
  })
})

test('a score is set for a user who is found by name, and one that stands out is listed', async () => {
  await go(page, 'leaderboards/weekly-points?view=anomalies')
  await page.getByText('times the usual spread away').first().waitFor()
  await go(page, `leaderboards/${filled.board.id}`)
  await page.getByRole('button', { name: 'Set a score' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('combobox', { name: /^User/ }).fill('cust_1007')
  await page.getByRole('option').first().click()
  await dialog.getByRole('textbox', { name: /^Score/ }).fill('777')
  await dialog.getByRole('button', { name: 'Set score' }).click()
  await page.getByText('The score is set.').waitFor()
  await settled(page)
  await page.getByRole('cell', { name: '777', exact: true }).waitFor()
})

test('conditions are rows of property, comparison and value, with the types that events have', async () => {
  await go(page, 'xp/new')
  await page.getByRole('textbox', { name: /^Name/ }).fill('Good quiz')
  await page.getByRole('combobox', { name: /^Event/ }).fill('quiz_passed')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Add condition' }).click()
  await box('Property 1').fill('score')
  await page.keyboard.press('Escape')
  await choose(box('Comparison 1'), 'is at least')
  await page.getByLabel('Value 1').fill('90')
  await page.getByRole('button', { name: 'Add group' }).click()
  await box('Property 2.1').fill('country')
  await page.keyboard.press('Escape')
  await choose(box('Comparison 2.1'), 'is one of')
  await box('Values 2.1').fill('DE')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Create rule' }).click()
  await title('Good quiz').waitFor()
  expect((await named('/xp/rules', 'Good quiz'))?.['event_filter']).toEqual({
    and: [{ column: 'score', op: 'gte', value: 90 }, { or: [{ column: 'country', op: 'in', value: ['DE'] }] }],
  })
  await page.getByText('score is at least 90 and (country is one of DE)').waitFor()
})

test('a definition is paused in one click, and Undo resumes it', async () => {
  await go(page, 'xp/quiz')
  await page.getByRole('button', { name: 'Pause', exact: true }).click()
  await page.getByRole('button', { name: 'Resume', exact: true }).waitFor()
  expect((await project.admin.get('/xp/rules/quiz')).data.is_active).toBe(false)
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByRole('button', { name: 'Pause', exact: true }).waitFor()
  expect((await project.admin.get('/xp/rules/quiz')).data.is_active).toBe(true)
})

test('criteria are chosen, and say who would have the achievement before it is there', async () => {
  await go(page, 'achievements/new')
  await page.getByRole('textbox', { name: /^Name/ }).fill('Regular')
  await choose(page.getByRole('combobox', { name: /^What counts/ }), 'Number of events')
  await page.getByRole('textbox', { name: /^How many events/ }).fill('5')
  await page.getByRole('combobox', { name: /^Event/ }).fill('lesson_completed')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Who would have it now?' }).click()
  const criteria = { type: 'event_count', event_name: 'lesson_completed', target_value: 5 }
  const { users_now: users } = (await project.admin.post('/achievements/dry-run', { criteria })).data
  await page.getByText(`${users} users at once`).waitFor()
  await page.getByRole('button', { name: 'Create achievement' }).click()
  await title('Regular').waitFor()
  expect((await named('/achievements', 'Regular'))?.['criteria']).toEqual(criteria)
})

test('a reward is made of rows, and its currencies are chosen by name', async () => {
  await go(page, 'onboarding/codes/new')
  await page.getByRole('textbox', { name: /^Code/ }).fill('AUTUMN-25')
  const reward = page.getByRole('group', { name: 'Who claims it gets' })
  await reward.getByRole('button', { name: 'Add reward' }).click()
  await reward.getByRole('button', { name: 'Add reward' }).click()
  await choose(reward.getByRole('combobox', { name: 'What is given 2' }), 'Currency')
  await choose(reward.getByRole('combobox', { name: 'Currency 2' }), 'Coins')
  await reward.getByLabel('Amount 2').fill('50')
  await page.getByRole('button', { name: 'Create promo code' }).click()
  await title('AUTUMN-25').waitFor()
  const code = (await list('/referrals')).find((row) => row['code'] === 'AUTUMN-25')
  expect(code?.['reward_referee']).toEqual({ xp: 10, currencies: [{ currency_code: 'COINS', amount: 50 }] })
  await page.getByText('10 XP, 50 COINS').waitFor()
})

test('the funnel of a flow and the claims of a code say what users did', async () => {
  await go(page, `onboarding/${filled.flow.id}`)
  const [stats] = await list('/onboarding/stats')
  const course = page.getByRole('img', { name: /^What became of them/ })
  expect(await course.getAttribute('aria-label')).toContain(
    `Started ${stats?.['total_started']}, Completed ${stats?.['total_completed']}, Skipped ${stats?.['total_skipped']}`,
  )
  expect(stats?.['total_completed']).toBeGreaterThan(0)
  const code = (await list('/referrals')).find((row) => row['code'] === 'SPRING-24')
  await go(page, `onboarding/codes/${code?.['id']}`)
  const claims = page.getByRole('table', { name: 'Claims' })
  expect(await claims.getByRole('row').count()).toBe(1 + Number(code?.['uses']))
  await claims.getByRole('link', { name: filled.users[4]?.display_name ?? '' }).waitFor()
})

test('a simulation of a streak shows both sides, and changes nothing', async () => {
  await go(page, 'streaks/daily')
  await page.getByRole('button', { name: 'Simulate', exact: true }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('textbox', { name: /^Events needed/ }).fill('2')
  await dialog.getByRole('button', { name: 'Simulate', exact: true }).click()
  const found = dialog.getByRole('row', { name: /^Streaks that break/ })
  await found.waitFor()
  const definition = { min_count: 2 }
  const { broken_before, broken_after } = (await project.admin.post('/streaks/daily/simulate', { definition })).data
  expect(await found.getByRole('cell').allTextContents()).toEqual([String(broken_before), String(broken_after)])
  expect((await project.admin.get('/streaks/daily')).data.min_count).toBe(1)
})

test('a table of levels is made from three numbers, and Undo brings the old one back', async () => {
  const before = await list('/xp/levels')
  await go(page, 'xp/levels')
  await page.getByRole('button', { name: 'Edit levels' }).click()
  await page.getByRole('textbox', { name: 'Levels', exact: true }).fill('5')
  await page.getByRole('button', { name: 'Make 5 levels' }).click()
  await page.getByRole('textbox', { name: 'Name of level 5' }).fill('Master')
  await page.getByRole('button', { name: 'Save levels' }).click()
  await page.getByRole('cell', { name: '5: Master' }).waitFor()
  expect(await list('/xp/levels')).toHaveLength(5)
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('Undone.').waitFor()
  expect(await list('/xp/levels')).toEqual(before)
})

test('what is given from the ledger stands in it with its user and reason, and Undo reverses it', async () => {
  const user = filled.users[9]
  await go(page, `currencies/ledger?give=yes&user=${user?.id}`)
  const dialog = page.getByRole('dialog')
  await choose(dialog.getByRole('combobox', { name: /^Currency/ }), 'Coins')
  await dialog.getByRole('textbox', { name: /^Amount/ }).fill('7')
  await dialog.getByRole('button', { name: 'Give it' }).click()
  await page.getByRole('row', { name: new RegExp(`${user?.display_name}.*Support.*\\+7`) }).waitFor()
  await page.getByRole('button', { name: 'Undo' }).click()
  const last = async () => (await list(`/currencies/transactions?user_id=${user?.id}&limit=1`))[0]?.['amount']
  await expect.poll(last, { timeout: 10_000 }).toBe(-7)
})

test('a filter comes back from its rows as it was, and the server takes it', async () => {
  const total = { column: 'cart.total', op: 'gte', value: 50 }
  const plan = { column: 'plan', op: 'in', value: ['pro', 'team'] }
  const filters = [
    total,
    { and: [total, plan] },
    { or: [total, { and: [plan, { column: 'nick', op: 'is_null' }] }] },
    { not: total },
    { not: { or: [total, plan] } },
    { and: [total, { not: { or: [plan, total] } }] },
  ]
  for (const filter of filters) {
    expect(filterOf(groupOf(filter))).toEqual(filter)
    const answer = await project.admin.patch('/xp/rules/lesson', { event_filter: filter })
    expect(answer.status, answer.text).toBe(200)
    expect(filterWords(filter)).not.toMatch(/undefined|\[object/)
  }
  expect(filterOf(groupOf(undefined))).toBeUndefined()
})

test('a reward comes back from its rows as it was, with what no row shows', () => {
  const reward = {
    xp: 5,
    currencies: [{ currency_code: 'COINS', amount: 10 }],
    items: [{ catalog_item_key: 'potion', quantity: 2 }],
    entitlements: [{ entitlement_id: 'pro' }, { entitlement_id: 'plus', duration_days: 7 }],
    freezes: [{ streak_key: 'daily', amount: 1 }],
    achievement_key: 'first-lesson',
    of_your_own: { badge: 'gold' },
  }
  const { gifts, rest } = giftsOf(reward)
  expect(rewardOf(gifts, rest)).toEqual(reward)
  expect(rewardOf([], {})).toBeUndefined()
  expect(rewardWords(reward)).toBe(
    '5 XP, 10 COINS, 2 × potion, pro, plus for 7 days, 1 freeze of daily, achievement first-lesson',
  )
})

test('nothing of this broke the policy of the page, threw, or left the origin', () => {
  expect(complaints).toEqual([])
})

test('what an area counted by day is a chart, with the same as a table behind it', async () => {
  const days = async (path: string, series: string) =>
    (await project.admin.get(path)).data.series[series] as { date: string; value: number }[]
  const kept = await days(`/streaks/${filled.streak.id}/daily`, 'kept')
  expect(kept.filter(({ value }) => value > 0).length).toBeGreaterThan(20)
  await go(page, `streaks/${filled.streak.id}`)
  await page.getByRole('img', { name: /^Kept each day: 30 days/ }).waitFor()
  await page.getByRole('button', { name: 'Kept each day as a table' }).click()
  const cells = page.getByRole('region', { name: 'Kept each day as a table' }).locator('td')
  expect(await cells.allTextContents()).toEqual(kept.map(({ value }) => String(value)).reverse())
  for (const [path, chart] of [
    ['xp/ledger', /^XP given each day/],
    ['currencies/COINS', /^Given each day/],
    [`leaderboards/${filled.board.id}?view=runs`, /^Users who entered each day/],
  ] as const) {
    await go(page, path)
    await page.getByRole('img', { name: chart }).waitFor()
  }
  expect(complaints).toEqual([])
})

test('names come with the rows of a list, without a request for each', async () => {
  const asked: string[] = []
  const heard = (request: { url(): string }) => asked.push(new URL(request.url()).pathname.split('/v1/')[1] ?? '')
  page.on('request', heard)
  await go(page, 'catalog/ledger')
  await go(page, 'xp/ledger')
  const [row] = (await project.admin.get('/xp/transactions?include=user&limit=1')).data
  await page.getByRole('link', { name: row.user.display_name }).first().waitFor()
  page.off('request', heard)
  expect(asked.filter((path) => /\/users\/[0-9a-f-]{36}$/.test(path))).toEqual([])
})
