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

const lists = [
  ['/events', 'app_user_id'],
  ['/currencies/transactions', 'app_user_id'],
  ['/xp/transactions', 'app_user_id'],
  ['/roles/helper/assignments', 'app_user_id'],
  ['/streaks/daily/users', 'app_user_id'],
  ['/moderation/queue', 'subject_user_id'],
] as const

test.each(lists)('%s', async (path, key) => {
  const plain = await admin.get(path)
  expect(plain.status, plain.text).toBe(200)
  const { body } = await admin.get(`${path}?include=user`)
  expect(body).toEqual({
    ...plain.body,
    data: plain.data.map((row: Record<string, unknown>) => ({ ...row, user: row[key] === user.id ? named : null })),
  })
  expect(body.data.filter((row: { user: object | null }) => row.user !== null).length).toBeGreaterThan(0)
  expectRefusal(await admin.get(`${path}?include=users`), 400, 'INVALID_INPUT', 'include')
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
