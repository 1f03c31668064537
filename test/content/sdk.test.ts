import { afterEach, expect, test } from 'vitest'
import { contentOf } from '#test/support/content.ts'
import { startHarness } from '#test/support/harness.ts'
import { appOf, device } from '#test/support/sdk.ts'
import { createContent } from '../../sdk/src/index.ts'

const harness = await startHarness()
const project = await harness.project()
const { create, save, publish, clear } = contentOf(project)
afterEach(clear)
const route = 'GET /v1/client/content'

test('languages that were loaded are there without a network, each by itself', async () => {
  await create('welcome', { title: 'Welcome' })
  await save('welcome', 'de', { title: 'Willkommen' })
  await publish('welcome')
  await publish('welcome', 'de')
  await create('other', { title: 'Page' }, { content_type: 'page' })
  await publish('other')
  const store = device()
  const { app } = appOf(harness, project, { store })
  const german = createContent(app, { locale: 'de', contentType: 'article' })
  expect(german.get('welcome')).toBeUndefined()
  expect(await german.load()).toMatchObject([{ key: 'welcome', locale: 'de', fields: { title: 'Willkommen' } }])
  await createContent(app, { locale: 'en' }).load()

  const { app: later, net } = appOf(harness, project, { store })
  net.isOffline = true
  const titles = async (locale: string, contentType?: string) => {
    const content = createContent(later, { locale, contentType })
    return (await content.load({ force: true })).map(({ fields }) => fields['title']).sort()
  }
  expect(await titles('de', 'article')).toEqual(['Willkommen'])
  expect(await titles('en')).toEqual(['Page', 'Welcome'])
  await expect(titles('fr')).rejects.toThrow()
})

test('what has not changed is not sent again, and what has changed is', async () => {
  await create('welcome', { title: 'Welcome' })
  await publish('welcome')
  const { app, net } = appOf(harness, project, {})
  const content = createContent(app)
  await content.load()
  await content.load()
  expect(net.count(route)).toBe(1)
  await content.load({ force: true })
  expect(net.statuses).toEqual([200, 304])
  await save('welcome', 'en', { title: 'Hello' })
  await publish('welcome')
  await content.load({ force: true })
  expect(net.statuses).toEqual([200, 304, 200])
  expect(content.get('welcome')?.fields).toEqual({ title: 'Hello' })
})
