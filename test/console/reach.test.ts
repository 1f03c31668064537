import { afterAll, expect, test } from 'vitest'
import { fill, settled, startConsole } from '#test/support/console.ts'
import { startHttpsReceiver } from '#test/support/https.ts'
import { startFcm } from '#test/support/push_providers.ts'

/** Push, webhooks and keys in the console, by role and name, in as few clicks as docs/console.md promises. */
const fcm = await startFcm(() => new Date())
const receiver = await startHttpsReceiver({
  handler: (_, response) => {
    response.writeHead(410)
    response.end()
  },
})
afterAll(async () => {
  await fcm.close()
  await receiver.close()
})
const env = { FCM_BASE_URL: fcm.url, WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.caFile }
const { project, signedIn, go, at, url, complaints } = await startConsole({ env })
await fill(project, 20, 10)
const page = await signedIn()
const navigation = page.getByRole('navigation', { name: 'Project' })

test('without a provider push says so before anything is written, and then goes to a segment in seven clicks', async () => {
  await go(page, 'push')
  await page.getByText('No provider of push is connected').waitFor()
  expect((await project.admin.post('/integrations', { provider: 'fcm', config: fcm.config })).status).toBe(201)
  await page.reload()
  await page.getByRole('heading', { name: 'Campaigns' }).waitFor()
  expect(await page.getByText('No provider of push is connected').count()).toBe(0)
  await go(page, '')

  await navigation.getByRole('link', { name: 'Push', exact: true }).click()
  await page.getByRole('button', { name: 'New campaign' }).first().click()
  await page.getByRole('textbox', { name: 'Whom it reaches' }).or(page.getByLabel('Whom it reaches')).first().click()
  await page.getByRole('option', { name: 'Pro users' }).click()
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByLabel('Title').fill('{{display_name|friend}}, come')
  // as a user without a name reads it
  expect(await page.getByRole('figure', { name: 'On a phone' }).textContent()).toContain('friend, come')
  await page.getByLabel('Title').fill('Time to practise')
  await page.getByLabel('Text').fill('Ten minutes keep your streak alive.')
  expect(await page.getByRole('figure', { name: 'On a phone' }).textContent()).toContain('Time to practise')
  await page.getByRole('button', { name: 'Next' }).click()
  await page.getByText('Without a device').waitFor()
  await page.getByRole('button', { name: 'Send now' }).click()
  await page.getByRole('heading', { name: 'Time to practise' }).waitFor()
  const campaigns = (await project.admin.get('/push/campaigns')).data as { name: string; status: string }[]
  const made = campaigns.filter(({ name }) => name === 'Time to practise')
  expect(made).toMatchObject([{ audience: { segment_id: expect.any(String) } }])
  expect(['scheduled', 'sending', 'sent']).toContain(made[0]?.status)
})

test('why a webhook failed is seen in two clicks from the overview, and it can be sent again', async () => {
  const made = await project.admin.post('/webhooks', { event_name: 'lesson_failed', target_url: receiver.url })
  expect(made.status, made.text).toBe(201)
  const user = await project.user()
  await user.post('/client/events', { event_name: 'lesson_failed' })
  await project.drain()
  await expect
    .poll(async () => (await project.admin.get('/webhooks/deliveries?status=failed')).data.length, { timeout: 10_000 })
    .toBe(1)
  await page.goto(at(''))
  await page.getByRole('link', { name: '1 delivery of webhooks failed' }).click()
  await page.getByText('The receiver answered 410').first().waitFor()
  await page.getByRole('button', { name: 'lesson_failed' }).first().click()
  await page.getByRole('table', { name: 'Attempts' }).getByText('410').first().waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Send again' }).first().click()
  await page.getByText('It is sent again.').waitFor()
})

test('a key is rotated in three clicks: the new one is shown once, the former one works for a while', async () => {
  await go(page, '')
  await navigation.getByRole('link', { name: 'Keys', exact: true }).click()
  await page.getByRole('button', { name: 'Rotate', exact: true }).first().click()
  const another = 'The former key works for another'
  const unit = page.getByRole('combobox', { name: `Unit of ${another}` })
  expect([await page.getByLabel(another, { exact: true }).inputValue(), await unit.inputValue()]).toEqual(['1', 'days'])
  await unit.click()
  await page.getByRole('option', { name: 'hours' }).click()
  await page.getByLabel(another, { exact: true }).fill('2')
  await page.getByRole('button', { name: 'Make the new key' }).click()
  const dialog = page.getByRole('dialog', { name: 'The new key' })
  const text = (await dialog.locator('code').first().textContent()) ?? ''
  expect(text).toMatch(/^svc_live_[cs]k_/)
  await page.keyboard.press('Escape')
  await page.getByText(/^ends/).first().waitFor()
  await settled(page)
  const keys = (await project.developer.get(`/admin/projects/${project.id}`)).data.api_keys as {
    key_prefix: string
    expires_at: string | null
  }[]
  const ending = keys.flatMap(({ expires_at }) =>
    expires_at ? [(Date.parse(expires_at) - Date.now()) / 3_600_000] : [],
  )
  expect(ending).toHaveLength(1)
  expect(ending[0]).toBeCloseTo(2, 1)
  expect(keys.some(({ key_prefix }) => text.startsWith(key_prefix))).toBe(true)
})

test('settings say what was refused at the field, and a domain shows its records', async () => {
  await go(page, 'settings')
  const sender = page.getByRole('textbox', { name: 'Sender', exact: true })
  await sender.fill('not an address')
  await page.getByRole('button', { name: 'Save' }).click()
  await expect.poll(() => sender.getAttribute('aria-invalid'), { timeout: 10_000 }).toBe('true')
  await go(page, 'settings/domains')
  await page
    .getByRole('dialog')
    .getByRole('button', { name: 'Leave' })
    .click({ timeout: 2000 })
    .catch(() => undefined)
  await page.getByRole('button', { name: 'Add domain' }).first().click()
  await page
    .getByRole('dialog')
    .getByLabel(/domain/i)
    .first()
    .fill('mail.example.com')
  await page.getByRole('dialog').getByRole('button', { name: 'Add domain' }).click()
  await page.getByRole('table', { name: 'Records' }).getByText('TXT').first().waitFor()
})

test('a call is tried as the developer, and answers as it does for any client', async () => {
  await page.goto(
    `${url}/console/projects/${project.id}/api?operation=GET%20/v1/admin/projects/%7BprojectId%7D/segments`,
  )
  await page.getByRole('button', { name: 'Send' }).click()
  await page.getByRole('status').getByText('200').waitFor()
  expect(await page.getByRole('heading', { name: 'Answer' }).count()).toBe(1)
})

test('nothing of this broke the policy of the page, threw, or left the origin', () => {
  expect(complaints).toEqual([])
})
