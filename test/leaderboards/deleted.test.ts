import { describe, expect, test } from 'vitest'
import type { Answer } from '#test/support/harness.ts'
import { startLeaderboards } from '#test/support/leaderboards.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const { project, board, people, submit } = await startLeaderboards()
const { admin } = project
const [first, other] = (await people(2)) as [Someone, Someone]
type Someone = Awaited<ReturnType<typeof people>>[number]
type Board = Awaited<ReturnType<typeof board>>

const administrator = () => openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
const entries = ({ id }: Board) =>
  project.sql(
    `select e.score from app.leaderboard_runs r left join app.leaderboard_entries e on e.run_id = r.id where r.leaderboard_id = $1`,
    [id],
  )
const manual = () => board()
const watching = async () => {
  const made = await board()
  const source = { type: 'event', event_name: `moves ${made.key}` }
  expect((await admin.patch(`/leaderboards/${made.key}`, { source })).status).toBe(200)
  return made
}
const ofXp = () => board({ source: { type: 'xp' } })
const post = (who: Someone, { key }: Board) => who.post('/client/events', { event_name: `moves ${key}` })
const award = ({ id }: Someone) => admin.post('/xp/grant', { app_user_id: id, amount: 5 })
const score = (who: Someone, { key }: Board) => who.post(`/client/leaderboards/${key}/scores`, { score: 5 })
const put = ({ id }: Someone, { key }: Board) => admin.put(`/leaderboards/${key}/entries/${id}`, { score: 5 })
const take = ({ id }: Someone, { key }: Board) => admin.delete(`/leaderboards/${key}/entries/${id}`)
const bring = ({ id }: Someone, { key }: Board) =>
  admin.post(`/leaderboards/${key}/entries/import`, { entries: [{ app_user_id: id, score: 5 }] })
const close = (_: Someone, { key }: Board) => admin.post(`/leaderboards/${key}/close-run`)
const change =
  (fields: object) =>
  (_: Someone, { key }: Board) =>
    admin.patch(`/leaderboards/${key}`, fields)
const remove = (_: Someone, { key }: Board) => admin.delete(`/leaderboards/${key}`)

type Act = (who: Someone, board: Board) => Promise<Answer>
type Case = [string, () => Promise<Board>, Act, number, string?]

const cases: Case[] = [
  ['an event', watching, post, 201],
  ['an award of XP', ofXp, award, 201],
  ['a score', manual, score, 404, 'NOT_FOUND'],
  ['an entry that is set', manual, put, 404, 'NOT_FOUND'],
  ['an import', manual, bring, 404, 'NOT_FOUND'],
  ['other words', manual, change({ name: 'Other' }), 404, 'NOT_FOUND'],
  ['other rules', manual, change({ scoring: 'sum' }), 404, 'NOT_FOUND'],
  ['deleting it, too', manual, remove, 404, 'NOT_FOUND'],
]

/** A board is being deleted: what others do to it meanwhile waits, and finds it gone. */
describe.each([
  ['that nobody is on', async (_: Board) => undefined],
  ['that another is on', async (made: Board) => void (await bring(other, made))],
  ['that they are on', async (made: Board) => void (await bring(first, made))],
])('a board %s is deleted', (_where, begin) => {
  test.each(cases)('%s meanwhile', async (_name, make, act, status, code) => {
    const made = await make()
    await begin(made)
    const deletion = await administrator()
    await deletion.query("select api.definition_delete('leaderboard', $1)", [made.key])
    const acting = act(first, made)
    await untilBlocked(project)
    await deletion.commit()
    const answer = await acting
    expect([answer.status, answer.error?.code], answer.text).toEqual([status, code])
    if (status === 201) expect(answer.data.effects?.leaderboards).toBeUndefined()
    expect(await project.sql('select from app.leaderboard_runs where leaderboard_id = $1', [made.id])).toEqual([])
  })
})

test.each<[string, Act]>([
  ['an entry that is taken away', take],
  ['a run that is closed', close],
])('%s while its board is deleted', async (_name, act) => {
  const made = await manual()
  await bring(first, made)
  const deletion = await administrator()
  await deletion.query("select api.definition_delete('leaderboard', $1)", [made.key])
  const acting = act(first, made)
  await untilBlocked(project)
  await deletion.commit()
  expect(await acting).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
})

test.each<[string, string, (made: Board) => unknown[]]>([
  ['turned', 'select api.leaderboard_rollover($1, 100)', ({ id }) => [id]],
  ['rebuilt', 'select api.leaderboard_rebuild_step(gen_random_uuid(), $1, 100)', ({ id }) => [id]],
])('a board that is %s while it is deleted', async (_name, statement, values) => {
  const made = await watching()
  const deletion = await administrator()
  await deletion.query("select api.definition_delete('leaderboard', $1)", [made.key])
  const working = project.as('app_worker', { 'app.caller': 'worker' }, statement, values(made))
  await untilBlocked(project)
  await deletion.commit()
  expect(await working).toHaveLength(1)
})

test('whoever has the first score while the rules change keeps it: the rules stay', async () => {
  const made = await manual()
  await bring(first, made)
  await take(first, made)
  const scoring = await openTransaction(project, 'app_user', {
    'app.caller': 'server_key_user',
    'app.user_id': first.id,
  })
  await scoring.query('select api.leaderboard_submit($1, 7)', [made.key])
  const changing = admin.patch(`/leaderboards/${made.key}`, { scoring: 'sum' })
  await untilBlocked(project)
  await scoring.commit()
  expect(await changing).toMatchObject({ status: 409, error: { code: 'LEADERBOARD_IMMUTABLE' } })
  expect(await entries(made)).toEqual([{ score: '7' }])
})

test('a score that arrives while the rules change is refused with that reason', async () => {
  const made = await manual()
  await bring(first, made)
  await take(first, made)
  const changing = await administrator()
  await changing.query("select api.definition_update('leaderboard', $1, $2)", [made.key, { scoring: 'sum' }])
  const scoring = score(first, made)
  await untilBlocked(project)
  await changing.commit()
  expect(await scoring).toMatchObject({ status: 409, error: { code: 'LEADERBOARD_NOT_ACTIVE' } })
  await submit(first, made.key, 3)
})

/** Events lock all of their users first, then move entries, then look for runs: whoever deletes these locks the users first, too. */
test('no deadlock with events that move a board while it is deleted', async () => {
  const made = await watching()
  const [one, two, three] = (await people(3)) as [Someone, Someone, Someone]
  for (const who of [one, two]) await post(who, made)
  const events = await openTransaction(project, 'app_server', { 'app.caller': 'server_key' })
  const send = (event_name: string, ...users: Someone[]) =>
    events.query('select api.events_post($1)', [
      JSON.stringify({ events: users.map(({ id }) => ({ event_name, app_user_id: id })) }),
    ])
  await send('of no board', one, two, three)
  await send(`moves ${made.key}`, two)
  const deleting = admin.delete(`/leaderboards/${made.key}`)
  await untilBlocked(project)
  await send(`moves ${made.key}`, one, three)
  await events.commit()
  expect((await deleting).status).toBe(200)
  expect(await entries(made)).toEqual([])
})

test('whoever becomes somebody else while an old run of theirs goes', async () => {
  const made = await manual()
  const [guest, survivor] = [await project.user(), await project.user()]
  await guest.post(`/client/leaderboards/${made.key}/scores`, { score: 5 })
  await project.sql(
    `update app.leaderboard_runs set state = 'doomed', closed_at = internal.now(), fence = '3' where leaderboard_id = $1`,
    [made.id],
  )
  const sweeping = await openTransaction(project, 'app_worker', { 'app.caller': 'worker' })
  await sweeping.query('select api.leaderboard_rollover($1, 100)', [made.id])
  const merging = survivor.post('/client/auth/merge', { from_session_token: guest.sessionToken })
  await untilBlocked(project)
  await sweeping.commit()
  expect((await merging).status).toBe(200)
  expect(await entries(made)).toEqual([{ score: null }])
})
