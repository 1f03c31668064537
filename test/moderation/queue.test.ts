import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { User } from '#test/support/harness.ts'
import { startModeration } from '#test/support/moderation.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

/** The queue and its transitions, trust levels, and the deletion and merge of their users. */
const { harness, project, admin, queue, itemOf, report, move, rename, events } = await startModeration()

describe('the queue', () => {
  const queued = async () => {
    const [user, reporter] = [await project.user(), await project.user()]
    await report(reporter, 'user', user.id)
    return { user, reporter, item: (await itemOf(user.id))!['id'] as string }
  }

  test('approve, reject and escalate stamp the item; the same again changes nothing, another move is refused', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    for (const [verb, status, other] of [
      ['approve', 'approved', 'reject'],
      ['reject', 'rejected', 'approve'],
    ] as const) {
      for (const isEscalated of [false, true]) {
        const { item, user, reporter } = await queued()
        if (isEscalated) {
          const escalated = await move(item, 'escalate', { note: 'hard' })
          expect(escalated.data).toMatchObject({
            status: 'escalated',
            moderator_id: null,
            resolved_at: null,
            note: 'hard',
          })
          expect(await move(item, 'escalate')).toMatchObject({ status: 200, data: escalated.data })
        }
        const resolved = await move(item, verb)
        expect(resolved.data).toMatchObject({
          status,
          moderator_id: 'admin',
          resolved_at: '2026-11-21T12:00:00.000Z',
          note: isEscalated ? 'hard' : null,
        })
        expect(await move(item, verb, { note: 'again' })).toMatchObject({ status: 200, data: resolved.data })
        for (const refused of [other, 'escalate']) expectRefusal(await move(item, refused), 409, 'ALREADY_RESOLVED')
        const mine = (await project.onBehalfOf(reporter.id).get('/client/moderation/reports')).data
        expect(mine[0].status).toBe(status === 'rejected' ? 'action_taken' : 'no_action')
        expect(await events(user)).toEqual([
          {
            event_name: 'svc.moderation.resolved',
            properties: { item_id: item, subject_type: 'user', subject_id: user.id, status, action: 'none' },
          },
        ])
        const trail = (await admin.get(`/audit-events?target_id=${item}`)).data.map((row: any) => row.action)
        expect(trail).toEqual([`moderation.${verb}`, ...(isEscalated ? ['moderation.escalate'] : [])])
        // the queue may be asked to look again
        const next = await report(project.onBehalfOf((await project.user()).id), 'user', user.id)
        expect(next.status).toBe(201)
        expect((await itemOf(user.id))!['id']).not.toBe(item)
      }
    }
  })

  test('reject warns, mutes and bans the author', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const state = async (user: User) =>
      (
        await project.sql('select is_banned, internal.iso(muted_until) as muted from app.users where id = $1', [
          user.id,
        ])
      )[0]
    const warned = await queued()
    await move(warned.item, 'reject', { action: 'warn' })
    expect(await state(warned.user)).toEqual({ is_banned: false, muted: null })
    expect((await events(warned.user))[0].properties.action).toBe('warn')
    const muted = await queued()
    await move(muted.item, 'reject', { action: 'mute_24h' })
    expect(await state(muted.user)).toEqual({ is_banned: false, muted: '2026-11-22T12:00:00.000Z' })
    expectRefusal(await rename(project.onBehalfOf(muted.user.id), 'Someone'), 403, 'USER_MUTED')
    const longer = await queued()
    await admin.patch(`/users/${longer.user.id}`, { muted_until: '2027-01-01T00:00:00Z' })
    await move(longer.item, 'reject', { action: 'mute_24h' })
    expect((await state(longer.user)).muted).toBe('2027-01-01T00:00:00.000Z')
    harness.setTime(null)
    const banned = await queued()
    await move(banned.item, 'reject', { action: 'ban' })
    expect((await state(banned.user)).is_banned).toBe(true)
    harness.advance(31)
    expect((await banned.user.get('/client/users/me')).status).toBe(401)
  })

  test('two moves at once: one resolves, the other is refused', async () => {
    const { item } = await queued()
    const answers = await Promise.all([move(item, 'approve'), move(item, 'reject')])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  })

  test('a report waits for the move of its item, and opens a new one', async () => {
    const { item, user } = await queued()
    const late = await project.user()
    const moderator = await openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
    await moderator.query('select api.moderation_approve($1)', [item])
    const waiting = report(late, 'user', user.id)
    await untilBlocked(project)
    await moderator.commit()
    expect((await waiting).status).toBe(201)
    expect((await itemOf(user.id))!['id']).not.toBe(item)
  })

  test('is listed by status, newest first, in pages; bad input and unknown items are refused', async () => {
    const made = [await queued(), await queued(), await queued()].map(({ item }) => item).reverse()
    const first = await admin.get('/moderation/queue?limit=2')
    expect(first.data.map(({ id }: any) => id)).toEqual(made.slice(0, 2))
    expect((await admin.get('/moderation/queue?limit=1&offset=2')).data[0].id).toBe(made[2])
    expect(first.body.total).toBe((await queue()).length)
    for (const query of ['status=open', 'limit=0', 'offset=-1']) {
      expectRefusal(await admin.get(`/moderation/queue?${query}`), 400, 'INVALID_INPUT')
    }
    for (const verb of ['approve', 'reject', 'escalate']) {
      expectRefusal(await move(randomUUID(), verb), 404, 'NOT_FOUND')
      expectRefusal(await move('none', verb), 404, 'NOT_FOUND')
      expectRefusal(await move(made[0]!, verb, { note: 'x'.repeat(2001) }), 400, 'INVALID_INPUT')
    }
    expectRefusal(await move(made[0]!, 'reject', { action: 'kill' }), 400, 'INVALID_INPUT', 'action')
    const other = await harness.project()
    expectRefusal(await other.admin.post(`/moderation/queue/${made[0]}/approve`, {}), 404, 'NOT_FOUND')
  })

  test('is of administrators only', async () => {
    const { item, user } = await queued()
    for (const client of [user, project.app, project.server, harness.anyone]) {
      for (const path of ['queue', 'rules', 'trust']) {
        expect([401, 403]).toContain((await client.get(`/admin/projects/${project.id}/moderation/${path}`)).status)
      }
    }
    const as = (text: string) => project.as('app_user', { 'app.caller': 'user', 'app.user_id': user.id }, text)
    await expect(as('select id from app.moderation_items')).rejects.toThrow(/permission denied/)
    await expect(as('select id from app.moderation_rules')).rejects.toThrow(/permission denied/)
    await expect(as(`select internal.moderation_move('${item}', 'approved')`)).rejects.toThrow(/permission denied/)
    expect(await as('select id from app.moderation_reports')).toEqual([])
  })
})

describe('trust', () => {
  test('is written, changed field by field, and listed', async () => {
    const own = await harness.project()
    const [one, two] = [await own.user(), await own.user()]
    const first = await own.admin.post('/moderation/trust', { app_user_id: one.id })
    expect([first.status, first.data]).toEqual([
      200,
      {
        app_user_id: one.id,
        trust_level: 'new',
        auto_approve: false,
        created_at: expect.any(String),
        updated_at: expect.any(String),
      },
    ])
    await own.admin.post('/moderation/trust', { app_user_id: one.id, trust_level: 'moderator', auto_approve: true })
    const changed = await own.admin.post('/moderation/trust', { app_user_id: one.id, trust_level: 'trusted' })
    expect(changed.data).toMatchObject({
      trust_level: 'trusted',
      auto_approve: true,
      created_at: first.data.created_at,
    })
    await own.admin.post('/moderation/trust', { app_user_id: two.id })
    const listed = await own.admin.get('/moderation/trust')
    expect(listed.data.map(({ app_user_id }: any) => app_user_id)).toEqual([two.id, one.id])
    expect(listed.body).toMatchObject({ total: 2, offset: 0, limit: 50 })
    expectRefusal(await own.admin.post('/moderation/trust', { app_user_id: randomUUID() }), 404, 'USER_NOT_FOUND')
    for (const body of [
      {},
      { app_user_id: 'x' },
      { app_user_id: one.id, trust_level: 'god' },
      { app_user_id: one.id, auto_approve: 1 },
      [],
    ]) {
      expectRefusal(await own.admin.post('/moderation/trust', body), 400, 'INVALID_INPUT')
    }
    expectRefusal(await own.admin.get('/moderation/trust?limit=x'), 400, 'INVALID_INPUT')
    const { data } = await own.admin.get(`/audit-events?target_id=${one.id}&action=moderation.`)
    expect(data.map(({ action }: any) => action)).toEqual(Array(3).fill('moderation.trust'))
  })
})

test('items, reports and trust go with their user into a merge, an export and a deletion', async () => {
  const [survivor, other, reporter] = [await project.user(), await project.user(), await project.user()]
  await project.sql('update app.users set external_id = $2 where id = $1', [survivor.id, survivor.id])
  const third = await project.user()
  await report(reporter, 'user', survivor.id)
  await report(reporter, 'user', other.id, 'abuse')
  await report(third, 'user', other.id, 'abuse')
  await report(survivor, 'user', third.id)
  await report(other, 'user', third.id)
  await report(other, 'user', reporter.id)
  const merged = await survivor.post('/client/auth/merge', { from_session_token: other.sessionToken })
  expect(merged.status, merged.text).toBe(200)
  expect((await queue()).filter(({ subject_user_id }) => subject_user_id === survivor.id)).toMatchObject([
    { subject_id: survivor.id, report_count: 3, reasons: { spam: 1, abuse: 2 } },
  ])
  const mine = (await survivor.get('/client/moderation/reports')).data
  expect(mine.map(({ subject_id }: any) => subject_id).sort()).toEqual([third.id, reporter.id].sort())
  await admin.post('/moderation/trust', { app_user_id: survivor.id })
  const bundle = (await survivor.get('/client/users/me/export')).text
  expect(bundle).toContain('moderation_reports')
  expect(bundle).not.toContain('report_count')
  await admin.delete(`/users/${survivor.id}`)
  expect(
    await project.sql(
      `select 1 from app.moderation_items where subject_user_id = $1 union all select 1 from app.moderation_reports where reporter_id = $1
        union all select 1 from app.moderation_trust_levels where app_user_id = $1`,
      [survivor.id],
    ),
  ).toEqual([])
})
