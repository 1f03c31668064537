import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { bucketOf } from '#test/support/buckets.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(async () => {
  harness.setTime(null)
  await project.sql('delete from app.flags')
})
const root = '/flags'

const flagOf = async (body: Record<string, unknown>) => {
  const answer = await project.admin.post(root, { key: 'flag', ...body })
  expect(answer.status, answer.text).toBe(201)
  return answer.data
}
const rules = async (list: Record<string, unknown>[]) => {
  const answer = await project.admin.patch(`${root}/flag`, { rules: list })
  expect(answer.status, answer.text).toBe(200)
}
const segmentOf = async (...members: string[]): Promise<string> => {
  const [{ id }] = await project.sql(
    `insert into app.segments (key, name, kind) values ('s' || substr(md5(random()::text), 1, 12), 'S', 'static') returning id`,
  )
  for (const member of members) await project.sql('insert into app.segment_members values ($1, $2)', [id, member])
  return id
}
const hash = async (): Promise<string> => (await project.sql('select version_hash from app.flag_sets'))[0].version_hash

describe('a value', () => {
  test('is off, else the override, else the first rule that holds, else the default, and says which', async () => {
    const flag = await flagOf({ value_type: 'string', off_value: 'off', default_value: 'default' })
    const user = await project.user()
    const value = async () => (await user.get('/client/flags/flag')).data
    const answer = { variant: null, rule_index: null }
    expect(await value()).toEqual({ ...answer, value: 'default', reason: 'default', version: 1 })
    await rules([{ percentage: 0, value: 'nobody' }, { value: 'first' }, { value: 'second' }])
    expect(await value()).toEqual({ ...answer, value: 'first', reason: 'rule', rule_index: 1, version: 2 })
    await rules([{ percentage: 100, value: 'everybody' }])
    expect(await value()).toEqual({ ...answer, value: 'everybody', reason: 'rollout', rule_index: 0, version: 3 })
    await project.admin.put(`${root}/flag/overrides`, { [user.id]: 'mine' })
    expect(await value()).toEqual({ ...answer, value: 'mine', reason: 'override', version: 3 })
    // the override does not apply to other callers
    expect((await (await project.user()).get('/client/flags/flag')).data.value).toBe('everybody')
    expect((await project.app.get('/client/flags/flag')).data.value).toBe('everybody')
    await project.admin.post(`${root}/flag/toggle`, { is_enabled: false })
    expect(await value()).toEqual({ ...answer, value: 'off', reason: 'off', version: 4 })
    await project.admin.post(`${root}/flag/toggle`, { is_enabled: true })
    await project.admin.put(`${root}/flag/overrides`, { [user.id]: null })
    expect(await value()).toMatchObject({ value: 'everybody', version: 5 })

    await flagOf({ key: 'another', value_type: 'json', default_value: { a: [1, null] }, off_value: null })
    const all = await user.get('/client/flags')
    expect(all).toMatchObject({ status: 200 })
    expect(all.data).toEqual({
      another: { ...answer, value: { a: [1, null] }, reason: 'default', version: 1 },
      flag: await value(),
    })
    // a server key on behalf of the user evaluates as the user; the response does not reveal rules
    expect((await project.onBehalfOf(user.id).get('/client/flags')).data).toEqual(all.data)
    expect(all.text).not.toContain(flag.id)
  })

  test.each([
    ['boolean', true],
    ['string', ''],
    ['number', 1.5],
    ['number', 12345678901234567890n],
    ['json', null],
    ['json', [{ a: 'ü' }]],
    ['json', 'text'],
  ])('of type %s is what it is: %s', async (value_type, value) => {
    const text = typeof value === 'bigint' ? String(value) : JSON.stringify(value)
    const made = await project.admin.request(
      'POST',
      root,
      `{"key": "flag", "value_type": "${value_type}", "default_value": ${text}, "rules": [{"value": ${text}}]}`,
      { 'content-type': 'application/json' },
    )
    expect(made.status, made.text).toBe(201)
    expect((await project.app.get('/client/flags/flag')).data.value).toEqual(JSON.parse(text))
    await rules([])
    expect((await project.app.get('/client/flags/flag')).data.value).toEqual(JSON.parse(text))
  })
})

describe('rules', () => {
  test('ask for segments', async () => {
    await flagOf({})
    const [member, other] = [await project.user(), await project.user()]
    await rules([{ segment_id: await segmentOf(member.id), value: true }])
    expect((await member.get('/client/flags/flag')).data).toMatchObject({ value: true, reason: 'rule' })
    for (const nobody of [other, project.app, project.server])
      expect((await nobody.get('/client/flags/flag')).data).toMatchObject({ value: false, reason: 'default' })
    // dynamic segments are evaluated at request time
    const { data } = await project.admin.post('/segments', {
      ...{ key: 'pros', name: 'Pros', rules: { source: 'property', column: 'plan', op: 'eq', value: 'pro' } },
    })
    await rules([{ segment_id: data.id, value: true }])
    expect((await other.get('/client/flags/flag')).data.value).toBe(false)
    await other.patch('/client/users/me', { properties: { plan: 'pro' } })
    expect((await other.get('/client/flags/flag')).data.value).toBe(true)
  })

  test('ask for users, by a filter on columns, properties, and what the app says', async () => {
    await flagOf({})
    const user = await project.user()
    await project.sql(
      `update app.users set email = 'ada@example.com', properties = '{"plan": {"tier": "pro"}, "email": "x", "level": 3}' where id = $1`,
      [user.id],
    )
    await project.sql(`update app.user_sessions set platform = 'ios', app_version = '2.0' where app_user_id = $1`, [
      user.id,
    ])
    const evaluate = async (filter: unknown, attributes?: unknown, who: { post: typeof user.post } = user) => {
      await rules([{ filter, value: true }])
      const answer = await who.post('/client/flags/evaluate', attributes === undefined ? {} : { attributes })
      expect(answer.status, answer.text).toBe(200)
      return answer.data.flag.value
    }
    const eq = (column: string, value: unknown) => ({ column, op: 'eq', value })
    for (const [filter, expected, attributes] of [
      [eq('email', 'ada@example.com'), true],
      [eq('email', 'ada@example.com'), true, { email: 'eve@example.com' }],
      [eq('properties.email', 'x'), true],
      [eq('is_anonymous', false), true],
      [eq('is_anonymous', false), true, { is_anonymous: true }],
      [eq('plan.tier', 'pro'), true],
      [eq('properties.plan.tier', 'pro'), true],
      [eq('plan.tier', 'gold'), false, { plan: { tier: 'gold' } }],
      [eq('level', 3), true, { level: 9 }],
      [eq('screen', 'large'), false],
      [eq('screen', 'large'), true, { screen: 'large' }],
      [eq('screen', 'large'), true, { custom: { screen: 'large' } }],
      [eq('custom.screen', 'large'), true, { custom: { screen: 'large' } }],
      [eq('platform', 'ios'), true],
      [eq('platform', 'web'), true, { platform: 'web' }],
      [eq('app_version', '2.0'), true],
      [eq('app_version', '3'), true, { app_version: '3' }],
      [{ and: [eq('level', 3), { not: eq('plan.tier', 'free') }] }, true],
      [{ not: eq('unknown', 1) }, false],
      [{ column: 'created_at', op: 'gt', value: '2020-01-01' }, true],
    ] as const)
      expect(await evaluate(filter, attributes), JSON.stringify([filter, attributes])).toBe(expected)
    // without a user only the attributes of the app count, and they cannot claim to be those of a user
    expect(await evaluate(eq('screen', 'large'), { screen: 'large' }, project.app)).toBe(true)
    expect(await evaluate(eq('email', 'ada@example.com'), { email: 'ada@example.com' }, project.app)).toBe(false)
    expect(await evaluate(eq('email', 'ada@example.com'), { custom: { email: 'ada@example.com' } }, project.app)).toBe(
      false,
    )
    expect(await evaluate(eq('properties.plan', 1), { properties: { plan: 1 } }, project.app)).toBe(false)
    expect(await evaluate(eq('platform', 'ios'), { custom: { platform: 'ios' } }, project.app)).toBe(false)
  })

  test('ask for versions and platforms, by attributes before headers before the session', async () => {
    await flagOf({})
    const user = await project.user()
    await rules([{ min_app_version: '1.10', platforms: ['iOS', 'web'], value: true }])
    const get = async (headers: Record<string, string>, who = user as typeof project.app) =>
      (await who.get('/client/flags/flag', headers)).data.value
    const headers = (version: string, platform: string) => ({ 'x-app-version': version, 'x-platform': platform })
    expect(await get({})).toBe(false)
    for (const [version, platform, expected] of [
      ['1.10', 'ios', true],
      ['1.10.0', 'IOS', true],
      ['2', 'web', true],
      ['1.9.9', 'ios', false],
      ['1.10', 'android', false],
      ['none', 'ios', false],
      ['x'.repeat(65), 'ios', false],
    ] as const) {
      expect(await get(headers(version, platform)), version).toBe(expected)
      expect(await get(headers(version, platform), project.app)).toBe(expected)
    }
    await project.sql(`update app.user_sessions set platform = 'web', app_version = '1.11' where app_user_id = $1`, [
      user.id,
    ])
    expect(await get({})).toBe(true)
    expect(await get(headers('1.2', 'ios'))).toBe(false)
    const attributes = { app_version: '1.12', platform: 'ios' }
    const said = await user.post('/client/flags/evaluate', { attributes }, headers('1.2', 'android'))
    expect(said.data.flag.value).toBe(true)
    const said2 = await project.app.post('/client/flags/evaluate', {}, headers('1.12', 'web'))
    expect(said2.data.flag.value).toBe(true)
  })

  test('hold from starts_at until before ends_at', async () => {
    await flagOf({})
    await rules([{ starts_at: '2030-01-01T10:00:00+01:00', ends_at: '2030-01-02', value: true }])
    for (const [at, expected] of [
      ['2030-01-01T08:59:59.999Z', false],
      ['2030-01-01T09:00:00Z', true],
      ['2030-01-01T23:59:59.999Z', true],
      ['2030-01-02T00:00:00Z', false],
    ] as const) {
      harness.setTime(at)
      expect((await project.app.get('/client/flags/flag')).data.value, at).toBe(expected)
    }
  })

  test('hold for a share that SDKs compute: FNV-1a of the key and the user, with nothing between', async () => {
    const user = await project.user()
    for (const key of ['one', 'two', 'three-four']) {
      await flagOf({ key })
      const share = bucketOf(key, user.id) / 100
      const at = async (percentage: number) => {
        await project.admin.patch(`${root}/${key}`, { rules: [{ percentage, value: true }] })
        return (await user.get('/client/flags')).data[key]
      }
      expect(await at(share)).toMatchObject({ value: false, reason: 'default' })
      expect(await at(share + 0.01)).toMatchObject({ value: true, reason: 'rollout', rule_index: 0 })
      // 100 % includes callers without a user; a lower percentage is a share of users
      expect((await project.app.get('/client/flags')).data[key].value).toBe(false)
      await at(100)
      expect((await project.app.get('/client/flags')).data[key]).toMatchObject({ value: true, reason: 'rollout' })
    }
  })

  test('raising a percentage only adds users', { timeout: 180_000 }, async () => {
    const property = fc.asyncProperty(
      fc.stringMatching(/^[a-z][a-z0-9_-]{0,20}$/),
      fc.array(fc.uuid(), { minLength: 20, maxLength: 40 }),
      fc.integer({ min: 0, max: 10_000 }),
      fc.integer({ min: 0, max: 10_000 }),
      async (key, users, a, b) => {
        const [low, high] = [Math.min(a, b) / 100, Math.max(a, b) / 100]
        const rows = await project.sql(
          `select u.id, (internal.flag_rule_truth(jsonb_build_object('percentage', $3::numeric), $1, u.id, null, null)).holds as low,
                  (internal.flag_rule_truth(jsonb_build_object('percentage', $4::numeric), $1, u.id, null, null)).holds as high
             from unnest($2::uuid[]) u (id)`,
          [key, users, low, high],
        )
        for (const row of rows) {
          expect(row.low).toBe(bucketOf(key, row.id) < Math.min(a, b))
          expect(row.high).toBe(bucketOf(key, row.id) < Math.max(a, b))
          expect(row.low && !row.high).toBe(false)
        }
      },
    )
    await fc.assert(property, { numRuns: 40 })
  })
})

describe('evaluate', () => {
  test('answers the flags that are asked, and refuses what is malformed', async () => {
    await flagOf({})
    await flagOf({ key: 'second', rules: [{ value: true }] })
    const asked = await project.app.post('/client/flags/evaluate', { keys: ['second', 'gone'] })
    expect(asked).toMatchObject({ status: 200 })
    expect(Object.keys(asked.data)).toEqual(['second'])
    expect((await project.app.post('/client/flags/evaluate', { keys: [] })).data).toEqual({})
    expect(Object.keys((await project.app.post('/client/flags/evaluate', {})).data)).toEqual(['flag', 'second'])
    for (const [field, body] of [
      ['keys', { keys: 'second' }],
      ['keys.0', { keys: [3] }],
      ['keys', { keys: Array.from({ length: 501 }, () => 'a') }],
      ['attributes', { attributes: [] }],
      ['attributes', { attributes: { a: 'x'.repeat(16_377) } }],
    ] as const)
      expect(await project.app.post('/client/flags/evaluate', body)).toMatchObject({
        status: 400,
        error: { code: 'VALIDATION_ERROR', details: { field } },
      })
    expect((await project.app.post('/client/flags/evaluate', { attributes: { a: 'x'.repeat(16_376) } })).status).toBe(
      200,
    )
    expect(await project.app.post('/client/flags/evaluate', '[]')).toMatchObject({
      status: 400,
      error: { code: 'INVALID_BODY' },
    })
  })

  test('shows an administrator each condition of each rule', async () => {
    await flagOf({ key: 'traced', value_type: 'string', default_value: 'none' })
    const user = await project.user()
    const bucket = bucketOf('traced', user.id)
    const segment_id = await segmentOf(user.id)
    const list = [
      { filter: { column: 'screen', op: 'eq', value: 'small' }, segment_id, value: 'a' },
      { percentage: bucket / 100, starts_at: '2020-01-01', value: 'b' },
      { min_app_version: '2', platforms: ['ios'], percentage: Math.min(100, bucket / 100 + 0.01), value: 'c' },
      { value: 'd' },
    ]
    await project.admin.patch(`${root}/traced`, { rules: list })
    const evaluate = async (attributes?: unknown) =>
      (await project.admin.post(`${root}/traced/evaluate`, { user_id: user.id, attributes })).data
    const said = { screen: 'large', app_version: '2.1', platform: 'ios' }
    expect(await evaluate(said)).toEqual({
      ...{ value: 'c', variant: null, reason: 'rollout', rule_index: 2, version: 2, bucket, override: null },
      trace: [
        { rule_index: 0, holds: false, value: 'a', conditions: { segment_id: true, filter: false } },
        { rule_index: 1, holds: false, value: 'b', conditions: { time: true, percentage: false } },
        {
          ...{ rule_index: 2, holds: true, value: 'c' },
          conditions: { min_app_version: true, platforms: true, percentage: true },
        },
        { rule_index: 3, holds: true, value: 'd', conditions: {} },
      ],
    })
    expect(await evaluate()).toMatchObject({ value: 'd', reason: 'rule', rule_index: 3 })
    await project.admin.put(`${root}/traced/overrides`, { [user.id]: 'mine' })
    expect(await evaluate(said)).toMatchObject({
      value: 'mine',
      reason: 'override',
      override: 'mine',
      rule_index: null,
    })
    await project.admin.post(`${root}/traced/toggle`, { is_enabled: false })
    expect(await evaluate(said)).toMatchObject({ value: 'none', reason: 'off', trace: [{}, {}, { holds: true }, {}] })
    // evaluations by administrators are not counted
    expect((await project.admin.get(`${root}/traced`)).data.last_evaluated_at).toBeNull()
  })
})

describe('the answer', () => {
  const vary = 'Authorization, X-On-Behalf-Of, X-App-Version, X-Platform, X-Api-Key'
  const head = (answer: { headers: Headers }) => [answer.headers.get('cache-control'), answer.headers.get('vary')]
  const etag = (answer: { headers: Headers }) => answer.headers.get('etag') ?? ''

  test('has exact headers, and is not sent again while nothing changed', async () => {
    await flagOf({})
    const user = await project.user()
    for (const path of ['/client/flags', '/client/flags/flag']) {
      const out = await project.app.get(path)
      expect(etag(out)).toMatch(new RegExp(`^"${await hash()}:[0-9a-f]{32}"$`))
      expect(head(out)).toEqual(['private, max-age=300', vary])
      const signedIn = await user.get(path)
      expect(etag(signedIn)).toMatch(new RegExp(`^"${await hash()}:${user.id}::[0-9a-f]{32}"$`))
      expect(head(signedIn)).toEqual(['private, max-age=60', vary])
      const tag = etag(signedIn)
      for (const sent of [tag, `W/${tag}`, `"x", ${tag}`, '*']) {
        const same = await user.get(path, { 'if-none-match': sent })
        expect(same, sent).toMatchObject({ status: 304, text: '' })
        expect(etag(same)).toBe(tag)
        expect(head(same)).toEqual(['private, max-age=60', vary])
      }
      for (const sent of ['"x"', etag(out), ''])
        expect((await user.get(path, { 'if-none-match': sent })).status, sent).toBe(200)
      expect((await project.app.get(path, { 'if-none-match': etag(out) })).status).toBe(304)
    }
    const segments = [await segmentOf(user.id), await segmentOf(user.id)].sort()
    expect(etag(await user.get('/client/flags'))).toContain(`:${user.id}:${segments.join(',')}:`)
  })

  test('is sent again when a flag, an override, a segment, the time, a property or a header made it another one', async () => {
    const user = await project.user()
    await flagOf({ key: 'stays' })
    await flagOf({
      rules: [
        { starts_at: '2030-01-01', ends_at: '2030-01-02', value: true },
        { filter: { column: 'vip', op: 'eq', value: true }, value: true },
        { min_app_version: '9', value: true },
      ],
    })
    let tag = etag(await user.get('/client/flags'))
    const isNew = async (headers = {}) => {
      const answer = await user.get('/client/flags', { 'if-none-match': tag, ...headers })
      if (answer.status === 200) tag = etag(answer)
      return answer.status === 200
    }
    expect(await isNew()).toBe(false)
    expect(await isNew({ 'x-app-version': '9.1' })).toBe(true)
    expect(await isNew()).toBe(true)
    await user.patch('/client/users/me', { properties: { vip: true } })
    expect(await isNew()).toBe(true)
    await user.patch('/client/users/me', { properties: { vip: false } })
    expect(await isNew()).toBe(true)
    harness.setTime('2029-12-31T23:59:00Z')
    const timely = await project.app.get('/client/flags')
    expect((await project.app.get('/client/flags', { 'if-none-match': etag(timely) })).status).toBe(304)
    harness.advance(60)
    expect((await project.app.get('/client/flags', { 'if-none-match': etag(timely) })).status).toBe(200)
    harness.setTime(null)
    await project.admin.put(`${root}/flag/overrides`, { [user.id]: true })
    expect(await isNew()).toBe(true)
    await segmentOf(user.id)
    expect(await isNew()).toBe(true)
    // also when the change does not affect a value
    await project.admin.patch(`${root}/stays`, { tags: ['x'] })
    expect(await isNew()).toBe(true)
    expect(await isNew()).toBe(false)
    await project.admin.patch(`${root}/stays`, { tags: ['x'] })
    expect(await isNew()).toBe(false)
    await project.admin.delete(`${root}/stays`)
    expect(await isNew()).toBe(true)
  })

  test('an invalid Bearer is refused, and a user that is not there', async () => {
    await flagOf({})
    const other = await (await harness.project()).user()
    for (const path of ['/client/flags', '/client/flags/flag']) {
      expect(await project.app.get(path, { authorization: `Bearer ${other.sessionToken}` })).toMatchObject({
        status: 401,
        error: { code: 'UNAUTHORIZED' },
      })
      expect(await project.onBehalfOf(other.id).get(path)).toMatchObject({
        status: 404,
        error: { code: 'USER_NOT_FOUND' },
      })
    }
  })
})
