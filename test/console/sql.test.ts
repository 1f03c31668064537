import { expect, test } from 'vitest'
import { fill, phone, picture, settled, startConsole, violations, wide } from '#test/support/console.ts'

/** The page of SQL queries: written, run, explained, refused, kept, shared. */
const { harness, project, signedIn, go, context, complaints, at } = await startConsole()
const filled = await fill(project, 40, 30)
const empty = await harness.project({ developer: project.developer })
const desk = await context({ permissions: ['clipboard-read', 'clipboard-write'] })
const page = await signedIn(desk)

const editor = () => page.getByRole('textbox', { name: 'Query' })
/** As a person does: what a browser replaces by itself in a text with colours gets styles that the policy of the page forbids. */
const clear = async (on = page) => {
  await on.getByRole('textbox', { name: 'Query' }).focus()
  await on.keyboard.press('Control+a')
  await on.keyboard.press('Backspace')
}
const write = async (sql: string) => {
  await clear()
  await page.keyboard.insertText(sql)
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).not.toBeNull()
}
/** The page without what it holds of the last queries: it is gone once the other one has come. */
const anew = async () => {
  await go(page, 'config')
  await expect.poll(() => page.locator('.sql-page').count()).toBe(0)
  await go(page, 'sql')
}
const button = (name: string) => page.getByRole('button', { name, exact: true })
const result = () => page.getByRole('region', { name: 'Result' })
const clipboard = () => page.evaluate('navigator.clipboard.readText()') as Promise<string>

test('what is typed over a selected query takes its place, and writes no style into the page', async () => {
  await go(page, 'sql')
  await write('select count(*) from users')
  const before = [...complaints]
  await page.keyboard.press('Control+a')
  await page.keyboard.type('select 7 as seven')
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('select 7 as seven')
  expect(complaints).toEqual(before)
  await page.keyboard.press('Control+z')
  await expect.poll(() => new URL(page.url()).searchParams.get('q')).toBe('select count(*) from users')
  await anew()
})

test('an example is chosen and run with the keyboard alone: a table with its head, numbers at the right', {
  timeout: 120_000,
}, async () => {
  await go(page, 'sql')
  await page.getByRole('button', { name: /^Events by name/ }).waitFor()
  expect(await violations(page)).toEqual([])
  await page.getByRole('button', { name: /^Events by name/ }).click()
  await page.keyboard.press('Control+Enter')
  await result()
    .getByRole('columnheader', { name: /^event_name/ })
    .waitFor()
  const { rows, row_count } = (
    await project.admin.post('/sql', { sql: 'select distinct event_name from engagement_events', limit: 1000 })
  ).data
  expect(row_count).toBeGreaterThan(2)
  await result().getByRole('cell', { name: rows[0][0], exact: true }).waitFor()
  expect(await page.evaluate('getComputedStyle(document.querySelector(".sql-rows td[data-number]")).textAlign')).toBe(
    'right',
  )
  for (const title of ['New users per day', 'Latest rows of songs']) {
    await anew()
    await page.getByRole('button', { name: new RegExp(`^${title}`) }).click()
    await button('Run')
      .or(page.getByRole('button', { name: /^Run Ctrl/ }))
      .click()
    await result()
      .getByRole('status')
      .filter({ hasText: /^\d+ rows? in \d+ ms/ })
      .waitFor()
  }
})

test('values: null is to be seen, a long text opens, rows are copied as CSV and as JSON', async () => {
  const sql = `select null::int as nothing, '' as blank, 'a "b", c' as text, 9007199254740993 as large, repeat('long ', 40) as long, 1 as one, 2 as one`
  await go(page, 'sql')
  await write(sql)
  await page.keyboard.press('Control+Enter')
  // until it is there the former result stands
  await result().getByRole('cell', { name: '9007199254740993' }).waitFor()
  await result().getByRole('cell', { name: 'null', exact: true }).waitFor()
  await result()
    .getByRole('button', { name: /^long long/ })
    .click()
  await page.getByRole('dialog').getByText('long '.repeat(40).trim()).waitFor()
  await page.keyboard.press('Escape')
  await button('CSV').click()
  const long = 'long '.repeat(40)
  // what a browser copies is there a moment after the click
  await expect
    .poll(clipboard)
    .toBe(`nothing,blank,text,large,long,one,one\r\n,,"a ""b"", c",9007199254740993,${long},1,2`)
  await button('JSON').click()
  await expect.poll(async () => (await clipboard()).startsWith('[')).toBe(true)
  expect(JSON.parse(await clipboard())).toEqual([
    { nothing: null, blank: '', text: 'a "b", c', large: '9007199254740993', long, one: 1, one_2: 2 },
  ])
})

test('a thousand rows are some sixty in the page, with the head in view', async () => {
  await write('select i, md5(i::text) from generate_series(1, 5000) i')
  await page.keyboard.press('Control+Enter')
  await result().getByText('there is more', { exact: false }).waitFor()
  expect(await result().locator('tbody tr').count()).toBeLessThan(60)
  await page.evaluate('document.querySelector(".sql-rows").scrollTo(0, 1e6)')
  await result().getByRole('cell', { name: '1000', exact: true }).waitFor()
  const top = (of: string) =>
    page.evaluate(`document.querySelector('${of}').getBoundingClientRect().top`) as Promise<number>
  expect(Math.abs((await top('.sql-rows thead th')) - (await top('.sql-rows')))).toBeLessThan(3)
})

test('an error stands under the editor, marks its place there, and leads to it', async () => {
  await write('select id,\n       emial\n  from users')
  await page.keyboard.press('Control+Enter')
  const alert = page.getByRole('alert')
  await alert.getByText('Column "emial" does not exist.').waitFor()
  await alert.getByText(/email/).last().waitFor()
  await page.locator('.cm-lintRange-error', { hasText: 'emial' }).waitFor()
  await alert.getByRole('button', { name: 'Go to line 2, column 8' }).click()
  await page.keyboard.press('Control+Delete')
  await page.keyboard.type('email')
  await expect.poll(() => page.getByRole('alert').count()).toBe(0)
  await page.keyboard.press('Control+Enter')
  await result()
    .getByRole('columnheader', { name: /^email/ })
    .waitFor()
  for (const [sql, says] of [
    ['delete from users', 'Only one statement that reads is run: SELECT, VALUES, TABLE or WITH.'],
    ['select * from app.user_passwords', 'Permission denied for table user_passwords.'],
  ] as const) {
    await write(sql)
    await page.keyboard.press('Control+Enter')
    await page.getByRole('alert').getByText(says).waitFor()
  }
})

test('a plan is a tree: expected where nothing ran, measured beside the rows where it ran', async () => {
  await write('select u.email, count(*) from users u join engagement_events e on e.app_user_id = u.id group by 1')
  await button('Explain').click()
  const plan = page.getByRole('region', { name: 'Plan' })
  await plan.getByText(/^Not run: expected cost/).waitFor()
  expect(await plan.getByRole('listitem').count()).toBeGreaterThan(2)
  expect(await result().count()).toBe(0)
  await button('Run and measure').click()
  await plan.getByText(/^Planned in .* run in/).waitFor()
  await result()
    .getByRole('columnheader', { name: /^email/ })
    .waitFor()
  await plan.getByText('dearest').first().waitFor()
})

test('names of tables and columns are written where the cursor is', async () => {
  await anew()
  await clear()
  await page.keyboard.insertText('select  from ')
  await editor().press('End')
  const side = page.getByRole('complementary', { name: 'Tables and queries' })
  await side.getByRole('textbox', { name: 'Find a table or a column' }).fill('song')
  await side.getByRole('button', { name: 'songs', exact: true }).click()
  await side.getByRole('button', { name: 'Columns of songs' }).click()
  await editor().press('Home')
  for (let at = 0; at < 'select '.length; at += 1) await page.keyboard.press('ArrowRight')
  await side.getByRole('button', { name: /^title text/ }).click()
  await expect.poll(() => editor().textContent()).toBe('select title from songs')
  // what may not be read is not there
  await side.getByRole('textbox', { name: 'Find a table or a column' }).fill('user_passwords')
  await side.getByText('No table or column has this in its name.').waitFor()
})

test('a link opens the query and runs nothing; queries are kept by name, and the last that ran', async () => {
  const other = await desk.newPage()
  await other.goto(`${at('sql')}?q=${encodeURIComponent('select 42 as answer')}`)
  await other.getByText('select 42 as answer').waitFor()
  await settled(other)
  expect(await other.getByRole('region', { name: 'Result' }).count()).toBe(0)
  await other.getByRole('button', { name: 'Save', exact: true }).click()
  await other.getByRole('textbox', { name: 'Name of the query' }).fill('The answer')
  await other.keyboard.press('Enter')
  await other.getByText('is saved in this browser').waitFor()
  await other.getByRole('button', { name: 'Copy link' }).click()
  expect(new URL((await other.evaluate('navigator.clipboard.readText()')) as string).searchParams.get('q')).toContain(
    '42',
  )
  await other.getByRole('textbox', { name: 'Query' }).press('Control+Enter')
  await other.getByRole('cell', { name: '42', exact: true }).waitFor()
  await other.close()

  await anew()
  await page.getByText('History', { exact: true }).click()
  await page.getByRole('button', { name: 'select 42 as answer' }).click()
  await expect.poll(() => editor().textContent()).toBe('select 42 as answer')
  await page.getByText('Saved', { exact: true }).click()
  await write('select 1')
  await page.getByRole('button', { name: 'The answer', exact: true }).click()
  await expect.poll(() => editor().textContent()).toBe('select 42 as answer')
  await page.getByRole('button', { name: 'Delete The answer' }).click()
  await page.getByText('Queries that you save have a name', { exact: false }).waitFor()
  // of this project alone
  await go(page, 'sql', empty)
  await page.getByText('History', { exact: true }).click()
  await page.getByText('The last twenty queries', { exact: false }).waitFor()
})

test('looks right with rows and a plan: light, dark, and on a phone', { timeout: 300_000 }, async () => {
  const query = `select u.email, u.display_name, count(*) as events, max(e.occurred_at) as last
  from users u
  join engagement_events e on e.app_user_id = u.id
 where u.email is not null
 group by 1, 2
 order by 3 desc`
  for (const [name, colorScheme, viewport] of [
    ['', 'light', wide],
    ['-dark', 'dark', wide],
    ['-phone', 'dark', phone],
  ] as const) {
    const shown = await signedIn(await context({ colorScheme, viewport }))
    await shown.goto(`${at('sql')}?q=${encodeURIComponent(query)}`)
    await shown.getByRole('button', { name: 'Run and measure' }).click()
    await shown.getByRole('region', { name: 'Plan' }).waitFor()
    await settled(shown)
    expect(await violations(shown), name).toEqual([])
    expect(await shown.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
    await picture(shown, `sql-run${name}`)
    await clear(shown)
    await shown.keyboard.insertText('select emial from users')
    await shown.keyboard.press('Control+Enter')
    await shown.getByRole('alert').waitFor()
    expect(await violations(shown), `${name} refused`).toEqual([])
    await picture(shown, `sql-refused${name}`)
    await shown.close()
  }
  expect(filled.users.length).toBeGreaterThan(0)
})

test('nothing of this broke the policy of the page, threw, or left the origin', () => {
  expect(complaints).toEqual([])
})
