import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { fill, settled, startConsole } from '#test/support/console.ts'
import { leafWords } from '../../console/src/segments/leaf_words.ts'
import { newLeaf } from '../../console/src/segments/leaves.ts'
import { groupOf, placesOf, rulesOf } from '../../console/src/segments/rules.ts'

/** Users, segments, moderation and events in the console, by the jobs that people come for. */
const { project, signedIn, go, complaints, url } = await startConsole()
const filled = await fill(project, 60, 0)
const [first, second] = filled.users.slice(6, 8) as [(typeof filled.users)[number], (typeof filled.users)[number]]
const yesterday = new Date(Date.now() - 864e5)
await project.admin.post('/events', {
  event_name: 'recital_played',
  app_user_id: first.id,
  occurred_at: yesterday.toISOString(),
  properties: { piece: 'Waltz' },
})

const page = await signedIn()
const userOf = async (id: string) => (await project.admin.get(`/users/${id}`)).data
const balanceOf = async (id: string) => (await project.admin.get(`/users/${id}/balances`)).data['COINS']

/** Finds a user by the beginning of the mail, from the overview, by keys alone. */
const find = async (user: { readonly id: string; readonly email: string }, on: Page = page) => {
  await go(on, '')
  await on.keyboard.press('Control+k')
  await expect.poll(() => on.evaluate("document.activeElement?.getAttribute('aria-label')")).toBe('Search')
  await on.keyboard.type(user.email.slice(0, user.email.indexOf('@')))
  await on.keyboard.press('Enter')
  await on.waitForURL(`${url}/console/projects/${project.id}/users/${user.id}`)
  await settled(on)
}

test('the devices of a user, its sessions, roles and segments are on its page', async () => {
  await project.sql(`insert into app.push_tokens (app_user_id, token, platform) values ($1, 'a-token-abcdef', 'ios')`, [
    second.id,
  ])
  await project.sql(
    `insert into app.app_sessions (app_user_id, started_at, last_seen_at, ended_at, end_reason, platform, device_model)
     values ($1, now() - interval '1 hour', now(), now(), 'client', 'ios', 'iPhone17,3')`,
    [second.id],
  )
  await project.admin.post('/roles', { key: 'tutor', name: 'Tutor', permissions: [] })
  await project.admin.post('/roles/tutor/assignments', { app_user_id: second.id })
  await project.admin.post('/segments', { key: 'band', name: 'The band', kind: 'static' })
  await project.admin.post('/segments/band/members', { user_ids: [second.id] })
  await go(page, `users/${second.id}?tab=devices`)
  await page.getByRole('table', { name: 'Devices for push' }).getByText('…abcdef').waitFor()
  await page.getByRole('table', { name: 'Sessions in the app' }).getByText('iOS, iPhone17,3').waitFor()
  const facts = page.getByRole('complementary', { name: 'Facts' })
  await facts.getByText('Tutor').waitFor()
  await facts.getByText('The band').waitFor()
})

test('a rare event is known as seen also after the overview, which shows the most frequent ones', async () => {
  const often = Array.from({ length: 12 }, (_, n) => ({ event_name: `often_${n % 6}`, app_user_id: second.id }))
  for (const event of often) await project.admin.post('/events', event)
  const names = (await project.admin.get('/events/names?limit=100')).data as { event_name: string }[]
  expect(names.findIndex(({ event_name }) => event_name === 'recital_played')).toBeGreaterThan(5)
  await project.admin.put('/events/definitions/recital_played', { description: 'A recital' })
  await go(page, '')
  await page.getByRole('table', { name: 'Events of 30 days by name' }).waitFor()
  await go(page, 'event-definitions')
  await page.getByRole('table', { name: 'Events' }).getByText('A recital').waitFor()
  await settled(page)
  const unseen = page.getByRole('region', { name: 'Defined, and never seen' })
  expect(await unseen.getByText('recital_played').count()).toBe(0)
})

test('a user is found by mail, and what happened yesterday is there, without a click', async () => {
  await find(first)
  await page.getByRole('heading', { level: 1, name: first.display_name }).waitFor()
  const day = page.getByRole('region', { name: /^Yesterday/ })
  await day.getByText('recital_played').waitFor()
  expect(await day.textContent()).toContain('Waltz')
})

test('a ban takes two clicks, and Undo lifts it', async () => {
  await find(first)
  await page.getByRole('button', { name: 'Ban', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Ban', exact: true }).click()
  await page.getByText(`${first.display_name} is banned.`).waitFor()
  await page.getByRole('button', { name: 'Lift the ban' }).waitFor()
  expect((await userOf(first.id)).is_banned).toBe(true)
  await page.getByRole('button', { name: 'Undo' }).last().click()
  await page.getByRole('button', { name: 'Ban', exact: true }).waitFor()
  expect((await userOf(first.id)).is_banned).toBe(false)
})

test('100 coins take two clicks, stand beside every tab, and Undo takes them back', async () => {
  await find(second)
  const before = await balanceOf(second.id)
  await page.getByRole('button', { name: 'Give currency' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Give', exact: true }).click()
  await page.getByText(`+100 COINS for ${second.display_name}.`).waitFor()
  await expect
    .poll(() => page.getByRole('complementary', { name: 'Facts' }).textContent())
    .toContain(`COINS${before + 100}`)
  expect(await balanceOf(second.id)).toBe(before + 100)
  await page.getByRole('button', { name: 'Undo' }).last().click()
  await expect.poll(() => balanceOf(second.id)).toBe(before)
})

test('properties are rows: a new one is stored with its kind, and what is inside of others stays', async () => {
  const { properties } = await userOf(second.id)
  await go(page, `users/${second.id}`)
  await page.getByRole('button', { name: 'Edit the properties' }).click()
  const dialog = page.getByRole('dialog', { name: 'Properties' })
  await dialog.getByRole('button', { name: 'Add property' }).click()
  await dialog.getByPlaceholder('plan.tier').last().fill('plan.seats')
  await dialog.getByRole('combobox', { name: 'Kind of plan.seats' }).click()
  await page.getByRole('option', { name: 'number' }).click()
  await dialog.getByLabel('Value of plan.seats').fill('3')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByText('The properties are saved.').waitFor()
  expect((await userOf(second.id)).properties).toEqual({ ...properties, plan: { ...properties.plan, seats: 3 } })
})

test('the queue is worked by keys: Undo brings an item back, on any page, and closing the page sends the verdict', async () => {
  await go(page, 'moderation')
  const items = page.getByRole('list', { name: 'Items' }).getByRole('button')
  await items.first().waitFor()
  const count = await items.count()
  const name = (await items.nth(1).locator('.queue-text').textContent()) ?? ''
  await page.keyboard.press('j')
  await expect.poll(() => items.nth(1).getAttribute('aria-current')).toBe('true')
  await page.keyboard.press('r')
  await expect.poll(() => items.count()).toBe(count - 1)
  await page.getByRole('button', { name: 'Undo' }).last().click()
  await expect.poll(() => items.count()).toBe(count)
  expect((await project.admin.get('/moderation/queue?status=rejected')).data).toEqual([])
  // a note stays with its item
  const note = page.getByRole('textbox', { name: 'Note' })
  await note.fill('An advertisement')
  await page.getByRole('heading', { level: 1 }).click()
  await page.keyboard.press('k')
  expect(await note.inputValue()).toBe('')
  await page.keyboard.press('j')
  expect(await note.inputValue()).toBe('An advertisement')
  await page.keyboard.press('r')
  await expect.poll(() => items.count()).toBe(count - 1)
  await page.keyboard.press('Control+z')
  await expect.poll(() => items.count()).toBe(count)
  expect(await note.inputValue()).toBe('An advertisement')
  await note.fill('')
  await page.getByRole('heading', { level: 1 }).click()
  // what waits can be taken back on another page too
  await page.keyboard.press('a')
  await expect.poll(() => items.count()).toBe(count - 1)
  await page.getByRole('link', { name: 'Groups' }).click()
  await page.getByRole('heading', { level: 1, name: 'Groups' }).waitFor()
  await page.getByRole('button', { name: 'Undo' }).last().click()
  await page.getByText('Undone.').last().waitFor()
  await page.goBack()
  await expect.poll(() => items.count()).toBe(count)
  // a page that is closed sends it
  await page.keyboard.press('a')
  await expect.poll(() => items.count()).toBe(count - 1)
  expect((await project.admin.get('/moderation/queue?status=approved')).data).toEqual([])
  await page.reload()
  await expect.poll(async () => (await project.admin.get('/moderation/queue?status=approved')).data.length).toBe(1)
  expect(name).not.toBe('')
})

test('a verdict is sent after its time: Undo goes with it, and the item says that it is final', async () => {
  await go(page, 'moderation')
  const items = page.getByRole('list', { name: 'Items' }).getByRole('button')
  await items.first().waitFor()
  await page.getByText(/Reject replaces the name.*You have 10 seconds to take a verdict back/).waitFor()
  await page.getByRole('textbox', { name: 'Note' }).fill('Checked')
  await page.getByRole('button', { name: 'Reject', exact: true }).click()
  // the pointer on the notice would keep it open
  const undo = page.getByRole('button', { name: 'Undo' })
  await undo.last().hover()
  await undo.waitFor({ state: 'detached', timeout: 20_000 })
  await expect.poll(async () => (await project.admin.get('/moderation/queue?status=rejected')).data.length).toBe(1)
  await page.getByText('Rejected', { exact: true }).first().click()
  const item = page.getByRole('article')
  await item.getByText('This verdict is final.').waitFor()
  expect(await item.textContent()).toContain('Checked')
  expect(await item.getByRole('button').count()).toBe(0)
})

test('a rule is made, tried, switched off and deleted, and Undo brings it back', async () => {
  await go(page, 'moderation-rules/new')
  await page.getByRole('textbox', { name: 'Name' }).fill('No links')
  await page.getByRole('combobox', { name: 'What it catches' }).click()
  await page.getByRole('option', { name: 'Links' }).click()
  await page.getByText('Refuse it', { exact: true }).click()
  await page.getByRole('button', { name: 'Create rule' }).click()
  await page.getByRole('heading', { level: 1, name: 'No links' }).waitFor()
  await page.getByRole('textbox', { name: 'Text' }).fill('Visit https://casino.example')
  await page.getByText('caught', { exact: true }).waitFor()
  await page.getByRole('textbox', { name: 'Text' }).fill('Nothing to see')
  await page.getByText('let through', { exact: true }).waitFor()
  const found = async () => {
    const { data } = await project.admin.get('/moderation/rules')
    return (data as { name: string; is_active: boolean }[]).find((rule) => rule.name === 'No links')
  }
  await page.getByRole('switch', { name: 'No links is on' }).locator('..').click()
  await expect.poll(async () => (await found())?.is_active).toBe(false)
  await page.getByRole('button', { name: 'Delete', exact: true }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete rule' }).click()
  await page.getByRole('heading', { level: 1, name: 'Moderation rules' }).waitFor()
  expect(await found()).toBeUndefined()
  await page.getByRole('button', { name: 'Undo' }).last().click()
  await page.getByRole('table', { name: 'Rules' }).getByText('No links').waitFor()
  expect(await found()).toMatchObject({ rule_type: 'link', config: { action: 'block' }, is_active: false })
})

test('a segment is built from rows, says its size while one types, and has these members', async () => {
  await go(page, 'segments/new')
  await page.getByRole('textbox', { name: /^Name/ }).fill('Paying users')
  await page.locator('input[aria-label="Property 1"]').fill('plan.tier')
  await page.locator('input[aria-label="Value 1"]').fill('pro')
  const wanted = filled.users.length
  const size = page.getByRole('complementary', { name: 'Who matches now' })
  await expect.poll(() => size.textContent()).toMatch(new RegExp(`users, \\d+ % of ${wanted}`))
  const shown = Number(/(\d+)users/.exec((await size.textContent()) ?? '')?.[1])
  await page.getByRole('button', { name: `Create segment of ${shown} users` }).click()
  await page.getByRole('heading', { level: 1, name: 'Paying users' }).waitFor()
  const { data } = await project.admin.get('/segments/paying_users')
  expect(data.rules).toEqual({ and: [{ source: 'property', column: 'plan.tier', op: 'eq', value: 'pro' }] })
})

test('a sent event opens with what it moved', async () => {
  await go(page, 'events?send=yes')
  const drawer = page.getByRole('dialog', { name: 'Send an event' })
  await drawer.getByLabel('Event').fill('quiz_passed')
  await drawer.getByLabel('User').fill(second.email.slice(0, 8))
  await page.getByRole('option', { name: second.email }).click()
  await drawer.getByRole('button', { name: 'Send event' }).click()
  const moved = page.getByRole('dialog', { name: 'Event', exact: true }).getByRole('region', { name: 'What it moved' })
  await moved
    .getByText(/^\+25 XP/)
    .first()
    .waitFor()
})

test('every condition that the builder begins with is one that the server takes, once it is whole', async () => {
  const keys: Readonly<Record<string, Record<string, unknown>>> = {
    property: { column: 'plan.tier', value: 'pro' },
    event: { event_name: 'quiz_passed' },
    streak: { key: 'daily' },
    currency: { key: 'COINS' },
    inventory: { key: 'potion' },
    achievement: { key: 'first-lesson' },
    role: { key: 'moderator' },
    entitlement: { entitlement_id: 'premium' },
    segment: { segment_id: filled.segment.id },
    user: {},
    level: {},
    xp: {},
  }
  for (const [source, more] of Object.entries(keys)) {
    const leaf = { ...newLeaf(source), ...more }
    const answer = await project.admin.post('/segments/preview', { rules: rulesOf({ join: 'and', items: [leaf] }) })
    expect(answer.status, `${source}: ${answer.text}`).toBe(200)
    expect(leafWords(leaf)).not.toMatch(/undefined|\[object/)
  }
})

test('rules come back from their rows as they were, and each condition has the place that the server names', async () => {
  const leaf = { source: 'level', op: 'gte', value: 3 }
  for (const rules of [{ and: [leaf, { or: [leaf, { not: leaf }] }] }, { not: { or: [leaf, leaf] } }, { or: [leaf] }])
    expect(rulesOf(groupOf(rules))).toEqual(rules)
  const rules = { and: [leaf, { not: { or: [leaf, { source: 'streak', key: 'none', op: 'gte', value: 1 }] } }] }
  const [place] = placesOf(groupOf(rules)).at(-1) ?? []
  const refused = await project.admin.post('/segments/preview', { rules })
  expect(refused.text).toContain(`${place}.key`)
})

test('nothing of this broke the policy of the page, threw, or left the origin', () => {
  expect(complaints).toEqual([])
})
