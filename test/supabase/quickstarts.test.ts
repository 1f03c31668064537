import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { root } from '#server/root.ts'
import { launchChromium } from '#test/support/chromium.ts'
import { startCollections } from '#test/support/definitions.ts'

/** Small apps as people begin with Supabase, in a browser, against a project: only their address and their key are changed. */
const { harness, project, define } = await startCollections()
await project.admin.patch('', { rest_enabled: true })
await define({
  name: 'todos',
  columns: [
    { name: 'task', type: 'text', nullable: false },
    { name: 'is_complete', type: 'boolean', default: false },
    { name: 'inserted_at', type: 'timestamptz', default: { $fn: 'now' } },
  ],
})
await define({
  name: 'messages',
  read_policy: 'public',
  realtime: true,
  columns: [{ name: 'content', type: 'text' }],
})

const changes: Readonly<Record<string, string>> = {
  "  const SUPABASE_URL = 'https://your-project.supabase.co'": `  const SUPABASE_URL = '${harness.url}'`,
  "  const SUPABASE_KEY = 'your-publishable-key'": `  const SUPABASE_KEY = '${project.clientKey}'`,
}
const appOf = async (name: string) => {
  const lines = (await readFile(join(root, 'test/fixtures/quickstarts', `${name}.html`), 'utf8')).split('\n')
  const changed = lines.map((line) => changes[line] ?? line)
  expect(changed.filter((line, n) => line !== lines[n])).toHaveLength(2)
  return changed.join('\n')
}
const script = await readFile(join(root, 'node_modules/@supabase/supabase-js/dist/umd/supabase.js'), 'utf8')
const pages = createServer(async ({ url = '' }, response) => {
  const isScript = url === '/supabase.js'
  response.writeHead(200, { 'content-type': isScript ? 'text/javascript' : 'text/html' })
  response.end(isScript ? script : await appOf(url.slice(1)))
})
await new Promise<void>((listening) => pages.listen(0, '127.0.0.1', listening))
afterAll(() => pages.close())
const browser = await launchChromium()

/** A person with a browser of their own. */
const open = async (app: string) => {
  const context = await browser.newContext()
  onTestFinished(() => context.close())
  const page = await context.newPage()
  await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/${app}`)
  return page
}

test('a list of things to do: sign up, add, tick, delete, come back', { timeout: 60_000 }, async () => {
  const page = await open('todos')
  await page.fill('#email', `${crypto.randomUUID()}@example.org`)
  await page.fill('#password', 'correct horse 42 battery')
  await page.click('#sign-in button')
  await page.waitForSelector('#add:not([hidden])')
  for (const task of ['water the plants', 'write home']) {
    await page.fill('#task', task)
    await page.click('#add button')
    await expect.poll(() => page.textContent('#list')).toContain(task)
  }
  await page.check('#list li:nth-child(1) input')
  await page.click('#list li:nth-child(2) button')
  await expect.poll(() => page.locator('#list li').count()).toBe(1)
  await expect
    .poll(async () => project.sql('select task, is_complete from collections.todos where deleted_at is null'))
    .toEqual([{ task: 'water the plants', is_complete: true }])
  // the session outlives a reload
  await page.reload()
  await page.waitForSelector('#list li')
  expect(await page.isChecked('#list li input')).toBe(true)
  expect(await page.textContent('#problem')).toBe('')
  await page.click('#leave')
  await page.waitForSelector('#sign-in:not([hidden])')
  // somebody else sees none of it
  const other = await open('todos')
  await other.fill('#email', `${crypto.randomUUID()}@example.org`)
  await other.fill('#password', 'correct horse 42 battery')
  await other.click('#sign-in button')
  await other.waitForSelector('#add:not([hidden])')
  expect(await other.locator('#list li').count()).toBe(0)
})

test('a chat: what one writes the other reads, who types and who is there', { timeout: 60_000 }, async () => {
  const [one, two] = [await open('chat'), await open('chat')]
  for (const page of [one, two])
    await expect.poll(() => page.textContent('#state'), { timeout: 15_000 }).toBe('SUBSCRIBED')
  await expect.poll(() => one.textContent('#present')).toBe('2')
  await one.fill('#text', 'hello')
  await expect.poll(() => two.textContent('#typing')).toMatch(/is typing$/)
  await one.click('#say button')
  for (const page of [one, two]) await expect.poll(() => page.textContent('#messages')).toBe('hello')
  await two.close()
  await expect.poll(() => one.textContent('#present'), { timeout: 15_000 }).toBe('1')
  // who comes later reads what was said
  const three = await open('chat')
  await expect.poll(() => three.textContent('#messages')).toBe('hello')
})

test('an image: chosen, uploaded, shown', { timeout: 60_000 }, async () => {
  const page = await open('avatar')
  await expect.poll(() => page.textContent('#state'), { timeout: 15_000 }).toBe('ready')
  const image = await sharp({ create: { width: 40, height: 30, channels: 3, background: 'teal' } })
    .png()
    .toBuffer()
  await page.setInputFiles('#file', { name: 'me.png', mimeType: 'image/png', buffer: image })
  await expect.poll(() => page.textContent('#state')).toBe('40 wide')
})

test('a browser reads why a socket is refused', async () => {
  const page = await open('chat')
  const closed = (key: string) =>
    page.evaluate(
      (url) =>
        new Promise<string>((resolve) => {
          const socket = new WebSocket(url)
          socket.onclose = ({ code, reason }) => resolve(`${code} ${reason}`)
        }),
      `${harness.url.replace('http', 'ws')}/realtime/v1/websocket?apikey=${key}&vsn=2.0.0`,
    )
  expect(await closed('svc_nothing')).toMatch(/^4401 UNAUTHORIZED: /)
  expect(await closed((await harness.project()).clientKey)).toMatch(/^4403 REST_DISABLED: /)
})
