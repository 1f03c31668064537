import { connect } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { type Answer, startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { fillEveryTable } from '#test/support/user_rows.ts'

const harness = await startHarness()
const project = await harness.project()
afterEach(() => harness.setTime(null))

const lines = ({ text }: Answer): any[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))

describe('the bundle', () => {
  test('has the headers of a download, one line a row, and export_complete at the end', async () => {
    const user = await project.user()
    await user.patch('/client/users/me', { display_name: 'Ada', properties: { a: [1.5] } })
    await user.post('/client/users/me/push-token', { token: `secret-${user.id}`, platform: 'ios' })
    await user.post('/client/events', { event_name: 'ran' })
    const answer = await project.admin.get(`/users/${user.id}/export`)
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('application/x-ndjson')
    expect(answer.headers.get('content-disposition')).toBe(`attachment; filename="user-${user.id}-export.ndjson"`)
    const all = lines(answer)
    expect(all[0]).toMatchObject({
      section: 'users',
      data: { id: user.id, display_name: 'Ada', properties: { a: [1.5] } },
    })
    expect(all[0].data.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(all.at(-1)).toEqual({
      section: 'export_complete',
      data: { user_id: user.id, rows: all.length - 1, completed_at: expect.any(String) },
    })
    expect(all.filter(({ section }) => section === 'export_complete')).toHaveLength(1)
    const sections = all.map(({ section }) => section)
    for (const section of ['push_tokens', 'user_sessions', 'engagement_events', 'user_event_counters'])
      expect(sections).toContain(section)
    expect(answer.text).not.toContain(`secret-${user.id}`)
  })

  test('has every registered table with every column that is no secret, and no secret', {
    timeout: 180_000,
  }, async () => {
    const own = await harness.project()
    const user = await own.user()
    const places = await fillEveryTable(own, user.id)
    await own.sql(`update app.user_passwords set password_hash = 'secret-hash' where app_user_id = $1`, [user.id])
    await own.sql(`update app.user_sessions set refresh_hash = 'secret-hash' where app_user_id = $1`, [user.id])
    const answer = await own.admin.get(`/users/${user.id}/export`)
    const all = lines(answer)
    for (const { table_name, user_column, export_columns, secret_columns } of places) {
      const section = table_name.split('.')[1]
      const rows = all.filter((line) => line.section === section && line.data[user_column] === user.id)
      if (!export_columns) {
        expect([
          section,
          all.filter(
            (line) =>
              line.section === section &&
              line.data[user_column] === user.id &&
              !places.some((other) => other.table_name === table_name && other.export_columns),
          ).length,
        ]).toEqual([section, 0])
        continue
      }
      expect([section, rows.length > 0]).toEqual([section, true])
      for (const { data } of rows) {
        const names = Object.keys(data)
        const wanted = places
          .filter((other) => other.table_name === table_name && other.export_columns)
          .map((other) => [...(other.export_columns ?? [])].sort().join())
        expect([section, wanted]).toEqual([section, expect.arrayContaining([names.sort().join()])])
      }
      if (places.filter((other) => other.table_name === table_name).length === 1) {
        for (const secret of secret_columns) expect(rows.every(({ data }) => !(secret in data))).toBe(true)
      }
    }
    expect(answer.text).not.toContain('secret-hash')
    expect(all.at(-1)?.data.rows).toBe(all.length - 1)
  })

  test('has nothing of another user', async () => {
    const [mine, theirs] = [await project.user(), await project.user()]
    for (const user of [mine, theirs]) await user.post('/client/events', { event_name: 'ran' })
    expect((await project.admin.get(`/users/${mine.id}/export`)).text).not.toContain(theirs.id)
  })

  test('of many rows has each once, in batches', async () => {
    const user = await project.user()
    await project.sql(
      `insert into app.engagement_events (id, app_user_id, event_name, occurred_at, received_at, source)
       select internal.new_id(), $1, 'e', timestamptz '2026-11-01' + (n / 300) * interval '1 microsecond', now(), 'client' from generate_series(1, 1500) n`,
      [user.id],
    )
    const all = lines(await project.admin.get(`/users/${user.id}/export`))
    const events = all.filter(({ section }) => section === 'engagement_events')
    const [{ n }] = await project.sql('select count(*)::int as n from app.engagement_events where app_user_id = $1', [
      user.id,
    ])
    expect([events.length, new Set(events.map(({ data }) => data.id)).size]).toEqual([n, n])
    expect(all.at(-1).data.rows).toBe(all.length - 1)
  })

  test('reads a developer’s own tables under their names', async () => {
    const own = await harness.project()
    const user = await own.user()
    await own.sql(
      `create table collections.notes (id uuid primary key default gen_random_uuid(), user_id uuid, body text, at timestamptz)`,
    )
    await own.sql(`insert into internal.user_data (table_name, user_column, section, export_columns, on_merge, on_delete, declared_in)
                   values ('collections.notes', 'user_id', 'collections', '{*}', 'move', 'delete', 'collections')`)
    await own.sql(`insert into collections.notes (user_id, body, at) values ($1, 'mine', '2026-11-01')`, [user.id])
    const line = lines(await own.admin.get(`/users/${user.id}/export`)).find(({ section }) => section === 'collections')
    expect(line).toEqual({
      section: 'collections',
      collection: 'notes',
      data: { id: expect.any(String), user_id: user.id, body: 'mine', at: '2026-11-01T00:00:00.000Z' },
    })
    // a table without a foreign key is emptied of its user all the same
    await own.admin.delete(`/users/${user.id}`)
    expect(await own.sql('select from collections.notes')).toEqual([])
  })
})

describe('the own bundle', () => {
  test('is the administrator’s, once in 24 hours', async () => {
    harness.setTime(new Date(Math.ceil(Date.now() / 1000) * 1000))
    const [user, other] = [await project.user(), await project.user()]
    const answer = await user.get('/client/users/me/export')
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-disposition')).toBe(`attachment; filename="user-${user.id}-export.ndjson"`)
    expect(answer.text).toBe((await project.admin.get(`/users/${user.id}/export`)).text)
    const refused = await user.get('/client/users/me/export')
    expectRefusal(refused, 429, 'RATE_LIMITED')
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(80_000)
    expect((await other.get('/client/users/me/export')).status).toBe(200)
    harness.advance(86_399)
    const behalf = project.onBehalfOf(user.id)
    expectRefusal(await behalf.get('/client/users/me/export'), 429, 'RATE_LIMITED')
    harness.advance(1)
    expect((await behalf.get('/client/users/me/export')).status).toBe(200)
  })

  test('of many at once is given once', async () => {
    const user = await project.user()
    const answers = await Promise.all(Array.from({ length: 8 }, () => user.get('/client/users/me/export')))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(429)])
  })

  test('that could not begin is not counted', async () => {
    const user = await project.user()
    await user.get('/client/users/me')
    await project.sql(`alter table app.users rename to users_away`)
    const broken = await user.get('/client/users/me/export')
    await project.sql(`alter table app.users_away rename to users`)
    expectRefusal(broken, 500, 'FETCH_FAILED')
    expect((await user.get('/client/users/me/export')).status).toBe(200)
  })

  test('is not counted when only its headers were asked for', async () => {
    const user = await project.user()
    const head = await user.request('HEAD', '/client/users/me/export')
    expect([head.status, head.text, head.headers.get('content-disposition')]).toEqual([
      200,
      '',
      `attachment; filename="user-${user.id}-export.ndjson"`,
    ])
    expect((await user.get('/client/users/me/export')).text).toContain('export_complete')
    expect((await user.request('HEAD', '/client/users/me/export')).status).toBe(429)
  })

  test('of a user who has just gone is 404', async () => {
    const user = await project.user()
    await user.get('/client/users/me')
    await project.sql('delete from app.users where id = $1', [user.id])
    expectRefusal(await user.get('/client/users/me/export'), 404, 'NOT_FOUND')
  })

  test('as a role in SQL is one’s own alone', async () => {
    const [mine, theirs] = [await project.user(), await project.user()]
    const claims = { 'app.user_id': mine.id, 'app.caller': 'user' }
    await expect(project.as('app_user', claims, 'select internal.user_bundle($1, null)', [theirs.id])).rejects.toThrow(
      /for its user/,
    )
    expect(await project.as('app_user', claims, 'select internal.user_bundle($1, null)', [mine.id])).toHaveLength(1)
  })
})

describe('a stream that breaks', () => {
  /** Reads a little of an export by hand and stops, so that the rest waits behind a full connection. */
  const open = (path: string) => {
    const { hostname, port } = new URL(harness.url)
    const socket = connect(Number(port), hostname)
    const { authorization } = project.developer.headers
    socket.write(
      `GET /v1/admin/projects/${project.id}${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n\r\n`,
    )
    return socket
  }

  test('ends the connection and never looks complete', { timeout: 180_000 }, async () => {
    const user = await project.user()
    await project.sql(
      `insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source)
       select internal.new_id(), $1, 'e', jsonb_build_object('x', repeat(md5(n::text), 300)), now() - n * interval '1 second', now(), 'client'
         from generate_series(1, 4000) n`,
      [user.id],
    )
    const socket = open(`/users/${user.id}/export`)
    const read: Buffer[] = []
    const ended = new Promise<string>((resolve) => {
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''))
      socket.on('close', () => resolve('closed'))
    })
    await new Promise<void>((resolve) => {
      socket.once('data', (part) => {
        read.push(part)
        socket.pause()
        resolve()
      })
    })
    // the user goes while the export is under way: what is left of it is not the whole
    await project.sql('delete from app.users where id = $1', [user.id])
    socket.on('data', (part) => read.push(part))
    socket.resume()
    expect(await ended).toMatch(/ECONNRESET|closed/)
    const text = Buffer.concat(read).toString()
    expect(text).toMatch(/^HTTP\/1\.1 200/)
    expect(text).not.toContain('export_complete')
    expect(text.endsWith('0\r\n\r\n')).toBe(false)
  })
})
