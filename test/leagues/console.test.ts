import { expect, test } from 'vitest'
import { phone, settled, startConsole, violations, wide } from '#test/support/console.ts'

/** The pages of leagues: a ladder that is read again as points come, runs with their results, the settings in words. */
const { project, signedIn, go, complaints } = await startConsole()
const { admin } = project
const users = (
  await project.sql<{ id: string }>(`insert into app.users (display_name) values ('Ada'), ('Bo'), ('Cy') returning id`)
).map(({ id }) => project.onBehalfOf(id))
const score = async (n: number, points: number) => {
  const answer = await users[n]?.post('/client/events', { event_name: 'scored', properties: { points } })
  expect(answer?.status, answer?.text).toBe(201)
}
const league = await admin.post('/leagues', {
  key: 'weekly',
  name: 'Week',
  tiers: [
    { key: 'bronze', name: 'Bronze lute', promote_count: 1 },
    { key: 'gold', name: 'Golden lute', relegate_count: 1 },
  ],
  points: { type: 'event', event_name: 'scored', value_property: 'points' },
  rewards: [{ tier_key: 'bronze', from_rank: 1, to_rank: 3, reward: { xp: 50 } }],
})
expect(league.status, league.text).toBe(201)
const page = await signedIn()
page.setDefaultTimeout(15_000)
const at = `leagues/${league.data.id}`
const ladder = page.getByRole('table', { name: 'Ladder of Bronze lute, cohort 1' })
const ranks = async () => (await ladder.locator('tbody tr').allTextContents()).map((text) => text.trim())

test('a league that nobody has entered says so', async () => {
  await go(page, at)
  await page.getByText('Nobody is in this league yet').waitFor()
})

test('the ladder follows the points, by the names of tiers and users', async () => {
  await score(0, 10)
  await score(1, 20)
  // nobody loads the page anew
  await expect.poll(ranks, { timeout: 20_000 }).toEqual(['1Bo20', '2Ada10'])
  await score(2, 30)
  await score(0, 15)
  await expect.poll(ranks, { timeout: 20_000 }).toEqual(['1Cy30', '2Ada25', '3Bo20'])
  const tiers = page.getByRole('table', { name: 'Users by tier' })
  await expect
    .poll(() => tiers.locator('tbody tr').allTextContents(), { timeout: 20_000 })
    .toEqual(['Bronze lute32530', 'Golden lute0——'])
  for (const size of [phone, wide]) {
    await page.setViewportSize(size)
    await settled(page)
    expect(await violations(page)).toEqual([])
  }
})

test('the settings are in words', async () => {
  await page.getByRole('link', { name: 'Settings', exact: true }).last().click()
  const settings = page.getByRole('region', { name: 'Settings' })
  for (const text of ['Bronze lute, ranks 1 to 3', '50 XP', 'Users in a cohort', 'Each week', 'Time zone'])
    await expect.poll(() => settings.getByText(text, { exact: true }).count(), { timeout: 20_000 }).toBe(1)
})

test('a run is closed by hand, and its ladder shows results', async () => {
  await page.getByRole('button', { name: /^More/ }).first().click()
  await page.getByRole('menuitem', { name: 'Close this run now' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Close the run' }).click()
  await page.getByText('The run is closed.').waitFor()
  await project.drain()
  await go(page, 'keys')
  const [closed] = (await admin.get('/leagues/weekly/runs')).data.filter((run: any) => run.status === 'closed')
  await go(page, `${at}?run=${closed.key}`)
  await expect.poll(ranks, { timeout: 20_000 }).toEqual(['1Cy30promoted', '2Ada25stayed', '3Bo20stayed'])
  // the tiers are those of the open run
  expect(await page.getByRole('table', { name: 'Users by tier' }).count()).toBe(0)
  expect(complaints).toEqual([])
})
