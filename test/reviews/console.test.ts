import { expect, test } from 'vitest'
import { settled, startConsole } from '#test/support/console.ts'

/** Reviews in the console: what users think, what waits, and the answers of the team. */
const { project, signedIn, go, complaints } = await startConsole()
const { admin } = project
const put = async (rating: number, body: string) => {
  const answer = await (await project.user()).put('/client/reviews', { subject_type: 'app', rating, title: body, body })
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
  await row.getByRole('button').click()
  await page.getByRole('menuitem', { name: 'Hide' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Hide' }).click()
  await page.getByText('5 of 5').waitFor()
  await expect.poll(async () => (await rowOf(bad)).status).toBe('hidden')
  await page
    .getByRole('row', { name: /It sings/ })
    .getByRole('button')
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

test('a caught review waits in the queue, and its approval publishes it', async () => {
  const config = { words: ['casino'], applies_to: ['review'], action: 'queue' }
  expect((await admin.post('/moderation/rules', { name: 'No casinos', rule_type: 'keyword', config })).status).toBe(201)
  const id = await put(4, 'Like a casino')
  const page = await signedIn()
  await go(page, 'reviews?status=pending')
  await page.getByRole('row', { name: /Like a casino/ }).waitFor()
  await go(page, 'moderation')
  await page.getByText('4 of 5').waitFor()
  await page.getByText('Approve publishes it').waitFor()
  await page.getByRole('button', { name: 'Approve' }).click()
  await expect.poll(async () => (await rowOf(id)).status, { timeout: 20_000 }).toBe('published')
})
