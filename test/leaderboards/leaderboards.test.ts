import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Answer } from '#test/support/harness.ts'
import { startLeaderboards } from '#test/support/leaderboards.ts'
import { expectRefusal } from '#test/support/refusals.ts'

const { harness, project, board, someone, people, submit, show, ranks, scores } = await startLeaderboards()
const { admin } = project

describe('definitions', () => {
  test('has its defaults, is read by id and key, changed, listed and deleted', async () => {
    const made = await admin.post('/leaderboards', { key: 'plain', name: 'Plain' })
    expect(made.status).toBe(201)
    expect(made.data).toMatchObject({
      source: { type: 'manual' },
      scoring: 'best',
      sort: 'desc',
      period: 'all_time',
      timezone: 'UTC',
      client_writable: false,
      min_score: null,
      max_score: null,
      max_per_minute: 30,
      rewards: [],
      keep_runs: 12,
      is_active: true,
      segment_id: null,
    })
    expect((await admin.get(`/leaderboards/${made.data.id}`)).data).toEqual(made.data)
    expect((await admin.get('/leaderboards/plain')).data).toEqual(made.data)
    expect((await admin.get('/leaderboards?limit=1')).body).toMatchObject({ data: [made.data], offset: 0, limit: 1 })
    const changed = await admin.patch('/leaderboards/plain', { name: 'Fancy', unknown: 1, key: 'other' })
    expect(changed.data).toMatchObject({ key: 'plain', name: 'Fancy' })
    expect((await admin.patch('/leaderboards/plain', {})).data).toEqual(changed.data)
    expect((await admin.delete('/leaderboards/plain')).data).toEqual({ deleted: true })
    expectRefusal(await admin.get('/leaderboards/plain'), 404, 'NOT_FOUND')
    expectRefusal(await admin.delete('/leaderboards/plain'), 404, 'NOT_FOUND')
    expectRefusal(await admin.patch('/leaderboards/plain', {}), 404, 'NOT_FOUND')
  })

  test.each([
    [{ key: 'Bad' }, 'key'],
    [{ name: '' }, 'name'],
    [{ name: null }, 'name'],
    [{ scoring: 'worst' }, 'scoring'],
    [{ sort: 'up' }, 'sort'],
    [{ period: 'yearly' }, 'period'],
    [{ timezone: 'Mars/Olympus' }, 'timezone'],
    [{ starts_at: '2026-12-01T00:00:00Z', ends_at: '2026-11-01T00:00:00Z' }, 'ends_at'],
    [{ min_score: 5, max_score: 4 }, 'max_score'],
    [{ min_score: 1e19 }, 'min_score'],
    [{ max_per_minute: 0 }, 'max_per_minute'],
    [{ keep_runs: 0 }, 'keep_runs'],
    [{ segment_id: randomUUID() }, 'segment_id'],
    [{ rewards: [{ from_rank: 3, to_rank: 1, reward: {} }] }, 'rewards'],
    [{ source: { type: 'event', event_name: 'svc.leaderboard.rank_changed' } }, 'source'],
    [{ source: { type: 'event', event_name: ' x' } }, 'source'],
    [{ source: { type: 'currency', currency_code: 'NOPE' } }, 'source'],
    [{ source: { type: 'event', event_name: 'x', filter: { column: 'a', op: 'nope', value: 1 } } }, 'source'],
  ])('refuses %j', async (fields, field) => {
    expectRefusal(
      await admin.post('/leaderboards', { key: 'fine', name: 'Fine', ...fields }),
      400,
      'VALIDATION_ERROR',
      field,
    )
    expectRefusal(await admin.get('/leaderboards/fine'), 404, 'NOT_FOUND')
  })

  test('refuses a source of no known type, a body that is none, a bad page, and a key that is taken', async () => {
    expectRefusal(
      await admin.post('/leaderboards', { key: 'fine', name: 'F', source: { type: 'dream' } }),
      400,
      'VALIDATION_ERROR',
    )
    expectRefusal(await admin.post('/leaderboards', []), 400, 'INVALID_BODY')
    expectRefusal(await admin.get('/leaderboards?limit=0'), 400, 'INVALID_INPUT')
    const { key } = await board()
    expectRefusal(await admin.post('/leaderboards', { key, name: 'twice' }), 409, 'CONFLICT', 'key')
    expectRefusal(await admin.patch(`/leaderboards/${key}`, { name: null }), 400, 'VALIDATION_ERROR', 'name')
    expectRefusal(await admin.patch(`/leaderboards/${key}`, []), 400, 'INVALID_BODY')
  })

  test('a hundred boards at most, also when many are made at once', async () => {
    const other = await harness.project()
    const answers = await Promise.all(
      Array.from({ length: 105 }, (_, n) => other.admin.post('/leaderboards', { key: `b${n}`, name: 'B' })),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(100)
    expectRefusal(answers.find(({ status }) => status !== 201) as Answer, 409, 'LIMIT_REACHED')
  })

  test('scoring, sort and period are fixed once there are entries, and not before', async () => {
    const { key } = await board({ period: 'daily' })
    await project.drain()
    expect((await admin.patch(`/leaderboards/${key}`, { sort: 'asc', period: 'weekly' })).data.sort).toBe('asc')
    await submit(await someone(), key, 5)
    for (const fields of [{ scoring: 'sum' }, { sort: 'desc' }, { period: 'monthly' }])
      expectRefusal(await admin.patch(`/leaderboards/${key}`, fields), 409, 'LEADERBOARD_IMMUTABLE')
    expect((await admin.patch(`/leaderboards/${key}`, { scoring: 'best', name: 'Same' })).status).toBe(200)
  })
})

describe('what is seen', () => {
  test('order is score, then who was first, then id; pages, total, run and me', async () => {
    const { id, key } = await board()
    const [a, b, c, d] = (await people(4)) as [any, any, any, any]
    harness.setTime('2026-11-21T10:00:00Z')
    await submit(b, key, 50)
    await submit(a, key, 70)
    harness.setTime('2026-11-21T10:00:01Z')
    await submit(c, key, 50)
    expect(await ranks(a, key)).toEqual([
      [a.id, 1],
      [b.id, 2],
      [c.id, 3],
    ])
    const page = await show(b, id, '?limit=1&offset=1')
    expect(page).toMatchObject({
      total: 3,
      offset: 1,
      limit: 1,
      run: { key: 'all', status: 'open', starts_at: null, ends_at: null },
      me: {
        app_user_id: b.id,
        rank: 2,
        score: 50,
        submissions: 1,
        reached_at: '2026-11-21T10:00:00.000Z',
        metadata: {},
      },
    })
    expect(page.data).toEqual([page.me])
    expect(page.me.user).toEqual({ id: b.id, display_name: expect.any(String), avatar_url: null })
    expect((await show(d, key)).me).toBeNull()
    expect((await show(d, key, '?offset=9')).data).toEqual([])
    expect((await show(d, key, '?limit=999')).limit).toBe(200)
    const me = await c.get(`/client/leaderboards/${key}/me`)
    expect(me.data).toMatchObject({ rank: 3, percentile: 33.33 })
    expectRefusal(await d.get(`/client/leaderboards/${key}/me`), 404, 'NOT_FOUND')
    // same time too: by id
    await submit(d, key, 50)
    const tied = await ranks(a, key)
    expect(tied.slice(2)).toEqual([c, d].sort((x, y) => (x.id < y.id ? -1 : 1)).map((who, n) => [who.id, n + 3]))
  })

  test('around me or somebody else: in the middle, and a whole page also at the ends', async () => {
    const { key } = await board()
    const all = (await people(30)) as any[]
    const entries = all.map((who, n) => ({ app_user_id: who.id, score: 1000 - n }))
    await admin.post(`/leaderboards/${key}/entries/import`, { entries })
    const seen = async (who: any, query: string) =>
      (await ranks(who, key, query)).map(([, rank]: [string, number]) => rank)
    expect(await seen(all[14], '?around=me')).toEqual([10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20])
    expect(await seen(all[0], `?around=${all[14].id}&limit=3`)).toEqual([14, 15, 16])
    expect(await seen(all[0], '?around=me&limit=3')).toEqual([1, 2, 3])
    expect(await seen(all[29], '?around=me&limit=3')).toEqual([28, 29, 30])
    expect((await show(all[29], key, '?around=me&limit=3')).offset).toBe(27)
    const stranger = await someone()
    expectRefusal(await stranger.get(`/client/leaderboards/${key}?around=me`), 404, 'NOT_FOUND')
    for (const query of ['around=nobody', 'scope=all', 'scope=group:1', 'limit=0', 'offset=-1'])
      expectRefusal(await stranger.get(`/client/leaderboards/${key}?${query}`), 400, 'INVALID_INPUT')
  })

  test('friends and groups are ranked among themselves; a group of others, and a board of a segment, is 404', async () => {
    const { key } = await board()
    const [a, b, c, d] = (await people(4)) as [any, any, any, any]
    for (const [who, score] of [
      [a, 10],
      [b, 20],
      [c, 30],
      [d, 40],
    ] as const)
      await submit(who, key, score)
    const [low, high] = [a.id, c.id].sort()
    await project.sql(
      `insert into app.friendships (user_a, user_b, status, requested_by, responded_at) values ($1, $2, 'accepted', $1, now())`,
      [low, high],
    )
    expect(await ranks(a, key, '?scope=friends')).toEqual([
      [c.id, 1],
      [a.id, 2],
    ])
    expect(await show(a, key, '?scope=friends&around=me&limit=1')).toMatchObject({
      total: 2,
      offset: 1,
      me: { rank: 2 },
    })
    expect(await ranks(b, key, '?scope=friends')).toEqual([[b.id, 1]])
    expectRefusal(await a.get(`/client/leaderboards/${key}?scope=friends&around=${d.id}`), 404, 'NOT_FOUND')
    const group = (await b.post('/client/groups', { name: 'Ours', is_public: true })).data
    await admin.post(`/groups/${group.id}/members`, { app_user_id: d.id, role: 'viewer' })
    expect(await ranks(b, key, `?scope=group:${group.id}`)).toEqual([
      [d.id, 1],
      [b.id, 2],
    ])
    expectRefusal(await a.get(`/client/leaderboards/${key}?scope=group:${group.id}`), 404, 'NOT_FOUND')
    expectRefusal(await a.get(`/client/leaderboards/${key}?scope=group:${randomUUID()}`), 404, 'NOT_FOUND')

    const segment = (await admin.post('/segments', { key: 'vips', name: 'VIPs', kind: 'static' })).data
    const inner = await board({ segment_id: segment.id })
    expectRefusal(await a.get(`/client/leaderboards/${inner.key}`), 404, 'NOT_FOUND')
    expectRefusal(await a.post(`/client/leaderboards/${inner.key}/scores`, { score: 1 }), 404, 'NOT_FOUND')
    const keysOf = async (who: any) =>
      (await who.get('/client/leaderboards?limit=200')).data.map((seen: any) => seen.key)
    expect(await keysOf(a)).not.toContain(inner.key)
    expect(await keysOf(a)).toContain(key)
    await project.sql('insert into app.segment_members (segment_id, app_user_id) values ($1, $2)', [segment.id, a.id])
    expect(await keysOf(a)).toContain(inner.key)
    await submit(a, inner.key, 1)
    expectRefusal(await admin.delete(`/segments/${segment.id}`), 409, 'SEGMENT_IN_USE')
  })

  test('the list for users hides how a board is fed; an inactive board is not there', async () => {
    const { key } = await board({ max_score: 100 })
    const who = await someone()
    const [first] = (await who.get('/client/leaderboards?limit=1')).data
    expect(first).toMatchObject({ key, run: { key: 'all', status: 'open' }, client_writable: true })
    expect(Object.keys(first)).not.toEqual(expect.arrayContaining(['source']))
    expect(first.max_score).toBeUndefined()
    expectRefusal(await who.get('/client/leaderboards?offset=x'), 400, 'INVALID_INPUT')
    await admin.patch(`/leaderboards/${key}`, { is_active: false })
    expectRefusal(await who.get(`/client/leaderboards/${key}`), 404, 'NOT_FOUND')
    expectRefusal(await who.get(`/client/leaderboards/${key}/me?run=${'x'.repeat(65)}`), 400, 'INVALID_INPUT')
  })
})

describe('submitting', () => {
  test('needs a server key unless the board opts in, and a board that is manual', async () => {
    const { key } = await board({ client_writable: false })
    const user = await project.user()
    expectRefusal(await user.post(`/client/leaderboards/${key}/scores`, { score: 1 }), 403, 'SERVER_KEY_REQUIRED')
    expect((await project.onBehalfOf(user.id).post(`/client/leaderboards/${key}/scores`, { score: 1 })).status).toBe(
      201,
    )
    await admin.patch(`/leaderboards/${key}`, { client_writable: true })
    expect((await user.post(`/client/leaderboards/${key}/scores`, { score: 2 })).status).toBe(200)
    const fed = await board({ source: { type: 'xp' } })
    expectRefusal(
      await user.post(`/client/leaderboards/${fed.key}/scores`, { score: 1 }),
      409,
      'LEADERBOARD_NOT_MANUAL',
    )
    expectRefusal(await user.post('/client/leaderboards/none/scores', { score: 1 }), 404, 'NOT_FOUND')
    // no role but the owner writes a score past the functions
    await expect(
      project.as(
        'app_user',
        { 'app.user_id': user.id, 'app.caller': 'user' },
        'update app.leaderboard_entries set score = 9',
      ),
    ).rejects.toThrow(/permission denied/)
  })

  test.each([
    ['best', 'desc', [5, 9, 7], 9, 2],
    ['best', 'asc', [5, 9, 3], 3, 3],
    ['sum', 'desc', [0.1, 0.2, -0.05], 0.25, 2],
    ['last', 'desc', [5, 9, 7], 7, 2],
    ['count', 'desc', [5, 9, 7], 3, 3],
  ])('%s %s: of %j stands %d', async (scoring, sort, given, result, improvedAt) => {
    const { key } = await board({ scoring, sort })
    const who = await someone()
    const answers = []
    for (const [n, score] of given.entries()) {
      harness.setTime(new Date(Date.parse('2026-11-21T10:00:00Z') + n * 1000))
      answers.push(await submit(who, key, score as number, { metadata: { n } }))
    }
    expect(answers.at(-1).entry).toMatchObject({ score: result, submissions: 3, rank: 1 })
    expect(answers[0]).toMatchObject({ previous: null, improved: true })
    expect(answers.map(({ improved }) => improved).lastIndexOf(true) + 1).toBe(improvedAt)
    if (scoring === 'best') expect(answers.at(-1).entry.metadata).toEqual({ n: given.indexOf(result as never) })
  })

  test('ranks before and after, and 201 for the first', async () => {
    const { key } = await board()
    const [a, b] = (await people(2)) as [any, any]
    await submit(a, key, 50)
    const first = await b.post(`/client/leaderboards/${key}/scores`, { score: 10 })
    expect([first.status, first.data.entry.rank, first.data.previous]).toEqual([201, 2, null])
    const second = await b.post(`/client/leaderboards/${key}/scores`, { score: 60 })
    expect(second.status).toBe(200)
    expect(second.data).toMatchObject({
      entry: { rank: 1, score: 60 },
      previous: { score: 10, rank: 2 },
      improved: true,
    })
    expect((await submit(b, key, 5)).improved).toBe(false)
    expect(await scores(a, key)).toEqual([
      [b.id, 60],
      [a.id, 50],
    ])
  })

  test('bounds: of the range, of numbers, of metadata', async () => {
    const { key } = await board({ min_score: -1.5, max_score: 10 })
    const who = await someone()
    const post = (body: unknown) => who.post(`/client/leaderboards/${key}/scores`, body)
    for (const score of [-1.5, 10]) expect((await post({ score })).status).toBeLessThan(300)
    const range = { field: 'score', min_score: -1.5, max_score: 10 }
    for (const score of [-1.6, 10.01]) expectRefusal(await post({ score }), 400, 'SCORE_OUT_OF_RANGE', range)
    for (const score of ['1', null, 1e19]) expectRefusal(await post({ score }), 400, 'VALIDATION_ERROR', 'score')
    expectRefusal(await post('[]'), 400, 'INVALID_BODY')
    const blob = (size: number) => ({ a: 'x'.repeat(size - 8) })
    expect((await post({ score: 1, metadata: blob(4096) })).status).toBe(200)
    expectRefusal(await post({ score: 1, metadata: blob(4097) }), 400, 'VALIDATION_ERROR', 'metadata')
  })

  test('max_per_minute is counted from the first of a minute, exactly, also at once', async () => {
    const { key } = await board({ max_per_minute: 5 })
    const who = await someone()
    harness.setTime('2026-11-21T10:00:30Z')
    await submit(who, key, 1)
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, n) => who.post(`/client/leaderboards/${key}/scores`, { score: n })),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(4)
    const full = answers.find(({ status }) => status === 429) as Answer
    expectRefusal(full, 429, 'RATE_LIMITED')
    expect(full.headers.get('retry-after')).toBe('60')
    harness.setTime('2026-11-21T10:01:30Z')
    await submit(who, key, 99)
    expect((await show(who, key)).me.submissions).toBe(6)
  })

  test('an Idempotency-Key answers the first again, counts once, and refuses another body', async () => {
    const { key } = await board({ scoring: 'sum' })
    const [a, b] = (await people(2)) as [any, any]
    const post = (who: any, score: number) =>
      who.post(`/client/leaderboards/${key}/scores`, { score }, { 'idempotency-key': 'round-1' })
    const answers = await Promise.all([1, 2, 3, 4].map(() => post(a, 7)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 201])
    expect(new Set(answers.map(({ text }) => JSON.stringify(JSON.parse(text)))).size).toBe(1)
    expect(answers.filter(({ headers }) => headers.get('idempotency-replayed') === 'true')).toHaveLength(3)
    expectRefusal(await post(a, 8), 409, 'IDEMPOTENCY_CONFLICT')
    expect((await post(b, 8)).status).toBe(201)
    expect((await show(a, key)).me).toMatchObject({ score: 7, submissions: 1 })
  })
})

describe('administrators', () => {
  test('set, take away and list entries of the current run', async () => {
    const { key } = await board({ scoring: 'sum' })
    const [a, b] = (await people(2)) as [any, any]
    await submit(a, key, 10)
    const put = (userId: string, body: unknown, on = key) => admin.put(`/leaderboards/${on}/entries/${userId}`, body)
    expect(await put(a.id, { score: 3 })).toMatchObject({ status: 200, data: { score: 3, rank: 1, submissions: 1 } })
    expect(await put(b.id, { score: 5, metadata: { by: 'hand' } })).toMatchObject({
      status: 201,
      data: { rank: 1, metadata: { by: 'hand' } },
    })
    const list = await admin.get(`/leaderboards/${key}/entries?limit=1&offset=1`)
    expect(list.body).toMatchObject({
      total: 2,
      offset: 1,
      limit: 1,
      run: { key: 'all' },
      data: [{ app_user_id: a.id, rank: 2 }],
    })
    expect(list.body.me).toBeUndefined()
    expect((await admin.delete(`/leaderboards/${key}/entries/${b.id}`)).data).toEqual({ deleted: true })
    expectRefusal(await admin.delete(`/leaderboards/${key}/entries/${b.id}`), 404, 'NOT_FOUND')
    expect(await ranks(a, key)).toEqual([[a.id, 1]])
    expectRefusal(await put(randomUUID(), { score: 1 }), 404, 'NOT_FOUND')
    expectRefusal(await put('x', { score: 1 }), 400, 'INVALID_ID')
    expectRefusal(await put(a.id, { score: 'x' }), 400, 'VALIDATION_ERROR', 'score')
    expectRefusal(await put(a.id, []), 400, 'INVALID_BODY')
    expectRefusal(await admin.delete(`/leaderboards/${key}/entries/x`), 400, 'INVALID_ID')
    expectRefusal(await admin.get(`/leaderboards/${key}/entries?run=2020-01`), 404, 'NOT_FOUND')
    expectRefusal(await admin.get(`/leaderboards/${key}/entries?limit=no`), 400, 'INVALID_INPUT')
    const other = await harness.project()
    expectRefusal(await other.admin.get(`/leaderboards/${key}`), 404, 'NOT_FOUND')
  })

  test('import ten thousand at most, and name who is not there', async () => {
    const { key } = await board()
    const all = (await people(3)) as any[]
    const post = (entries: unknown) => admin.post(`/leaderboards/${key}/entries/import`, { entries })
    const item = (who: any, score: number) => ({ app_user_id: who.id, score })
    const answer = await post([item(all[0], 1), item({ id: randomUUID() }, 2), item(all[1], 3), item(all[2], 2)])
    expect(answer.data).toEqual({
      imported: 3,
      failed: 1,
      errors: [{ index: 1, code: 'USER_NOT_FOUND', message: expect.any(String) }],
    })
    expect(await ranks(all[0], key)).toEqual([
      [all[1].id, 1],
      [all[2].id, 2],
      [all[0].id, 3],
    ])
    const crowd = (await people(10_000)) as any[]
    const many = crowd.map((who, n) => item(who, (n * 7919) % 1000))
    expect((await post(many)).data).toMatchObject({ imported: 10_000, failed: 0 })
    // again and all otherwise, one of them twice: the later counts
    expect(
      (await post([...many.slice(1).map((one) => ({ ...one, score: 1000 - one.score })), item(crowd[1], 5000)])).data
        .imported,
    ).toBe(10_000)
    expect(await show(crowd[1], key)).toMatchObject({ total: 10_003, me: { rank: 1, score: 5000, submissions: 1 } })
    expect((await show(crowd[1], key, '?limit=2&offset=10001')).data.map((entry: any) => entry.rank)).toEqual([
      10_002, 10_003,
    ])
    expectRefusal(await post([...many, item(all[0], 9)]), 400, 'VALIDATION_ERROR', 'entries')
    expectRefusal(await post([]), 400, 'VALIDATION_ERROR', 'entries')
    expectRefusal(await admin.post(`/leaderboards/${key}/entries/import`, []), 400, 'INVALID_BODY')
    expectRefusal(
      await admin.post('/leaderboards/none/entries/import', { entries: [item(all[0], 1)] }),
      404,
      'NOT_FOUND',
    )
  })

  test('anomalies: scores beyond six robust sigmas, and jumps; of fewer than ten nothing is said', async () => {
    const { key } = await board({ max_per_minute: 1000 })
    const all = (await people(13)) as any[]
    const odd = async () => (await admin.get(`/leaderboards/${key}/anomalies`)).body
    for (const [n, who] of all.slice(0, 9).entries()) {
      await submit(who, key, 100 + n)
      await submit(who, key, 110 + 2 * n)
    }
    await submit(all[9], key, 1_000_000)
    expect((await odd()).total).toBe(1)
    await admin.delete(`/leaderboards/${key}/entries/${all[9].id}`)
    await submit(all[10], key, 1_000_000)
    const found = await odd()
    expect(found).toMatchObject({
      total: 1,
      data: [{ entry: { app_user_id: all[10].id, rank: 1 }, reasons: ['score'] }],
    })
    await admin.delete(`/leaderboards/${key}/entries/${all[10].id}`)
    expect((await odd()).data).toEqual([])
    await submit(all[11], key, -100_000)
    await submit(all[11], key, 112)
    expect((await odd()).data).toMatchObject([{ entry: { app_user_id: all[11].id }, reasons: ['jump'] }])
    expectRefusal(await admin.get(`/leaderboards/${key}/anomalies?run=none`), 404, 'NOT_FOUND')
    expectRefusal(await admin.get(`/leaderboards/${key}/anomalies?limit=0`), 400, 'INVALID_INPUT')
  })
})
