import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { phone, picture, settled, startConsole, violations, wide } from '#test/support/console.ts'
import { contentOf } from '#test/support/content.ts'

/** The pages of content: two languages beside each other, their versions, a schedule, a preview. */
const { project, signedIn, go, context, complaints } = await startConsole()
const { create, save, publish, get, schema } = contentOf(project)
await create('practice-tips', { title: 'Tips for practice', text: 'Play slowly.\nPlay often.', minutes: 3 })
await publish('practice-tips')
await save('practice-tips', 'en', {
  title: 'Five tips for practice',
  text: 'Play slowly.\nPlay daily.\nRest your hands.',
  minutes: 4,
})
await create('welcome', { title: 'Welcome', text: 'Good to have you here.', is_large: true })
await save('welcome', 'de', { title: 'Willkommen', text: 'Schön, dass du da bist.' })
await publish('welcome')
await publish('welcome', 'de', { publish_at: new Date(Date.now() + 3 * 864e5).toISOString() })

const card = (page: Page, name: string) => page.getByRole('region', { name, exact: true })

test('a language is written beside another, saved, published, and compared with what it was', async () => {
  const page = await signedIn()
  await go(page, 'content')
  await page.getByRole('link', { name: 'practice-tips' }).click()
  await settled(page)
  const english = card(page, 'English')
  await english.getByText('published, with changes').waitFor()
  await page.getByLabel('Another language').fill('pt-br')
  await page.getByRole('button', { name: 'Write it' }).click()
  const other = card(page, 'Brazilian Portuguese')
  // what it lacks is shown as apps would see it
  expect(await other.getByLabel('title').getAttribute('placeholder')).toBe('Five tips for practice')
  await other.getByLabel('title').fill('Dicas')
  await other.getByRole('button', { name: 'Save Brazilian Portuguese' }).click()
  await other.getByRole('button', { name: 'Publish Brazilian Portuguese' }).click()
  await other.getByText('published', { exact: true }).waitFor()
  expect((await get('practice-tips')).locales['pt-BR']).toMatchObject({
    ...{ status: 'published', fields: { title: 'Dicas' }, published_version: 1 },
  })

  await english.getByLabel('minutes').fill('5')
  await english.getByRole('textbox', { name: 'New field' }).fill('note')
  await english.getByRole('button', { name: 'Add field' }).click()
  await english.getByLabel('note', { exact: true }).fill('Only here')
  await english.getByRole('button', { name: 'Save English' }).click()
  await english.getByRole('button', { name: 'Publish English' }).waitFor()
  expect((await get('practice-tips')).locales.en).toMatchObject({
    ...{ version: 3, published_version: 1 },
    fields: { title: 'Five tips for practice', minutes: 5, note: 'Only here' },
  })

  await page.getByRole('link', { name: 'Versions' }).click()
  await page.getByRole('button', { name: 'Version 2', exact: true }).click()
  const drawer = page.getByRole('dialog', { name: 'English, version 2' })
  expect(await drawer.locator('[data-kind=gone]').allTextContents()).toContain('−removed: Play often.')
  expect(await drawer.locator('[data-kind=new]').allTextContents()).toContain('+added: Rest your hands.')
  expect(await drawer.locator('[data-kind=same]').allTextContents()).toContain('Play slowly.')
  await settled(page)
  expect(await violations(page)).toEqual([])
  await picture(page, 'content-differences')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Restore version 1' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click()
  await page.getByText('English is as in version 1.').waitFor()
  expect((await get('practice-tips')).locales.en).toMatchObject({ version: 4, published_version: 1 })
})

test('fields are written as the schema of the type has them', async () => {
  await schema('lesson', [
    { name: 'title', type: 'text', required: true },
    { name: 'is_open', type: 'boolean', localized: false },
    { name: 'minutes', type: 'number' },
    { name: 'steps', type: 'json' },
  ])
  await create('scales', { title: 'Scales' }, { content_type: 'lesson' })
  const page = await signedIn()
  await go(page, 'content/scales')
  const english = card(page, 'English')
  await english.getByLabel('minutes').fill('5')
  await english.getByLabel('is_open').check()
  await english.getByLabel('steps').fill('["up", "down"]')
  expect(await english.getByRole('textbox', { name: 'New field' }).count()).toBe(0)
  await english.getByRole('button', { name: 'Save English' }).click()
  await english.getByRole('button', { name: 'Publish English' }).waitFor()
  expect((await get('scales')).locales.en.fields).toEqual({
    ...{ title: 'Scales', minutes: 5, is_open: true },
    steps: ['up', 'down'],
  })
  await page.getByLabel('Another language').fill('de')
  await page.getByRole('button', { name: 'Write it' }).click()
  const german = card(page, 'German')
  await german.getByLabel('title').waitFor()
  // it is the same in every language
  expect(await german.getByLabel('is_open').count()).toBe(0)
})

test('a language is scheduled, the schedule cancelled, and a preview has a link', async () => {
  const page = await signedIn()
  await go(page, 'content/welcome')
  const german = card(page, 'German')
  await german.getByRole('button', { name: 'More about German' }).click()
  await page.getByRole('menuitem', { name: 'Cancel the schedule' }).click()
  await german.getByText('draft', { exact: true }).waitFor()
  await german.getByRole('button', { name: 'More about German' }).click()
  await page.getByRole('menuitem', { name: 'Schedule', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Schedule', exact: true }).click()
  await german.getByText('scheduled', { exact: true }).waitFor()
  expect((await get('welcome')).locales.de.status).toBe('scheduled')
  await page.getByRole('button', { name: 'Preview' }).click()
  const link = await page.getByRole('dialog', { name: 'Preview link' }).locator('pre').textContent()
  const { pathname, search } = new URL(link ?? '')
  expect((await project.app.get(`//${pathname.slice(1)}${search}&locale=de`)).data.fields.title).toBe('Willkommen')
})

test('an entry is made, asked about before unsaved work is lost, and deleted', async () => {
  const page = await signedIn()
  await go(page, 'content/new')
  await page.getByRole('textbox', { name: 'Key' }).fill('faq')
  await page.getByRole('textbox', { name: 'Type' }).fill('page')
  await page.getByRole('button', { name: 'Create entry' }).click()
  await page.getByRole('textbox', { name: 'New field' }).fill('title')
  await page.getByRole('button', { name: 'Add field' }).click()
  await page.getByLabel('title', { exact: true }).fill('Questions')
  await page.getByRole('link', { name: 'Content', exact: true }).first().click()
  await page.getByRole('button', { name: 'Stay' }).click()
  await page.getByRole('button', { name: 'Save English' }).click()
  await page.getByRole('button', { name: 'Publish English' }).waitFor()
  await page.getByRole('link', { name: 'Settings', exact: true }).last().click()
  await page.getByLabel('Order').fill('7')
  await page.getByRole('button', { name: 'Save settings' }).click()
  await page.getByText('Saved.').waitFor()
  expect(await get('faq')).toMatchObject({ sort_order: 7, locales: { en: { fields: { title: 'Questions' } } } })
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('menuitem', { name: 'Delete entry' }).click()
  await page.getByRole('dialog').getByRole('textbox').fill('faq')
  await page.getByRole('dialog').getByRole('button', { name: 'Delete entry' }).click()
  await page.getByRole('heading', { name: 'Content', exact: true }).waitFor()
  expect((await project.admin.get('/content/faq')).status).toBe(404)
})

test.each([
  ['light', wide],
  ['dark', wide],
  ['light', phone],
] as const)('in %s at %j axe finds nothing and nothing overflows', async (colorScheme, viewport) => {
  const page = await signedIn(await context({ colorScheme, viewport }))
  for (const path of [
    'content',
    'content/new',
    'content/welcome',
    'content/welcome?view=versions',
    'content/welcome?view=settings',
  ]) {
    await go(page, path)
    expect(await violations(page), path).toEqual([])
    const overflow = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
    expect(overflow, path).toBeLessThanOrEqual(0)
    const name = path.replace(/[^a-z]+/g, '-')
    await picture(page, `${name}${colorScheme === 'dark' ? '-dark' : ''}${viewport === phone ? '-phone' : ''}`)
  }
})

test('nothing of this broke the policy of the page, threw, or left the origin', () => {
  expect(complaints).toEqual([])
})
