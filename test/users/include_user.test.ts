// `include=user`: names beside ids, in every list that has it.
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project
const user = await project.user()
await user.patch('/client/users/me', { display_name: 'Ada', avatar_url: 'https://example.org/ada.png' })
const named = { id: user.id, display_name: 'Ada', avatar_url: 'https://example.org/ada.png' }

await admin.post('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'lesson' })
await admin.post('/currencies', { code: 'COIN', name: 'Coins' })
await admin.post('/currencies/transactions', {
  app_user_id: user.id,
  adjustments: [{ currency_code: 'COIN', amount: 5 }],
  reason: 'gift',
})
await admin.post('/xp/grant', { app_user_id: user.id, amount: 5 })
await project.sql(
  `insert into app.moderation_items (subject_type, subject_id, subject_user_id, snapshot, source)
   values ('message', gen_random_uuid(), $1, '{}', 'report'), ('message', gen_random_uuid(), null, '{}', 'report')`,
  [user.id],
)
await admin.post('/roles', { key: 'helper', name: 'Helper', permissions: [] })
await admin.post('/roles/helper/assignments', { app_user_id: user.id })
await admin.post('/events', { app_user_id: user.id, event_name: 'lesson' })
await admin.post('/moderation/trust', { app_user_id: user.id, trust_level: 'trusted' })
await admin.post('/catalog', { key: 'potion', name: 'Potion', item_type: 'consumable' })
await admin.post('/inventory/grant', { app_user_id: user.id, catalog_item_key: 'potion', reason: 'gift' })
await project.sql(
  `insert into app.subscriptions (app_user_id, source_ref, store, environment, period_type, purchase_date, last_event_at)
   values ($1, 'one', 'app_store', 'sandbox', 'normal', now(), now())`,
  [user.id],
)
await project.sql(
  `insert into app.ai_invocations (kind, provider, model, app_user_id, input_usd, output_usd, expires_at)
   values ('invoke', 'anthropic', 'one', $1, 0, 0, now()), ('invoke', 'anthropic', 'one', null, 0, 0, now())`,
  [user.id],
)
await project.sql(
  `insert into app.email_messages (app_user_id, to_address, subject, category, status)
   values ($1, 'ada@example.org', 'Hello', 'transactional', 'sent'), (null, 'b@example.org', 'Hello', 'transactional', 'sent')`,
  [user.id],
)
await project.sql('insert into app.app_sessions (app_user_id, started_at, last_seen_at) values ($1, now(), now())', [
  user.id,
])
const campaigns = await Promise.all(
  ['push', 'email'].map(async (channel) => {
    const [{ id }] = await project.sql(
      `insert into app.campaigns (channel, name, message, audience) values ($1, 'Sale', '{}', '{}') returning id`,
      [channel],
    )
    await project.sql(
      `insert into app.campaign_deliveries (queue_id, channel, campaign_id, app_user_id, status, due_at)
       values ($1, $2, $1, $3, 'sent', now())`,
      [id, channel, user.id],
    )
    return `/${channel}/campaigns/${id}/deliveries`
  }),
)
const code = (await admin.post('/referrals', { code: 'SPRING-24' })).data
await project.sql(
  `insert into app.referral_claims (code_id, claimer_id, is_personal, reward_referrer, reward_referee)
   values ($1, $2, false, '{}', '{}')`,
  [code.id, user.id],
)

const lists = [
  ['/events', 'app_user_id'],
  ['/currencies/transactions', 'app_user_id'],
  ['/xp/transactions', 'app_user_id'],
  ['/roles/helper/assignments', 'app_user_id'],
  ['/streaks/daily/users', 'app_user_id'],
  ['/moderation/queue', 'subject_user_id'],
  ['/moderation/trust', 'app_user_id'],
  ['/inventory', 'app_user_id'],
  ['/inventory/ledger', 'app_user_id'],
  ['/subscriptions', 'app_user_id'],
  ['/subscriptions?status=active', 'app_user_id'],
  ['/ai/invocations', 'user_id'],
  ['/email/messages', 'user_id'],
  ['/sessions/list', 'app_user_id'],
  ...campaigns.map((path) => [path, 'app_user_id'] as const),
] as const

const withQuery = (path: string, query: string) => `${path}${path.includes('?') ? '&' : '?'}${query}`

test.each(lists)('%s', async (path, key) => {
  const plain = await admin.get(path)
  expect(plain.status, plain.text).toBe(200)
  const { body } = await admin.get(withQuery(path, 'include=user'))
  expect(body).toEqual({
    ...plain.body,
    data: plain.data.map((row: Record<string, unknown>) => ({ ...row, user: row[key] === user.id ? named : null })),
  })
  expect(body.data.filter((row: { user: object | null }) => row.user !== null).length).toBeGreaterThan(0)
  expectRefusal(await admin.get(withQuery(path, 'include=users')), 400, 'INVALID_INPUT', 'include')
})

test('a row of a user that is not there has null, and a page costs one query', async () => {
  const reply = async (rows: object[]) =>
    (
      await project.as(
        'app_admin',
        {},
        `select (internal.reply_with_users(internal.reply_cursor($1::json, 'next'), 'user')).body as body`,
        [JSON.stringify(rows)],
      )
    )[0].body
  expect(
    await reply([
      { n: 1, app_user_id: user.id },
      { n: 2, app_user_id: randomUUID() },
      { n: 3, app_user_id: null },
    ]),
  ).toEqual({
    data: [
      { n: 1, app_user_id: user.id, user: named },
      { n: 2, app_user_id: expect.any(String), user: null },
      { n: 3, app_user_id: null, user: null },
    ],
    pagination: { next_cursor: 'next', total: null },
  })
  expect((await reply([])).data).toEqual([])
})

test('claims of a code have who claimed it', async () => {
  const { data: plain } = await admin.get(`/referrals/${code.id}/stats`)
  const { data } = await admin.get(`/referrals/${code.id}/stats?include=user`)
  expect(data).toEqual({ ...plain, claims: plain.claims.map((claim: object) => ({ ...claim, user: named })) })
  expect(data.claims).toHaveLength(1)
  expectRefusal(await admin.get(`/referrals/${code.id}/stats?include=users`), 400, 'INVALID_INPUT', 'include')
})
