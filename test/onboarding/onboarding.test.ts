import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { type Client, startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))
const root = '/onboarding/flows'
const steps = [{ id: 'welcome' }, { id: 'goal' }, { id: 'done' }]

const flowOf = async (body: Record<string, unknown> = {}) => {
  const answer = await project.admin.post(root, { name: 'Flow', steps, ...body })
  expect(answer.status, answer.text).toBe(201)
  return { ...answer.data, path: `/client/onboarding/${answer.data.id}`, admin: `${root}/${answer.data.id}` }
}
const eventsOf = async (userId: string) => {
  const rows = await project.sql(
    `select event_name from app.engagement_events where app_user_id = $1 and event_name like 'svc.onboarding.%' order by received_at, id`,
    [userId],
  )
  return rows.map(({ event_name }) => event_name.replace('svc.onboarding.', ''))
}
const segmentOf = async (...members: string[]): Promise<string> => {
  const [{ id }] = await project.sql(
    `insert into app.segments (key, name, kind) values ('s' || substr(md5(random()::text), 1, 12), 'S', 'static') returning id`,
  )
  for (const member of members) await project.sql('insert into app.segment_members values ($1, $2)', [id, member])
  return id
}

describe('flows', () => {
  test('are made, listed, read, changed and deleted, and the trail says so', async () => {
    const flow = await flowOf({
      name: 'Hello',
      steps: [{ type: 'info', title: 'Welcome', colour: 'red' }, { id: 'step_1' }, {}],
    })
    expect(flow).toMatchObject({ name: 'Hello', is_active: true })
    const usual = { type: 'custom', title: null, description: null, config: {}, skippable: true, segment_id: null }
    // generated ids skip ids that are taken, and unknown fields are kept
    expect(flow.steps).toEqual([
      { ...usual, id: 'step_2', type: 'info', title: 'Welcome', colour: 'red' },
      { ...usual, id: 'step_1' },
      { ...usual, id: 'step_3' },
    ])
    const newer = await flowOf({ name: 'Newer', is_active: false })
    const list = await project.admin.get(root)
    expect(list.data.slice(0, 2)).toEqual([
      { id: newer.id, name: 'Newer', is_active: false },
      { id: flow.id, name: 'Hello', is_active: true },
    ])
    expect((await project.admin.get(flow.admin)).data).toMatchObject({ id: flow.id, steps: flow.steps })
    harness.advance(60)
    const patched = await project.admin.patch(flow.admin, { is_active: false, id: randomUUID(), nonsense: 1 })
    expect(patched.data).toMatchObject({ id: flow.id, name: 'Hello', steps: flow.steps, is_active: false })
    expect(patched.data.updated_at > flow.updated_at).toBe(true)
    harness.advance(60)
    expect((await project.admin.patch(flow.admin, {})).data).toEqual(patched.data)
    const renamed = await project.admin.patch(flow.admin, { name: 'Hi', steps: [{ id: 'only', type: 'input' }] })
    expect(renamed.data).toMatchObject({ name: 'Hi', steps: [{ id: 'only', type: 'input' }] })
    expect((await project.admin.delete(flow.admin)).data).toEqual({ deleted: true })
    for (const method of ['GET', 'PATCH', 'DELETE'])
      expect(await project.admin.request(method, flow.admin)).toMatchObject({
        status: 404,
        error: { code: 'NOT_FOUND' },
      })
    const trail = await project.sql(`select action from app.audit_events where target_id = $1 order by position`, [
      flow.id,
    ])
    expect(trail.map(({ action }) => action)).toEqual([
      'onboarding.create',
      'onboarding.update',
      'onboarding.update',
      'onboarding.delete',
    ])
  })

  test.each([
    ['name', { name: '' }],
    ['name', { name: 'x'.repeat(201) }],
    ['name', { name: null }],
    ['steps', { steps: 'none' }],
    ['steps', { steps: Array.from({ length: 101 }, () => ({})) }],
    ['steps.0', { steps: ['none'] }],
    ['steps.1.id', { steps: [{ id: 'a' }, { id: 'a' }] }],
    ['steps.0.id', { steps: [{ id: '' }] }],
    ['steps.0.id', { steps: [{ id: 'x'.repeat(129) }] }],
    ['steps.0.type', { steps: [{ type: 'dance' }] }],
    ['steps.0.title', { steps: [{ title: 'x'.repeat(201) }] }],
    ['steps.0.description', { steps: [{ description: 'x'.repeat(2001) }] }],
    ['steps.0.skippable', { steps: [{ skippable: 'no' }] }],
    ['steps.0.config', { steps: [{ config: 3 }] }],
    ['steps.0.config', { steps: [{ type: 'question', config: { options: {} } }] }],
    ['steps.0.config', { steps: [{ type: 'question', config: { options: ['a'] } }] }],
    ['steps.0.config', { steps: [{ type: 'question', config: { options: [{ id: 'a' }] } }] }],
    [
      'steps.0.config',
      { steps: [{ type: 'question', config: { options: [1, 2].map((l) => ({ id: 'a', label: `${l}` })) } }] },
    ],
    ['steps.0.config', { steps: [{ type: 'question', config: { multiple: 1 } }] }],
    ['steps.0.config', { steps: [{ type: 'permission', config: { kind: 'camera' } }] }],
    ['steps.0.config', { steps: [{ type: 'paywall', config: { offering_key: 1 } }] }],
    ['steps.0.config', { steps: [{ type: 'action', config: { deep_link: {} } }] }],
    ['steps.0.segment_id', { steps: [{ segment_id: randomUUID() }] }],
    ['steps.0.segment_id', { steps: [{ segment_id: 'vip' }] }],
    ['is_active', { is_active: 'yes' }],
    ['steps', { steps: [{ note: 'x'.repeat(262_144) }] }],
  ])('with a bad %s are refused, new or changed', async (field, change) => {
    const bad = { status: 400, error: { code: 'INVALID_INPUT', details: { field } } }
    expect(await project.admin.post(root, { name: 'Bad', steps, ...change })).toMatchObject(bad)
    const flow = await flowOf()
    expect(await project.admin.patch(flow.admin, change)).toMatchObject(bad)
    expect((await project.admin.get(flow.admin)).data).toMatchObject({ name: 'Flow', is_active: true, steps })
  })

  test('take a hundred steps, names of 200 letters, and configs that suit their types', async () => {
    const flow = await flowOf({ name: 'x'.repeat(200), steps: Array.from({ length: 100 }, () => ({})) })
    expect(flow.steps.at(-1).id).toBe('step_100')
    const configs = [
      { type: 'question', config: { options: [{ id: 'a', label: 'A' }], multiple: true } },
      { type: 'permission', config: { kind: 'tracking' } },
      { type: 'paywall', config: { offering_key: 'main' } },
      { type: 'action', config: { deep_link: 'app://x' } },
    ]
    expect((await flowOf({ steps: configs })).steps).toMatchObject(configs)
    expect(await project.admin.post(root, { name: 'No steps' })).toMatchObject({
      status: 400,
      error: { code: 'INVALID_INPUT', details: { field: 'steps' } },
    })
    expect(await project.admin.post(root, '[]')).toMatchObject({ status: 400, error: { code: 'INVALID_INPUT' } })
  })

  test('SQL refuses by itself what the server would let through', async () => {
    const flow = await flowOf()
    for (const patch of ['{"name": null}', '{"steps": {}}', '{"steps": [1]}', '{"steps": [{"type": null}]}']) {
      const call = project.as('app_admin', { 'app.caller': 'developer' }, 'select api.onboarding_flow_update($1, $2)', [
        flow.id,
        patch,
      ])
      await expect(call, patch).rejects.toMatchObject({ code: 'TR000' })
    }
  })

  test('of one id are not found under another, malformed or of another project', async () => {
    const flow = await flowOf()
    const other = await harness.project()
    expect(await other.admin.get(flow.admin)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    expect(await project.admin.get(`${root}/nothing`)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    const user = await other.user()
    expect((await user.get('/client/onboarding')).body).toEqual({ data: null })
    expect(await user.post(`${flow.path}/start`)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
  })
})

describe('the way through a flow', () => {
  test('goes step by step to its end, and the app sees where it is', async () => {
    const flow = await flowOf()
    const user = await project.user()
    expect((await user.get('/client/onboarding')).data).toMatchObject({ flow: { id: flow.id }, progress: null })
    harness.setTime('2026-12-01T10:00:00Z')
    const me = project.onBehalfOf(user.id)
    const started = await me.post(`${flow.path}/start`)
    expect(started).toMatchObject({
      status: 201,
      data: {
        ...{ app_user_id: user.id, flow_id: flow.id, current_step: 'welcome', completed_steps: [], answers: {} },
        ...{ status: 'in_progress', started_at: '2026-12-01T10:00:00.000Z', completed_at: null },
      },
    })
    expect((await me.get('/client/onboarding')).data.progress).toEqual(started.data)
    const second = await me.post(`${flow.path}/advance`, { answers: { name: 'Ada' } })
    expect(second).toMatchObject({
      status: 200,
      data: {
        status: 'in_progress',
        current_step: 'goal',
        completed_steps: ['welcome'],
        answers: { welcome: { name: 'Ada' } },
      },
    })
    const third = await me.post(`${flow.path}/advance`, { step_id: 'goal', answers: ['a', 'b'] })
    expect(third.data).toMatchObject({ current_step: 'done', answers: { welcome: { name: 'Ada' }, goal: ['a', 'b'] } })
    harness.advance(60)
    const last = await me.post(`${flow.path}/advance`)
    expect(last.data).toMatchObject({
      ...{ status: 'completed', current_step: null, completed_steps: ['welcome', 'goal', 'done'] },
      completed_at: '2026-12-01T10:01:00.000Z',
    })
    harness.advance(60)
    expect((await me.post(`${flow.path}/advance`)).data).toEqual(last.data)
    expect((await me.post(`${flow.path}/complete`)).data).toEqual(last.data)
    expect(await eventsOf(user.id)).toEqual(['started', 'completed'])
  })

  test('a stale step_id changes nothing, and twenty taps at once are one step', async () => {
    const flow = await flowOf({ steps: Array.from({ length: 30 }, (_, n) => ({ id: `s${n}` })) })
    const user = await project.user()
    await user.post(`${flow.path}/start`)
    const tap = () => user.post(`${flow.path}/advance`, { step_id: 's0', answers: 1 })
    const taps = await Promise.all(Array.from({ length: 20 }, tap))
    expect(taps.every(({ status, data }) => status === 200 && data.current_step === 's1')).toBe(true)
    const now = await user.post(`${flow.path}/advance`, { step_id: 's0', answers: 2 })
    expect(now.data).toMatchObject({ current_step: 's1', completed_steps: ['s0'], answers: { s0: 1 } })
    // without a step_id each request advances by one step
    await Promise.all(Array.from({ length: 10 }, () => user.post(`${flow.path}/advance`)))
    expect((await user.get('/client/onboarding')).data.progress).toMatchObject({ current_step: 's11' })
  })

  test('twenty starts at once make one row', async () => {
    const flow = await flowOf()
    const user = await project.user()
    const all = await Promise.all(Array.from({ length: 20 }, () => user.post(`${flow.path}/start`)))
    expect(all.every(({ status }) => status === 201)).toBe(true)
    expect(await project.sql('select from app.onboarding_progress where app_user_id = $1', [user.id])).toHaveLength(1)
  })

  test('before the start: advance is NOT_FOUND, skip and complete are UPDATE_FAILED', async () => {
    const flow = await flowOf()
    const user = await project.user()
    for (const path of [flow.path, `/client/onboarding/${randomUUID()}`]) {
      expect(await user.post(`${path}/advance`)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
      expect(await user.post(`${path}/skip`)).toMatchObject({ status: 404, error: { code: 'UPDATE_FAILED' } })
      expect(await user.post(`${path}/complete`)).toMatchObject({ status: 404, error: { code: 'UPDATE_FAILED' } })
    }
    for (const move of ['start', 'advance', 'skip', 'complete'])
      expect((await user.post(`/client/onboarding/nothing/${move}`)).status, move).toBe(404)
    expect(await user.post(`/client/onboarding/${randomUUID()}/start`)).toMatchObject({
      status: 404,
      error: { code: 'NOT_FOUND' },
    })
    expect(await project.sql('select from app.onboarding_progress where app_user_id = $1', [user.id])).toHaveLength(0)
  })

  const moves: Record<string, (me: Client, path: string) => Promise<unknown>> = {
    in_progress: async () => undefined,
    completed: (me, path) => me.post(`${path}/complete`),
    skipped: (me, path) => me.post(`${path}/skip`),
  }
  test.each(['in_progress', 'completed', 'skipped'])(
    'from %s: skip skips, complete completes, start begins anew',
    async (from) => {
      const flow = await flowOf()
      const { id } = await project.user()
      const me = project.onBehalfOf(id)
      const begin = async () => {
        harness.setTime('2026-12-01T10:00:00Z')
        await me.post(`${flow.path}/start`)
        await me.post(`${flow.path}/advance`, { answers: 1 })
        await moves[from]?.(me, flow.path)
        harness.advance(60)
      }
      for (const [move, status] of [
        ['skip', 'skipped'],
        ['complete', 'completed'],
      ] as const) {
        await begin()
        const answer = await me.post(`${flow.path}/${move}`)
        const time = status === from ? '2026-12-01T10:00:00.000Z' : '2026-12-01T10:01:00.000Z'
        expect(answer, move).toMatchObject({
          status: 200,
          data: { status, completed_at: time, completed_steps: ['welcome'] },
        })
        // progress that has ended does not change
        expect((await me.post(`${flow.path}/advance`, { answers: 2 })).data).toEqual(answer.data)
      }
      await begin()
      expect(await me.post(`${flow.path}/start`)).toMatchObject({
        status: 201,
        data: { status: 'in_progress', current_step: 'welcome', completed_steps: [], answers: {}, completed_at: null },
      })
    },
  )

  test('each step emits its event once, however often a user goes through the flow', async () => {
    const rule = { key: 'welcome', name: 'Welcome', event_name: 'svc.onboarding.completed', amount: 100 }
    expect((await project.admin.post('/xp/rules', rule)).status).toBe(201)
    const flow = await flowOf()
    const user = await project.user()
    for (const move of ['start', 'skip', 'skip', 'complete', 'start', 'complete', 'skip', 'complete', 'start'])
      await user.post(`${flow.path}/${move}`)
    for (const _ of steps) await user.post(`${flow.path}/advance`)
    expect(await eventsOf(user.id)).toEqual(['started', 'skipped', 'completed'])
    expect((await user.get('/client/xp')).data.total).toBe(100)
    // another flow emits these events again
    const other = await flowOf()
    for (const move of ['start', 'complete']) await user.post(`${other.path}/${move}`)
    expect(await eventsOf(user.id)).toEqual(['started', 'skipped', 'completed', 'started', 'completed'])
    const [row] = await project.sql(
      `select properties from app.engagement_events where app_user_id = $1 and event_name = 'svc.onboarding.started' limit 1`,
      [user.id],
    )
    expect(row.properties).toEqual({ flow_id: flow.id, flow_name: 'Flow' })
  })

  test('passes over steps whose segment the user is not in', async () => {
    const [member, other] = [await project.user(), await project.user()]
    const segment_id = await segmentOf(member.id)
    const flow = await flowOf({ steps: [{ id: 'a', segment_id }, { id: 'b' }, { id: 'c', segment_id }] })
    expect((await member.post(`${flow.path}/start`)).data.current_step).toBe('a')
    expect((await other.post(`${flow.path}/start`)).data.current_step).toBe('b')
    expect((await other.post(`${flow.path}/advance`)).data).toMatchObject({
      status: 'completed',
      completed_steps: ['b'],
    })
    await member.post(`${flow.path}/advance`)
    expect((await member.post(`${flow.path}/advance`)).data).toMatchObject({ current_step: 'c', status: 'in_progress' })
  })

  test('goes on when the flow changed under it, also when its step is gone', async () => {
    const flow = await flowOf()
    const user = await project.user()
    await user.post(`${flow.path}/start`)
    await user.post(`${flow.path}/advance`)
    await project.admin.patch(flow.admin, {
      steps: [{ id: 'welcome' }, { id: 'new' }, { id: 'done' }],
      is_active: false,
    })
    expect((await user.post(`${flow.path}/advance`)).data).toMatchObject({
      current_step: 'new',
      completed_steps: ['welcome', 'goal'],
    })
    // an inactive flow cannot be started, but can be completed
    const late = await project.user()
    expect(await late.post(`${flow.path}/start`)).toMatchObject({ status: 404, error: { code: 'NOT_FOUND' } })
    expect((await user.post(`${flow.path}/complete`)).data.status).toBe('completed')
  })

  test('a flow without steps, or with none for the user, begins without one and ends at the first advance', async () => {
    const flow = await flowOf({ steps: [] })
    const user = await project.user()
    expect((await user.post(`${flow.path}/start`)).data).toMatchObject({ status: 'in_progress', current_step: null })
    expect((await user.post(`${flow.path}/advance`)).data).toMatchObject({ status: 'completed', completed_steps: [] })
  })

  test('answers that are too large or cannot be stored are refused, and change nothing', async () => {
    const flow = await flowOf()
    const user = await project.user()
    const before = (await user.post(`${flow.path}/start`)).data
    expect(await user.post(`${flow.path}/advance`, { answers: 'x'.repeat(32_768) })).toMatchObject({
      status: 400,
      error: { code: 'INVALID_INPUT', details: { field: 'answers' } },
    })
    expect((await user.post(`${flow.path}/advance`, { answers: 'a\u0000' })).status).toBe(400)
    expect((await user.get('/client/onboarding')).data.progress).toEqual(before)
    expect((await user.post(`${flow.path}/advance`, { answers: 'x'.repeat(32_766) })).status).toBe(200)
  })

  test('the newest flow in use is shown, and nobody moves another user', async () => {
    const own = await harness.project()
    const user = await own.user()
    const first = (await own.admin.post(root, { name: 'First', steps })).data.id
    const second = (await own.admin.post(root, { name: 'Second', steps })).data.id
    const shown = async () => (await user.get('/client/onboarding')).data?.flow.id
    expect(await shown()).toBe(second)
    await own.admin.patch(`${root}/${second}`, { is_active: false })
    expect(await shown()).toBe(first)
    await own.admin.patch(`${root}/${first}`, { is_active: false })
    expect(await shown()).toBeUndefined()
    const stranger = { 'app.user_id': user.id, 'app.caller': 'user' }
    await expect(
      own.as(
        'app_user',
        stranger,
        `insert into app.onboarding_progress (app_user_id, flow_id, status) values ($1, $2, 'completed')`,
        [user.id, first],
      ),
    ).rejects.toMatchObject({ code: '42501' })
    await expect(
      own.as('app_admin', { 'app.caller': 'developer' }, 'select internal.onboarding_start($1)', [first]),
    ).rejects.toMatchObject({
      code: '42501',
    })
    const asks = own.as('app_user', stranger, 'select internal.segment_member($1, $2)', [randomUUID(), randomUUID()])
    await expect(asks).rejects.toThrow('their own')
  })
})

test('stats count users by where they are, and the rate is of those who started', async () => {
  const own = await harness.project()
  const make = async (name: string) => (await own.admin.post(root, { name, steps })).data.id
  const [quiet, busy] = [await make('Quiet'), await make('Busy')]
  for (const move of ['complete', 'skip', 'advance', 'advance']) {
    const user = await own.user()
    await user.post(`/client/onboarding/${busy}/start`)
    await user.post(`/client/onboarding/${busy}/${move}`)
  }
  const none = { total_started: 0, total_completed: 0, total_skipped: 0, completion_rate: null }
  expect((await own.admin.get('/onboarding/stats')).data).toEqual([
    { flow_id: busy, flow_name: 'Busy', total_started: 4, total_completed: 1, total_skipped: 1, completion_rate: 0.25 },
    { flow_id: quiet, flow_name: 'Quiet', ...none },
  ])
  await own.admin.delete(`${root}/${busy}`)
  expect(await own.sql('select from app.onboarding_progress')).toHaveLength(0)
})
