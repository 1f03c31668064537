import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Client, freshEmail, startHarness, type User } from '#test/support/harness.ts'
import { expectInvalid, expectRefusal } from '#test/support/refusals.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

const harness = await startHarness()
const project = await harness.project()
const { admin } = project

// one rule of a test is not to read the texts of the next
beforeEach(() => project.sql('update app.moderation_rules set is_active = false'))
afterEach(() => harness.setTime(null))

const define = async (rule_type: string, config: object, fields: object = {}) => {
  await project.sql('delete from app.moderation_rules where not is_active')
  const rule = await admin.post('/moderation/rules', { name: 'Rule', rule_type, config, ...fields })
  expect(rule.status, rule.text).toBe(201)
  return rule.data as { id: string }
}
const word = (words: string[], more: object = {}) => define('keyword', { words, ...more })
const queue = async (status = 'pending') =>
  (await admin.get(`/moderation/queue?status=${status}&limit=200`)).data as Record<string, any>[]
const itemOf = async (id: string, status = 'pending') => (await queue(status)).find((item) => item['subject_id'] === id)
const report = (from: Client, subject_type: string, subject_id: string, reason = 'spam', more: object = {}) =>
  from.post('/client/moderation/reports', { subject_type, subject_id, reason, ...more })
const move = (id: string, verb: string, body: object = {}) => admin.post(`/moderation/queue/${id}/${verb}`, body)
const rename = (user: Client, display_name: string) => user.patch('/client/users/me', { display_name })
const nameOf = async (user: User) =>
  (await project.sql('select display_name from app.users where id = $1', [user.id]))[0].display_name
const events = (user: User) =>
  project.sql(
    `select event_name, properties from app.engagement_events where app_user_id = $1 and event_name like 'svc.moderation.%' order by received_at, id`,
    [user.id],
  )

describe('rules', () => {
  test.each([
    ['keyword', {}, 'config.words'],
    ['keyword', { words: [] }, 'config.words'],
    ['keyword', { words: 'a' }, 'config.words'],
    ['keyword', { words: [1] }, 'config.words'],
    ['keyword', { words: [''] }, 'config.words'],
    ['keyword', { words: ['a'.repeat(101)] }, 'config.words'],
    ['keyword', { words: Array(1001).fill('a') }, 'config.words'],
    ['keyword', { words: ['!!'] }, 'config.words'],
    ['keyword', { words: ['a'], match: 'prefix' }, 'config.match'],
    ['keyword', { words: ['a'], applies_to: ['nothing'] }, 'config.applies_to'],
    ['keyword', { words: ['a'], applies_to: 'user' }, 'config.applies_to'],
    ['keyword', { words: ['a'], action: 'ban' }, 'config.action'],
    ['keyword', { words: ['a'], more: 'x'.repeat(65_536) }, 'config'],
    ['regex', {}, 'config.pattern'],
    ['regex', { pattern: 1 }, 'config.pattern'],
    ['regex', { pattern: '(a)\\1' }, 'config.pattern'],
    ['report_threshold', { count: 0, window_hours: 1 }, 'config.count'],
    ['report_threshold', { count: 1.5, window_hours: 1 }, 'config.count'],
    ['report_threshold', { count: 1 }, 'config.window_hours'],
    ['report_threshold', { count: 1, window_hours: 1, action: 'block' }, 'config.action'],
    ['rate', { max: '1', window_seconds: 60 }, 'config.max'],
    ['rate', { max: 1, window_seconds: 1e12 }, 'config.window_seconds'],
    ['link', { allow_domains: [1] }, 'config.allow_domains'],
    ['new_account', { max_age_hours: -1 }, 'config.max_age_hours'],
  ])('%s %j is refused', async (rule_type, config, field) => {
    const made = await admin.post('/moderation/rules', { name: 'Rule', rule_type, config })
    expectRefusal(made, 400, 'INVALID_INPUT', field)
    const rule = await word(['fine'])
    expectRefusal(await admin.patch(`/moderation/rules/${rule.id}`, { rule_type, config }), 400, 'INVALID_INPUT', field)
  })

  test('keep their configuration as it was sent, and default to every text and the queue', async () => {
    const config = { words: ['Casino '], of_ours: { n: 1 } }
    const rule = await define('keyword', config)
    expect(rule).toEqual({
      id: expect.any(String),
      name: 'Rule',
      rule_type: 'keyword',
      config,
      is_active: true,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    const [stored] = await project.sql('select applies_to, action, words from app.moderation_rules where id = $1', [
      rule.id,
    ])
    expect([stored.applies_to.includes('display_name'), stored.action, stored.words]).toEqual([
      true,
      'queue',
      [' casino '],
    ])
  })

  test.each([
    ['keyword', { words: ['bad idea', 'Ärger'] }, 'A BAD,  idea!', ['bad idea']],
    ['keyword', { words: ['ärger'] }, 'ÄRGER', ['ärger']],
    ['keyword', { words: ['ass'] }, 'class', []],
    ['keyword', { words: ['ass'], match: 'substring' }, 'CLASS', ['ass']],
    ['keyword', { words: ['casino'] }, 'ｃａｓｉｎｏ', ['casino']],
    ['keyword', { words: ['%', '_'], match: 'substring' }, 'nothing', []],
    ['regex', { pattern: '(?i)buy\\s+now' }, 'BUY  now', ['(?i)buy\\s+now']],
    ['regex', { pattern: 'buy' }, 'sell', []],
    ['link', {}, 'see HTTPS://Evil.example/x?y', ['evil.example']],
    ['link', { allow_domains: ['ours.com'] }, 'https://ours.com and http://a.ours.com:8080/', []],
    ['link', { allow_domains: ['ours.com'] }, 'https://notours.com', ['notours.com']],
    ['link', { allow_domains: ['ours.com'] }, 'https://ours.com@evil.com/', ['evil.com']],
    ['link', { allow_domains: ['ours.com'] }, 'https:\\\\evil.com\\ours.com', ['evil.com']],
    ['link', {}, 'at www.evil.com.', ['www.evil.com']],
    ['link', {}, 'go to evil.com now', ['evil.com']],
    ['link', {}, 'e.g. this, v1.2 and a.b', []],
    ['link', {}, 'mail ada@evil.com', []],
    ['rate', { max: 1, window_seconds: 60 }, 'text', []],
    ['new_account', { max_age_hours: 1 }, 'text', []],
    ['report_threshold', { count: 1, window_hours: 1 }, 'text', []],
  ])('%s %j finds in %j: %j', async (rule_type, config, text, found) => {
    const rule = await define(rule_type, config)
    const tested = await admin.post(`/moderation/rules/${rule.id}/test`, { text })
    expect(tested.data, tested.text).toMatchObject({ matches: found.length > 0, found })
  })

  test('are tested and simulated within bounds, and of this project', async () => {
    const rule = await word(['x'])
    const test = `/moderation/rules/${rule.id}/test`
    expectInvalid(await admin.post(test, { text: '' }), 'text')
    expectInvalid(await admin.post(test, { text: 'x'.repeat(10_001) }), 'text')
    expectRefusal(await admin.post(test, []), 400, 'INVALID_BODY')
    expectRefusal(await admin.post(`/moderation/rules/${randomUUID()}/test`, { text: 'x' }), 404, 'NOT_FOUND')
    expectRefusal(await admin.post('/moderation/rules/none/test', { text: 'x' }), 400, 'INVALID_ID')
    for (const days of [0, 91, 1.5, 'x']) {
      expectInvalid(await admin.post(`/moderation/rules/${rule.id}/simulate`, { days }), 'days')
    }
    expectRefusal(await admin.post(`/moderation/rules/${rule.id}/simulate`, []), 400, 'INVALID_BODY')
    expectRefusal(await admin.post(`/moderation/rules/${randomUUID()}/simulate`, {}), 404, 'NOT_FOUND')
    expectRefusal(await admin.post('/moderation/rules/none/simulate', {}), 400, 'INVALID_ID')
    const other = await harness.project()
    expectRefusal(await other.admin.post(test, { text: 'x' }), 404, 'NOT_FOUND')
  })
})

describe('a display name', () => {
  test('that a rule queues is written, and stands in the queue with its text', async () => {
    const rule = await word(['casino'], { applies_to: ['display_name'] })
    const user = await project.user()
    expect((await rename(user, 'My Casino')).data.display_name).toBe('My Casino')
    expect(await itemOf(user.id)).toEqual({
      id: expect.any(String),
      subject_type: 'user',
      subject_id: user.id,
      subject_user_id: user.id,
      snapshot: { kind: 'display_name', text: 'My Casino' },
      source: 'rule',
      rule_id: rule.id,
      reasons: {},
      report_count: 0,
      priority: 1,
      status: 'pending',
      is_hidden: false,
      moderator_id: null,
      resolved_at: null,
      note: null,
      created_at: expect.any(String),
    })
    // the open item takes what is caught later
    await rename(user, 'Casino 2')
    expect((await queue()).filter(({ subject_id }) => subject_id === user.id)).toHaveLength(1)
    expect((await itemOf(user.id))!['snapshot'].text).toBe('Casino 2')
  })

  test('that a rule blocks is refused and leaves nothing', async () => {
    await word(['casino'], { action: 'queue' })
    await define('keyword', { words: ['casino'], action: 'block' })
    const user = await project.user()
    const before = await nameOf(user)
    expectRefusal(await rename(user, 'casino'), 400, 'CONTENT_REJECTED')
    expect([await nameOf(user), await itemOf(user.id)]).toEqual([before, undefined])
    expect((await rename(user, 'harmless')).status).toBe(200)
    // what is not changed is not read again
    await word(['harmless'], { action: 'block' })
    expect((await rename(user, 'harmless')).status).toBe(200)
    expect((await user.patch('/client/users/me', { properties: { a: 1 } })).status).toBe(200)
    // the developer and a server without a user are not moderated; a server for a user is
    expect((await admin.patch(`/users/${user.id}`, { display_name: 'casino' })).status).toBe(200)
    expectRefusal(await rename(project.onBehalfOf(user.id), 'casino 2'), 400, 'CONTENT_REJECTED')
  })

  test('that a rule hides gives way to a generated one, and comes back when it is approved', async () => {
    await word(['casino'], { action: 'hide' })
    const [kept, chosen, gone] = [await project.user(), await project.user(), await project.user()]
    for (const user of [kept, chosen, gone]) {
      expect((await rename(user, 'Casino')).status).toBe(200)
      expect(await nameOf(user)).not.toMatch(/casino/i)
    }
    const item = (await itemOf(kept.id))!
    expect([item['is_hidden'], item['priority']]).toEqual([true, 3])
    expect((await move(item['id'], 'approve')).data).toMatchObject({ status: 'approved', is_hidden: false })
    expect(await nameOf(kept)).toBe('Casino')
    await rename(chosen, 'Another')
    await move((await itemOf(chosen.id))!['id'], 'approve')
    expect(await nameOf(chosen)).toBe('Another')
    const rejected = await move((await itemOf(gone.id))!['id'], 'reject')
    expect(rejected.data).toMatchObject({ status: 'rejected', is_hidden: true })
    expect(await nameOf(gone)).not.toMatch(/casino/i)
  })

  test('is read at sign-up; generated ones are not', async () => {
    await define('regex', { pattern: '.', action: 'block', applies_to: ['display_name'] })
    const sign = (display_name?: string) =>
      project.app.post('/client/auth/email/signup', {
        email: freshEmail(),
        password: 'a long passphrase',
        display_name,
      })
    expectRefusal(await sign('Ada'), 400, 'CONTENT_REJECTED')
    expect((await sign()).status).toBe(201)
    expect((await project.app.post('/client/auth/anonymous', {})).status).toBe(201)
  })
})

describe('other rules', () => {
  test('rate: lets so many through in a window that begins with the first', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    await define('rate', { max: 2, window_seconds: 60, action: 'block', applies_to: ['display_name'] })
    const user = await project.user()
    const them = project.onBehalfOf(user.id)
    for (const name of ['One', 'Two']) expect((await rename(them, name)).status).toBe(200)
    expectRefusal(await rename(them, 'Three'), 400, 'CONTENT_REJECTED')
    harness.setTime('2026-11-21T12:01:00Z')
    expect((await rename(them, 'Three')).status).toBe(200)
  })

  test('rate: two at once are counted one after the other', async () => {
    await define('rate', { max: 3, window_seconds: 600, action: 'block', applies_to: ['group_name'] })
    const user = await project.user()
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => user.post('/client/groups', { name: `group ${n}` })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 201, 400, 400, 400, 400, 400])
  })

  test('new_account: catches accounts younger than so many hours', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    await define('new_account', { max_age_hours: 24 })
    const [young, old] = [await project.user(), await project.user()]
    await project.sql(`update app.users set created_at = internal.now() - interval '24 hours' where id = $1`, [old.id])
    await project.sql(`update app.users set created_at = '2026-11-21T11:00:00Z' where id = $1`, [young.id])
    await project.sql(`update app.users set created_at = '2026-11-20T11:00:00Z' where id = $1`, [old.id])
    for (const user of [young, old]) await rename(project.onBehalfOf(user.id), 'Someone')
    expect([await itemOf(young.id), await itemOf(old.id)]).toEqual([expect.anything(), undefined])
  })

  test('the strictest rule decides; inactive ones and those for other texts do nothing', async () => {
    const [queues, blocks] = [
      await word(['casino', 'poker'], { action: 'queue' }),
      await word(['poker'], { action: 'block' }),
    ]
    const user = await project.user()
    expectRefusal(await rename(user, 'poker'), 400, 'CONTENT_REJECTED')
    await admin.patch(`/moderation/rules/${blocks.id}`, { is_active: false })
    expect((await rename(user, 'poker')).status).toBe(200)
    expect((await itemOf(user.id))!['rule_id']).toBe(queues.id)
    await admin.patch(`/moderation/rules/${blocks.id}`, {
      is_active: true,
      config: { words: ['casino'], action: 'block', applies_to: ['message'] },
    })
    expect((await rename(user, 'casino')).status).toBe(200)
  })

  test('a muted user writes nothing that is moderated, until the mute ends', async () => {
    harness.setTime('2026-11-21T12:00:00Z')
    const user = await project.user()
    const them = project.onBehalfOf(user.id)
    await admin.patch(`/users/${user.id}`, { muted_until: '2026-11-21T13:00:00Z' })
    const details = { muted_until: '2026-11-21T13:00:00.000Z' }
    expectRefusal(await rename(them, 'Someone'), 403, 'USER_MUTED', details)
    expectRefusal(await them.post('/client/groups', { name: 'A group' }), 403, 'USER_MUTED', details)
    expect((await them.patch('/client/users/me', { properties: { a: 1 } })).status).toBe(200)
    harness.setTime('2026-11-21T13:00:00Z')
    expect((await rename(them, 'Someone')).status).toBe(200)
  })
})

describe('the name of a group', () => {
  test('is blocked, queued and hidden in its creation', async () => {
    const user = await project.user()
    await word(['casino'], { action: 'block', applies_to: ['group_name'] })
    expectRefusal(await user.post('/client/groups', { name: 'The casino' }), 400, 'CONTENT_REJECTED')
    await word(['poker'], { action: 'hide', applies_to: ['group_name'] })
    const group = (await user.post('/client/groups', { name: 'Poker', description: 'cards' })).data
    expect((await user.get(`/client/groups/${group.id}`)).data).toMatchObject({ name: 'Group', description: null })
    const item = (await itemOf(group.id))!
    expect(item).toMatchObject({ subject_type: 'group', subject_user_id: user.id, is_hidden: true })
    await move(item['id'], 'approve')
    expect((await user.get(`/client/groups/${group.id}`)).data).toMatchObject({ name: 'Poker', description: 'cards' })
  })
})

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

test('a simulation counts what a rule would have caught, and writes nothing', async () => {
  harness.setTime('2030-01-10T12:00:00Z')
  const own = await harness.project()
  await own.sql(
    `insert into app.users (display_name, created_at)
     select case when n <= 3 then 'Casino ' || n else 'Fine ' || n end, internal.now() - n * interval '1 day' from generate_series(1, 20) n`,
  )
  await own.sql(`insert into app.groups (name, created_at) values ('my casino', internal.now())`)
  const simulate = async (rule_type: string, config: object, days?: number) => {
    const { data } = await own.admin.post('/moderation/rules', { name: 'Rule', rule_type, config })
    return (await own.admin.post(`/moderation/rules/${data.id}/simulate`, { days })).data
  }
  // the clock of the harness is that of requests: rows have its time
  await own.sql(`update app.users set created_at = timestamptz '2030-01-10T12:00:00Z' - (created_at - created_at)`)
  await own.sql(
    `update app.users set created_at = timestamptz '2030-01-10T12:00:00Z' - split_part(display_name, ' ', 2)::int * interval '1 day'
      where display_name ~ '^(Casino|Fine) '`,
  )
  await own.sql(`update app.groups set created_at = '2030-01-10T12:00:00Z'`)
  expect(await simulate('keyword', { words: ['casino'] })).toEqual({
    days: 7,
    checked: 8,
    caught: 4,
    by_kind: { collection_row: 0, display_name: 3, group_name: 1 },
    is_complete: true,
  })
  expect(await simulate('regex', { pattern: 'no 1$', applies_to: ['display_name'] }, 1)).toMatchObject({
    days: 1,
    checked: 1,
    caught: 1,
  })
  expect(await simulate('new_account', { max_age_hours: 1, applies_to: ['display_name'] })).toMatchObject({ caught: 7 })
  expect(await simulate('rate', { max: 1, window_seconds: 60, applies_to: ['display_name'] })).toMatchObject({
    caught: 0,
  })
  const [one, two, subject] = [await own.user(), await own.user(), await own.user()]
  for (const { id } of [one, two]) await report(own.onBehalfOf(id), 'user', subject.id)
  expect(await simulate('report_threshold', { count: 2, window_hours: 1 })).toMatchObject({ checked: 2, caught: 1 })
  expect(await simulate('report_threshold', { count: 3, window_hours: 1 })).toMatchObject({ checked: 2, caught: 0 })
  expect((await own.sql('select count(*)::int as n from app.moderation_items where rule_id is not null'))[0].n).toBe(0)
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
