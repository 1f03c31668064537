import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import type { Answer, Client } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { anonymousId, type Device, newEmail, startStage } from '#test/support/sign_in.ts'

const stage = await startStage()
const { harness, project, app, device } = stage
const merge = (by: Client, from: Pick<Device, 'token'>) =>
  by.post('/client/auth/merge', { from_session_token: from.token })
const post = (by: Client, event_name: string, id?: string) => by.post('/client/events', { event_name, id })
const count = async (sql: string, values: unknown[]) =>
  Number((await project.sql(`select count(*) as n ${sql}`, values))[0].n)

afterEach(() => harness.setTime(null))

describe('merging an anonymous user', () => {
  test('moves what they have earned, once, and deletes them', async () => {
    await project.admin.post('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'played' })
    const survivor = await stage.signup(newEmail())
    const requestedId = anonymousId()
    const guest = await stage.anonymous(requestedId)
    await post(survivor, 'won')
    const known = randomUUID()
    await post(guest, 'won', known)
    await post(guest, 'won')
    await post(guest, 'played')
    const { status, data } = await merge(survivor, guest)
    expect(status).toBe(200)
    expect(data.user.id).toBe(survivor.id)
    expect(data.user).toMatchObject({
      email: survivor.user.email,
      display_name: survivor.user.display_name,
      anonymous_id: null,
    })
    // counters of won, played, svc.streak.started and the guest's own sign-in
    expect(data.merged).toMatchObject({ streaks: 1, event_ids: 1 })
    expect(data.merged.engagement_events).toBeGreaterThanOrEqual(5)
    expect(Object.values(data.merged).every((moved) => (moved as number) > 0)).toBe(true)
    expect(await count(`from app.engagement_events where app_user_id = $1 and event_name = 'won'`, [survivor.id])).toBe(
      3,
    )
    expect(
      await project.sql(
        `select sum(count)::int as count from app.user_event_counters where app_user_id = $1 and event_name = 'won'`,
        [survivor.id],
      ),
    ).toEqual([{ count: 3 }])
    const streaks = await survivor.get('/client/streaks')
    expect(streaks.data[0]).toMatchObject({ key: 'daily', current_count: 1 })
    // an event id that the guest used is still deduplicated
    const again = await post(survivor, 'won', known)
    expect(again.status).toBe(200)

    expect(await count('from app.users where id = $1', [guest.id])).toBe(0)
    expectRefusal(await stage.me(guest), 401, 'UNAUTHORIZED')
    expectRefusal(await app.post('/client/auth/refresh', { refresh_token: guest.refresh }), 401, 'INVALID_TOKEN')
    expect((await stage.me(survivor)).status).toBe(200)
    const newcomer = await app.post('/client/auth/anonymous', { anonymous_id: requestedId })
    expect(newcomer.status).toBe(201)
    const [event] = await project.sql(
      `select properties from app.engagement_events where app_user_id = $1 and event_name = 'svc.user.merged'`,
      [survivor.id],
    )
    expect(event.properties).toEqual({ from_user_id: guest.id, merged: data.merged })
  })

  test('of each streak keeps the longer, whole; rewards already held are not added', async () => {
    await project.admin.post('/streaks', { key: 'login', name: 'Login', qualifying_event: 'opened' })
    for (const guestIsLonger of [true, false]) {
      harness.setTime('2026-11-18T10:00:00Z')
      const survivor = await stage.signup(newEmail())
      const guest = await stage.anonymous()
      const [longer, shorter] = guestIsLonger ? [guest, survivor] : [survivor, guest]
      await post(longer, 'opened')
      harness.advance(86_400)
      const fresh = async (one: Device) =>
        device({
          status: 200,
          data: { ...(await app.post('/client/auth/refresh', { refresh_token: one.refresh })).data, user: one.user },
        } as never)
      const [long, short] = [await fresh(longer), await fresh(shorter)]
      await post(long, 'opened')
      await post(short, 'opened')
      const sourced =
        'insert into app.reward_grants (app_user_id, source_type, source_id, reward) values ($1, $2, $3, $4)'
      for (const one of [survivor, guest]) await project.sql(sourced, [one.id, 'welcome', 'once', '{}'])
      await project.sql(sourced, [guest.id, 'quest', 'own', '{}'])
      const [by, from] = guestIsLonger ? [short, long] : [long, short]
      const { data } = await merge(by, from)
      expect(data.merged.reward_grants).toBe(1)
      expect(data.merged.streaks ?? 0).toBe(guestIsLonger ? 1 : 0)
      expect(
        await project.sql('select source_type from app.reward_grants where app_user_id = $1 order by source_type', [
          survivor.id,
        ]),
      ).toEqual([{ source_type: 'quest' }, { source_type: 'welcome' }])
      const streak = (await by.get('/client/streaks/login')).data
      expect(streak.current_count).toBe(2)
    }
  })

  test('a later area takes part by its registration alone', async () => {
    await project.sql(`
      create table app.probe_items (app_user_id uuid not null references app.users on delete cascade, slot int not null, note text,
                                    constraint probe_items_one unique (app_user_id, slot));
      create table app.probe_purses (app_user_id uuid primary key references app.users on delete cascade, amount int not null);
      create function internal.merge__probe_purses(survivor uuid, other uuid) returns int language sql as
        'with theirs as (select amount from app.probe_purses where app_user_id = merge__probe_purses.other)
         update app.probe_purses p set amount = p.amount + t.amount from theirs t where p.app_user_id = merge__probe_purses.survivor returning 1';
      revoke execute on function internal.merge__probe_purses from public;
      insert into internal.user_data (table_name, user_column, section, exempt_reason, on_merge, on_delete, declared_in) values
        ('app.probe_items', 'app_user_id', 'probe_items', 'a test', 'move', 'cascade', 'test'),
        ('app.probe_purses', 'app_user_id', 'probe_purses', 'a test', 'add', 'cascade', 'test')`)
    const survivor = await stage.signup(newEmail())
    const guest = await stage.anonymous()
    await project.sql(
      `insert into app.probe_items values ($1, 1, 'mine'), ($2, 1, 'theirs'), ($2, 2, 'theirs'), ($2, 3, 'theirs')`,
      [survivor.id, guest.id],
    )
    await project.sql('insert into app.probe_purses values ($1, 5), ($2, 7)', [survivor.id, guest.id])
    const { data } = await merge(survivor, guest)
    expect(data.merged).toMatchObject({ probe_items: 2, probe_purses: 1 })
    expect(
      await project.sql('select slot, note from app.probe_items where app_user_id = $1 order by slot', [survivor.id]),
    ).toEqual([
      { slot: 1, note: 'mine' },
      { slot: 2, note: 'theirs' },
      { slot: 3, note: 'theirs' },
    ])
    expect(await project.sql('select amount from app.probe_purses where app_user_id = $1', [survivor.id])).toEqual([
      { amount: 12 },
    ])
    expect(await count('from app.probe_items', [])).toBe(3)
    await project.sql(`delete from internal.user_data where declared_in = 'test'`)
  })

  test('every registered table says what a merge does with it, in words that are understood', async () => {
    const unknown = await project.sql(
      `select d.table_name, d.on_merge from internal.user_data d
        where d.table_name <> 'app.users'
          and d.on_merge not in ('move', 'union by source', 'keep survivor', 'end') and d.on_merge not like 'with %'
          and to_regprocedure(format('internal.%I(uuid,uuid)', 'merge__' || d.section)) is null`,
    )
    expect(unknown).toEqual([])
  })

  test('an anonymous survivor is one too', async () => {
    const [one, two] = [await stage.anonymous(), await stage.anonymous()]
    const { status, data } = await merge(one, two)
    expect([status, data.user.id]).toEqual([200, one.id])
  })
})

describe('is refused', () => {
  test('for whoever has any identity, and for oneself', async () => {
    const survivor = await stage.signup(newEmail())
    const member = await stage.signup(newEmail())
    expectRefusal(await merge(survivor, member), 409, 'MERGE_NOT_ALLOWED')
    expectRefusal(await merge(survivor, survivor), 409, 'MERGE_NOT_ALLOWED')
    const guest = await stage.anonymous()
    await project.sql(
      `insert into app.user_identities (app_user_id, provider, provider_id) values ($1, 'apple', gen_random_uuid())`,
      [guest.id],
    )
    expectRefusal(await merge(survivor, guest), 409, 'MERGE_NOT_ALLOWED')
    for (const one of [survivor, member, guest]) expect((await stage.me(one)).status).toBe(200)
  })

  test('without a live session of the other: nobody is merged by their id', async () => {
    const survivor = await stage.signup(newEmail())
    const guest = await stage.anonymous()
    const elsewhere = await stage.newProject()
    const foreign = (await elsewhere.app.post('/client/auth/anonymous')).data.session_token
    for (const token of ['x', guest.refresh, guest.id, foreign, project.clientKey, `${guest.token}x`])
      expectRefusal(await merge(survivor, { token }), 401, 'INVALID_TOKEN')
    for (const body of [{}, { from_session_token: '' }, { from_session_token: 7 }])
      expectRefusal(await survivor.post('/client/auth/merge', body), 400, 'INVALID_INPUT')
    await guest.post('/client/auth/logout', { refresh_token: guest.refresh })
    expectRefusal(await merge(survivor, guest), 401, 'INVALID_TOKEN')
    const banned = await stage.anonymous()
    await project.sql('update app.users set is_banned = true where id = $1', [banned.id])
    expectRefusal(await merge(survivor, banned), 401, 'INVALID_TOKEN')
    harness.setTime(new Date())
    const late = await stage.anonymous()
    harness.advance(3599)
    const other = await stage.signup(newEmail())
    harness.advance(1)
    expectRefusal(await merge(other, late), 401, 'INVALID_TOKEN')
    expect(await count('from app.users where id in ($1, $2, $3)', [guest.id, banned.id, late.id])).toBe(3)
  })
})

describe('raced', () => {
  test('one guest into five accounts: one gets them', async () => {
    for (let round = 0; round < 3; round += 1) {
      const guest = await stage.anonymous()
      await post(guest, 'won')
      const accounts = await Promise.all(Array.from({ length: 5 }, () => stage.signup(newEmail())))
      const answers = await Promise.all(accounts.map((account) => merge(account, guest)))
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
      for (const answer of answers.filter(({ status }) => status !== 200)) expectRefusal(answer, 401, 'INVALID_TOKEN')
      const owners = await project.sql(
        `select distinct app_user_id as id from app.engagement_events where event_name = 'won' and app_user_id = any ($1)`,
        [accounts.map(({ id }) => id)],
      )
      expect(owners).toHaveLength(1)
    }
  })

  test('against a link: the guest becomes an account or is merged, never both', async () => {
    for (let round = 0; round < 5; round += 1) {
      const [survivor, guest] = [await stage.signup(newEmail()), await stage.anonymous()]
      const sub = randomUUID()
      const id_token = await stage.socialToken('google', { sub })
      const [merged, linked] = await Promise.all([
        merge(survivor, guest),
        guest.post('/client/auth/link', { provider: 'google', id_token }),
      ])
      const isThere = await count('from app.users where id = $1', [guest.id])
      if (merged.status === 200) {
        expectRefusal(linked, 401, 'UNAUTHORIZED')
        expect(isThere).toBe(0)
      } else {
        expectRefusal(merged, 409, 'MERGE_NOT_ALLOWED')
        expect([linked.status, isThere]).toEqual([200, 1])
      }
    }
  })

  test('whoever waits for a merge finds nobody; a merge that waits for a link refuses', async () => {
    const id_token = () => stage.socialToken('google', {})
    const [survivor, guest] = [await stage.signup(newEmail()), await stage.anonymous()]
    const token = await id_token()
    const link = (by: Device, text: string) => () =>
      by.post('/client/auth/link', { provider: 'google', id_token: text })
    const [merged, linked] = await stage.queued(guest.id, [() => merge(survivor, guest), link(guest, token)])
    expect(merged?.status).toBe(200)
    expectRefusal(linked as Answer, 401, 'UNAUTHORIZED')
    const other = await stage.anonymous()
    const [first, second] = await stage.queued(other.id, [link(other, await id_token()), () => merge(survivor, other)])
    expect(first?.status).toBe(200)
    expectRefusal(second as Answer, 409, 'MERGE_NOT_ALLOWED')
  })

  test('two guests into each other: one is left', async () => {
    const [one, two] = [await stage.anonymous(), await stage.anonymous()]
    const answers = await Promise.all([merge(one, two), merge(two, one)])
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(1)
    expect(await count('from app.users where id in ($1, $2)', [one.id, two.id])).toBe(1)
  })

  test('against the guest’s own events: what was answered is the survivor’s, the rest is refused', async () => {
    const [survivor, guest] = [await stage.signup(newEmail()), await stage.anonymous()]
    const [merged, ...posted] = await Promise.all([
      merge(survivor, guest),
      ...Array.from({ length: 12 }, () => post(guest, 'raced')),
    ])
    expect(merged?.status).toBe(200)
    const taken = posted.filter((answer) => answer?.status === 201).length
    for (const answer of posted) expect([201, 401, 404]).toContain(answer?.status)
    expect(await count(`from app.engagement_events where event_name = 'raced'`, [])).toBe(taken)
    expect(
      await count(`from app.engagement_events where event_name = 'raced' and app_user_id = $1`, [survivor.id]),
    ).toBe(taken)
  })
})
