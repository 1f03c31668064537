import { describe, expect, test } from 'vitest'
import { freshEmail } from '#test/support/harness.ts'
import { startModeration } from '#test/support/moderation.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** What active rules do to texts that users write: names of users and of groups. */
const { harness, project, admin, define, word, queue, itemOf, report, move, rename, nameOf } = await startModeration()

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

  test('is hidden again as often as it is written, and the queue shows the last one', async () => {
    await word(['hideme'], { match: 'substring', action: 'hide' })
    const user = await project.user()
    await user.patch('/client/users/me', { avatar_url: 'https://files.example.org/a.png' })
    for (const n of [0, 1, 2]) {
      expect((await rename(user, `hideme ${n}`)).status).toBe(200)
      expect(await nameOf(user)).not.toMatch(/hideme/)
      expect((await itemOf(user.id))!['snapshot']).toEqual({ kind: 'display_name', text: `hideme ${n}` })
    }
    // another open item, for another name of the user's choice, is none
    await rename(user, 'Chosen')
    expect(await nameOf(user)).toBe('Chosen')
    await rename(user, 'hideme 3')
    expect((await queue()).filter(({ subject_id }) => subject_id === user.id)).toHaveLength(1)
    // what was hidden first comes back too
    await move((await itemOf(user.id))!['id'], 'approve')
    expect((await user.get('/client/users/me')).data).toMatchObject({
      display_name: 'hideme 3',
      avatar_url: 'https://files.example.org/a.png',
    })
  })

  test('of a group is hidden again too, also where reports have hidden the group before', async () => {
    await word(['hideme'], { match: 'substring', action: 'hide' })
    await define('report_threshold', { count: 1, window_hours: 1, applies_to: ['group'] })
    const [owner, other] = [await project.user(), await project.user()]
    const shown = async (id: string) => (await other.get(`/client/groups/${id}`)).data.name
    for (const isReported of [false, true]) {
      const { data } = await owner.post('/client/groups', {
        name: 'Before',
        description: 'what we do',
        is_public: true,
      })
      if (isReported) expect((await report(other, 'group', data.id)).status).toBe(201)
      for (const n of [0, 1]) {
        await owner.patch(`/client/groups/${data.id}`, { name: `hideme ${n}` })
        expect(await shown(data.id)).toBe('Group')
        expect((await itemOf(data.id))!['snapshot']).toMatchObject({
          ...(isReported ? { name: 'Before', description: 'what we do' } : {}),
          kind: 'group_name',
          text: `hideme ${n}`,
        })
      }
      await move((await itemOf(data.id))!['id'], 'approve')
      expect((await other.get(`/client/groups/${data.id}`)).data).toMatchObject({
        name: 'hideme 1',
        description: 'what we do',
      })
    }
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
