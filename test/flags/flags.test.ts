import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { type Project, startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(async () => {
  harness.setTime(null)
  await project.sql('delete from app.flags')
})
const root = '/flags'

const flagOf = async (body: Record<string, unknown>, own: Project = project) => {
  const answer = await own.admin.post(root, { key: 'flag', ...body })
  expect(answer.status, answer.text).toBe(201)
  return answer.data
}
const change = async (path: string, patch: Record<string, unknown>) => {
  const answer = await project.admin.patch(`${root}/${path}`, patch)
  expect(answer.status, answer.text).toBe(200)
  return answer.data
}
const hash = async (): Promise<string> => (await project.sql('select version_hash from app.flag_sets'))[0].version_hash

describe('flags', () => {
  test('are made, read by id and key, listed newest first, changed, switched and deleted, and the trail says so', async () => {
    const made = await flagOf({ key: 'alpha' })
    expect(made).toMatchObject({
      ...{ key: 'alpha', name: 'alpha', description: null, value_type: 'boolean', is_enabled: true, off_value: false },
      ...{ default_value: false, rules: [], schedule: [], ramp: null, tags: [], owner: null, last_evaluated_at: null },
      version: 1,
    })
    const whole = {
      ...{ name: 'Beta', description: 'Second', is_enabled: false, off_value: 'none', default_value: 'some' },
      ...{ rules: [{ value: 'all' }], tags: ['a', 'b'], owner: 'growth' },
    }
    const beta = await flagOf({ key: 'beta', value_type: 'string', ...whole })
    expect(beta).toMatchObject({ ...whole, key: 'beta', value_type: 'string', version: 1 })
    expect((await project.admin.get(`${root}/beta`)).data).toEqual(beta)
    expect((await project.admin.get(`${root}/${beta.id}`)).data).toEqual(beta)
    const list = await project.admin.get(`${root}?limit=1`)
    expect(list.body).toEqual({ data: [beta], total: 2, offset: 0, limit: 1 })
    expect((await project.admin.get(`${root}?offset=1`)).data).toEqual([made])

    expect((await project.admin.patch(`${root}/alpha`, {})).data).toEqual(made)
    const changed = await change('alpha', {
      ...{ name: 'A', description: 'x', default_value: true, tags: ['z'], owner: 'me', rules: [{ value: true }] },
      ...{ key: 'other', value_type: 'json', version: 9, id: randomUUID() },
    })
    expect(changed).toMatchObject({ id: made.id, key: 'alpha', value_type: 'boolean', name: 'A', version: 2 })
    expect(await change('alpha', { description: null, owner: null })).toMatchObject({
      ...{ description: null, owner: null, name: 'A', default_value: true, tags: ['z'], rules: [{ value: true }] },
      version: 3,
    })
    const off = await project.admin.post(`${root}/${made.id}/toggle`, { is_enabled: false })
    expect(off).toMatchObject({ status: 200, data: { is_enabled: false, version: 4 } })
    // disabling a disabled flag changes nothing
    expect((await project.admin.post(`${root}/alpha/toggle`, { is_enabled: false })).data).toEqual(off.data)
    expect((await project.admin.delete(`${root}/alpha`)).data).toEqual({ deleted: true })
    const trail = await project.sql(`select action from app.audit_events where target_id = $1 order by position`, [
      made.id,
    ])
    expect(trail.map(({ action }) => action)).toEqual([
      'flags.create',
      'flags.update',
      'flags.update',
      'flags.update',
      'flags.delete',
    ])
  })

  test('that are not there are 404 everywhere, and so are those of another project', async () => {
    await flagOf({ key: 'here' })
    const other = await harness.project()
    expect((await other.admin.get(root)).data).toEqual([])
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['PATCH', '', {}],
      ['DELETE', '', undefined],
      ['POST', '/toggle', { is_enabled: true }],
      ['PUT', '/overrides', {}],
      ['GET', '/history', undefined],
      ['POST', '/revert', { version: 1 }],
      ['POST', '/evaluate', { user_id: randomUUID() }],
      ['GET', '/stats', undefined],
      ['POST', '/ramp', { from: 1, to: 2, step: 1, every_hours: 1 }],
    ] as const)
      for (const answer of [
        await project.admin.request(method, `${root}/gone${path}`, body),
        await project.admin.request(method, `${root}/${randomUUID()}${path}`, body),
        await other.admin.request(method, `${root}/here${path}`, body),
      ])
        expect(answer, `${method} ${path}`).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    expect((await project.app.get('/client/flags/gone')).error?.code).toBe('NOT_FOUND')
    expect((await other.app.get('/client/flags/here')).status).toBe(404)
  })

  const rule = (more: Record<string, unknown>) => ({ rules: [{ value: true }, { value: true, ...more }] })
  const step = (more: Record<string, unknown>) => ({ schedule: [{ at: '2030-01-01', patch: more }] })
  const filter = { column: 'a', op: 'near', value: 1 }
  test.each([
    ['key', { key: 'Flag' }],
    ['key', { key: '' }],
    ['key', { key: undefined }],
    ['name', { name: '' }],
    ['name', { name: 'x'.repeat(201) }],
    ['name', { name: null }],
    ['description', { description: 'x'.repeat(2001) }],
    ['owner', { owner: '' }],
    ['owner', { owner: 'x'.repeat(201) }],
    ['is_enabled', { is_enabled: 'yes' }],
    ['is_enabled', { is_enabled: null }],
    ['value_type', { value_type: 'date' }],
    ['off_value', { off_value: 'off' }],
    ['off_value', { off_value: null }],
    ['default_value', { default_value: 1 }],
    ['default_value', { value_type: 'string' }],
    ['default_value', { value_type: 'number', default_value: '5' }],
    ['default_value', { value_type: 'string', default_value: 5 }],
    ['default_value', { value_type: 'string', default_value: 'x'.repeat(16_383) }],
    ['tags', { tags: 'a' }],
    ['tags', { tags: null }],
    ['tags', { tags: ['a', ''] }],
    ['tags', { tags: ['x'.repeat(51)] }],
    ['tags', { tags: Array.from({ length: 21 }, (_, n) => `t${n}`) }],
    ['rules', { rules: {} }],
    ['rules', { rules: null }],
    ['rules', { rules: Array.from({ length: 51 }, () => ({ value: true })) }],
    ['rules.0', { rules: ['all'] }],
    ['rules.0.value', { rules: [{}] }],
    ['rules.1.value', rule({ value: 'on' })],
    ['rules.1.value', rule({ value: null })],
    ['rules.1.percent', rule({ percent: 5 })],
    ['rules.1.experiment_key', rule({ experiment_key: 'e' })],
    ['rules.1.percentage', rule({ percentage: 100.01 })],
    ['rules.1.percentage', rule({ percentage: -1 })],
    ['rules.1.percentage', rule({ percentage: '5' })],
    ['rules.1.segment_id', rule({ segment_id: randomUUID() })],
    ['rules.1.segment_id', rule({ segment_id: 'vip' })],
    ['rules.1.filter', rule({ filter })],
    ['rules.1.starts_at', rule({ starts_at: 'soon' })],
    ['rules.1.ends_at', rule({ ends_at: 5 })],
    ['rules.1.ends_at', rule({ starts_at: '2030-01-02', ends_at: '2030-01-02T00:00:00Z' })],
    ['rules.1.min_app_version', rule({ min_app_version: 'new' })],
    ['rules.1.min_app_version', rule({ min_app_version: 2 })],
    ['rules.1.platforms', rule({ platforms: 'ios' })],
    ['rules.1.platforms', rule({ platforms: [] })],
    ['rules.1.platforms', rule({ platforms: [3] })],
    ['schedule', { schedule: {} }],
    ['schedule', { schedule: null }],
    ['schedule', { schedule: Array.from({ length: 101 }, () => ({ at: '2030-01-01', patch: { is_enabled: true } })) }],
    ['schedule.0.at', { schedule: ['soon'] }],
    ['schedule.0.at', { schedule: [{ patch: { is_enabled: true } }] }],
    ['schedule.0.at', { schedule: [{ at: 'soon', patch: { is_enabled: true } }] }],
    ['schedule.0', { schedule: [{ at: '2030-01-01' }] }],
    ['schedule.0.patch', step({})],
    ['schedule.0.patch.name', step({ name: 'x' })],
    ['schedule.0.patch.is_enabled', step({ is_enabled: 1 })],
    ['schedule.0.patch.off_value', step({ off_value: 'x' })],
    ['schedule.0.patch.default_value', step({ default_value: 'x' })],
    ['schedule.0.patch.rules.0.value', step({ rules: [{}] })],
    ['schedule.0.patch.rule_index', step({ rule_index: 0 })],
    ['schedule.0.patch.rule_index', step({ rule_index: 0, percentage: 5 })],
    ['schedule.0.patch.rule_index', step({ rule_index: 1, percentage: 5, rules: [{ value: true }] })],
    ['schedule.0.patch.percentage', step({ rule_index: 0, percentage: 101, rules: [{ value: true }] })],
  ])('with a bad %s are refused, new or changed: %j', async (field, bad) => {
    const refused = { status: 400, error: { code: 'VALIDATION_ERROR', details: { field } } }
    const made = await project.admin.post(root, { key: 'flag', ...bad })
    expect(made, made.text).toMatchObject(refused)
    expect((await project.admin.get(root)).data).toEqual([])
    if (/key|value_type/.test(field) && !field.includes('.') && 'value_type' in bad) return
    if (field === 'key' || 'value_type' in bad) return
    const flag = await flagOf({})
    const before = await hash()
    expect(await project.admin.patch(`${root}/flag`, bad)).toMatchObject(refused)
    expect((await project.admin.get(`${root}/flag`)).data).toEqual(flag)
    expect(await hash()).toBe(before)
  })

  test('at their limits are taken; a body that is no object and a bad query are not', async () => {
    await flagOf({
      ...{ key: `a${'b'.repeat(127)}`, name: 'x'.repeat(200), description: 'x'.repeat(2000), owner: 'x'.repeat(200) },
      tags: Array.from({ length: 20 }, (_, n) => `${n}`.padEnd(50, 't')),
      rules: Array.from({ length: 50 }, (_, n) => ({ percentage: [0, 100, 33.33][n % 3], value: true })),
      schedule: Array.from({ length: 100 }, () => ({ at: '2030-01-01', patch: { is_enabled: true } })),
    })
    await flagOf({ key: 'long', value_type: 'string', default_value: 'x'.repeat(16_382) })
    for (const [method, path] of [
      ['POST', root],
      ['PATCH', `${root}/long`],
      ['POST', `${root}/long/toggle`],
      ['PUT', `${root}/long/overrides`],
      ['POST', `${root}/long/revert`],
      ['POST', `${root}/long/evaluate`],
      ['POST', `${root}/long/ramp`],
    ] as const)
      expect(await project.admin.request(method, path, '[]'), path).toMatchObject({
        status: 400,
        error: { code: 'INVALID_BODY' },
      })
    for (const query of ['limit=0', 'offset=-1', 'stale=maybe'])
      expect(await project.admin.get(`${root}?${query}`), query).toMatchObject({
        status: 400,
        error: { code: 'INVALID_INPUT' },
      })
    for (const [path, body, field] of [
      ['toggle', {}, 'is_enabled'],
      ['toggle', { is_enabled: 'true' }, 'is_enabled'],
      ['revert', {}, 'version'],
      ['revert', { version: 1.5 }, 'version'],
      ['revert', { version: 2 }, 'version'],
      ['evaluate', {}, 'user_id'],
      ['evaluate', { user_id: 'x' }, 'user_id'],
      ['evaluate', { user_id: randomUUID() }, 'user_id'],
      ['evaluate', { user_id: randomUUID(), attributes: 5 }, 'attributes'],
    ] as const)
      expect(await project.admin.post(`${root}/long/${path}`, body), path).toMatchObject({
        status: 400,
        error: { code: 'VALIDATION_ERROR', details: { field } },
      })
  })

  test('keys are unique, and five hundred are the most, also when many come at once', async () => {
    await flagOf({ key: 'one' })
    expect(await project.admin.post(root, { key: 'one' })).toMatchObject({
      status: 409,
      error: { code: 'CONFLICT', details: { field: 'key' } },
    })
    await project.sql(
      `insert into app.flags (key, name, value_type, off_value, default_value)
       select 'n' || n, 'N', 'boolean', 'false', 'false' from generate_series(1, 497) n`,
    )
    const last = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => project.admin.post(root, { key })))
    expect(last.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409, 409])
    expect(last.find(({ status }) => status === 409)?.error).toMatchObject({
      code: 'LIMIT_REACHED',
      details: { limit: 500 },
    })
    const all = await project.app.get('/client/flags')
    expect(Object.keys(all.data)).toHaveLength(500)
  })

  test('a segment that a rule names, now or by the schedule, is not deleted', async () => {
    const segmentOf = async (key: string) =>
      (await project.admin.post('/segments', { key, name: key, kind: 'static' })).data.id
    const [now, later] = [await segmentOf('used_now'), await segmentOf('used_later')]
    await flagOf({
      rules: [{ segment_id: now.toUpperCase(), value: true }],
      schedule: [{ at: '2030-01-01', patch: { rules: [{ segment_id: later, value: true }] } }],
    })
    for (const key of ['used_now', 'used_later'])
      expect(await project.admin.delete(`/segments/${key}`)).toMatchObject({
        status: 409,
        error: { code: 'SEGMENT_IN_USE', details: { used_by: ['flag flag'] } },
      })
    await project.admin.delete(`${root}/flag`)
    expect((await project.admin.delete('/segments/used_now')).status).toBe(200)
  })
})

describe('versions', () => {
  test('each change is one, with who made it and what it changed, and any of them comes back in one call', async () => {
    await flagOf({ name: 'First', rules: [{ percentage: 5, value: true }] })
    await change('flag', { name: 'Second', default_value: true })
    await change('flag', { name: 'Second' })
    await change('flag', { rules: [], tags: ['x'] })
    const history = await project.admin.get(`${root}/flag/history`)
    expect(history.body).toMatchObject({ total: 3, limit: 50, offset: 0 })
    const actor = { type: 'developer', id: project.developer.id, label: null }
    expect(history.data).toMatchObject([
      { version: 3, actor, changes: { rules: [[{ percentage: 5, value: true }], []], tags: [[], ['x']] } },
      { version: 2, actor, changes: { name: ['First', 'Second'], default_value: [false, true] } },
      { version: 1, actor, changes: { name: [null, 'First'] } },
    ])
    expect(Object.keys(history.data[1].changes)).toEqual(['default_value', 'name'])
    expect((await project.admin.get(`${root}/flag/history?limit=1&offset=1`)).data[0].version).toBe(2)
    expect((await project.admin.get(`${root}/flag/history?limit=0`)).error?.code).toBe('INVALID_INPUT')

    const back = await project.admin.post(`${root}/flag/revert`, { version: 1 })
    expect(back).toMatchObject({
      status: 200,
      data: { name: 'First', default_value: false, rules: [{ percentage: 5, value: true }], tags: [], version: 4 },
    })
    // reverting to the current state changes nothing
    expect((await project.admin.post(`${root}/flag/revert`, { version: 1 })).data).toEqual(back.data)
  })

  test('twenty changes at once are twenty versions', async () => {
    await flagOf({ value_type: 'number', default_value: -1 })
    await Promise.all(Array.from({ length: 20 }, (_, default_value) => change('flag', { default_value })))
    const history = await project.admin.get(`${root}/flag/history`)
    expect(history.data.map(({ version }: { version: number }) => version)).toEqual(
      Array.from({ length: 21 }, (_, n) => 21 - n),
    )
    expect(history.data[0].changes.default_value[0]).toBe(history.data[1].changes.default_value[1])
  })

  test('one whose segment is gone does not come back', async () => {
    const { data } = await project.admin.post('/segments', { key: 'gone', name: 'Gone', kind: 'static' })
    await flagOf({ rules: [{ segment_id: data.id, value: true }] })
    await change('flag', { rules: [] })
    await project.admin.delete('/segments/gone')
    expect(await project.admin.post(`${root}/flag/revert`, { version: 1 })).toMatchObject({
      status: 400,
      error: { code: 'VALIDATION_ERROR', details: { field: 'rules.0.segment_id' } },
    })
    expect((await project.admin.get(`${root}/flag`)).data.version).toBe(2)
  })
})

describe('overrides', () => {
  test('are put and removed one by one, are checked whole, and stand in the trail', async () => {
    const flag = await flagOf({ value_type: 'number', default_value: 1 })
    const [a, b] = [await project.user(), await project.user()]
    const put = (body: Record<string, unknown>) => project.admin.put(`${root}/flag/overrides`, body)
    expect(await put({ [a.id]: 5, [b.id.toUpperCase()]: 6 })).toMatchObject({
      status: 200,
      data: { [a.id]: 5, [b.id]: 6 },
    })
    expect((await put({ [a.id]: null })).data).toEqual({ [b.id]: 6 })
    const before = await hash()
    expect((await put({ [a.id]: null, [b.id]: 6 })).data).toEqual({ [b.id]: 6 })
    expect((await put({})).data).toEqual({ [b.id]: 6 })
    expect(await hash()).toBe(before)
    const stranger = randomUUID()
    for (const [body, field] of [
      [{ [a.id]: 'five' }, a.id],
      [{ [a.id]: 1, [stranger]: 1 }, stranger],
      [{ [a.id]: 1, me: 1 }, 'me'],
    ] as const)
      expect(await put(body)).toMatchObject({ status: 400, error: { code: 'VALIDATION_ERROR', details: { field } } })
    expect((await put({})).data).toEqual({ [b.id]: 6 })
    const trail = await project.sql(
      `select changes from app.audit_events where target_id = $1 and action = 'flags.overrides' order by position`,
      [flag.id],
    )
    expect(trail.map(({ changes }) => changes)).toEqual([
      { [a.id]: [null, 5], [b.id]: [null, 6] },
      { [a.id]: [5, null] },
    ])
  })

  test('a thousand are the most, and go with their user', async () => {
    const flag = await flagOf({})
    const last = await project.user()
    const ids = await project.sql(
      `insert into app.users (display_name) select 'User' from generate_series(1, 1000) returning id`,
    )
    const all = Object.fromEntries(ids.map(({ id }) => [id, true]))
    expect(await project.admin.put(`${root}/flag/overrides`, { ...all, [last.id]: true })).toMatchObject({
      status: 409,
      error: { code: 'LIMIT_REACHED', details: { limit: 1000 } },
    })
    expect(
      Object.keys((await project.admin.put(`${root}/flag/overrides`, { ...all, [last.id]: null })).data),
    ).toHaveLength(1000)
    await project.sql('delete from app.users where id = $1', [ids[0]?.['id']])
    const [{ count }] = await project.sql('select count(*)::int from app.flag_overrides where flag_id = $1', [flag.id])
    expect(count).toBe(999)
  })
})

test('no other role reads or writes a flag', async () => {
  await flagOf({})
  for (const [role, caller] of [
    ['app_user', 'user'],
    ['app_anon', 'client_key'],
    ['app_server', 'server_key'],
    ['app_worker', 'worker'],
  ] as const)
    for (const sql of [
      ...(role === 'app_worker' ? [] : ['select key from app.flags']),
      'select version from app.flag_versions',
      'update app.flags set is_enabled = false',
      `insert into app.flag_evaluations (notes) values ('[]')`,
      'delete from app.flag_overrides',
      `select internal.flags_record_evaluations(null, '[]')`,
      `select internal.flag_context(null, null, null, null)`,
    ])
      await expect(
        project.as(role, { 'app.caller': caller, 'app.user_id': randomUUID() }, sql),
        `${role}: ${sql}`,
      ).rejects.toMatchObject({ code: '42501' })
  // a user cannot evaluate as another user
  await expect(
    project.as(
      'app_user',
      { 'app.caller': 'user', 'app.user_id': randomUUID() },
      `select internal.flags_evaluated(internal.new_id())`,
    ),
  ).rejects.toThrow('themselves')
})
