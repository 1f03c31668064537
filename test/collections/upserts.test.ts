import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { define, startItems } from '#test/support/collection_rows.ts'

/** Upserts and the Idempotency-Key of inserts. */
const { project, user, other, path } = await startItems()

describe('upserts', async () => {
  const kept = await define(project, {
    name: 'kept',
    read_policy: 'public',
    write_policy: 'authenticated',
    columns: [
      { name: 'key', type: 'text', unique: true },
      { name: 'slot', type: 'integer' },
      { name: 'value', type: 'text' },
      { name: 'note', type: 'text' },
    ],
    indexes: [{ columns: ['user_id', 'slot'], unique: true }],
  })

  test('update merges what was sent: 201, then 200', async () => {
    const first = await user.post(`${kept}?on_conflict=update&conflict_target=key`, { key: 'a', value: '1', note: 'n' })
    expect(first.status).toBe(201)
    const second = await user.post(`${kept}?on_conflict=update&conflict_target=key`, { key: 'a', value: '2' })
    expect(second).toMatchObject({ status: 200, data: { id: first.data.id, value: '2', note: 'n' } })
    const own = await user.post(`${kept}?on_conflict=update&conflict_target=user_id,slot`, { slot: 1, value: 'x' })
    const again = await user.post(`${kept}?on_conflict=update&conflict_target=slot,user_id`, { slot: 1, value: 'y' })
    expect([own.status, again.status, again.data.value]).toEqual([201, 200, 'y'])
    // the field that a sender can change, not the owner
    expect((await user.post(kept, { slot: 1 })).error).toMatchObject({
      code: 'CONFLICT',
      details: { columns: ['user_id', 'slot'], field: 'slot' },
    })
    expect(
      (await other.post(`${kept}?on_conflict=update&conflict_target=user_id,slot`, { slot: 1, value: 'z' })).status,
    ).toBe(201)
    await user.delete(`${kept}/${first.data.id}`)
    const fresh = await user.post(`${kept}?on_conflict=update&conflict_target=key`, { key: 'a', value: '3' })
    expect(fresh.status).toBe(201)
    expect(fresh.data.id).not.toBe(first.data.id)
  })

  test('ignore answers the row that is there: 201, then 200', async () => {
    const first = await user.post(`${kept}?on_conflict=ignore&conflict_target=key`, { key: 'i', value: '1' })
    const second = await user.post(`${kept}?on_conflict=ignore&conflict_target=key`, { key: 'i', value: '2' })
    expect([first.status, second.status]).toEqual([201, 200])
    expect(second.data).toEqual(first.data)
    expect(second.headers.get('etag')).toBe(first.headers.get('etag'))
  })

  test("never touch another user's row, even where anybody may write it", async () => {
    const mine = (await user.post(kept, { key: 'mine', value: 'secret' })).data
    for (const how of ['update', 'ignore']) {
      const answer = await other.post(`${kept}?on_conflict=${how}&conflict_target=key`, {
        key: 'mine',
        value: 'stolen',
      })
      expect(answer, how).toMatchObject({ status: 409, error: { code: 'CONFLICT' } })
      expect(answer.text).not.toContain('secret')
    }
    expect((await user.get(`${kept}/${mine.id}`)).data).toEqual(mine)
    const hidden = await define(project, { name: 'hidden', columns: [{ name: 'key', type: 'text', unique: true }] })
    await user.post(hidden, { key: 'k' })
    for (const how of ['update', 'ignore', 'error']) {
      expect(
        (await other.post(`${hidden}?on_conflict=${how}&conflict_target=key`, { key: 'k' })).error?.code,
        how,
      ).toBe('CONFLICT')
    }
  })

  test('meet the row that the unique index means, and none that only looks like it', async () => {
    const states = await define(project, {
      name: 'states',
      columns: [
        { name: 'slug', type: 'text' },
        { name: 'state', type: 'text' },
      ],
      indexes: [{ columns: ['slug'], unique: true, where: { column: 'state', op: 'eq', value: 'active' } }],
    })
    const row = async (state: string) => (await user.post(states, { slug: 'a', state })).data.id
    await row('old')
    const active = await row('active')
    await row('old')
    for (const how of ['ignore', 'update']) {
      const met = await user.post(`${states}?on_conflict=${how}&conflict_target=slug`, { slug: 'a', state: 'active' })
      expect(met, how).toMatchObject({ status: 200, data: { id: active } })
    }
    const beside = await user.post(`${states}?on_conflict=ignore&conflict_target=slug`, { slug: 'a', state: 'new' })
    expect(beside.status).toBe(201)
  })

  test('know one row a user, also when nothing is sent', async () => {
    const one = await define(project, {
      name: 'profiles',
      columns: [{ name: 'bio', type: 'text', default: 'none' }],
      indexes: [{ columns: ['user_id'], unique: true }],
    })
    const statuses = []
    for (const how of ['ignore', 'ignore', 'update', 'update'])
      statuses.push((await user.post(`${one}?on_conflict=${how}&conflict_target=user_id`, {})).status)
    expect(statuses).toEqual([201, 200, 200, 200])
    expect(await user.post(`${one}?on_conflict=update&conflict_target=user_id`, { bio: 'me' })).toMatchObject({
      status: 200,
      data: { bio: 'me' },
    })
    expect((await user.post(one, {})).error?.code).toBe('CONFLICT')
    expect((await other.post(`${one}?on_conflict=ignore&conflict_target=user_id`, {})).data.bio).toBe('none')
  })

  test('need a target that is in the row and is a whole unique index', async () => {
    const wrong: [string, object][] = [
      ['on_conflict=update', { key: 'w' }],
      ['on_conflict=ignore&conflict_target=', { key: 'w' }],
      ['on_conflict=update&conflict_target=value', { key: 'w', value: 'v' }],
      ['on_conflict=update&conflict_target=slot', { slot: 1 }],
      ['on_conflict=update&conflict_target=key', { value: 'w' }],
      ['on_conflict=update&conflict_target=key,slot', { key: 'w', slot: 2 }],
      ['on_conflict=update&conflict_target=id', { id: randomUUID(), key: 'w' }],
      ['on_conflict=update&conflict_target=nope', { key: 'w' }],
      ['on_conflict=update&conflict_target=key);drop table app.users;--', { key: 'w' }],
    ]
    for (const [query, body] of wrong) {
      expect(await user.post(`${kept}?${query}`, body), query).toMatchObject({
        status: 400,
        error: { code: 'INVALID_CONFLICT_TARGET' },
      })
    }
    expect((await user.post(`${kept}?on_conflict=replace&conflict_target=key`, { key: 'w' })).error?.code).toBe(
      'INVALID_BODY',
    )
    expect((await user.post(`${kept}?on_conflict=error`, { key: 'plain' })).status).toBe(201)
  })

  test('raced by twenty make one row', async () => {
    for (const how of ['update', 'ignore']) {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          user.post(`${kept}?on_conflict=${how}&conflict_target=key`, { key: `race ${how}`, value: String(n) }),
        ),
      )
      expect(answers.map((answer) => answer.status).sort()).toEqual([...Array.from({ length: 19 }, () => 200), 201])
      expect(new Set(answers.map((answer) => answer.data.id)).size).toBe(1)
    }
  })
})

describe('Idempotency-Key', () => {
  test('answers the row that it made, as it is now, whatever the body', async () => {
    const key = randomUUID()
    const first = await user.post(path, { name: 'once' }, { 'idempotency-key': key })
    expect(first.status).toBe(201)
    await user.patch(`${path}/${first.data.id}`, { n: 5 })
    const again = await user.post(path, { name: 'another body' }, { 'idempotency-key': key })
    expect(again).toMatchObject({ status: 200, data: { id: first.data.id, name: 'once', n: 5 } })
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect((await other.post(path, { name: 'once' }, { 'idempotency-key': key })).status).toBe(201)
    const elsewhere = await define(project, { name: 'elsewhere', columns: [{ name: 'name', type: 'text' }] })
    expect((await user.post(elsewhere, { name: 'once' }, { 'idempotency-key': key })).status).toBe(201)
    await user.delete(`${path}/${first.data.id}`)
    expect(await user.post(path, { name: 'once' }, { 'idempotency-key': key })).toMatchObject({
      status: 409,
      error: { code: 'IDEMPOTENCY_REPLAY_GONE' },
    })
  })

  test('may stand in the body where no column has that name', async () => {
    const first = await user.post(path, { name: 'alias', idempotency_key: 'k1' })
    const again = await user.post(path, { name: 'alias', idempotency_key: 'k1' })
    expect([first.status, again.status]).toEqual([201, 200])
    expect(again.data.id).toBe(first.data.id)
    expect((await user.post(path, { name: 'alias' }, { 'idempotency-key': 'k1' })).data.id).toBe(first.data.id)
    const column = await define(project, { name: 'with_column', columns: [{ name: 'idempotency_key', type: 'text' }] })
    const answers = [
      await user.post(column, { idempotency_key: 'k' }),
      await user.post(column, { idempotency_key: 'k' }),
    ]
    expect(answers.map((answer) => [answer.status, answer.data.idempotency_key])).toEqual([
      [201, 'k'],
      [201, 'k'],
    ])
    for (const wrong of [5, '', 'ä', 'x'.repeat(256), {}]) {
      for (const _ of [1, 2])
        expect((await user.post(path, { name: 'x', idempotency_key: wrong })).error?.code).toBe('INVALID_BODY')
    }
    expect((await user.post(path, { name: 'x' }, { 'idempotency-key': 'x'.repeat(256) })).error?.code).toBe(
      'INVALID_BODY',
    )
  })

  test('raced by twenty makes one row; a failed insert does not use it up', async () => {
    const key = randomUUID()
    expect((await user.post(path, { name: null }, { 'idempotency-key': key })).error?.code).toBe('NOT_NULL_VIOLATION')
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => user.post(path, { name: 'raced' }, { 'idempotency-key': key })),
    )
    expect(answers.map((answer) => answer.status).sort()).toEqual([...Array.from({ length: 19 }, () => 200), 201])
    expect(new Set(answers.map((answer) => answer.data.id)).size).toBe(1)
    expect(await project.sql(`select from collections.items where name = 'raced'`)).toHaveLength(1)
  })
})
