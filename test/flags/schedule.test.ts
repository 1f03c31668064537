import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { personalToken, withBearer } from '#test/support/accounts.ts'
import { startHarness } from '#test/support/harness.ts'
import { startMailServer } from '#test/support/smtp.ts'

const mail = await startMailServer()
const harness = await startHarness({ env: { SMTP_URL: mail.url, MAIL_FROM: 'Trellis <no-reply@trellis.test>' } })
const project = await harness.project()
// a personal access token, because a session would expire when these tests move the clock
const { token } = await personalToken(project.developer, { expires_in_days: null })
const developer = withBearer(harness.anyone, token)
const root = `/admin/projects/${project.id}/flags`
const start = '2030-01-01T00:00:00.000Z'
const hours = (n: number) => new Date(Date.parse(start) + n * 3600_000).toISOString()
afterAll(mail.stop)
afterEach(async () => {
  harness.setTime(null)
  await project.sql('delete from app.flags')
  await project.sql('delete from app.outbox')
})

const flagOf = async (body: Record<string, unknown> = {}) => {
  harness.setTime(start)
  const answer = await developer.post(root, { key: 'flag', ...body })
  expect(answer.status, answer.text).toBe(201)
  return answer.data
}
const seen = async () => {
  const { data } = await developer.get(`${root}/flag`)
  return data
}
const value = async (who: { get: typeof project.app.get } = project.app) => (await who.get('/client/flags/flag')).data

describe('a schedule', () => {
  test('changes the flag at its times, exactly, and each step is a version of its own, whether a worker runs or not', async () => {
    const flag = await flagOf({
      ...{ value_type: 'string', default_value: 'a' },
      // steps are applied in the order of their times, not of the request
      schedule: [
        { at: hours(3), patch: { is_enabled: false, off_value: 'closed' } },
        { at: hours(1), patch: { default_value: 'b' } },
        { at: hours(2), patch: { rules: [{ value: 'c' }] } },
      ],
    })
    expect(flag.schedule.map(({ at }: { at: string }) => at)).toEqual([hours(1), hours(2), hours(3)])
    expect(flag.version).toBe(1)
    for (const [at, expected] of [
      [-0.001, { value: 'a', version: 1 }],
      [0, { value: 'b', version: 2, reason: 'default' }],
      [1, { value: 'c', version: 3, reason: 'rule' }],
      [2, { value: 'closed', version: 4, reason: 'off' }],
    ] as const) {
      harness.setTime(hours(1 + at))
      // the step is evaluated although no worker has stored it yet
      expect(await value(), `${at}`).toMatchObject(expected)
    }
    const [{ version }] = await project.sql('select version from app.flags where id = $1', [flag.id])
    expect(version).toBe(1)
    harness.setTime(hours(5))
    expect(await seen()).toMatchObject({
      ...{ version: 4, schedule: [], default_value: 'b', rules: [{ value: 'c' }], is_enabled: false },
      updated_at: hours(3),
    })
    expect(await value()).toMatchObject({ value: 'closed', version: 4 })
    const history = await developer.get(`${root}/flag/history`)
    expect(history.data).toMatchObject([
      { version: 4, changed_at: hours(3), actor: { type: 'system' }, changes: { is_enabled: [true, false] } },
      { version: 3, changed_at: hours(2), actor: { type: 'system' }, changes: { rules: [[], [{ value: 'c' }]] } },
      { version: 2, changed_at: hours(1), actor: { type: 'system' }, changes: { default_value: ['a', 'b'] } },
      { version: 1, actor: { type: 'pat' } },
    ])
    // scheduled steps are not audited: the trail has only the developer's action
    const trail = await project.sql(`select action from app.audit_events where target_id = $1`, [flag.id])
    expect(trail).toEqual([{ action: 'flags.create' }])
  })

  test('is kept by the worker at its times', async () => {
    await flagOf({
      schedule: [
        { at: hours(1), patch: { default_value: true } },
        { at: hours(2), patch: { is_enabled: false } },
      ],
    })
    const stored = async () => (await project.sql('select version, is_enabled, next_at from app.flags'))[0]
    await project.drain()
    expect(await stored()).toMatchObject({ version: 1 })
    harness.setTime(hours(1))
    await project.drain()
    expect(await stored()).toMatchObject({ version: 2, is_enabled: true, next_at: new Date(hours(2)) })
    harness.setTime(hours(2))
    await project.drain()
    expect(await stored()).toMatchObject({ version: 3, is_enabled: false, next_at: null })
    const [{ count }] = await project.sql(`select count(*)::int from app.outbox where task = 'flags__advance'`)
    expect(count).toBe(0)
  })

  test('whose time is past is due at once; twenty readers at once write it down once', async () => {
    expect(await flagOf({ schedule: [{ at: hours(-1), patch: { default_value: true } }] })).toMatchObject({
      ...{ default_value: true, schedule: [], version: 2 },
    })
    await developer.patch(`${root}/flag`, { schedule: [{ at: hours(1), patch: { default_value: false } }] })
    harness.setTime(hours(1))
    const all = await Promise.all(Array.from({ length: 20 }, seen))
    for (const flag of all) expect(flag).toMatchObject({ version: 4, default_value: false, schedule: [] })
  })

  test('must fit what the flag is then: rules that it names may not go', async () => {
    await flagOf({
      rules: [{ value: true }],
      schedule: [{ at: hours(1), patch: { rule_index: 0, percentage: 50 } }],
    })
    expect(
      await developer.patch(`${root}/flag`, {
        schedule: [
          { at: hours(2), patch: { rule_index: 0, percentage: 50 } },
          { at: hours(1), patch: { rules: [] } },
        ],
      }),
    ).toMatchObject({ status: 400, error: { details: { field: 'schedule.0.patch.rule_index' } } })
    // new rules end the schedule that raises the former ones
    const changed = await developer.patch(`${root}/flag`, { rules: [] })
    expect(changed.data).toMatchObject({ schedule: [], rules: [] })
  })
})

describe('a ramp', () => {
  const ramp = (body: Record<string, unknown> = {}) =>
    developer.post(`${root}/flag/ramp`, { from: 10, to: 45, step: 20, every_hours: 6, ...body })

  test('raises a rule step by step, only adding users, and is a schedule', async () => {
    await flagOf()
    const answer = await ramp()
    expect(answer, answer.text).toMatchObject({ status: 200 })
    expect(answer.data).toMatchObject({
      rules: [{ value: true, percentage: 10 }],
      schedule: [
        { at: hours(6), patch: { rule_index: 0, percentage: 30 } },
        { at: hours(12), patch: { rule_index: 0, percentage: 45 } },
      ],
      ramp: {
        ...{ rule_index: 0, from: 10, to: 45, step: 20, every_hours: 6, started_at: start, ends_at: hours(18) },
        status: 'running',
      },
      version: 2,
    })
    const users = await Promise.all(Array.from({ length: 12 }, () => project.user()))
    let before = new Set<string>()
    for (const [at, percentage] of [
      [0, 10],
      [6, 30],
      [12, 45],
      [100, 45],
    ] as const) {
      harness.setTime(hours(at))
      const rows = await project.sql(`select u.id, internal.bucket('flag', u.id) as bucket from app.users u`)
      const expected = new Set(rows.filter(({ bucket }) => bucket < percentage * 100).map(({ id }) => id))
      const now = new Set<string>()
      for (const user of users)
        if ((await project.onBehalfOf(user.id).get('/client/flags/flag')).data.value) now.add(user.id)
      for (const user of users) expect(now.has(user.id)).toBe(expected.has(user.id))
      for (const id of before) expect(now).toContain(id)
      before = now
    }
    expect(await seen()).toMatchObject({ ramp: { status: 'done' }, schedule: [], version: 4 })
  })

  test('takes the rule that is named, the first with a percentage, or makes one', async () => {
    await flagOf({
      ...{ value_type: 'string', default_value: 'a' },
      rules: [{ value: 'b' }, { value: 'c', percentage: 1 }, { value: 'd' }],
    })
    expect((await ramp()).data.rules[1]).toEqual({ value: 'c', percentage: 10 })
    expect((await ramp({ rule_index: 2 })).data).toMatchObject({
      rules: [{ value: 'b' }, { value: 'c', percentage: 10 }, { value: 'd', percentage: 10 }],
      ramp: { rule_index: 2 },
      // the former ramp has ended
      schedule: [{ patch: { rule_index: 2 } }, { patch: { rule_index: 2 } }],
    })
    await developer.patch(`${root}/flag`, { rules: [] })
    expect(await ramp()).toMatchObject({ status: 400, error: { details: { field: 'value' } } })
    expect((await ramp({ value: 'new' })).data.rules).toEqual([{ value: 'new', percentage: 10 }])
    expect((await ramp()).data.rules).toHaveLength(1)
    // a PATCH with the same schedule keeps the ramp, one with an empty schedule ends it
    const { schedule } = await seen()
    const more = [...schedule, { at: hours(99), patch: { is_enabled: false } }]
    expect((await developer.patch(`${root}/flag`, { schedule: more })).data.ramp).toMatchObject({
      status: 'running',
    })
    expect((await developer.patch(`${root}/flag`, { schedule: [] })).data.ramp).toBeNull()
  })

  test.each([
    ['from', { from: -1 }],
    ['from', { from: undefined }],
    ['to', { to: 101 }],
    ['to', { to: 10 }],
    ['step', { step: 0 }],
    ['step', { step: 0.3 }],
    ['every_hours', { every_hours: 0 }],
    ['every_hours', { every_hours: 8761 }],
    ['rule_index', { rule_index: 1 }],
    ['rule_index', { rule_index: -1 }],
    ['value', { value: 'on' }],
    ['guardrail', { guardrail: 5 }],
    ['guardrail.event_name', { guardrail: { max_rate: 0.1 } }],
    ['guardrail.max_rate', { guardrail: { event_name: 'failed' } }],
    ['guardrail.max_rate', { guardrail: { event_name: 'failed', max_rate: 1.1 } }],
    ['guardrail.min_users', { guardrail: { event_name: 'failed', max_rate: 0.1, min_users: 0 } }],
    ['guardrail.min_users', { guardrail: { event_name: 'failed', max_rate: 0.1, min_users: 1.5 } }],
    ['guardrail.rate', { guardrail: { event_name: 'failed', max_rate: 0.1, rate: 1 } }],
  ])('with a bad %s is refused: %j', async (field, bad) => {
    const flag = await flagOf()
    expect(await ramp(bad)).toMatchObject({ status: 400, error: { code: 'VALIDATION_ERROR', details: { field } } })
    expect(await seen()).toEqual(flag)
  })

  test('a value beside a rule that has one is refused, and so is one for a rule too many', async () => {
    await flagOf({ rules: Array.from({ length: 50 }, () => ({ value: true })) })
    expect(await ramp({ rule_index: 0, value: false })).toMatchObject({
      status: 400,
      error: { details: { field: 'value' } },
    })
    expect(await ramp()).toMatchObject({ status: 400, error: { details: { field: 'rules' } } })
  })

  const guardrail = { event_name: 'checkout_failed', max_rate: 0.5 }
  const fail = (userId: string, event_name = 'checkout_failed') =>
    developer
      .post(`/admin/projects/${project.id}/events`, { app_user_id: userId, event_name })
      .then(({ status }) => expect(status).toBe(201))
  const look = async () => {
    harness.advance(6)
    await project.drain()
  }
  /** Creates users who all get the value of the ramp's rule. */
  const exposed = async (count: number) => {
    const users = await Promise.all(Array.from({ length: count }, () => project.user()))
    for (const user of users) expect((await value(project.onBehalfOf(user.id) as never)).value).toBe(true)
    return users
  }

  test('is stopped when more of its users than allowed have the event of its guardrail, and the owner gets an email', async () => {
    const flag = await flagOf({ rules: [{ percentage: 1, value: true }] })
    const started = await ramp({ from: 99.99, to: 100, step: 0.01, guardrail })
    expect(started.data.ramp.guardrail).toEqual({ ...guardrail, min_users: 1 })
    harness.advance(60)
    await project.sql(`update app.flags set rules = '[{"percentage": 100, "value": true}]'`)
    const [a, b, c, d] = await exposed(4)
    const stranger = await project.user()
    harness.advance(60)
    // half of the users may fail; users who never got the value and other events do not count, and a user counts once
    await fail(stranger.id)
    await fail(a?.id ?? '')
    await fail(a?.id ?? '')
    await fail(b?.id ?? '')
    await fail(c?.id ?? '', 'something_else')
    await look()
    expect(await seen()).toMatchObject({ ramp: { status: 'running' }, rules: [{ percentage: 100 }] })
    await fail(d?.id ?? '')
    await look()
    expect(await seen()).toMatchObject({
      rules: [{ percentage: 0, value: true }],
      schedule: [],
      ramp: { status: 'stopped', rate: 0.75, exposed_users: 4, stopped_at: harness.now().toISOString() },
    })
    expect((await value(project.onBehalfOf(a?.id ?? '') as never)).value).toBe(false)
    await project.drain()
    const letters = mail.to(project.developer.email)
    expect(letters).toHaveLength(1)
    expect(letters[0]?.text).toContain('75 % had checkout_failed afterwards; 50 % may')
    const trail = await project.sql(
      `select actor ->> 'type' as type from app.audit_events where target_id = $1 and action = 'flags.guardrail'`,
      [flag.id],
    )
    expect(trail).toEqual([{ type: 'system' }])
    // the owner is notified once
    await fail(c?.id ?? '')
    await look()
    expect(mail.to(project.developer.email)).toHaveLength(1)
  })

  test('waits for as many users as it should, and forgets those of a former ramp', async () => {
    await flagOf({ rules: [{ percentage: 1, value: true }] })
    await ramp({ from: 99, to: 100, step: 1, guardrail: { ...guardrail, min_users: 2 } })
    await project.sql(`update app.flags set rules = '[{"percentage": 100, "value": true}]'`)
    const [first] = await exposed(1)
    harness.advance(1)
    await fail(first?.id ?? '')
    await look()
    expect((await seen()).ramp.status).toBe('running')
    await ramp({ from: 99, to: 100, step: 1, guardrail: { ...guardrail, min_users: 1 } })
    await project.sql(`update app.flags set rules = '[{"percentage": 100, "value": true}]'`)
    await fail(first?.id ?? '')
    await look()
    // users who got the value before the ramp do not count
    expect((await seen()).ramp.status).toBe('running')
    const [second] = await exposed(1)
    harness.advance(1)
    await fail(second?.id ?? '')
    await look()
    expect((await seen()).ramp).toMatchObject({ status: 'stopped', rate: 1, exposed_users: 1 })
  })

  test('one that is done is guarded no more', async () => {
    await flagOf({ rules: [{ percentage: 1, value: true }] })
    await ramp({ from: 99, to: 100, step: 1, guardrail })
    harness.setTime(hours(12))
    const [user] = await exposed(1)
    await fail(user?.id ?? '')
    await look()
    expect(await seen()).toMatchObject({ ramp: { status: 'done' }, rules: [{ percentage: 100 }] })
  })
})
