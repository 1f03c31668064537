import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Answer, startHarness, type User } from '#test/support/harness.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project
let made = 0

const make = async (path: string, body: object) => {
  const answer = await admin.post(path, body)
  expect(answer.status, answer.text).toBe(201)
  return answer.data
}
const administrator = () => openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
const asWorker = (statement: string, values: unknown[]) =>
  project.as('app_worker', { 'app.caller': 'worker' }, statement, values)

/** Runs `act`, which concerns a definition or its user, while a transaction that deletes the definition is open; then commits the deletion. */
const meanwhile = async <T>(statement: string, id: string, act: () => Promise<T>): Promise<T> => {
  const deletion = await administrator()
  await deletion.query(`select api.${statement}`, [id])
  const acting = act()
  await untilBlocked(project)
  await deletion.commit()
  return acting
}

const currency = () => make('/currencies', { code: `C${made}`, name: 'Coins', client_spendable: true })
const item = () => make('/catalog', { key: `item-${made}`, name: 'Hat', item_type: 'durable' })
const priced = (code: string) => ({
  ...{ key: `priced-${made}`, name: 'Hat', item_type: 'durable' },
  prices: [{ currency_code: code, price: 1 }],
})
const rule = () => make('/xp/rules', { key: `rule-${made}`, name: 'Rule', event_name: `event ${made}`, amount: 5 })
const boost = () => make('/xp/boosts', { name: `Boost ${made}`, multiplier: 2 })
const code = () => make('/referrals', { code: `CODE${made}` })
const segment = () => make('/segments', { key: `segment-${made}`, name: 'Segment', kind: 'static' })
const flow = () =>
  make('/onboarding/flows', {
    name: `Flow ${made}`,
    steps: [
      { id: 'a', title: 'A' },
      { id: 'b', title: 'B' },
    ],
  })
const begun = async (user: User) => {
  const started = await flow()
  expect((await user.post(`/client/onboarding/${started.id}/start`)).status).toBe(201)
  return started
}

type Case = [
  string,
  { make: (user: User) => Promise<any>; deletes: string; id?: string },
  (found: any, user: User) => Promise<Answer>,
  number,
  string?,
]
const ofCurrency = { make: currency, deletes: "definition_delete('currency', $1)", id: 'code' }
const ofItem = { make: item, deletes: "definition_delete('catalog_item', $1)" }
const ofRule = { make: rule, deletes: "definition_delete('xp_rule', $1)" }
const ofBoost = { make: boost, deletes: "definition_delete('xp_boost', $1)" }
const ofCode = { make: code, deletes: "definition_delete('referral_code', $1)" }
const ofSegment = { make: segment, deletes: "definition_delete('segment', $1)" }
const ofFlow = { make: begun, deletes: "definition_delete('onboarding_flow', $1)" }
const coins = (currency_code: string) => [{ currency_code, amount: 1 }]

const cases: Case[] = [
  [
    'a currency that is spent',
    ofCurrency,
    (c, user) => user.post(`/client/currencies/${c.code}/spend`, { amount: 1, reason: 'hint' }),
    404,
    'NOT_FOUND',
  ],
  [
    'a currency that is given',
    ofCurrency,
    (c, { id }) =>
      admin.post('/currencies/transactions', { app_user_id: id, reason: 'gift', adjustments: coins(c.code) }),
    404,
    'NOT_FOUND',
  ],
  [
    'a currency that is changed',
    ofCurrency,
    (c) => admin.patch(`/currencies/${c.code}`, { name: 'Gems' }),
    404,
    'NOT_FOUND',
  ],
  ['a currency that is deleted, too', ofCurrency, (c) => admin.delete(`/currencies/${c.code}`), 404, 'NOT_FOUND'],
  [
    'a currency that an item gets a price in',
    ofCurrency,
    (c) => admin.post('/catalog', priced(c.code)),
    400,
    'VALIDATION_ERROR',
  ],
  [
    'an item that is given by a server',
    ofItem,
    (i, { id }) => project.onBehalfOf(id).post('/client/inventory/grant', { catalog_item_key: i.key }),
    404,
    'ITEM_NOT_FOUND',
  ],
  [
    'an item that is given by an administrator',
    ofItem,
    (i, { id }) => admin.post('/inventory/grant', { app_user_id: id, catalog_item_key: i.key, reason: 'gift' }),
    404,
    'ITEM_NOT_FOUND',
  ],
  ['a rule that is changed', ofRule, (r) => admin.patch(`/xp/rules/${r.id}`, { name: 'Other' }), 404, 'NOT_FOUND'],
  ['a rule that is deleted, too', ofRule, (r) => admin.delete(`/xp/rules/${r.id}`), 404, 'NOT_FOUND'],
  ['a boost that is changed', ofBoost, (b) => admin.patch(`/xp/boosts/${b.id}`, { multiplier: 3 }), 404, 'NOT_FOUND'],
  ['a boost that is deleted, too', ofBoost, (b) => admin.delete(`/xp/boosts/${b.id}`), 404, 'NOT_FOUND'],
  [
    'a code that is claimed',
    ofCode,
    (c, user) => user.post('/client/referrals/claim', { code: c.code }),
    404,
    'REFERRAL_NOT_FOUND',
  ],
  ['a code that is changed', ofCode, (c) => admin.patch(`/referrals/${c.id}`, { max_uses: 4 }), 404, 'NOT_FOUND'],
  ['a code that is deleted, too', ofCode, (c) => admin.delete(`/referrals/${c.id}`), 404, 'NOT_FOUND'],
  [
    'a segment that somebody is put into',
    ofSegment,
    (s, { id }) => admin.post(`/segments/${s.id}/members`, { user_ids: [id] }),
    404,
    'NOT_FOUND',
  ],
  [
    'a segment that a boost names',
    ofSegment,
    (s) => admin.post('/xp/boosts', { name: `For ${s.key}`, multiplier: 2, segment_id: s.id }),
    400,
    'VALIDATION_ERROR',
  ],
  ['a flow that is started', ofFlow, (f, user) => user.post(`/client/onboarding/${f.id}/start`), 404, 'NOT_FOUND'],
  [
    'a flow that somebody goes on in',
    ofFlow,
    (f, user) => user.post(`/client/onboarding/${f.id}/advance`, { step_id: 'a' }),
    404,
    'NOT_FOUND',
  ],
  ['a flow that is left out', ofFlow, (f, user) => user.post(`/client/onboarding/${f.id}/skip`), 404, 'UPDATE_FAILED'],
  [
    'a flow that is completed',
    ofFlow,
    (f, user) => user.post(`/client/onboarding/${f.id}/complete`),
    404,
    'UPDATE_FAILED',
  ],
]

describe('while it is deleted', () => {
  test.each(cases)('%s', async (_name, of, act, status, code) => {
    made += 1
    const user = await project.user()
    const found = await of.make(user)
    const answer = await meanwhile(of.deletes, found[of.id ?? 'id'], () => act(found, user))
    expect([answer.status, answer.error?.code], answer.text).toEqual([status, code])
  })

  /** The reward is recorded with the parts that could not be given, and does not fail the action. */
  test.each([
    [
      'a currency',
      ofCurrency,
      (c: any) => ({ xp: 5, currencies: coins(c.code) }),
      { currencies: { given: false, currencies: [{ given: 0, reason: 'There is no such currency.' }] } },
    ],
    [
      'an item',
      ofItem,
      (i: any) => ({ xp: 5, items: [{ catalog_item_key: i.key }] }),
      { items: { given: false, items: [{ given: 0, reason: 'There is no such item.' }] } },
    ],
  ])('%s that is rewarded', async (_name, of: Case[1], reward, outcome) => {
    made += 1
    const user = await project.user()
    const found = await of.make(user)
    const { code } = await make('/referrals', { reward_referee: reward(found) })
    const claim = () => user.post('/client/referrals/claim', { code })
    expect((await meanwhile(of.deletes, found[of.id ?? 'id'], claim)).status).toBe(201)
    const [grant] = await project.sql('select outcome from app.reward_grants where app_user_id = $1', [user.id])
    expect(grant.outcome).toMatchObject({ xp: { given: 5 }, ...outcome })
  })

  test('a challenge that is counted, for the first time or further', async () => {
    for (const steps of [0, 1]) {
      made += 1
      const { id } = await make('/challenges', {
        ...{ name: `Challenge ${made}`, goal_type: 'event_count', event_name: 'ran', goal_value: 5 },
        ...{
          start_at: harness.now().toISOString(),
          end_at: new Date(harness.now().getTime() + 86_400_000).toISOString(),
        },
      })
      const step = () => asWorker('select (api.challenges_recount_step($1, $1, 1)).body as body', [id])
      for (let n = 0; n < steps; n += 1) expect((await step())[0].body.data).toMatchObject({ is_over: false })
      const [answer] = await meanwhile("definition_delete('challenge', $1)", id, step)
      expect(answer.body.data).toEqual({ done: 0, changed: 0, is_over: true })
    }
  })

  test('an achievement that is unlocked for who qualifies, for the first time or further', async () => {
    for (const steps of [0, 1]) {
      made += 1
      const { id } = await make('/achievements', {
        ...{ key: `achievement-${made}`, name: 'Achievement' },
        criteria: { type: 'event_count', event_name: 'ran', target_value: 1000 },
      })
      const step = () => asWorker('select (api.achievements_backfill_step($1, $1, true, 1)).body as body', [id])
      for (let n = 0; n < steps; n += 1) expect((await step())[0].body.data).toMatchObject({ is_over: false })
      const [answer] = await meanwhile("definition_delete('achievement', $1)", id, step)
      expect(answer.body.data).toEqual({ done: 0, unlocked: 0, is_over: true })
    }
  })

  test('a board that is rebuilt', async () => {
    made += 1
    const { id } = await make('/leaderboards', {
      ...{ key: `board-${made}`, name: 'Board', scoring: 'count', period: 'weekly' },
      source: { type: 'event', event_name: 'ran' },
    })
    const operation = randomUUID()
    const step = () => asWorker('select (api.leaderboard_rebuild_step($1, $2, 1)).body as body', [operation, id])
    const [answer] = await meanwhile("definition_delete('leaderboard', $1)", id, step)
    expect(answer.body.data).toMatchObject({ state: 'done', swapped: false })
  })

  test('a segment that is evaluated', async () => {
    made += 1
    const { id } = await make('/segments', {
      ...{ key: `segment-${made}`, name: 'Segment' },
      rules: { source: 'event', event_name: 'nothing', measure: 'count', op: 'gte', value: 1 },
    })
    const evaluating = () => asWorker('select (api.segments_refresh($1, 100)).body as body', [id])
    const [answer] = await meanwhile("definition_delete('segment', $1)", id, evaluating)
    expect(answer.body.data).toMatchObject({ moved: 0, is_over: true })
  })
})

test.each<[string, (code: string) => [string, unknown[]]]>([
  [
    'an item with a price',
    (code) => ["select api.definition_create('catalog_item', $1)", [JSON.stringify(priced(code))]],
  ],
  [
    'an import with a price',
    (code) => ['select api.catalog_import($1, dry_run => false)', [JSON.stringify([{ index: 0, item: priced(code) }])]],
  ],
])('the deletion of a currency waits for %s in it, and is refused', async (_name, statement) => {
  made += 1
  const { code } = await currency()
  const defining = await administrator()
  await defining.query(...statement(code))
  const deleting = admin.delete(`/currencies/${code}`)
  await untilBlocked(project)
  await defining.commit()
  expect(await deleting).toMatchObject({ status: 409, error: { code: 'CURRENCY_IN_USE' } })
})

test('a user who goes while they start a flow', async () => {
  made += 1
  const user = await project.user()
  const { id } = await flow()
  const answer = await meanwhile('user_delete($1)', user.id, () => user.post(`/client/onboarding/${id}/start`))
  expect(answer).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
})

describe('a user who goes', () => {
  const bought = (app_user_id: string, id: string) => ({
    ...{ id, type: 'INITIAL_PURCHASE', app_user_id, event_timestamp_ms: harness.now().getTime() },
    ...{ original_transaction_id: app_user_id, product_id: 'monthly', entitlement_ids: ['premium'] },
    ...{ store: 'APP_STORE', period_type: 'NORMAL', purchased_at_ms: harness.now().getTime() },
    expiration_at_ms: harness.now().getTime() + 86_400_000,
  })
  const ingest = async (app_user_id: string, id: string) => {
    const [{ outcome }] = await project.sql(
      `select internal.subscription_ingest($1) as outcome from set_config('app.caller', 'worker', true)`,
      [JSON.stringify(bought(app_user_id, id))],
    )
    return outcome as string
  }

  test('while a store sends what they bought', async () => {
    const { id } = await project.user()
    expect(await meanwhile('user_delete($1)', id, () => ingest(id, `first ${id}`))).toBe('unknown_user')
    expect(await project.sql('select outcome from app.subscription_events where id = $1', [`first ${id}`])).toEqual([
      { outcome: 'unknown_user' },
    ])
  })

  test('while a store sends another purchase', async () => {
    const { id } = await project.user()
    expect(await ingest(id, `first ${id}`)).toBe('applied')
    expect(await meanwhile('user_delete($1)', id, () => ingest(id, `second ${id}`))).toBe('unknown_user')
  })

  test('while what they bought is folded anew', async () => {
    const { id } = await project.user()
    expect(await ingest(id, `first ${id}`)).toBe('applied')
    const [subscription] = await project.sql('select id from app.subscriptions where app_user_id = $1', [id])
    const replaying = () => admin.post(`/subscriptions/${subscription.id}/replay?dry_run=false`)
    const answer = await meanwhile('user_delete($1)', id, replaying)
    expect(answer).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
  })
})

/** Lock order: events lock claimers first, then the codes that they claimed. The deletion of a code must do the same. */
test('no deadlock of the deletion of a code with events that its claims wait for', async () => {
  const defaults = await admin.patch('/referrals/defaults', { reward_referrer: { xp: 5 }, qualify_event: 'bought' })
  expect(defaults.status, defaults.text).toBe(200)
  const [owner, first, second] = [await project.user(), await project.user(), await project.user()]
  const { code } = (await owner.get('/client/referrals/me')).data
  for (const user of [first, second]) expect((await user.post('/client/referrals/claim', { code })).status).toBe(201)
  const [{ id }] = await project.sql('select id from app.referral_codes where app_user_id = $1', [owner.id])
  const events = await openTransaction(project, 'app_server', { 'app.caller': 'server_key' })
  const send = (event_name: string, ...users: User[]) =>
    events.query('select api.events_post($1)', [
      JSON.stringify({ events: users.map((user) => ({ event_name, app_user_id: user.id })) }),
    ])
  await send('looked', first, second)
  await send('bought', first)
  const deleting = admin.delete(`/referrals/${id}`)
  await untilBlocked(project)
  await send('bought', second)
  await events.commit()
  expect((await deleting).status).toBe(200)
  const claims = await project.sql(
    'select code_id, qualified_at is not null as is_qualified from app.referral_claims where referrer_id = $1',
    [owner.id],
  )
  expect(claims).toEqual([
    { code_id: null, is_qualified: true },
    { code_id: null, is_qualified: true },
  ])
})
