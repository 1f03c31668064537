import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { sealControl } from '#workers/seal.ts'

const harness = await startHarness()
const project = await harness.project()

const trail = (sql = project.sql) => sql('select * from app.audit_events order by position')
const newest = async () => (await trail()).at(-1)
/** The first seal whose hash, or whose row's digest, is not what it must be. */
const broken = async (sql = project.sql) =>
  (
    await sql(`
      select c.event_id
        from (select s.*, internal.audit_seal_hash(coalesce(lag(s.hash) over (partition by s.scope order by s.position), ''), s) as must from app.audit_seals s) c
        left join app.audit_events e on e.id = c.event_id and e.occurred_at = c.occurred_at
       where (c.hash = c.must and c.digest = internal.audit_digest(e)) is not true
       order by c.position limit 1`)
  )[0]

describe('the audit trail', () => {
  test('has who changed what, from where, and from what to what', async () => {
    harness.setTime('2026-11-21T10:00:00Z')
    const own = { 'x-request-id': 'request-1', 'user-agent': 'console/1', 'x-forwarded-for': '10.1.2.3' }
    const fields = { event_name: 'paid', target_url: 'https://1.1.1.1/a', description: 'mine' }
    const { data } = await project.admin.post('/webhooks', fields, own)
    harness.setTime(null)
    expect(await newest()).toMatchObject({
      occurred_at: new Date('2026-11-21T10:00:00Z'),
      actor: { type: 'developer', id: project.developer.id, label: null },
      action: 'webhooks.create',
      target_type: 'webhooks',
      target_id: data.id,
      changes: {
        event_name: [null, 'paid'],
        target_url: [null, 'https://1.1.1.1/a'],
        description: [null, 'mine'],
        secret_id: ['[redacted]', '[redacted]'],
      },
      ip: '10.1.2.3',
      user_agent: 'console/1',
      request_id: 'request-1',
    })
    await project.admin.delete(`/webhooks/${data.id}`)
    const gone = await newest()
    expect(gone).toMatchObject({ action: 'webhooks.delete', target_id: data.id })
    expect(gone.changes).toMatchObject({ event_name: ['paid', null] })
  })

  test('names a change of a secret without the secret, also sealed', async () => {
    await project.admin.post('/integrations', { provider: 'superwall', config: { api_key: 'first' } })
    expect(await newest()).toMatchObject({ action: 'integrations.create', changes: { provider: [null, 'superwall'] } })
    await project.admin.post('/integrations', { provider: 'superwall', config: { api_key: 'second' } })
    const changed = await newest()
    expect([changed.action, changed.changes]).toEqual([
      'integrations.update',
      { config_sealed: ['[redacted]', '[redacted]'] },
    ])
    const [{ config_sealed }] = await project.sql('select config_sealed from app.integrations')
    expect(JSON.stringify(await trail())).not.toContain(config_sealed)
  })

  const claims = { 'app.caller': 'developer', 'app.developer_id': project.developer.id }
  const change = (sql: string, id: string) => project.as('app_admin', claims, sql, [id])

  test('shows of an update only what it changed, and nothing of what changed nothing', async () => {
    const { data } = await project.admin.post('/webhooks', {
      event_name: 'ran',
      target_url: 'https://1.1.1.1/',
      description: 'a',
    })
    const before = (await trail()).length
    await change(`update app.webhooks set description = 'a', updated_at = now() where id = $1`, data.id)
    expect(await trail()).toHaveLength(before)
    await change(`update app.webhooks set description = 'b', updated_at = now() where id = $1`, data.id)
    expect(await newest()).toMatchObject({ action: 'webhooks.update', changes: { description: ['a', 'b'] } })
    expect(Object.keys((await newest()).changes)).toEqual(['description'])
  })

  test('is written with the change or not at all', async () => {
    const { data } = await project.admin.post('/webhooks', { event_name: 'ran', target_url: 'https://1.1.1.1/' })
    const before = (await trail()).length
    const undone = change(
      'with gone as (delete from app.webhooks where id = $1 returning 1) select 1 / (count(*) - 1) from gone',
      data.id,
    )
    await expect(undone).rejects.toThrow(/division/)
    expect(await trail()).toHaveLength(before)
  })

  test('is about administrators: what users, servers and workers do is not in it', async () => {
    const before = (await trail()).length
    const user = await project.user()
    await user.post('/client/events', { event_name: 'paid' })
    await project.server.post('/client/events', { event_name: 'paid', app_user_id: user.id })
    await project.drain()
    expect(await trail()).toHaveLength(before)
  })

  test('is one chain, also when twenty change at once; whatever is altered or taken out breaks it', async () => {
    await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        project.admin.post('/webhooks', { event_name: `chain_${n}`, target_url: 'https://1.1.1.1/' }),
      ),
    )
    await project.drain()
    const rows = await trail()
    expect(rows.length).toBeGreaterThanOrEqual(20)
    const [{ count }] = await project.sql('select count(*)::int from app.audit_seals')
    expect(count).toBe(rows.length)
    expect(await broken()).toBeUndefined()
    const victim = rows.at(-5)
    for (const change of [
      `update app.audit_events set changes = '{}' where id = '${victim.id}'`,
      `update app.audit_events set actor = '{"type": "system"}' where id = '${victim.id}'`,
      `update app.audit_events set ip = '1.1.1.1' where id = '${victim.id}'`,
      `update app.audit_events set occurred_at = occurred_at - interval '1 second' where id = '${victim.id}'`,
      // a text that moves from one column into the next
      `update app.audit_events set target_type = target_type || target_id, target_id = '' where id = '${victim.id}'`,
      `delete from app.audit_events where id = '${victim.id}'`,
    ]) {
      await project.sql('create table if not exists app.test_copies as select * from app.audit_events')
      await project.sql(change)
      expect(await broken(), change).toBeDefined()
      await project.sql('delete from app.audit_events; insert into app.audit_events select * from app.test_copies')
    }
    await project.sql('drop table app.test_copies')
    expect(await broken()).toBeUndefined()
  })

  test('its digest is the SHA-256 of the row as JSON, and its hash that of the one before and the seal', async () => {
    await project.drain()
    const [row] = await project.sql(`
      select s.digest, s.hash, lag(s.hash) over (order by s.position) as previous,
             json_build_array(e.id, e.scope, e.position, to_char(e.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                              e.actor, e.action, e.target_type, e.target_id, e.changes, e.ip, e.user_agent, e.request_id, e.status)::text
               as canonical,
             json_build_array(s.scope, s.position, s.event_id, to_char(s.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                              encode(s.digest, 'hex'), to_char(s.sealed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text as seal
        from app.audit_seals s join app.audit_events e on e.id = s.event_id order by s.position desc limit 1`)
    const sha256 = (...parts: (string | Buffer)[]) =>
      parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex')
    expect(sha256(row.canonical)).toBe(row.digest.toString('hex'))
    expect(sha256(row.previous, row.seal)).toBe(row.hash.toString('hex'))
  })

  test('can be read by administrators, and changed by nobody', async () => {
    expect((await project.as('app_admin', {}, 'select id from app.audit_events')).length).toBeGreaterThan(0)
    for (const role of ['app_anon', 'app_user', 'app_server', 'app_worker'] as const)
      await expect(project.as(role, {}, 'select from app.audit_events')).rejects.toThrow(/permission denied/)
    for (const change of [
      'delete from app.audit_events',
      `update app.audit_events set ip = ''`,
      `select internal.audit('a', 'b', 'c')`,
    ])
      await expect(project.as('app_admin', { 'app.caller': 'developer' }, change)).rejects.toThrow(/permission denied/)
  })
})

test('changes of projects and keys are in the trail of the control database, without what is secret', async () => {
  await project.developer.patch(`/admin/projects/${project.id}`, { name: 'renamed' })
  await project.developer.post(`/admin/projects/${project.id}/api-keys`, {
    key_type: 'client',
    environment: 'production',
  })
  const rows = await harness.control(
    `select action, changes from app.audit_events where actor ->> 'id' = $1 order by position desc limit 2`,
    [project.developer.id],
  )
  expect(rows[1]).toEqual({ action: 'projects.update', changes: { name: ['test', 'renamed'] } })
  expect(rows[0]).toMatchObject({ action: 'api_keys.create', changes: { key_hash: ['[redacted]', '[redacted]'] } })
  await sealControl(harness.running.services)
  expect(await broken(harness.control)).toBeUndefined()
  const hashes = await harness.control('select key_hash from app.api_keys')
  const whole = JSON.stringify(await trail(harness.control))
  for (const { key_hash } of hashes) expect(whole).not.toContain(key_hash)
})
