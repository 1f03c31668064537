import { expect, test } from 'vitest'
import type { User } from '#test/support/harness.ts'
import { type Defined, startStreaks } from '#test/support/streaks.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const { project, define } = await startStreaks()

/** A streak is being deleted: what others do to it meanwhile waits, and finds it gone. */
test.each<
  [string, (user: User, streak: Defined) => Promise<{ status: number; error?: any; data?: any }>, number, string?]
>([
  ['an event', (user, { event }) => user.post('/client/events', { event_name: event }), 201],
  ['qualifying', (user, { client }) => user.post(`${client}/qualify`), 404, 'STREAK_NOT_FOUND'],
  [
    'qualifying for a user',
    ({ id }, { admin }) => project.admin.post(`${admin}/users/${id}/qualify`),
    404,
    'STREAK_NOT_FOUND',
  ],
  [
    'a gift of freezes',
    ({ id }, { admin }) => project.admin.post(`${admin}/users/${id}/freezes`, { amount: 1 }),
    404,
    'STREAK_NOT_FOUND',
  ],
  ['other rules', (_, { admin }) => project.admin.patch(admin, { grace_hours: 3 }), 404, 'STREAK_NOT_FOUND'],
  ['deleting it, too', (_, { admin }) => project.admin.delete(admin), 404, 'STREAK_NOT_FOUND'],
])('%s while a streak is deleted', async (_name, act, status, code) => {
  const streak = await define()
  const user = await project.user()
  const deletion = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
  await deletion.query("select api.definition_delete('streak_definition', $1)", [streak.key])
  const acting = act(user, streak)
  await untilBlocked(project)
  await deletion.commit()
  const answer = await acting
  expect([answer.status, answer.error?.code]).toEqual([status, code])
  if (status === 201) expect(answer.data.effects).toEqual({})
  expect(await project.sql('select from app.user_streaks where app_user_id = $1', [user.id])).toEqual([])
})

test('a user who goes while their streak is qualified', async () => {
  const streak = await define()
  const user = await project.user()
  const deletion = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
  await deletion.query('select api.user_delete($1)', [user.id])
  const qualifying = user.post(`${streak.client}/qualify`)
  await untilBlocked(project)
  await deletion.commit()
  expect(await qualifying).toMatchObject({ status: 404, error: { code: 'STREAK_NOT_FOUND' } })
})

/** Events lock all of their users first, then streaks as they come to them: whoever locks a streak for all its users does, too. */
test.each<[string, (streak: Defined) => Promise<{ status: number }>]>([
  ['is deleted', ({ admin }) => project.admin.delete(admin)],
  ['gets other rules', ({ admin }) => project.admin.patch(admin, { grace_hours: 3 })],
])('no deadlock with events that move a streak while it %s', async (_name, act) => {
  const streak = await define()
  const [one, two, three] = [await project.user(), await project.user(), await project.user()]
  for (const user of [one, two]) await user.post('/client/events', { event_name: streak.event })
  const events = await openTransaction(project, 'app_server', { 'app.caller': 'server_key' })
  const send = (event_name: string, ...users: User[]) =>
    events.query('select api.events_post($1)', [
      JSON.stringify({ events: users.map(({ id }) => ({ event_name, app_user_id: id })) }),
    ])
  await send('of no streak', one, two, three)
  await send(streak.event, two)
  const acting = act(streak)
  await untilBlocked(project)
  await send(streak.event, one, three)
  await events.commit()
  expect((await acting).status).toBe(200)
})
