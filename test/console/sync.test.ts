import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startConsole } from '#test/support/console.ts'
import { deviceOf, patch } from '#test/support/sync.ts'

/** The tab Sync of collections: clients, what the server has refused them, and what holds them back. */
const { project, signedIn, go } = await startConsole()

test('clients, refused writes by code, and those of one user', async () => {
  await project.admin.post('/collections', { name: 'notes', sync: true, columns: [{ name: 'title', type: 'text' }] })
  const [user, other] = [await project.user(), await project.user()]
  const [phone, tablet] = [deviceOf(project, user), deviceOf(project, other)]
  await tablet.pull()
  await phone.push([1, 2, 3].map(() => patch('notes', randomUUID(), { title: 'x' })))
  const page = await signedIn()
  await go(page, 'collections')
  await page.getByRole('navigation', { name: 'Collections' }).getByRole('link', { name: 'Sync' }).click()
  const clients = page.getByRole('table', { name: 'Clients' })
  const rows = clients.locator('tbody tr:not([aria-hidden])')
  await expect.poll(() => rows.count()).toBe(2)
  const codes = page.getByRole('table', { name: 'Codes' })
  await expect
    .poll(() => codes.locator('tbody tr').allTextContents())
    .toEqual(['The row does not exist, or the user cannot see itNOT_FOUND3'])
  // last used first: one has only pushed, the other only pulled
  const texts = await rows.allTextContents()
  expect(texts[0]).toContain(phone.client_id.slice(0, 8))
  expect(texts[0]).toContain('never')
  expect(texts[1]).toContain(tablet.client_id.slice(0, 8))
  await go(page, `sync?user_id=${other.id}`)
  await expect.poll(() => rows.count()).toBe(1)
  expect((await rows.allTextContents())[0]).toContain(tablet.client_id.slice(0, 8))
  await go(page, `sync?user_id=${(await project.user()).id}`)
  await page.getByText('No device of this user syncs').waitFor()
})
