import { expect, test } from 'vitest'
import { phone, settled, startConsole, violations, wide } from '#test/support/console.ts'

/** Reviews in the console: what users think, what waits, and the answers of the team. */
const { project, signedIn, go, complaints } = await startConsole()
const { admin } = project
const put = async (rating: number, body: string, title = body) => {
  const answer = await (await project.user()).put('/client/reviews', { subject_type: 'app', rating, title, body })
  expect(answer.status, answer.text).toBe(201)
  return answer.data.id as string
}
const rowOf = async (id: string) =>
  (await admin.get('/reviews?limit=200')).data.find((row: { id: string }) => row.id === id)

test('a review is hidden, and answered', async () => {
  const [good, bad] = [await put(5, 'It sings'), await put(2, 'It hums')]
  const page = await signedIn()
  await go(page, 'reviews')
  await page.getByText('3.5 of 5').waitFor()
  const row = page.getByRole('row', { name: /It hums/ })
  await row.getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: 'Hide' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Hide' }).click()
  await page.getByText('5 of 5').waitFor()
  await expect.poll(async () => (await rowOf(bad)).status).toBe('hidden')
  await page
    .getByRole('row', { name: /It sings/ })
    .getByRole('button', { name: 'More' })
    .click()
  await page.getByRole('menuitem', { name: 'Reply' }).click()
  const drawer = page.getByRole('dialog')
  await drawer.getByRole('textbox').first().fill('Thank you')
  await drawer.getByRole('button', { name: 'Reply' }).click()
  await page.getByText('Reply: Thank you').waitFor()
  expect((await rowOf(good)).reply.body).toBe('Thank you')
  await settled(page)
  expect(complaints).toEqual([])
})

test('the settings are a form: what is changed is sent, the rest stays', async () => {
  await admin.put('/reviews/settings', { prompt: { gap_days: 30 } })
  const answer = await admin.post('/segments', { name: 'Regulars', key: 'regulars', kind: 'static' })
  expect(answer.status, answer.text).toBe(201)
  const page = await signedIn()
  await go(page, 'reviews')
  await page.getByRole('button', { name: 'Settings', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Settings of reviews' }).waitFor()
  const save = page.getByRole('button', { name: 'Save settings' })
  expect(await page.getByRole('textbox', { name: 'Days between two prompts' }).inputValue()).toBe('30')
  expect(await save.isDisabled()).toBe(true)
  const isPublished = page.getByRole('switch', { name: 'Publish at once' })
  expect(await isPublished.isChecked()).toBe(true)
  await isPublished.click()
  await page.getByRole('textbox', { name: 'Sessions before' }).fill('5')
  await page.getByRole('combobox', { name: 'Segment' }).click()
  await page.getByRole('option', { name: 'Regulars' }).click()
  await save.click()
  await page.getByText('The settings are saved.').waitFor()
  const prompt = { segment_id: answer.data.id, min_sessions: 5, gap_days: 30 }
  const saved = { reviews_auto_publish: false, reviews_require_purchase: false, prompt }
  expect((await admin.get('/reviews/settings')).data).toEqual(saved)
  // a segment is taken away again
  await page.getByRole('combobox', { name: 'Segment' }).click()
  await page.getByRole('option', { name: 'Regulars' }).click()
  await save.click()
  await expect.poll(async () => (await admin.get('/reviews/settings')).data.prompt.segment_id).toBe(null)
  await admin.put('/reviews/settings', { reviews_auto_publish: true })
  for (const size of [phone, wide]) {
    await page.setViewportSize(size)
    await settled(page)
    expect(await violations(page)).toEqual([])
  }
})

test('a review is read as a whole, with the name of its subject, and the list is narrowed', async () => {
  const item = { key: 'lute', name: 'Golden lute', item_type: 'durable' }
  expect((await admin.post('/catalog', item)).status).toBe(201)
  const user = await project.user()
  const body = `It sounds ${'well '.repeat(60)}to the end`
  const review = { subject_type: 'catalog_item', subject_id: 'lute', rating: 1, title: 'A lute', body }
  expect((await user.put('/client/reviews', review)).status).toBe(201)
  const page = await signedIn()
  await go(page, 'reviews?subject=catalog_item')
  await page.getByText('1 of 5').waitFor()
  const row = page.getByRole('row', { name: /A lute/ })
  await row.getByRole('link', { name: 'Golden lute' }).waitFor()
  await row.getByRole('button', { name: 'A lute' }).click()
  const drawer = page.getByRole('dialog', { name: 'Review' })
  await drawer.getByText('to the end').waitFor()
  await drawer.getByRole('button', { name: 'All reviews of it' }).click()
  await page.waitForURL(/subject=catalog_item%3A/)
  await page.getByRole('combobox', { name: 'Any stars' }).click()
  await page.getByRole('option', { name: '5 stars' }).click()
  await page.getByText('Nothing matches').waitFor()
})

test('a caught review waits in the queue, and its approval publishes it', async () => {
  const config = { words: ['casino'], applies_to: ['review'], action: 'queue' }
  expect((await admin.post('/moderation/rules', { name: 'No casinos', rule_type: 'keyword', config })).status).toBe(201)
  const id = await put(4, 'It plays well', 'The casino rules')
  const page = await signedIn()
  await go(page, 'reviews?status=pending')
  await page.getByRole('row', { name: /The casino rules/ }).waitFor()
  await go(page, 'moderation')
  const card = page.getByRole('article', { name: 'review' })
  await card.getByText('4 of 5').waitFor()
  await card.getByText('the app', { exact: true }).waitFor()
  // the rule has caught its title, which stands with its text
  expect(await card.locator('blockquote').textContent()).toBe('The casino rules\nIt plays well')
  await page.getByText('Approve publishes it').waitFor()
  await page.getByRole('button', { name: 'Approve' }).click()
  await expect.poll(async () => (await rowOf(id)).status, { timeout: 20_000 }).toBe('published')
})

test('a rejected review keeps from users, and the reviews page says so', async () => {
  const id = await put(3, 'It plays badly', 'Another casino')
  const page = await signedIn()
  await go(page, 'moderation')
  await page.getByText('Reject keeps it from users and out of the sums').waitFor()
  await page.getByRole('button', { name: 'Reject' }).click()
  await expect.poll(async () => (await rowOf(id)).status, { timeout: 20_000 }).toBe('rejected')
  await go(page, 'reviews?status=rejected')
  await page.getByRole('row', { name: /Another casino/ }).waitFor()
  expect(complaints).toEqual([])
})
