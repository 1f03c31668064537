import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { root, startSegments, tier } from '#test/support/segments.ts'

const { harness, project, segmentOf } = await startSegments()

describe('segments', () => {
  test('are made, read by id and key, listed, changed and deleted, and the trail says so', async () => {
    const own = await harness.project()
    const made = await own.admin.post(root, { key: 'pro', name: 'Pro', description: 'Who pays', rules: tier('pro') })
    expect(made).toMatchObject({
      status: 201,
      data: {
        ...{ key: 'pro', name: 'Pro', description: 'Who pays', kind: 'dynamic', rules: tier('pro'), member_count: 0 },
        ...{ last_evaluated_at: null, is_active: true },
      },
    })
    const { id } = made.data
    expect((await own.admin.get(`${root}/pro`)).data).toEqual(made.data)
    expect((await own.admin.get(`${root}/${id}`)).data).toEqual(made.data)
    await segmentOf({ kind: 'static' }, own)
    expect((await own.admin.get(`${root}?limit=1`)).body).toMatchObject({
      total: 2,
      limit: 1,
      offset: 0,
      data: [{ kind: 'static', rules: null }],
    })
    const changes = { name: 'P', description: null, rules: tier('gold'), is_active: false }
    const patched = await own.admin.patch(`${root}/pro`, { ...changes, key: 'x', kind: 'static', member_count: 5 })
    expect(patched.data).toMatchObject({ ...changes, key: 'pro', kind: 'dynamic', member_count: 0 })
    expect((await own.admin.patch(`${root}/pro`, {})).data).toEqual(patched.data)
    expect((await own.admin.delete(`${root}/pro`)).data).toEqual({ deleted: true })
    for (const [method, path] of [
      ['GET', ''],
      ['PATCH', ''],
      ['DELETE', ''],
      ['POST', '/refresh'],
      ['GET', '/history'],
      ['GET', '/members'],
      ['POST', '/members'],
      ['DELETE', `/members/${randomUUID()}`],
      ['GET', `/members/${randomUUID()}/explain`],
    ] as const)
      for (const name of ['pro', id, randomUUID()])
        expect(
          await own.admin.request(
            method,
            `${root}/${name}${path}`,
            method === 'POST' ? { user_ids: [randomUUID()] } : undefined,
          ),
          `${method} ${path}`,
        ).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    const trail = await own.sql(`select action from app.audit_events where target_id = $1 order by position`, [id])
    expect(trail.map(({ action }) => action)).toEqual([
      'segments.create',
      'segments.update',
      'segments.update',
      'segments.delete',
    ])
  })

  const leaf = (more: Record<string, unknown>) => ({
    rules: { source: 'user', column: 'email', op: 'eq', value: 'a', ...more },
  })
  const event = (more: Record<string, unknown>) => ({
    rules: { source: 'event', event_name: 'e', measure: 'count', op: 'gte', value: 1, ...more },
  })
  const nested = (depth: number): unknown => (depth === 0 ? tier('a') : { not: nested(depth - 1) })
  const many = (count: number) => ({ and: Array.from({ length: count }, () => tier('a')) })
  test.each([
    ['key', { key: 'Pro' }],
    ['name', { name: '' }],
    ['name', { name: 'x'.repeat(201) }],
    ['description', { description: 'x'.repeat(2001) }],
    ['kind', { kind: 'magic' }],
    ['rules', { rules: null }],
    ['rules', { kind: 'static', rules: tier('a') }],
    ['rules', { rules: {} }],
    ['rules', { rules: { and: [], or: [] } }],
    ['rules.and', { rules: { and: {} } }],
    ['rules.and[1]', { rules: { and: [tier('a'), 3] } }],
    ['rules.not.or[0].source', { rules: { not: { or: [{ source: 'stars', op: 'eq', value: 1 }] } } }],
    ['rules.source', { rules: { source: 'experiment', key: 'button', op: 'eq', value: true } }],
    ['rules.source', { rules: { source: "user'; drop table app.users; --" } }],
    ['rules.source', { rules: { source: 3 } }],
    ['rules.column', leaf({ column: 'password' })],
    ['rules.column', leaf({ column: "email' or true or '" })],
    ['rules.column', leaf({ column: undefined })],
    ['rules.op', leaf({ op: 'near' })],
    ['rules.op', leaf({ op: undefined })],
    ['rules.value', leaf({ value: undefined })],
    ['rules.value', leaf({ op: 'in' })],
    ['rules.value', leaf({ column: 'app_version', value: 3 })],
    ['rules.value', leaf({ column: 'created_at', value: 'yesterday' })],
    ['rules.value', leaf({ column: 'created_at', value: '2026-13-40T00:00:00Z' })],
    ['rules.value', leaf({ column: 'created_at', value: { days_ago: -1 } })],
    ['rules.value', leaf({ column: 'created_at', value: { days_ago: 'x' } })],
    ['rules.op', leaf({ column: 'created_at', op: 'like' })],
    ['rules.column', { rules: { source: 'property', op: 'eq', value: 1 } }],
    ['rules.column', { rules: { source: 'property', column: '', op: 'eq', value: 1 } }],
    ['rules.event_name', event({ event_name: '' })],
    ['rules.event_name', event({ event_name: 'svc.segment.entered' })],
    ['rules.measure', event({ measure: 'median' })],
    ['rules.column', event({ measure: 'sum' })],
    ['rules.column', event({ column: 'x' })],
    ['rules.within_days', event({ within_days: 0 })],
    ['rules.within_days', event({ within_days: 7, since: '2026-01-01' })],
    ['rules.since', event({ since: 'then' })],
    ['rules.until', event({ until: 5 })],
    ['rules.where', event({ where: { column: 'a', op: 'near', value: 1 } })],
    ['rules.value', event({ measure: 'first_at', value: 3 })],
    ['rules.key', { rules: { source: 'streak', key: 'none', op: 'gte', value: 3 } }],
    ['rules.op', { rules: { source: 'segment', segment_id: randomUUID(), op: 'eq' } }],
    ['rules.segment_id', { rules: { source: 'segment', segment_id: randomUUID(), op: 'in' } }],
    ['rules', { rules: { ...tier('x'.repeat(65_536)) } }],
    ['rules.not.not.not.not.not.not.not.not.not', { rules: nested(9) }],
    ['rules.and[50]', { rules: many(51) }],
  ])('with a bad %s are refused: %j', async (field, change) => {
    const answer = await project.admin.post(root, { key: 'refused', name: 'Refused', rules: tier('a'), ...change })
    expect(answer, answer.text).toMatchObject({ status: 400, error: { code: 'VALIDATION_ERROR' } })
    // the deepest node that is looked at names a tree that is too deep
    expect(answer.error?.details.field).toBe(
      field.endsWith('not.not.not') ? 'rules.not.not.not.not.not.not.not.not' : field,
    )
    expect((await project.admin.get(`${root}/refused`)).status).toBe(404)
    const isRules = 'rules' in change && !('kind' in change)
    const preview = isRules ? await project.admin.post(`${root}/preview`, change) : null
    if (preview) expect(preview).toMatchObject({ status: 400, error: { code: 'VALIDATION_ERROR' } })
  })

  test('eight levels and fifty conditions are taken, keys are unique, two hundred are the most', async () => {
    await segmentOf({ rules: nested(8) })
    await segmentOf({ rules: many(50) })
    expect(await project.admin.post(root, '[]')).toMatchObject({ status: 400, error: { code: 'INVALID_BODY' } })
    expect(await project.admin.get(`${root}?limit=0`)).toMatchObject({ status: 400, error: { code: 'INVALID_INPUT' } })
    const own = await harness.project()
    await segmentOf({ key: 'one', kind: 'static' }, own)
    const again = await own.admin.post(root, { key: 'one', name: 'One', kind: 'static' })
    expect(again).toMatchObject({ status: 409, error: { code: 'CONFLICT', details: { field: 'key' } } })
    await own.sql(
      `insert into app.segments (key, name, kind) select 'n' || n, 'N', 'static' from generate_series(1, 197) n`,
    )
    const last = await Promise.all(
      ['a', 'b', 'c', 'd', 'e'].map((key) => own.admin.post(root, { key, name: key, kind: 'static' })),
    )
    expect(last.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409, 409])
    expect(last.find(({ status }) => status === 409)?.error?.code).toBe('LIMIT_REACHED')
  })

  test('circles are refused, also when two changes at once would close one', async () => {
    const of = (segment: { id: string }, op = 'in') => ({ source: 'segment', segment_id: segment.id, op })
    const a = await segmentOf({ rules: tier('a') })
    expect(await project.admin.patch(a.path, { rules: of(a) })).toMatchObject({
      status: 400,
      error: { code: 'SEGMENT_CYCLE' },
    })
    const b = await segmentOf({ rules: of(a) })
    const c = await segmentOf({ rules: { not: of(b, 'not_in') } })
    expect(await project.admin.patch(a.path, { rules: { or: [tier('a'), of(c)] } })).toMatchObject({
      status: 400,
      error: { code: 'SEGMENT_CYCLE' },
    })
    for (let round = 0; round < 5; round += 1) {
      const [x, y] = [await segmentOf({ rules: tier('x') }), await segmentOf({ rules: tier('y') })]
      const both = await Promise.all([
        project.admin.patch(x.path, { rules: of(y) }),
        project.admin.patch(y.path, { rules: of(x) }),
      ])
      expect(both.map(({ status }) => status).sort()).toEqual([200, 400])
    }
  })

  test('one that is named elsewhere is not deleted, and says where', async () => {
    const used = await segmentOf({ kind: 'static' })
    const user = await segmentOf({ rules: { source: 'segment', segment_id: used.id, op: 'in' } })
    await project.admin.post('/config', { key: 'greeting', value: 1, conditions: [{ segment_id: used.id, value: 2 }] })
    const flow = await project.admin.post('/onboarding/flows', {
      name: 'Flow',
      steps: [{ segment_id: used.id.toUpperCase() }],
    })
    const refused = await project.admin.delete(used.path)
    expect(refused).toMatchObject({ status: 409, error: { code: 'SEGMENT_IN_USE' } })
    expect(refused.error?.details.used_by).toEqual(['config greeting', 'onboarding Flow', `segment ${user.key}`])
    await project.admin.delete('/config/greeting')
    await project.admin.delete(`/onboarding/flows/${flow.data.id}`)
    await project.admin.delete(user.path)
    expect((await project.admin.delete(used.path)).status).toBe(200)
    // raced: either it is deleted, or it is named
    for (let round = 0; round < 5; round += 1) {
      const segment = await segmentOf({ kind: 'static' })
      const [deleted, named] = await Promise.all([
        project.admin.delete(segment.path),
        project.admin.post('/config', {
          key: `race${round}`,
          value: 1,
          conditions: [{ segment_id: segment.id, value: 2 }],
        }),
      ])
      expect([deleted.status, named.status]).toSatisfy((s: number[]) => (s[0] === 200) !== (s[1] === 201))
    }
  })
})

describe('a preview', () => {
  test('counts, shows ten, and its SQL has no value of the rules in it', async () => {
    const own = await harness.project()
    await own.sql(
      `insert into app.users (display_name, properties) select 'U', '{"tier": "it''s"}' from generate_series(1, 12)`,
    )
    const { data } = await own.admin.post(`${root}/preview`, { rules: tier("it's") })
    expect(data.count).toBe(12)
    expect(data.sample).toHaveLength(10)
    expect(data.sql).toContain('$1 -> 0')
    expect(data.sql).not.toContain('tier')
    expect(data.sql).not.toContain("it's")
    expect(data.explain.cost).toBeGreaterThan(0)
    expect(data.explain.rows).toBeGreaterThan(0)
    expect(await own.admin.post(`${root}/preview`, {})).toMatchObject({
      status: 400,
      error: { code: 'VALIDATION_ERROR' },
    })
    expect(await own.admin.post(`${root}/preview`, '[]')).toMatchObject({
      status: 400,
      error: { code: 'INVALID_BODY' },
    })
    expect(await own.sql('select from app.segments')).toHaveLength(0)
  })
})
