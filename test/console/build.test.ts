import type { Request } from 'playwright-core'
import { expect, test } from 'vitest'
import { fill, settled, startConsole } from '#test/support/console.ts'
import { filterOf, readConditions, writeConditions } from '../../console/src/collections/filters.ts'
import { parsed } from '../../console/src/collections/values.ts'

/** Collections, files, config, flags and AI in the console, by the jobs that people come for. */
const { project, signedIn, go, at, complaints } = await startConsole({ work: true })
await fill(project, 20, 0)
for (let page = 0; page < 20; page += 1) {
  const owner = (await project.admin.get('/users?limit=1')).data[0].id
  const rows = Array.from({ length: 500 }, (_, n) => ({
    user_id: owner,
    title: `Prelude No. ${page * 500 + n + 1}`,
    composer: n % 2 ? 'Bach' : 'Satie',
    level: (n % 9) + 1,
    is_free: false,
  }))
  await project.admin.post('/collections/songs/rows/batch', { rows })
}
const page = await signedIn()
const grid = page.getByRole('grid', { name: 'Rows of songs' })
const cell = (row: number, column: number) => grid.getByRole('row').nth(row).getByRole('gridcell').nth(column)
const firstRow = async () =>
  (await project.admin.post('/collections/songs/find', { limit: 1, order: [{ column: 'id', direction: 'asc' }] }))
    .data[0]
const flagOf = async (key: string) => (await project.admin.get(`/flags/${key}`)).data
/** The rows in a fixed order, the first of which is that of `firstRow`. */
const openRows = async (more = '') => {
  await go(page, `collections/songs?sort=id.asc${more}`)
  await grid.waitFor()
  await expect.poll(() => cell(1, 1).textContent()).not.toBe('')
}

test('10,000 rows: the last is reached by keys, and at most 60 are in the document', async () => {
  await openRows()
  await page.getByText('10,000 rows').waitFor()
  await grid.focus()
  await page.keyboard.press('Control+End')
  await expect.poll(() => page.locator('#grid-cursor').textContent()).toMatch(/ago|now/)
  expect(await grid.getAttribute('aria-rowcount')).toBe('10001')
  expect(await grid.getByRole('row').count()).toBeLessThanOrEqual(60)
})

test('a row is edited in its cell with three clicks from the overview, and Undo brings the value back', async () => {
  await page.goto(at(''))
  await page.getByRole('navigation', { name: 'Project' }).getByRole('link', { name: 'Collections' }).click()
  await page.getByRole('link', { name: 'songs', exact: true }).click()
  await expect.poll(() => cell(1, 1).textContent()).not.toBe('')
  const before = await cell(1, 1).textContent()
  await cell(1, 1).click()
  await page.keyboard.type('Clair')
  await page.keyboard.press('Enter')
  await page.getByText('is now Clair').waitFor()
  expect(await cell(1, 1).textContent()).toBe('Clair')
  await page.getByRole('button', { name: 'Undo' }).last().click()
  await expect.poll(() => cell(1, 1).textContent()).toBe(before)
})

test('a value that the server refuses is told, and the old one is back; Escape changes nothing', async () => {
  await openRows()
  const row = await firstRow()
  await cell(1, 3).click()
  await page.keyboard.type('99999999999')
  await page.keyboard.press('Enter')
  await page.getByText('That was refused').waitFor()
  expect(await cell(1, 3).textContent()).toBe(String(row.level))
  await cell(1, 3).click()
  await page.keyboard.type('5x')
  await page.keyboard.press('Escape')
  expect(await cell(1, 3).textContent()).toBe(String(row.level))
  expect((await firstRow()).level).toBe(row.level)
})

test('Ctrl-Z takes back several steps, edits and deletions, wherever the focus is, and says when there is none', async () => {
  await openRows()
  const before = await firstRow()
  await cell(1, 1).click()
  await page.keyboard.type('One')
  await page.keyboard.press('Enter')
  await page.getByText('is now One').waitFor()
  await cell(1, 3).click()
  await page.keyboard.type('7')
  await page.keyboard.press('Enter')
  await page.getByText('is now 7').waitFor()
  await grid.getByRole('checkbox', { name: 'Select row 2', exact: true }).click()
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByText('9,999 rows').waitFor()
  // the button is gone, and the focus with it
  await page.keyboard.press('Control+z')
  await page.getByText('10,000 rows').waitFor()
  await page.keyboard.press('Control+z')
  await expect.poll(async () => (await firstRow()).level).toBe(before.level)
  expect((await firstRow()).title).toBe('One')
  await page.keyboard.press('Control+z')
  await expect.poll(async () => (await firstRow()).title).toBe(before.title)
  await page.keyboard.press('Control+z')
  await page.getByText('There is nothing to take back.').waitFor()
})

test('an undo that is refused is told, and takes nothing back', async () => {
  await openRows()
  const { id, user_id, ...row } = await firstRow()
  await cell(1, 1).click()
  await page.keyboard.type('Gone')
  await page.keyboard.press('Enter')
  await page.getByText('is now Gone').waitFor()
  expect((await project.admin.delete(`/collections/songs/rows/${id}`)).status).toBe(200)
  await page.keyboard.press('Control+z')
  await page.getByRole('alert').filter({ hasText: 'There is no such row' }).waitFor()
  expect(await cell(1, 1).textContent()).toBe('Gone')
  const again = { user_id, title: row.title, composer: row.composer, level: row.level, is_free: row.is_free }
  expect((await project.admin.post('/collections/songs/rows', again)).status).toBe(201)
  // the grid keeps what it has read
  await page.reload()
  await expect.poll(() => cell(1, 1).textContent()).not.toBe('Gone')
})

test('of many notices the newest is seen at once, with its Undo', async () => {
  await openRows()
  const before = await cell(1, 1).textContent()
  for (const text of ['A', 'B', 'C', 'D', 'E', 'F']) {
    await cell(1, 1).click()
    await page.keyboard.type(text)
    await page.keyboard.press('Enter')
    await page.getByText(`is now ${text}.`).waitFor()
  }
  expect(await page.getByRole('button', { name: 'Undo' }).count()).toBeLessThanOrEqual(4)
  for (let n = 0; n < 6; n += 1) await page.keyboard.press('Control+z')
  await expect.poll(() => cell(1, 1).textContent()).toBe(before)
})

test('Tab goes on to the next cell, and both edits are stored', async () => {
  await openRows()
  await cell(1, 1).click()
  await page.keyboard.type('One')
  await page.keyboard.press('Tab')
  await page.keyboard.type('Two')
  await page.keyboard.press('Enter')
  await expect.poll(async () => [(await firstRow()).title, (await firstRow()).composer]).toEqual(['One', 'Two'])
})

test('deleted rows are gone at once, and Undo keeps them', async () => {
  await openRows()
  await grid.getByRole('checkbox', { name: 'Select row 1', exact: true }).click()
  await grid.getByRole('checkbox', { name: 'Select row 3', exact: true }).click({ modifiers: ['Shift'] })
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByText('9,997 rows').waitFor()
  await page.getByText('3 rows deleted.').locator('..').getByRole('button', { name: 'Undo' }).last().click()
  await page.getByText('10,000 rows').waitFor()
})

test('a deletion that nobody takes back reaches the server', async () => {
  const row = await firstRow()
  await openRows()
  await grid.getByRole('checkbox', { name: 'Select row 1', exact: true }).click()
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByText('9,999 rows').waitFor()
  await expect
    .poll(async () => (await project.admin.get(`/collections/songs/rows/${row.id}`)).status, { timeout: 20_000 })
    .toBe(404)
})

test('a column is added with two clicks from the rows, is there, and Undo takes it away', async () => {
  await openRows()
  await page.getByRole('button', { name: 'Add column', exact: true }).click()
  await page.getByRole('textbox', { name: 'Name' }).fill('mood')
  await page.keyboard.press('Enter')
  await page.getByRole('columnheader', { name: /^mood/ }).waitFor()
  await page.getByText('The column “mood” is added.').locator('..').getByRole('button', { name: 'Undo' }).last().click()
  await expect.poll(() => page.getByRole('columnheader', { name: /^mood/ }).count()).toBe(0)
})

test('a filter stands in the address as a chip, and is taken away by its cross', async () => {
  await openRows('&where=composer.like.bach')
  await page.getByText('composer contains bach').waitFor()
  const count = (await page.getByRole('status').first().textContent()) ?? ''
  expect(Number(count.replace(/\D/g, ''))).toBeLessThan(5001)
  await page.getByRole('button', { name: 'Remove the filter composer contains bach' }).click()
  await page.getByText('9,999 rows').waitFor()
  expect(page.url()).not.toContain('where')
})

test('conditions survive the address, whatever their values contain', () => {
  const conditions = [{ column: 'title', op: 'like', value: 'a.b,c%_ & d' }]
  expect(readConditions(writeConditions(conditions))).toEqual(conditions)
  const column = { name: 'title', type: 'text', nullable: true } as never
  expect(filterOf([column], conditions, '')).toEqual({
    and: [{ column: 'title', op: 'ilike', value: '%a.b,c\\%\\_ & d%' }],
  })
})

test('a cell keeps every digit of a large number', () => {
  expect(parsed({ name: 'n', type: 'bigint', nullable: true } as never, '9007199254740993')).toBe('9007199254740993')
  expect(() => parsed({ name: 'n', type: 'integer', nullable: true } as never, 'x')).toThrow('whole number')
})

test('a flag goes to 10 % with three clicks from the overview, and Undo brings the share back', async () => {
  await page.goto(at(''))
  await page.getByRole('navigation', { name: 'Project' }).getByRole('link', { name: 'Flags' }).click()
  await page.getByRole('link', { name: 'New checkout' }).click()
  await page.getByRole('group', { name: 'Share of rule 1' }).getByRole('button', { name: '10 %', exact: true }).click()
  await expect.poll(async () => (await flagOf('new_checkout')).rules[0].percentage).toBe(10)
  await page.getByRole('button', { name: 'Undo' }).last().click()
  await expect.poll(async () => (await flagOf('new_checkout')).rules[0].percentage).toBe(20)
})

test('a share that arrow keys moved is stored once, when the keys rest', async () => {
  await go(page, 'flags/new_checkout')
  const stored: number[] = []
  const note = (request: Request) => {
    if (request.method() === 'PATCH') stored.push(request.postDataJSON().rules[0].percentage)
  }
  page.on('request', note)
  const slider = page.getByRole('slider', { name: 'Share of rule 1' })
  await slider.focus()
  for (let n = 0; n < 5; n += 1) await slider.press('ArrowLeft')
  await expect.poll(async () => (await flagOf('new_checkout')).rules[0].percentage).toBe(15)
  expect(stored).toEqual([15])
  await slider.press('ArrowRight')
  // who leaves the slider before that does not lose what it shows
  await slider.blur()
  await expect.poll(async () => (await flagOf('new_checkout')).rules[0].percentage).toBe(16)
  expect(stored).toEqual([15, 16])
  page.off('request', note)
})

test('a flag is switched in the list', async () => {
  await go(page, 'flags')
  await page.getByRole('switch', { name: 'Dark practice room is on' }).click()
  await page.getByRole('switch', { name: 'Dark practice room is off' }).waitFor()
  await expect.poll(async () => (await flagOf('dark_practice')).is_enabled).toBe(false)
})

test('a change of a flag is planned, moved and removed, and Undo plans it again', async () => {
  const made = await project.admin.post('/flags', {
    key: 'planned',
    name: 'Planned',
    value_type: 'boolean',
    rules: [{ value: true, percentage: 10 }],
  })
  expect(made.status, made.text).toBe(201)
  await go(page, 'flags/planned')
  await page.getByText('Nothing is planned').waitFor()
  await page.getByRole('button', { name: 'Plan a change' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Change a share').click()
  await dialog.getByRole('textbox', { name: 'Share of users' }).fill('40')
  await dialog.getByRole('button', { name: 'Add step' }).click()
  const steps = page.getByRole('list', { name: 'Planned changes' })
  await steps.getByText('Rule 1 to 40 %').waitFor()
  await expect
    .poll(async () => (await flagOf('planned')).schedule)
    .toEqual([{ at: expect.any(String), patch: { rule_index: 0, percentage: 40 } }])
  await steps.getByRole('button', { name: 'Change' }).click()
  await dialog.getByText('Switch off').click()
  await dialog.getByRole('button', { name: 'Save step' }).click()
  await steps.getByText('Switch off').waitFor()
  await expect.poll(async () => (await flagOf('planned')).schedule[0].patch).toEqual({ is_enabled: false })
  await steps.getByRole('button', { name: 'Remove: Switch off' }).click()
  await page.getByText('Nothing is planned').waitFor()
  const notice = page.locator('.mantine-Notification-root').filter({ hasText: 'The step is removed.' })
  await notice.getByRole('button', { name: 'Undo' }).click()
  await steps.getByText('Switch off').waitFor()
  await go(page, 'flags/planned?view=history')
  await page.getByText('steps planned').or(page.getByText('Plan ended')).first().waitFor()
})

test('a switch of the config is turned in the table, and a deleted key comes back whole', async () => {
  const keyOf = async (key: string) =>
    (await project.admin.get('/config')).data.find((one: { key: string }) => one.key === key)
  await go(page, 'config')
  await page.getByRole('switch', { name: 'sale_banner is off' }).click()
  await page.getByRole('switch', { name: 'sale_banner is on' }).waitFor()
  const { conditions } = await keyOf('lesson_length')
  await page.getByRole('button', { name: 'More about lesson_length' }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await expect.poll(() => keyOf('lesson_length')).toBeUndefined()
  await page.getByText('“lesson_length” is deleted.').locator('..').getByRole('button', { name: 'Undo' }).last().click()
  await expect.poll(async () => (await keyOf('lesson_length'))?.conditions).toEqual(conditions)
})

test('a file that is chosen stands in the library', async () => {
  await go(page, 'files')
  const [chooser] = await Promise.all([
    page.waitForEvent('filechooser'),
    page.getByRole('button', { name: 'Upload' }).first().click(),
  ])
  await chooser.setFiles({ name: 'note.txt', mimeType: 'text/plain', buffer: Buffer.from('hello') })
  await page.getByText('1 file uploaded.').waitFor()
  await page.getByRole('button', { name: /note\.txt/ }).click()
  await page.getByRole('dialog', { name: 'note.txt' }).getByText('5 bytes').waitFor()
})

test('rows of a file without owners get the chosen one, and what is refused is named by its line', async () => {
  await go(page, 'collections/songs?import=yes')
  const [chooser] = await Promise.all([
    page.waitForEvent('filechooser'),
    page.getByRole('button', { name: 'Choose a file' }).click(),
  ])
  const csv = 'title,composer,level\n"A, quoted",Bach,3\nBad,Bach,x\n'
  await chooser.setFiles({ name: 'songs.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) })
  await page.getByRole('combobox', { name: 'Owner of the rows' }).fill('Ada')
  await page.getByRole('option').first().click()
  await page.getByRole('button', { name: 'Import 2 rows' }).click()
  await page.getByText('1 row added').waitFor({ timeout: 30_000 })
  await page.getByText('Line 3').waitFor()
})

test('nothing of this broke the policy of the page, threw, or left the origin', async () => {
  await settled(page)
  expect(complaints).toEqual([])
})
