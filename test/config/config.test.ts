import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterEach, describe, expect, test } from 'vitest'
import { bucketOf } from '#test/support/buckets.ts'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(async () => {
  harness.setTime(null)
  await project.sql('delete from app.config_keys')
})

const put = async (key: string, value: unknown, more: Record<string, unknown> = {}) => {
  const answer = await project.admin.post('/config', { key, value, ...more })
  expect(answer.status, answer.text).toBe(201)
  return answer.data
}
const hash = async (): Promise<string> =>
  (await project.sql('select version_hash from app.config_versions'))[0].version_hash
const segmentOf = async (...members: string[]): Promise<string> => {
  const [{ id }] = await project.sql(
    `insert into app.segments (key, name, kind) values ('s' || substr(md5(random()::text), 1, 12), 'S', 'static') returning id`,
  )
  for (const member of members) await project.sql('insert into app.segment_members values ($1, $2)', [id, member])
  return id
}

describe('keys', () => {
  test('are written whole, listed in order, changed in part and deleted, and the trail says so', async () => {
    const made = await project.admin.post('/config', { key: 'welcome', value: 'Hi' })
    expect(made.status).toBe(201)
    expect(made.data).toMatchObject({
      ...{ key: 'welcome', value: 'Hi', value_type: 'string', description: null, default_value: 'Hi', conditions: [] },
      version: 1,
    })
    const conditions = [{ percentage: 50, value: 'Ho' }]
    await put('alpha', 1, { value_type: 'number', description: 'First', conditions })
    const list = await project.admin.get('/config')
    expect(list.data).toMatchObject([
      { key: 'alpha', value: 1, value_type: 'number', description: 'First', conditions },
      { key: 'welcome' },
    ])

    expect((await project.admin.patch('/config/alpha', {})).data).toEqual(list.data[0])
    const changed = await project.admin.patch('/config/alpha', {
      ...{ value: 2, description: null, conditions: [] },
      ...{ key: 'beta', value_type: 'json', default_value: 9, version: 77 },
    })
    expect(changed.data).toMatchObject({
      ...{
        key: 'alpha',
        value: 2,
        default_value: 2,
        value_type: 'number',
        description: null,
        conditions: [],
        version: 2,
      },
    })
    // PUT resets fields that it leaves out
    await put('alpha', 2, { description: 'Again', conditions })
    expect(await put('alpha', 2)).toMatchObject({ description: null, conditions: [], value_type: 'string', version: 2 })
    expect((await project.admin.delete('/config/alpha')).data).toEqual({ deleted: true })
    for (const method of ['PATCH', 'DELETE'])
      expect(await project.admin.request(method, '/config/alpha', { value: 1 })).toMatchObject({
        status: 404,
        error: { code: 'NOT_FOUND' },
      })
    expect((await project.admin.patch('/config/alpha', {})).status).toBe(404)
    const trail = await project.sql(
      `select action from app.audit_events where action like 'config.%' order by position`,
    )
    const verbs = trail.map(({ action }) => action.replace('config.', ''))
    expect(verbs).toEqual(['create', 'create', 'update', 'update', 'update', 'delete'])
  })

  test('version counts changes of value only; the hash is new at every change, also back to what was', async () => {
    const seen = [await hash()]
    const expectNew = async () => {
      const now = await hash()
      expect(seen).not.toContain(now)
      seen.push(now)
    }
    await put('k', { a: 1 }, { value_type: 'json' })
    await expectNew()
    for (const [patch, version] of [
      [{ value: { a: 2 } }, 2],
      [{ value: { a: 1 } }, 3],
      [{ value: { a: 1 } }, 3],
      [{ description: 'x' }, 3],
      [{ conditions: [{ value: 1 }] }, 3],
      [{ value: null }, 4],
      [{ value: null }, 4],
    ] as const) {
      expect((await project.admin.patch('/config/k', patch)).data.version, JSON.stringify(patch)).toBe(version)
      await expectNew()
    }
    await put('k', null)
    await expectNew()
    await project.admin.delete('/config/k')
    await expectNew()
    // a request that changes nothing does not change the hash
    await project.admin.delete('/config/k')
    await put('k', 1)
    const before = await hash()
    await project.admin.patch('/config/k', {})
    await project.admin.get('/config')
    expect(await hash()).toBe(before)
    // a change by SQL changes it too
    await project.sql(`update app.config_keys set description = 'by hand'`)
    expect(await hash()).not.toBe(before)
  })

  test('twenty writers at once count twenty changes', async () => {
    await put('k', 'start')
    await Promise.all(Array.from({ length: 20 }, (_, n) => project.admin.patch('/config/k', { value: `${n}` })))
    expect((await project.admin.get('/config')).data[0].version).toBe(21)
    const first = await Promise.all(
      Array.from({ length: 10 }, (_, n) => project.admin.post('/config', { key: 'new', value: `${n}` })),
    )
    expect(first.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 201))
    expect((await project.admin.get('/config')).data[1].version).toBe(10)
  })

  test.each([
    ['key', { key: '' }],
    ['key', { key: 'a b' }],
    ['key', { key: 'a'.repeat(129) }],
    ['key', { key: undefined }],
    ['value', { value: undefined }],
    ['value_type', { value_type: 'date' }],
    ['description', { description: 'x'.repeat(2001) }],
    ['conditions', { conditions: {} }],
    ['conditions', { conditions: Array.from({ length: 101 }, () => ({ value: 1 })) }],
    ['conditions.0', { conditions: ['all'] }],
    ['conditions.1.value', { conditions: [{ value: 1 }, { percentage: 3 }] }],
    ['conditions.0.percentage', { conditions: [{ percentage: 101, value: 1 }] }],
    ['conditions.0.percentage', { conditions: [{ percentage: -1, value: 1 }] }],
    ['conditions.0.percentage', { conditions: [{ percentage: '5', value: 1 }] }],
    ['conditions.0.segment_id', { conditions: [{ segment_id: randomUUID(), value: 1 }] }],
    ['conditions.0.segment_id', { conditions: [{ segment_id: 'vip', value: 1 }] }],
  ])('with a bad %s are refused, new or changed', async (field, change) => {
    const bad = { status: 400, error: { code: 'INVALID_INPUT', details: { field } } }
    expect(await project.admin.post('/config', { key: 'k', value: 1, ...change })).toMatchObject(bad)
    expect((await project.admin.get('/config')).data).toEqual([])
    if (!/description|conditions/.test(field)) return
    await put('k', 1)
    const before = await hash()
    expect(await project.admin.patch('/config/k', change)).toMatchObject(bad)
    expect(await hash()).toBe(before)
  })

  test('keys of 128 characters, percentages of 0 and 100, a hundred conditions are taken; a body that is no object is not', async () => {
    await put('A.b:c_d-1'.padEnd(128, 'x'), 1, {
      conditions: [0, 100, 33.33].map((percentage) => ({ percentage, value: 1 })),
    })
    await put('many', 1, { conditions: Array.from({ length: 100 }, () => ({ value: 1 })) })
    expect(await project.admin.post('/config', '[]')).toMatchObject({ status: 400, error: { code: 'INVALID_INPUT' } })
    expect(await project.admin.post('/config', { key: 'k', value: 'a\u0000' })).toMatchObject({ status: 400 })
  })

  test('are of one project', async () => {
    await put('k', 1)
    const other = await harness.project()
    expect((await other.admin.get('/config')).data).toEqual([])
    expect((await other.admin.patch('/config/k', { value: 2 })).status).toBe(404)
    expect((await other.app.get('/client/config')).data).toEqual({})
  })
})

describe('values', () => {
  test.each([
    ['string', 'a', 'a'],
    ['string', 5, '5'],
    ['string', 1.5, '1.5'],
    ['string', true, 'true'],
    ['string', { a: 1 }, { a: 1 }],
    ['string', null, null],
    ['number', 5, 5],
    ['number', ' 5.25 ', 5.25],
    ['number', '-1e3', -1000],
    ['number', 'five', 'five'],
    ['number', '', ''],
    ['number', '0x10', '0x10'],
    ['number', 'NaN', 'NaN'],
    ['number', true, true],
    ['boolean', true, true],
    ['boolean', 'false', false],
    ['boolean', 'true', true],
    ['boolean', 1, true],
    ['boolean', 0, false],
    ['boolean', 2, 2],
    ['boolean', 'yes', 'yes'],
    ['json', { a: [1] }, { a: [1] }],
    ['json', '{"a": 1}', { a: 1 }],
    ['json', '[1, 2]', [1, 2]],
    ['json', 'not json', 'not json'],
    ['json', '['.repeat(100_000), '['.repeat(100_000)],
    ['json', 7, 7],
  ])('of type %s: %j becomes %j', async (value_type, value, expected) => {
    expect((await put('k', value, { value_type })).value).toEqual(value)
    expect((await project.app.get('/client/config')).data).toEqual({ k: expected })
    // the value of a condition is coerced as well
    await put('k', 'other', { value_type, conditions: [{ value }] })
    const user = await project.user()
    expect((await user.get('/client/config')).data).toEqual({ k: expected })
  })

  test('conditions hold in their order, for signed-in users only', async () => {
    const [member, other] = [await project.user(), await project.user()]
    const segment_id = await segmentOf(member.id)
    const both = await segmentOf(member.id, other.id)
    await put('k', 'default', {
      conditions: [
        { segment_id, percentage: 0, value: 'nobody' },
        { segment_id, percentage: 100, value: 'members' },
        { segment_id: both, value: 'both' },
        { value: 'everybody' },
      ],
    })
    await put('last', 'default', {
      conditions: [
        { percentage: 0, value: 1 },
        { segment_id: null, percentage: null, value: null },
      ],
    })
    expect((await member.get('/client/config')).data).toEqual({ k: 'members', last: null })
    expect((await other.get('/client/config')).data).toEqual({ k: 'both', last: null })
    expect((await (await project.user()).get('/client/config')).data.k).toBe('everybody')
    for (const nobody of [project.app, project.server])
      expect((await nobody.get('/client/config')).data).toEqual({ k: 'default', last: 'default' })
    // a server key on behalf of the user evaluates as the user
    expect((await project.onBehalfOf(member.id).get('/client/config')).data.k).toBe('members')
  })

  test('the bucket is the one that SDKs compute: FNV-1a of key:user', async () => {
    // published vectors of FNV-1a
    const rows = await project.sql(
      `select internal.fnv1a32('')::int8 as a, internal.fnv1a32('a')::int8 as b, internal.fnv1a32('foobar')::int8 as c`,
    )
    expect(Object.values(rows[0] as object).map(Number)).toEqual([0x811c9dc5, 0xe40c292c, 0xbf9cf968])
    const user = await project.user()
    for (const key of ['one', 'two', 'three.four']) {
      const share = bucketOf(`${key}:`, user.id) / 100
      await put(key, 'out', { conditions: [{ percentage: share, value: 'in' }] })
      expect((await user.get('/client/config')).data[key]).toBe('out')
      await project.admin.patch(`/config/${key}`, { conditions: [{ percentage: share + 0.01, value: 'in' }] })
      expect((await user.get('/client/config')).data[key]).toBe('in')
    }
  })

  test('raising a percentage only adds users, and shares are even', { timeout: 180_000 }, async () => {
    const property = fc.asyncProperty(
      fc.stringMatching(/^[a-z][a-z0-9_.-]{0,20}$/),
      fc.array(fc.uuid(), { minLength: 20, maxLength: 40 }),
      fc.integer({ min: 0, max: 10_000 }),
      fc.integer({ min: 0, max: 10_000 }),
      async (key, users, a, b) => {
        const [low, high] = [Math.min(a, b) / 100, Math.max(a, b) / 100]
        const rows = await project.sql(
          `select u.id, internal.bucket($2, u.id) as bucket,
                  internal.config_value(k, u.id, '{}') = '"in"' as low,
                  internal.config_value(k, u.id, '{}') in ('"in"', '"more"') as high
             from jsonb_populate_record(null::app.config_keys, $1) k, unnest($3::uuid[]) u (id)`,
          [
            {
              key,
              value: 'out',
              conditions: [
                { percentage: low, value: 'in' },
                { percentage: high, value: 'more' },
              ],
            },
            `${key}:`,
            users,
          ],
        )
        for (const row of rows) {
          expect(row.bucket).toBe(bucketOf(`${key}:`, row.id))
          expect(row.low).toBe(row.bucket < low * 100)
          expect(row.high).toBe(row.bucket < high * 100)
        }
      },
    )
    await fc.assert(property, { numRuns: 40 })
    const [{ share }] = await project.sql(
      `select count(*) filter (where internal.bucket('some_key:', gen_random_uuid()) < 2500)::int as share from generate_series(1, 20000)`,
    )
    expect(share).toBeGreaterThan(4700)
    expect(share).toBeLessThan(5300)
  })
})

describe('the answer', () => {
  const vary = 'Authorization, X-On-Behalf-Of, X-Api-Key'
  const head = (answer: { headers: Headers }) => [answer.headers.get('cache-control'), answer.headers.get('vary')]

  test('has exact headers, and is not sent again while nothing changed', async () => {
    await put('k', 1)
    const user = await project.user()
    const out = await project.app.get('/client/config')
    expect(out.headers.get('etag')).toBe(`"${await hash()}"`)
    expect(head(out)).toEqual(['private, max-age=300', vary])
    const signedIn = await user.get('/client/config')
    expect(signedIn.headers.get('etag')).toBe(`"${await hash()}:${user.id}:"`)
    expect(head(signedIn)).toEqual(['private, max-age=60', vary])
    const segments = [await segmentOf(user.id), await segmentOf(user.id)].sort()
    await segmentOf()
    const member = await user.get('/client/config')
    const tag = `"${await hash()}:${user.id}:${segments.join(',')}"`
    expect(member.headers.get('etag')).toBe(tag)
    expect((await project.onBehalfOf(user.id).get('/client/config')).headers.get('etag')).toBe(tag)

    for (const sent of [tag, `W/${tag}`, `"x", ${tag}`, tag.slice(1, -1), '*']) {
      const same = await user.get('/client/config', { 'if-none-match': sent })
      expect(same, sent).toMatchObject({ status: 304, text: '' })
      expect(same.headers.get('etag')).toBe(tag)
      expect(head(same)).toEqual(['private, max-age=60', vary])
    }
    for (const sent of ['"x"', tag.slice(2), out.headers.get('etag') ?? '', '', `"${tag}`.slice(0, -2)])
      expect((await user.get('/client/config', { 'if-none-match': sent })).status, sent).toBe(200)
    expect((await project.app.get('/client/config', { 'if-none-match': out.headers.get('etag') ?? '' })).status).toBe(
      304,
    )

    await project.admin.patch('/config/k', { value: 2 })
    expect(await user.get('/client/config', { 'if-none-match': tag })).toMatchObject({ status: 200, data: { k: '2' } })
    const now = (await user.get('/client/config')).headers.get('etag') ?? ''
    await project.sql('delete from app.segment_members where segment_id = $1', [segments[0]])
    expect((await user.get('/client/config', { 'if-none-match': now })).status).toBe(200)
  })

  test('an invalid Bearer is refused, none is nobody, and the key as its own Bearer is none', async () => {
    await put('k', 1)
    const other = await (await harness.project()).user()
    for (const token of ['x', other.sessionToken])
      expect(await project.app.get('/client/config', { authorization: `Bearer ${token}` })).toMatchObject({
        status: 401,
        error: { code: 'UNAUTHORIZED' },
      })
    expect((await project.app.get('/client/config', { authorization: `Bearer ${project.clientKey}` })).status).toBe(200)
    expect(await harness.anyone.get('/client/config')).toMatchObject({ status: 401, error: { code: 'UNAUTHORIZED' } })
    expect(await project.onBehalfOf(randomUUID()).get('/client/config')).toMatchObject({
      status: 404,
      error: { code: 'USER_NOT_FOUND' },
    })
    // with a client key the header is ignored
    const ignored = await project.app.get('/client/config', { 'x-on-behalf-of': randomUUID() })
    expect(ignored).toMatchObject({ status: 200, data: { k: '1' } })
    expect(ignored.headers.get('cache-control')).toBe('private, max-age=300')
  })

  test('nobody but an administrator changes it', async () => {
    for (const [role, caller] of [
      ['app_user', 'user'],
      ['app_anon', 'client_key'],
      ['app_server', 'server_key'],
    ] as const)
      for (const sql of [
        `insert into app.config_keys (key, value) values ('x', '1')`,
        'update app.config_versions set version_hash = 1',
      ])
        await expect(
          project.as(role, { 'app.caller': caller, 'app.user_id': randomUUID() }, sql),
        ).rejects.toMatchObject({ code: '42501' })
  })
})
