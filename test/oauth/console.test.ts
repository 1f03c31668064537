import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { phone, picture, startConsole, violations } from '#test/support/console.ts'
import { createAuthority } from '#test/support/https.ts'
import { oidcClient, startOidc } from '#test/support/oidc.ts'
import { runFolder } from '#test/support/run.ts'

const authority = createAuthority()
const caFile = join(await mkdtemp(join(await runFolder(), 'ca-')), 'ca.pem')
await writeFile(caFile, authority.certificate)
const oidc = await startOidc(authority, ['http://localhost/callback'])
afterAll(() => oidc.stop())
const env = { WEBHOOK_CA_FILE: caFile, WEBHOOK_ALLOWED_CIDRS: '127.0.0.0/8' }
const { project, harness, signedIn, go, complaints } = await startConsole({ env })
const page = await signedIn()
const tile = (name: string) => page.getByRole('button', { name, exact: true })

test('the callback is shown before anything is set, and addresses are saved', async () => {
  await go(page, 'settings')
  await page.getByRole('link', { name: 'Sign-in', exact: true }).click()
  await page.getByText(`${harness.url}/p/${project.id}/auth/v1/callback`).waitFor()
  const addresses = page.getByRole('textbox', { name: 'Redirect addresses' })
  await addresses.fill('https://*.example.com/')
  await page.getByRole('button', { name: 'Save addresses' }).click()
  await page.getByText(/may have a \* only at its end/).waitFor()
  await addresses.fill('https://app.example.com\ncom.example.app://signed-in')
  await page.getByRole('button', { name: 'Save addresses' }).click()
  await page.getByText('The addresses are saved.').waitFor()
  // as they are stored
  expect(await addresses.inputValue()).toBe('https://app.example.com/\ncom.example.app://signed-in')
})

test('an OpenID provider is added, tested, corrected and removed', async () => {
  await page.getByRole('button', { name: 'Add provider' }).click()
  const drawer = page.getByRole('dialog', { name: 'Add an OpenID provider' })
  await drawer.getByLabel('Name').fill('acme')
  await drawer.getByLabel('Issuer').fill(oidc.issuer)
  await drawer.getByLabel('Client id').fill(oidcClient.id)
  await drawer.getByLabel('Client secret').fill('another secret')
  await drawer.getByRole('button', { name: 'Save', exact: true }).click()
  await drawer.waitFor({ state: 'detached' })
  await tile('Test acme').click()
  await page
    .getByRole('status')
    .getByText(/does not accept the client id/)
    .waitFor()
  await tile('Change acme').click()
  const again = page.getByRole('dialog', { name: 'Set up acme' })
  expect(await again.getByLabel('Issuer').inputValue()).toBe(oidc.issuer)
  expect(await again.getByLabel('Client secret').inputValue()).toBe('')
  await again.getByLabel('Client secret').fill(oidcClient.secret)
  await again.getByRole('button', { name: 'Save', exact: true }).click()
  await again.waitFor({ state: 'detached' })
  await tile('Test acme').click()
  await page.getByRole('status').getByText('acme accepts this client.').waitFor()
  expect((await project.admin.get('/oauth/providers')).data).toMatchObject([{ name: 'acme', has_secret: true }])
  expect(await violations(page)).toEqual([])
  await picture(page, 'settings-sign-in')
  await page.setViewportSize(phone)
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  await tile('Remove acme').click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click()
  await page.getByText('acme is removed.').waitFor()
  expect((await project.admin.get('/oauth/providers')).data).toEqual([])
})

test('a name that is set is not set again unseen, and the form says what becomes of the secret', async () => {
  const set = (name: string) =>
    project.admin.put(`/oauth/providers/${name}`, { issuer: oidc.issuer, client_id: 'kept', client_secret: 'a secret' })
  // a word of the language is a name as any other
  for (const name of ['acme', 'constructor']) expect((await set(name)).status).toBe(201)
  await page.reload()
  await tile('Change constructor').waitFor()
  await page.getByRole('button', { name: 'Add provider' }).click()
  const drawer = page.getByRole('dialog', { name: 'Add an OpenID provider' })
  await drawer.getByLabel('Issuer').fill(oidc.issuer)
  await drawer.getByLabel('Client id').fill('another')
  for (const [name, title] of [
    ['acme', 'acme'],
    [' google ', 'Google'],
  ] as const) {
    await drawer.getByLabel('Name').fill(name)
    await drawer.getByText(`${title} has a tile of its own`).waitFor()
    await drawer.getByRole('button', { name: 'Save', exact: true }).click()
  }
  expect((await project.admin.get('/oauth/providers')).data).toMatchObject([
    { client_id: 'kept' },
    { client_id: 'kept' },
  ])
  await drawer.getByRole('button', { name: 'Cancel' }).click()
  await drawer.waitFor({ state: 'detached' })

  await tile('Change acme').click()
  const change = page.getByRole('dialog', { name: 'Set up acme' })
  await change.getByText('Leave it empty to keep the one that is there').waitFor()
  await change.getByLabel('Issuer').fill(`${oidc.issuer}/`)
  await change.getByText('The one that is there was for the other issuer: enter the new one').waitFor()
  await change.getByLabel('Issuer').fill(oidc.issuer)
  await change.getByLabel('Remove the one that is there').check()
  expect(await change.getByLabel('Client secret').isDisabled()).toBe(true)
  await change.getByRole('button', { name: 'Save', exact: true }).click()
  await change.waitFor({ state: 'detached' })
  const { data } = await project.admin.get('/oauth/providers')
  expect(data).toMatchObject([
    { name: 'acme', has_secret: false },
    { name: 'constructor', has_secret: true },
  ])
})

test('its tab stands before that of what cannot be undone', async () => {
  const tabs = page.getByRole('link').filter({ hasText: /^(Promotion|Sign-in|Danger)$/ })
  expect(await tabs.allTextContents()).toEqual(['Promotion', 'Sign-in', 'Danger'])
})

test('Apple asks for its key', async () => {
  await tile('Set up Apple').click()
  const drawer = page.getByRole('dialog', { name: 'Set up Apple' })
  await drawer.getByLabel('Services ID').fill('com.example.app')
  await drawer.getByLabel('Team id').fill('TEAM')
  await drawer.getByLabel('Key id').fill('KEY')
  await drawer.getByLabel('Key, the text of the .p8 file').fill('no key')
  await drawer.getByRole('button', { name: 'Save', exact: true }).click()
  const told = drawer.getByText(/must be the text of the \.p8 file/)
  await told.waitFor()
  expect(await told.count()).toBe(1)
})

test('nothing of this broke the policy of the page, threw, or left the origin', () => {
  expect(complaints).toEqual([])
})
