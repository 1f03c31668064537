import { expect, test } from 'vitest'
import { type Answer, startHarness, type User } from '#test/support/harness.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project
let made = 0

const flag = async () => {
  made += 1
  const { status, data, text } = await admin.post('/flags', { key: `flag-${made}` })
  expect(status, text).toBe(201)
  return data as { id: string; key: string }
}
const administrator = () => openTransaction(project, 'app_admin', { 'app.caller': 'developer' })

test.each<[string, (user: User, key: string) => Promise<Answer>, number, string?]>([
  ['ask for a flag', (user, key) => user.get(`/client/flags/${key}`), 200],
  ['ask for all flags', (user) => user.get('/client/flags'), 200],
  ['ask by attributes', (user) => user.post('/client/flags/evaluate', { attributes: {} }), 200],
])('a user who goes while they %s is answered, and not counted', async (_name, act, status) => {
  const { key } = await flag()
  const user = await project.user()
  const deletion = await administrator()
  await deletion.query('select api.user_delete($1)', [user.id])
  const answer = await act(user, key)
  await deletion.commit()
  expect(answer.status, answer.text).toBe(status)
  expect(await project.sql('select from app.flag_evaluations')).toEqual([])
})

test('a user who goes while they get an override', async () => {
  const { id, key } = await flag()
  const user = await project.user()
  const deletion = await administrator()
  await deletion.query('select api.user_delete($1)', [user.id])
  const putting = admin.put(`/flags/${key}/overrides`, { [user.id]: true })
  await untilBlocked(project)
  await deletion.commit()
  expect(await putting).toMatchObject({ status: 400, error: { code: 'VALIDATION_ERROR', details: { field: user.id } } })
  expect(await project.sql('select from app.flag_overrides where flag_id = $1', [id])).toEqual([])
})

test.each<[string, (key: string, user: User) => Promise<Answer>]>([
  ['is changed', (key) => admin.patch(`/flags/${key}`, { default_value: true })],
  ['is switched off', (key) => admin.post(`/flags/${key}/toggle`, { is_enabled: false })],
  ['gets an override', (key, { id }) => admin.put(`/flags/${key}/overrides`, { [id]: true })],
  ['is raised', (key) => admin.post(`/flags/${key}/ramp`, { from: 1, to: 50, step: 10, every_hours: 1 })],
  ['is made what it was', (key) => admin.post(`/flags/${key}/revert`, { version: 1 })],
  ['is deleted, too,', (key) => admin.delete(`/flags/${key}`)],
])('a flag that %s while it is deleted', async (_name, act) => {
  const { key } = await flag()
  const user = await project.user()
  const deletion = await administrator()
  await deletion.query("select api.definition_delete('flag', $1)", [key])
  const acting = act(key, user)
  await untilBlocked(project)
  await deletion.commit()
  expect(await acting).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
})

test('overrides wait for a change of another flag, which has the one hash, and are written then', async () => {
  const [one, two] = [await flag(), await flag()]
  const user = await project.user()
  const changing = await administrator()
  await changing.query('select api.flag_toggle($1, false)', [two.key])
  const putting = admin.put(`/flags/${one.key}/overrides`, { [user.id]: true })
  await untilBlocked(project)
  // a write that does not concern this hash waits for neither
  expect((await admin.post('/config', { key: 'beside', value: 1 })).status).toBe(201)
  await changing.commit()
  expect((await putting).status).toBe(200)
})

test('no deadlock of counting with the deletion of a user who was answered', async () => {
  const { key } = await flag()
  const [user, other] = [await project.user(), await project.user()]
  for (const who of [user, other])
    await project.sql(
      `insert into app.flag_evaluations (app_user_id, notes)
       select $1, jsonb_build_array(jsonb_build_array(f.id, false, null, 1)) from app.flags f where f.key = $2`,
      [who.id, key],
    )
  await admin.post('/catalog', { key: 'hat', name: 'Hat', item_type: 'durable' })
  await admin.post('/inventory/grant', { app_user_id: user.id, catalog_item_key: 'hat', reason: 'gift' })
  // the deletion reaches this row after it has locked the user and before it reaches the counted evaluations
  const marking = await openTransaction(project, 'app_user', { 'app.caller': 'user', 'app.user_id': user.id })
  await marking.query(`select api.inventory_patch('hat', '{"user": {"worn": true}}')`)
  const deleting = admin.delete(`/users/${user.id}`)
  await untilBlocked(project)
  const counting = admin.get(`/flags/${key}/stats`)
  await untilBlocked(project, 2)
  await marking.commit()
  expect((await deleting).status).toBe(200)
  expect(await counting).toMatchObject({ status: 200, data: { evaluations: 1, users: 1 } })
})
