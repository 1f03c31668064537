import { expect, test } from 'vitest'
import { type Answer, startHarness, type User } from '#test/support/harness.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const day = 86_400_000
const from = (offset: number) => new Date(harness.now().getTime() + offset).toISOString()

/** What an event moves may be deleted at that moment: the event waits for it if it must, and is stored all the same. */
test.each<[string, string, object, string, string]>([
  [
    'an achievement that it unlocks',
    '/achievements',
    { key: 'first', name: 'First', criteria: { type: 'event_count', event_name: 'unlocks', target_value: 1 } },
    'achievement',
    'unlocks',
  ],
  [
    'a challenge that it joins',
    '/challenges',
    {
      ...{ name: 'Three', event_name: 'joins', goal_type: 'event_count', goal_value: 1 },
      ...{ start_at: from(-day), end_at: from(day) },
    },
    'challenge',
    'joins',
  ],
  [
    'a webhook that it is sent to',
    '/webhooks',
    { event_name: 'sent', target_url: 'https://1.1.1.1/' },
    'webhook',
    'sent',
  ],
])('while %s is deleted', async (_name, path, body, kind, event_name) => {
  const { status, data, text } = await project.admin.post(path, body)
  expect(status, text).toBe(201)
  const user = await project.user()
  const deletion = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
  await deletion.query('select api.definition_delete($1, $2)', [kind, data.id])
  const posting = user.post('/client/events', { event_name })
  await untilBlocked(project)
  await deletion.commit()
  const answer = await posting
  expect([answer.status, answer.data?.effects], answer.text).toEqual([201, {}])
  const emittedEvents = await project.sql(
    `select event_name from app.engagement_events where app_user_id = $1 and event_name ~ '^svc.(achievement|challenge)'`,
    [user.id],
  )
  expect(emittedEvents).toEqual([])
  expect(await project.sql('select from app.webhook_deliveries')).toEqual([])
})

test.each<[string, string, object, string, (id: string, user: User) => Promise<Answer>]>([
  [
    'a challenge',
    '/challenges',
    {
      ...{ name: 'Joined', event_name: 'nothing', goal_type: 'event_count', goal_value: 1 },
      ...{ start_at: from(-day), end_at: from(day) },
    },
    'challenge',
    (id, user) => user.post(`/client/challenges/${id}/join`),
  ],
  [
    'an achievement',
    '/achievements',
    { key: 'granted', name: 'Granted', criteria: { type: 'event_count', event_name: 'nothing', target_value: 1 } },
    'achievement',
    (id, user) => project.admin.post(`/achievements/${id}/grant`, { app_user_id: user.id }),
  ],
])('who joins or is granted %s while it is deleted finds nothing', async (_name, path, body, kind, act) => {
  const { status, data, text } = await project.admin.post(path, body)
  expect(status, text).toBe(201)
  const user = await project.user()
  const deletion = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
  await deletion.query('select api.definition_delete($1, $2)', [kind, data.id])
  const acting = act(data.id, user)
  await untilBlocked(project)
  await deletion.commit()
  expect(await acting).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
})

test('an event that is defined while its definition is deleted is new', async () => {
  const path = '/events/definitions/defined'
  expect((await project.admin.put(path)).status).toBe(201)
  const deletion = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
  await deletion.query("select api.definition_delete('event_definition', $1)", ['defined'])
  const defining = project.admin.put(path, { status: 'blocked' })
  await untilBlocked(project)
  await deletion.commit()
  expect(await defining).toMatchObject({ status: 201, data: { status: 'blocked' } })
})

/** Webhooks: whoever changes, asks about or sends a subscription that is being deleted finds none. */
test.each<[string, (id: string) => Promise<Answer>]>([
  ['changed', (id) => project.admin.patch(`/webhooks/${id}`, { status: 'disabled' })],
  ['given another secret', (id) => project.admin.post(`/webhooks/${id}/rotate-secret`)],
  ['deleted', (id) => project.admin.delete(`/webhooks/${id}`)],
])('a webhook that is %s while it is deleted is not there', async (_name, act) => {
  const { data } = await project.admin.post('/webhooks', { event_name: 'w', target_url: 'https://1.1.1.1/' })
  const deletion = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
  await deletion.query("select api.definition_delete('webhook', $1)", [data.id])
  const acting = act(data.id)
  await untilBlocked(project)
  await deletion.commit()
  expect(await acting).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
})

test('fifty events of one user at once are each counted once, in everything that they move', async () => {
  const event_name = 'rushed'
  const weekly = { period: 'weekly', source: { type: 'event', event_name }, scoring: 'count' }
  const made = [
    await project.admin.post('/xp/rules', { key: 'rushed', name: 'Rushed', event_name, amount: 7 }),
    await project.admin.post('/streaks', { key: 'rushed', name: 'Rushed', qualifying_event: event_name }),
    await project.admin.post('/leaderboards', { key: 'rushed', name: 'Rushed', ...weekly }),
    await project.admin.post('/challenges', {
      ...{ name: 'Rushed', event_name, goal_type: 'event_count', goal_value: 1000 },
      ...{ start_at: from(-day), end_at: from(day) },
    }),
  ]
  for (const { status, text } of made) expect(status, text).toBe(201)
  const [, streak, board, challenge] = made.map(({ data }) => data.id)
  const { id } = await project.user()
  const before = await project.server.post('/client/events', { event_name, app_user_id: id })
  expect(before.status).toBe(201)
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => project.server.post('/client/events', { event_name, app_user_id: id })),
  )
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
  // each answer shows the total of its own moment
  expect(new Set(answers.map(({ data }) => data.effects.xp.total)).size).toBe(50)
  const [stored] = await project.sql(
    `select (select t.total::int from app.xp_totals t where t.app_user_id = $1) as total,
            (select sum(l.amount)::int from app.xp_transactions l where l.app_user_id = $1) as ledger,
            (select max(l.total_after)::int from app.xp_transactions l where l.app_user_id = $1) as total_after,
            (select sum(p.count)::int from app.streak_periods p where (p.app_user_id, p.streak_definition_id) = ($1, $2)) as fed,
            (select e.score::int from app.leaderboard_entries e join app.leaderboard_runs r on r.id = e.run_id
              where e.app_user_id = $1 and r.leaderboard_id = $3) as score,
            (select p.progress::int from app.challenge_participants p where (p.app_user_id, p.challenge_id) = ($1, $4)) as progress`,
    [id, streak, board, challenge],
  )
  expect(stored).toEqual({ total: 357, ledger: 357, total_after: 357, fed: 51, score: 51, progress: 51 })
})

test('two administrators who define for one event at once see to it that both definitions work', async () => {
  const event_name = 'planned'
  const first = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
  await first.query(
    `select api.definition_create('xp_rule', '{"key": "planned-1", "name": "One", "event_name": "planned", "amount": 1}')`,
  )
  const second = project.admin.post('/xp/rules', { key: 'planned-2', name: 'Two', event_name, amount: 20 })
  await untilBlocked(project)
  // events do not wait for them
  const user = await project.user()
  expect((await user.post('/client/events', { event_name })).data.effects).toEqual({})
  await first.commit()
  expect((await second).status).toBe(201)
  expect((await user.post('/client/events', { event_name })).data.effects.xp).toMatchObject({ awarded: 21 })
})
