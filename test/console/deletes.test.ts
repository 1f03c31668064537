import { expect, test } from 'vitest'
import { startConsole } from '#test/support/console.ts'

/** The deletion of what users have. */
const { signedIn, go, project, complaints } = await startConsole()
const page = await signedIn()

const openDialog = async (role: string, name: string) => {
  await go(page, `roles/${role}`)
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Delete role' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel(/^Type/).fill(name)
  return { dialog, remove: dialog.getByRole('button', { name: 'Delete role' }) }
}
const status = async (role: string) => (await project.admin.get(`/roles/${role}`)).status

test('a role that nobody has is deleted by its name alone', async () => {
  await project.admin.post('/roles', { key: 'guest', name: 'Guest', permissions: [] })
  const { remove } = await openDialog('guest', 'Guest')
  await remove.click()
  await page.getByText('“Guest” is deleted.').waitFor()
  expect(await status('guest')).toBe(404)
})

test('a role that users have is refused, says how many have it, and is deleted by a second consent', async () => {
  await project.admin.post('/roles', { key: 'moderator', name: 'Moderator', permissions: ['posts:delete'] })
  const users = await Promise.all([project.user(), project.user()])
  for (const { id } of users)
    expect((await project.admin.post('/roles/moderator/assignments', { app_user_id: id })).status).toBe(201)

  const { dialog, remove } = await openDialog('moderator', 'Moderator')
  expect(await dialog.getByRole('checkbox').count()).toBe(0)
  await remove.click()
  await dialog
    .getByRole('alert')
    .filter({ hasText: 'Users have this role: 2 assignments. It is not deleted.' })
    .waitFor()
  const consent = dialog.getByRole('checkbox', { name: 'Take it from them: 2 assignments end with it' })
  // by the keyboard, too: the button that was pressed waits for the box
  await expect.poll(() => page.evaluate('document.activeElement?.type')).toBe('checkbox')
  expect(await remove.isDisabled()).toBe(true)
  expect(await status('moderator')).toBe(200)

  // what was agreed to once is not agreed to in the next dialog
  await consent.check()
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await dialog.waitFor({ state: 'hidden' })
  const again = await openDialog('moderator', 'Moderator')
  expect(await again.dialog.getByRole('checkbox').count()).toBe(0)
  await again.remove.click()
  expect(await consent.isChecked()).toBe(false)
  await consent.check()
  await again.remove.click()
  await page.getByText('“Moderator” is deleted.').waitFor()
  expect(await status('moderator')).toBe(404)
  for (const { id } of users) expect((await project.admin.get(`/users/${id}/roles`)).data).toEqual([])
})

test('nothing of this broke the policy of the page, threw, or left the origin', () => {
  expect(complaints).toEqual([])
})
