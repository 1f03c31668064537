// What one user has: devices, sessions, roles, segments.
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project
const [one, other] = [await project.user(), await project.user()]

const of = async (id: string, what: string, query = '') => {
  const answer = await admin.get(`/users/${id}/${what}${query}`)
  expect(answer.status, answer.text).toBe(200)
  return answer
}

test('devices for push, newest first, without their tokens', async () => {
  const token = `${'a'.repeat(40)}123456`
  expect((await one.post('/client/users/me/push-token', { token, platform: 'ios' })).status).toBe(200)
  await one.post('/client/users/me/push-token', { token: 'second-token', platform: 'android' })
  await other.post('/client/users/me/push-token', { token: 'of-another', platform: 'ios' })
  const { body, text } = await of(one.id, 'devices')
  expect(body).toMatchObject({
    data: [
      { platform: 'android', provider: 'fcm', is_active: true, token_end: '-token' },
      { platform: 'ios', provider: 'apns', is_active: true, token_end: '123456' },
    ],
    total: 2,
  })
  expect(text).not.toContain(token)
  expect((await of(one.id, 'devices', '?limit=1&offset=1')).data).toHaveLength(1)
})

test('sessions in the app, newest first, with their devices', async () => {
  await project.sql(
    `insert into app.app_sessions (app_user_id, started_at, last_seen_at, ended_at, end_reason, platform, device_model)
     values ($1, '2026-05-01T10:00:00Z', '2026-05-01T10:05:00Z', '2026-05-01T10:05:00Z', 'client', 'ios', 'iPhone17,3'),
            ($1, '2026-05-02T10:00:00Z', '2026-05-02T10:05:00Z', '2026-05-02T10:05:00Z', 'client', 'ios', null),
            ($2, '2026-05-03T10:00:00Z', '2026-05-03T10:05:00Z', '2026-05-03T10:05:00Z', 'client', 'ios', null)`,
    [one.id, other.id],
  )
  const { body } = await of(one.id, 'sessions')
  expect(body.total).toBe(2)
  expect(body.data).toMatchObject([
    { started_at: '2026-05-02T10:00:00.000Z', app_user_id: one.id, device_model: null },
    { started_at: '2026-05-01T10:00:00.000Z', duration_seconds: 300, device_model: 'iPhone17,3' },
  ])
})

test('roles that were given and have not ended', async () => {
  for (const key of ['helper', 'ended']) await admin.post('/roles', { key, name: key, permissions: [] })
  await admin.post('/roles', { key: 'all', name: 'All', permissions: [], is_default: true })
  for (const id of [one.id, other.id]) await admin.post('/roles/helper/assignments', { app_user_id: id })
  await admin.post('/roles/ended/assignments', { app_user_id: one.id })
  await project.sql(
    `update app.role_assignments a set expires_at = now() - interval '1 hour' from app.roles r where r.id = a.role_id and r.key = 'ended'`,
  )
  expect((await of(one.id, 'roles')).data).toEqual([
    {
      role_key: 'helper',
      role_name: 'helper',
      app_user_id: one.id,
      group_id: null,
      granted_by: expect.anything(),
      expires_at: null,
      created_at: expect.any(String),
    },
  ])
  expect((await of((await project.user()).id, 'roles')).data).toEqual([])
})

test('segments of which the user is a member, without those that are switched off', async () => {
  for (const key of ['first', 'off']) {
    expect((await admin.post('/segments', { key, name: key, kind: 'static' })).status).toBe(201)
    await admin.post(`/segments/${key}/members`, { user_ids: [one.id] })
  }
  await admin.patch('/segments/off', { is_active: false })
  expect((await of(one.id, 'segments')).data).toEqual([
    { id: expect.any(String), key: 'first', name: 'first', kind: 'static', entered_at: expect.any(String) },
  ])
  expect((await of(other.id, 'segments')).data).toEqual([])
})

test.each(['devices', 'sessions', 'roles', 'segments'])(
  '%s of nobody, or of another project, are refused',
  async (what) => {
    expectRefusal(await admin.get(`/users/${randomUUID()}/${what}`), 404, 'NOT_FOUND')
    expectRefusal(await admin.get(`/users/nobody/${what}`), 400, 'INVALID_ID')
    const elsewhere = await harness.project()
    expectRefusal(await elsewhere.admin.get(`/users/${one.id}/${what}`), 404, 'NOT_FOUND')
  },
)
