import { expect, test } from 'vitest'
import { fill, phone, picture, settled, startConsole, violations, wide } from '#test/support/console.ts'

/** The pages of stores: offers and their prices, the store as a user sees it, purchases and a refund. */
const { project, signedIn, go, complaints } = await startConsole()
const { users } = await fill(project, 20, 5)
const [, , buyer, poor] = users
const page = await signedIn()
page.setDefaultTimeout(10_000)
const { admin } = project

test('a store is made, gets an offer with a price, and the offer is changed and deleted', async () => {
  await go(page, 'catalog')
  await page.getByRole('link', { name: 'Stores', exact: true }).click()
  await page.getByRole('button', { name: 'New store' }).first().click()
  await page.getByLabel('Name').fill('Summer sale')
  await page.getByRole('button', { name: 'Create store' }).click()
  await page.getByRole('heading', { level: 1, name: 'Summer sale' }).waitFor()
  await page.getByText('No offers yet').waitFor()

  await page.getByRole('button', { name: 'Add offer' }).click()
  const drawer = page.getByRole('dialog', { name: 'New offer' })
  await drawer.getByLabel('Key').fill('cheap')
  await drawer.getByRole('combobox', { name: 'Item' }).click()
  await page.getByRole('option', { name: 'Streak potion' }).click()
  await drawer.getByRole('button', { name: /Add/ }).first().click()
  await drawer.getByRole('combobox', { name: 'Currency' }).click()
  await page.getByRole('option', { name: /Coins/ }).click()
  await drawer.getByRole('textbox', { name: /^Price/ }).fill('7')
  await drawer.getByRole('button', { name: 'Add offer' }).click()
  const offers = page.getByRole('table', { name: 'Offers of the store' })
  await offers.getByText('7 COINS').waitFor()
  expect((await admin.get('/stores/summer-sale')).data.offers).toMatchObject([
    { key: 'cheap', catalog_item_key: 'potion', prices: [{ currency_code: 'COINS', price: 7 }] },
  ])

  const act = async (what: string) => {
    await offers.getByRole('button', { name: /More|Actions/ }).click()
    await page.getByRole('menuitem', { name: what }).click()
  }
  await act('Edit')
  const editing = page.getByRole('dialog', { name: 'Edit' })
  await editing.getByLabel('Stock').fill('3')
  await editing.getByRole('button', { name: 'Save offer' }).click()
  await offers.getByText('3 in all').waitFor()
  await act('Delete')
  await page.getByRole('dialog').getByRole('button', { name: 'Delete it' }).click()
  await page.getByText('No offers yet').waitFor()
})

test('shows the store as a user sees it, and why', async () => {
  const { id } = (await admin.get('/stores/main')).data
  await go(page, `stores/${id}?user=${poor?.id}`)
  await page.getByText('The user sees the store.').waitFor()
  const seen = page.getByRole('table', { name: 'Offers as the user sees them' })
  await seen.getByText('cannot afford it').first().waitFor()
  await admin.patch('/stores/main', { is_active: false })
  await go(page, 'catalog')
  await go(page, `stores/${id}?user=${buyer?.id}`)
  await page.getByText('The user does not see the store: It is switched off.').waitFor()
  await seen.getByText('The user has bought as many as a user may.').waitFor()
  await settled(page)
  expect(await violations(page)).toEqual([])
  await picture(page, 'stores-one')
  await admin.patch('/stores/main', { is_active: true })
})

test('a purchase is refunded', async () => {
  await go(page, 'stores/purchases')
  const table = page.getByRole('table', { name: 'Purchases' })
  await table.getByText('3 × potion').waitFor()
  for (const size of [phone, wide]) {
    await page.setViewportSize(size)
    await settled(page)
    expect(await violations(page)).toEqual([])
  }
  await table
    .getByRole('button', { name: /More|Actions/ })
    .first()
    .click()
  await page.getByRole('menuitem', { name: 'Refund' }).click()
  const drawer = page.getByRole('dialog', { name: 'Refund' })
  await drawer.getByLabel('Reason').fill('a mistake')
  await drawer.getByRole('button', { name: 'Refund it' }).click()
  await table.getByText('refunded').waitFor()
  expect((await admin.get('/purchases')).data).toMatchObject([{ status: 'refunded', app_user_id: buyer?.id }])
  expect(complaints).toEqual([])
})
