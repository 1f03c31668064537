import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startSegments, tier } from '#test/support/segments.ts'

const { harness, project, segmentOf, userWith, send, isIn, stored, eventsOf } = await startSegments()

describe('members', () => {
  test('go with their user and with their segment, and counters of events with the user, whoever deletes them', async () => {
    const own = await harness.project()
    const [a, b] = [await userWith({ tier: 'pro' }, own), await userWith({ tier: 'pro' }, own)]
    const segment = await segmentOf({ rules: tier('pro') }, own)
    await own.drain()
    const rows = async () =>
      own.sql(
        `select (select count(*)::int from app.segment_members) as members, (select count(distinct app_user_id)::int from app.user_event_counters) as counted,
                internal.segment_size($1)::int as size`,
        [segment.id],
      )
    expect(await rows()).toEqual([{ members: 2, counted: 2, size: 2 }])
    await own.sql('delete from app.users where id = $1', [a])
    expect(await rows()).toEqual([{ members: 1, counted: 1, size: 1 }])
    expect((await own.admin.delete(segment.path)).status).toBe(200)
    expect(await rows()).toEqual([{ members: 0, counted: 1, size: 0 }])
    await own.admin.delete(`/users/${b}`)
    expect(await rows()).toEqual([{ members: 0, counted: 0, size: 0 }])
  })

  test('are materialised every five minutes, emit each event once, are counted by day', async () => {
    harness.setTime('2026-12-10T23:50:00Z')
    const own = await harness.project()
    const [a, b] = [await userWith({ tier: 'pro' }, own), await userWith({ tier: 'free' }, own)]
    const segment = await segmentOf({ rules: tier('pro') }, own)
    await own.drain()
    expect(await stored(segment, own)).toEqual([a])
    expect((await own.admin.get(segment.path)).data).toMatchObject({
      member_count: 1,
      last_evaluated_at: '2026-12-10T23:50:00.000Z',
    })
    await own.sql(`update app.users set properties = '{"tier": "pro"}' where id = $1`, [b])
    await own.sql(`update app.users set properties = '{}' where id = $1`, [a])
    harness.advance(299)
    await own.drain()
    expect(await stored(segment, own)).toEqual([a])
    harness.advance(1)
    await own.drain()
    expect(await stored(segment, own)).toEqual([b])
    const list = await own.admin.get(`${segment.path}/members`)
    expect(list.body).toMatchObject({
      total: 1,
      data: [{ app_user_id: b, app_users: { id: b }, entered_at: '2026-12-10T23:55:00.000Z' }],
    })
    const eventsOf = await own.sql(
      `select event_name, app_user_id, properties from app.engagement_events where event_name like 'svc.segment.%' order by received_at, event_name`,
    )
    const properties = { segment_id: segment.id, key: segment.key, name: segment.name }
    expect(eventsOf).toEqual([
      { event_name: 'svc.segment.entered', app_user_id: a, properties },
      { event_name: 'svc.segment.entered', app_user_id: b, properties },
      { event_name: 'svc.segment.exited', app_user_id: a, properties },
    ])
    harness.setTime('2026-12-11T00:05:00Z')
    await own.sql(`update app.users set properties = '{"tier": "pro"}'`)
    expect(await own.admin.post(`${segment.path}/refresh`)).toMatchObject({
      status: 202,
      data: { segment_id: segment.id, status: 'queued' },
    })
    await own.drain()
    expect((await own.admin.get(`${segment.path}/history`)).data).toEqual([
      { day: '2026-12-10', member_count: 1 },
      { day: '2026-12-11', member_count: 2 },
    ])
    expect((await own.admin.get(`${segment.path}/history?days=1`)).data).toEqual([
      { day: '2026-12-11', member_count: 2 },
    ])
    expect((await own.admin.get(`${segment.path}/history?days=x`)).error?.code).toBe('INVALID_INPUT')
    // more than one batch
    await own.sql(
      `insert into app.users (display_name, properties) select 'U', '{"tier": "pro"}' from generate_series(1, 2100)`,
    )
    await own.admin.post(`${segment.path}/refresh`)
    await own.drain()
    expect(await stored(segment, own)).toHaveLength(2102)
    expect((await own.admin.get(segment.path)).data.member_count).toBe(2102)
  }, 180_000)

  test('enter at once when they do what a rule asks for, and only they are looked at', async () => {
    const [a, b] = [await userWith({}), await userWith({})]
    const name = `did ${randomUUID()}`
    const inner = await segmentOf({
      rules: { source: 'event', event_name: name, measure: 'count', op: 'gte', value: 2 },
    })
    const outer = await segmentOf({ rules: { source: 'segment', segment_id: inner.id, op: 'in' } })
    const rest = await segmentOf({
      rules: { and: [tier('x'), { not: { source: 'event', event_name: name, measure: 'count', op: 'eq', value: 0 } }] },
    })
    await send(a, name)
    expect(await eventsOf(a)).toEqual([])
    await send(a, name)
    expect(await eventsOf(a)).toEqual([`entered ${inner.key}`, `entered ${outer.key}`].sort())
    expect([await stored(inner), await stored(outer), await stored(rest)]).toEqual([[a], [a], []])
    await send(a, name)
    await send(b, 'something else')
    expect(await eventsOf(a)).toHaveLength(2)
    // who does something else is not looked at, whatever else is true by now
    await project.sql(`update app.users set properties = '{"tier": "x"}' where id in ($1, $2)`, [a, b])
    await send(b, 'something else')
    expect(await stored(rest)).toEqual([])
    // twenty at once enter once
    const c = await userWith({})
    await Promise.all(Array.from({ length: 20 }, () => send(c, name)))
    expect(await eventsOf(c)).toEqual([`entered ${inner.key}`, `entered ${outer.key}`].sort())
  })

  test('are never older than the user’s own last event, for configuration too', async () => {
    const user = await project.user()
    const name = `seen ${randomUUID()}`
    const segment = await segmentOf({
      rules: { source: 'event', event_name: name, measure: 'count', op: 'gte', value: 1 },
    })
    await project.admin.post('/config', {
      key: 'seen',
      value: 'no',
      conditions: [{ segment_id: segment.id, value: 'yes' }],
    })
    expect((await user.get('/client/config')).data.seen).toBe('no')
    await user.post('/client/events', { event_name: name })
    const now = await user.get('/client/config')
    expect(now.data.seen).toBe('yes')
    expect(now.headers.get('etag')).toContain(segment.id)
  })

  test('of a static segment are put in and taken out by hand', async () => {
    const segment = await segmentOf({ kind: 'static' })
    const [a, b] = [await userWith({}), await userWith({})]
    const nobody = randomUUID()
    const added = await project.admin.post(`${segment.path}/members`, { user_ids: [b, a, a, nobody] })
    expect(added).toMatchObject({ status: 200, data: { added: 2, unknown: [nobody] } })
    expect((await project.admin.post(`${segment.path}/members`, { user_ids: [a] })).data).toEqual({
      added: 0,
      unknown: [],
    })
    expect((await project.admin.get(segment.path)).data.member_count).toBe(2)
    expect(await isIn(segment, a)).toBe(true)
    expect((await project.admin.delete(`${segment.path}/members/${a}`)).data).toEqual({ deleted: true })
    expect((await project.admin.delete(`${segment.path}/members/${a}`)).error?.code).toBe('NOT_FOUND')
    expect(await eventsOf(a)).toEqual([`entered ${segment.key}`, `exited ${segment.key}`])
    expect((await project.admin.get(segment.path)).data.member_count).toBe(1)
    expect((await project.admin.get(`${segment.path}/members/${b}/explain`)).data).toEqual({ member: true, leaves: [] })
    for (const user_ids of [[], ['x'], Array.from({ length: 1001 }, () => a), 'all'])
      expect(await project.admin.post(`${segment.path}/members`, { user_ids })).toMatchObject({
        status: 400,
        error: { code: 'VALIDATION_ERROR' },
      })
    expect(
      (await project.admin.post(`${segment.path}/members`, { user_ids: Array.from({ length: 1000 }, () => b) })).status,
    ).toBe(200)
    expect((await project.admin.post(`${segment.path}/members`, '[]')).error?.code).toBe('INVALID_BODY')
    for (const path of [`/members/x`, `/members/x/explain`])
      expect(await project.admin.request(path.endsWith('x') ? 'DELETE' : 'GET', segment.path + path)).toMatchObject({
        status: 400,
        error: { code: 'INVALID_ID' },
      })
    // many at once: each is counted once
    const crowd = await Promise.all(Array.from({ length: 8 }, () => userWith({})))
    await Promise.all(
      crowd.flatMap((id) => [id, id]).map((id) => project.admin.post(`${segment.path}/members`, { user_ids: [id] })),
    )
    expect((await project.admin.get(segment.path)).data.member_count).toBe(9)
    const dynamic = await segmentOf({ rules: tier('a') })
    for (const answer of [
      await project.admin.post(`${dynamic.path}/members`, { user_ids: [a] }),
      await project.admin.delete(`${dynamic.path}/members/${a}`),
    ])
      expect(answer).toMatchObject({ status: 400, error: { code: 'SEGMENT_NOT_STATIC' } })
    const trail = await project.sql(
      `select action from app.audit_events where target_id = $1 order by position limit 3`,
      [segment.id],
    )
    expect(trail.map(({ action }) => action)).toEqual([
      'segments.create',
      'segments.add_members',
      'segments.remove_members',
    ])
  })

  test('are asked for by the user alone, and written by nobody else', async () => {
    const user = await userWith({})
    const segment = await segmentOf({ kind: 'static' })
    const claims = { 'app.user_id': user, 'app.caller': 'user' }
    const [row] = await project.as('app_user', claims, 'select internal.segment_ids_of($1) as ids', [user])
    expect(row.ids).toEqual([])
    for (const [role, caller, sql] of [
      ['app_user', 'user', `select internal.segment_change('${segment.id}', array['${user}'::uuid], true)`],
      [
        'app_user',
        'user',
        `insert into app.segment_members (segment_id, app_user_id) values ('${segment.id}', '${user}')`,
      ],
      ['app_admin', 'developer', `update app.segment_states set condition = 'true'`],
      [
        'app_admin',
        'developer',
        `insert into app.segment_members (segment_id, app_user_id) values ('${segment.id}', '${user}')`,
      ],
      ['app_server', 'server_key', 'select internal.segment_update_members(null, null)'],
    ] as const)
      await expect(project.as(role, { ...claims, 'app.caller': caller }, sql), sql).rejects.toMatchObject({
        code: '42501',
      })
    await expect(
      project.as('app_admin', { 'app.caller': 'user' }, 'select internal.segment_change($1, $2, true)', [
        segment.id,
        [user],
      ]),
    ).rejects.toThrow('administrators')
  })
})
