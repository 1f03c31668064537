import { expect, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
await project.admin.post('/currencies', { code: 'GOLD', name: 'Gold', client_spendable: true })
await project.admin.post('/catalog', { key: 'potion', name: 'Potion', item_type: 'consumable' })
await project.admin.post('/catalog', {
  key: 'chest',
  name: 'Chest',
  item_type: 'bundle',
  bundle_contents: [{ content_item_key: 'potion', quantity: 3 }],
})

let count = 0
const promo = async (reward_referee: object) => {
  count += 1
  const answer = await project.admin.post('/referrals', { code: `PROMO-${count}`, reward_referee })
  expect(answer.status, answer.text).toBe(201)
  return answer.data.code as string
}
const claim = async (user: User, code: string) => {
  const answer = await user.post('/client/referrals/claim', { code })
  expect(answer.status, answer.text).toBe(201)
}
const merge = async (survivor: User, guest: User) => {
  const answer = await survivor.post('/client/auth/merge', { from_session_token: guest.sessionToken })
  expect(answer.status, answer.text).toBe(200)
}
const gold = async (user: User) =>
  (await user.get('/client/currencies')).data.find(({ code }: { code: string }) => code === 'GOLD').balance
const potions = async (user: User) =>
  (await user.get('/client/inventory')).data.reduce((sum: number, stack: any) => sum + stack.quantity, 0)

test('a reward that both of two users hold is theirs once when they become one, however many guests follow', async () => {
  const code = await promo({
    xp: 10,
    currencies: [
      { currency_code: 'GOLD', amount: 500 },
      { currency_code: 'GOLD', amount: 5 },
    ],
    items: [{ catalog_item_key: 'potion', quantity: 2 }],
  })
  const other = await promo({
    currencies: [{ currency_code: 'GOLD', amount: 7 }],
    items: [{ catalog_item_key: 'potion' }],
  })
  const me = await project.user()
  for (let round = 0; round < 3; round += 1) {
    const guest = await project.user()
    await claim(guest, code)
    if (round === 1) await claim(guest, other)
    await merge(me, guest)
    expect([await gold(me), await potions(me)]).toEqual(round === 0 ? [505, 2] : [512, 3])
  }
  expect((await me.get('/client/xp')).data.total).toBe(10)
})

test('nor does it come twice by way of a guest who had become one with another', async () => {
  const code = await promo({
    xp: 10,
    currencies: [{ currency_code: 'GOLD', amount: 500 }],
    items: [{ catalog_item_key: 'chest', quantity: 2 }],
  })
  const [me, guest, first] = [await project.user(), await project.user(), await project.user()]
  for (const who of [me, first]) await claim(who, code)
  await merge(guest, first)
  expect([await gold(guest), await potions(guest)]).toEqual([500, 6])
  await merge(me, guest)
  expect([await gold(me), await potions(me)]).toEqual([500, 6])
  expect((await me.get('/client/xp')).data.total).toBe(10)
})

test('nor in the form of what its items gave when they were used up', async () => {
  const use_effect = { xp: 3, currencies: [{ currency_code: 'GOLD', amount: 20 }] }
  await project.admin.post('/catalog', { key: 'pouch', name: 'Pouch', item_type: 'consumable', use_effect })
  const code = await promo({ items: [{ catalog_item_key: 'pouch', quantity: 2 }] })
  const me = await project.user()
  const has = async () => [await gold(me), (await me.get('/client/xp')).data.total, await potions(me)]
  const use = async (who: User, quantity: number) =>
    expect((await who.post('/client/inventory/pouch/consume', { quantity })).status).toBe(200)
  await claim(me, code)
  await use(me, 1)
  expect(await has()).toEqual([20, 3, 1])
  for (const quantity of [2, 1]) {
    const [first, guest] = [await project.user(), await project.user()]
    await claim(first, code)
    await use(first, quantity)
    await merge(guest, first)
    await merge(me, guest)
    expect(await has()).toEqual([20, 3, 1])
  }
})

test('what a guest earned otherwise comes along beside it', async () => {
  const code = await promo({
    currencies: [{ currency_code: 'GOLD', amount: 5 }],
    items: [{ catalog_item_key: 'potion', quantity: 2 }],
  })
  const [me, guest] = [await project.user(), await project.user()]
  for (const who of [me, guest]) await claim(who, code)
  const given = { app_user_id: guest.id, reason: 'test' }
  await project.admin.post('/currencies/transactions', {
    ...given,
    adjustments: [{ currency_code: 'GOLD', amount: 40 }],
  })
  for (const more of [{}, { expires_at: '2099-01-01T00:00:00Z' }])
    await project.admin.post('/inventory/grant', { ...given, ...more, catalog_item_key: 'potion', quantity: 4 })
  await merge(me, guest)
  expect([await gold(me), await potions(me)]).toEqual([45, 10])
})

test('nor is a reward owed that an administrator has taken back from the guest', async () => {
  const code = await promo({ currencies: [{ currency_code: 'GOLD', amount: 100 }] })
  const [me, guest] = [await project.user(), await project.user()]
  for (const who of [me, guest]) await claim(who, code)
  const [{ id }] = (await guest.get('/client/currencies/GOLD/transactions')).data
  expect((await project.admin.post(`/currencies/transactions/${id}/reverse`)).status).toBe(201)
  await merge(me, guest)
  expect(await gold(me)).toBe(100)
})

test('what a guest spent of a reward that the survivor holds too is owed', async () => {
  const code = await promo({ currencies: [{ currency_code: 'GOLD', amount: 100 }] })
  const [me, guest] = [await project.user(), await project.user()]
  for (const who of [me, guest]) await claim(who, code)
  expect((await guest.post('/client/currencies/GOLD/spend', { amount: 30, reason: 'hint' })).status).toBe(201)
  await merge(me, guest)
  expect(await gold(me)).toBe(70)
})

test('a streak that guests invent again and again is paid once, and again after a reset', async () => {
  const reward = { xp: 5, currencies: [{ currency_code: 'GOLD', amount: 30 }] }
  const milestones = [{ count: 3, reward }]
  await project.admin.post('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'practised', milestones })
  const practise = async (user: User, days: number[]) => {
    const events = days.map((ago) => ({
      event_name: 'practised',
      occurred_at: new Date(harness.now().getTime() - ago * 86_400_000).toISOString(),
    }))
    expect((await user.post('/client/events', { events })).status).toBe(201)
  }
  const me = await project.user()
  const has = async () => [await gold(me), (await me.get('/client/xp')).data.total]
  await practise(me, [2, 1, 0])
  expect(await has()).toEqual([30, 5])
  for (const days of [
    [2, 1, 0],
    [3, 2, 1, 0],
    [2, 1, 0],
  ]) {
    const guest = await project.user()
    await practise(guest, days)
    expect(await gold(guest)).toBe(30)
    await merge(me, guest)
    expect(await has()).toEqual([30, 5])
  }
  // another chain is another milestone
  const guest = await project.user()
  await practise(guest, [16, 15, 14])
  await merge(me, guest)
  expect(await has()).toEqual([60, 10])
  await project.admin.delete(`/users/${me.id}/reset?sections=streaks`)
  await practise(me, [2, 1, 0])
  expect(await has()).toEqual([90, 15])
})

test('a user whose XP was reset is rewarded for levels again, in currencies and items too', async () => {
  const reward = {
    currencies: [{ currency_code: 'GOLD', amount: 50 }],
    items: [{ catalog_item_key: 'potion' }],
    entitlements: [{ entitlement_id: 'vip', duration_days: 3 }],
  }
  await project.admin.put('/xp/levels', {
    levels: [
      { level: 1, xp_required: 0 },
      { level: 2, xp_required: 100, reward },
    ],
  })
  const user = await project.user()
  const earn = () => project.admin.post('/xp/grant', { app_user_id: user.id, amount: 100, reason: 'test' })
  await earn()
  await earn()
  expect([await gold(user), await potions(user)]).toEqual([50, 1])
  expect((await project.admin.delete(`/users/${user.id}/reset?sections=xp`)).status).toBe(200)
  await earn()
  expect([await gold(user), await potions(user)]).toEqual([100, 2])
})
