import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startModeration } from '#test/support/moderation.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'

/** Reports of users, and the rule that counts them. */
const { harness, project, define, queue, itemOf, report, move, rename, nameOf, events } = await startModeration()

describe('reports', () => {
  test('queue the subject with a copy of it; the same again is 200', async () => {
    const [user, one, two] = [await project.user(), await project.user(), await project.user()]
    await rename(user, 'Rude')
    const first = await report(one, 'user', user.id, 'abuse', { details: 'He is.' })
    expect([first.status, first.data]).toEqual([201, { id: expect.any(String), status: 'received' }])
    expect(await report(one, 'user', user.id, 'spam')).toMatchObject({ status: 200, data: first.data })
    await rename(user, 'Polite')
    expect((await report(two, 'user', user.id, 'self_harm')).status).toBe(201)
    expect(await itemOf(user.id)).toMatchObject({
      subject_type: 'user',
      subject_user_id: user.id,
      source: 'report',
      rule_id: null,
      snapshot: { display_name: 'Rude', avatar_url: null },
      reasons: { abuse: 1, self_harm: 1 },
      report_count: 2,
      priority: 7,
    })
    const mine = await one.get('/client/moderation/reports')
    expect(mine.body).toEqual({
      data: [
        {
          id: first.data.id,
          subject_type: 'user',
          subject_id: user.id,
          reason: 'abuse',
          details: 'He is.',
          status: 'received',
          created_at: expect.any(String),
        },
      ],
      total: 1,
      offset: 0,
      limit: 50,
    })
    expect((await user.get('/client/moderation/reports')).data).toEqual([])
    expect((await events(one)).map(({ event_name }) => event_name)).toEqual(['svc.moderation.reported'])
    expect(await events(user)).toEqual([])
  })

  test('are refused where there is no such subject, or it is the own, or the body is wrong', async () => {
    const [user, other] = [await project.user(), await project.user()]
    for (const type of ['user', 'group', 'collection_row', 'message', 'review', 'content', 'media']) {
      expectRefusal(await report(user, type, randomUUID()), 404, 'SUBJECT_NOT_FOUND')
    }
    expectRefusal(await report(user, 'user', user.id), 400, 'SELF_REPORT')
    const own = (await user.post('/client/groups', { name: 'mine', is_public: false })).data
    expectRefusal(await report(user, 'group', own.id), 400, 'SELF_REPORT')
    expectRefusal(await report(other, 'group', own.id), 404, 'SUBJECT_NOT_FOUND')
    expectInvalid(await report(user, 'nothing', other.id), 'subject_type')
    expectInvalid(await report(user, 'user', 'x'), 'subject_id')
    expectInvalid(await report(user, 'user', other.id, 'dislike'), 'reason')
    expectInvalid(await report(user, 'user', other.id, 'spam', { details: 'x'.repeat(1001) }), 'details')
    expectRefusal(await user.post('/client/moderation/reports', []), 400, 'INVALID_BODY')
    expectRefusal(await user.get('/client/moderation/reports?limit=0'), 400, 'INVALID_INPUT')
    expect((await report(user, 'user', other.id, 'spam', { details: 'x'.repeat(1000), more: 1 })).status).toBe(201)
    const stranger = await (await harness.project()).user()
    expectRefusal(await report(stranger, 'user', other.id), 404, 'SUBJECT_NOT_FOUND')
  })

  test('30 a day', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const user = project.onBehalfOf((await project.user()).id)
    const others = await project.sql(
      `insert into app.users (display_name) select 'Other ' || n from generate_series(1, 32) n returning id`,
    )
    for (const { id } of others.slice(0, 30)) expect((await report(user, 'user', id)).status).toBe(201)
    const refused = await report(user, 'user', others[30].id)
    expectRefusal(refused, 429, 'RATE_LIMITED')
    expect(refused.headers.get('retry-after')).toBe('86400')
    expect((await report(user, 'user', others[0].id)).status).toBe(200)
    harness.setTime('2026-11-22T12:00:00Z')
    expect((await report(user, 'user', others[31].id)).status).toBe(201)
  })

  test('of twenty at once are one item, and each counts once', async () => {
    const subject = await project.user()
    const users = await Promise.all(Array.from({ length: 10 }, () => project.user()))
    const answers = await Promise.all(users.flatMap((user) => [1, 2].map(() => report(user, 'user', subject.id))))
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(10).fill(200), ...Array(10).fill(201)])
    const items = (await queue()).filter(({ subject_id }) => subject_id === subject.id)
    expect(items.map(({ report_count, reasons }) => [report_count, reasons])).toEqual([[10, { spam: 10 }]])
  })

  test('report_threshold: hides when so many came within the window', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    await define('report_threshold', { count: 3, window_hours: 1, applies_to: ['user'] })
    const subject = await project.user()
    await project.sql(`update app.users set display_name = 'Rude' where id = $1`, [subject.id])
    const users = (await Promise.all(Array.from({ length: 4 }, () => project.user()))).map(({ id }) =>
      project.onBehalfOf(id),
    )
    await report(users[0]!, 'user', subject.id)
    await report(users[1]!, 'user', subject.id)
    // the first two are out of the window now
    harness.setTime('2026-11-21T13:00:00Z')
    await report(users[2]!, 'user', subject.id)
    expect([await nameOf(subject), (await itemOf(subject.id))!['is_hidden']]).toEqual(['Rude', false])
    await project.sql(`update app.moderation_reports set created_at = '2026-11-21T12:30:00Z' where reporter_id = $1`, [
      (await project.sql('select reporter_id from app.moderation_reports order by created_at limit 1'))[0].reporter_id,
    ])
    await project.sql(`update app.moderation_reports set created_at = '2026-11-21T12:30:00Z' where subject_id = $1`, [
      subject.id,
    ])
    await report(users[3]!, 'user', subject.id)
    expect([(await nameOf(subject)) === 'Rude', (await itemOf(subject.id))!['is_hidden']]).toEqual([false, true])
    await move((await itemOf(subject.id))!['id'], 'approve')
    expect(await nameOf(subject)).toBe('Rude')
  })
})
