import { beforeAll, describe, expect, test } from 'vitest'
import { startHarness, type User } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'

/** Tables and functions that other areas build on: friendships, blocks, and what a block hides. */
const harness = await startHarness()
const project = await harness.project()
const names = ['ada', 'bea', 'cid', 'dora', 'eve'] as const
const users = {} as Record<(typeof names)[number], User>

const befriend = (one: User, two: User, status = 'accepted', notes: [object, object] = [{}, {}]) => {
  const [a, b] = [one.id, two.id].sort()
  const [ofA, ofB] = a === one.id ? notes : [notes[1], notes[0]]
  return project.sql(
    `insert into app.friendships (user_a, user_b, status, requested_by, responded_at, metadata_a, metadata_b)
     values ($1, $2, $3, $4, case when $3 = 'accepted' then now() end, $5, $6)`,
    [a, b, status, one.id, JSON.stringify(ofA), JSON.stringify(ofB)],
  )
}
const block = (one: User, two: User) =>
  project.sql('insert into app.blocks (blocker, blocked) values ($1, $2)', [one.id, two.id])
const as = (user: User, sql: string, values: unknown[] = []) =>
  project.as('app_user', { 'app.user_id': user.id, 'app.caller': 'user' }, sql, values)

beforeAll(async () => {
  for (const name of names) users[name] = await project.user()
  await befriend(users.ada, users.bea, 'accepted', [{ note: 'of ada' }, { note: 'of bea' }])
  await befriend(users.cid, users.ada)
  await befriend(users.dora, users.ada, 'pending')
  await block(users.eve, users.ada)
})

describe('friend_ids, blocked_ids and is_blocked', () => {
  const friends = async (user: User) =>
    (await as(user, 'select internal.friend_ids() as id')).map(({ id }) => id).sort()
  const blocked = async (user: User) => (await as(user, 'select internal.blocked_ids() as id')).map(({ id }) => id)

  test('friends are accepted ones, whoever asked and whichever side of the row', async () => {
    expect(await friends(users.ada)).toEqual([users.bea.id, users.cid.id].sort())
    expect(await friends(users.bea)).toEqual([users.ada.id])
    expect(await friends(users.cid)).toEqual([users.ada.id])
    expect(await friends(users.dora)).toEqual([])
  })

  test('a block holds both ways, and for nobody else', async () => {
    expect([await blocked(users.ada), await blocked(users.eve), await blocked(users.bea)]).toEqual([
      [users.eve.id],
      [users.ada.id],
      [],
    ])
    const is = async (user: User, other: User) =>
      (await as(user, 'select internal.is_blocked($1) as b', [other.id]))[0].b
    expect([await is(users.ada, users.eve), await is(users.eve, users.ada), await is(users.bea, users.eve)]).toEqual([
      true,
      true,
      false,
    ])
  })

  test('are for users alone', async () => {
    for (const name of ['friend_ids()', 'blocked_ids()', `is_blocked('${users.ada.id}')`]) {
      await expect(project.as('app_anon', {}, `select internal.${name}`)).rejects.toThrow(/permission denied/)
    }
  })
})

describe('row-level security', () => {
  test('shows friendships to their two users, without the notes', async () => {
    const seen = async (user: User) => (await as(user, 'select user_a, user_b, status from app.friendships')).length
    expect([await seen(users.ada), await seen(users.bea), await seen(users.dora), await seen(users.eve)]).toEqual([
      3, 1, 1, 0,
    ])
    for (const column of ['metadata_a', 'metadata_b', '*']) {
      await expect(as(users.bea, `select ${column} from app.friendships`)).rejects.toThrow(/permission denied/)
    }
  })

  test('shows blocks to whoever blocked, never to the blocked', async () => {
    expect(await as(users.eve, 'select blocked from app.blocks')).toEqual([{ blocked: users.ada.id }])
    expect(await as(users.ada, 'select from app.blocks')).toEqual([])
  })

  test('lets no user write', async () => {
    for (const table of ['friendships', 'blocks']) {
      await expect(as(users.ada, `delete from app.${table}`)).rejects.toThrow(/permission denied/)
    }
    await expect(
      as(users.ada, `insert into app.blocks (blocker, blocked) values ('${users.ada.id}', '${users.bea.id}')`),
    ).rejects.toThrow(/permission denied/)
    await expect(as(users.ada, `update app.friendships set status = 'accepted'`)).rejects.toThrow(/permission denied/)
  })
})

test('the tables hold what a friendship is', async () => {
  const [a, b] = [users.bea.id, users.cid.id].sort()
  const insert = (values: string, given: unknown[]) =>
    project.sql(
      `insert into app.friendships (user_a, user_b, status, requested_by, responded_at) values (${values})`,
      given,
    )
  await expect(insert(`$2, $1, 'pending', $1, null`, [a, b])).rejects.toThrow(/one_row_per_pair/)
  await expect(insert(`$1, $2, 'pending', $3, null`, [a, b, users.ada.id])).rejects.toThrow(/requested_by_one_of_both/)
  await expect(insert(`$1, $2, 'accepted', $1, null`, [a, b])).rejects.toThrow(/accepted_when_responded/)
  await expect(insert(`$1, $2, 'declined', $1, null`, [a, b])).rejects.toThrow(/status_known/)
  await expect(project.sql('insert into app.blocks (blocker, blocked) values ($1, $1)', [a])).rejects.toThrow(
    /never_of_oneself/,
  )
})

describe('a bundle', () => {
  const sections = async (user: User, name: string) =>
    (await project.admin.get(`/users/${user.id}/export`)).text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ section }) => section === name)
      .map(({ data }) => data)

  test('has the own note of each side and not the other’s', async () => {
    const ofBea = await sections(users.bea, 'friendships')
    expect(ofBea).toHaveLength(1)
    expect(JSON.stringify(ofBea)).toContain('of bea')
    expect(JSON.stringify(ofBea)).not.toContain('of ada')
    expect(JSON.stringify(await sections(users.ada, 'friendships'))).not.toContain('of bea')
  })

  test('says whom the user blocked, and never who blocked the user', async () => {
    expect(await sections(users.eve, 'blocks')).toMatchObject([{ blocker: users.eve.id, blocked: users.ada.id }])
    expect(await sections(users.ada, 'blocks')).toEqual([])
  })
})

test('a block hides profiles and search, both ways', async () => {
  expect((await project.admin.patch('', { user_search_enabled: true })).status).toBe(200)
  for (const name of names) await users[name].patch('/client/users/me', { display_name: `Finder ${name}` })
  const found = async (user: User) =>
    (await user.get('/client/users/search?q=finder')).data.map(({ id }: { id: string }) => id)
  expect(await found(users.bea)).toHaveLength(5)
  expect(await found(users.ada)).not.toContain(users.eve.id)
  expect(await found(users.eve)).not.toContain(users.ada.id)
  expect(await found(users.eve)).toHaveLength(4)
  expectRefusal(await users.ada.get(`/client/users/${users.eve.id}`), 404, 'USER_NOT_FOUND')
  expectRefusal(await users.eve.get(`/client/users/${users.ada.id}`), 404, 'USER_NOT_FOUND')
  expect((await users.bea.get(`/client/users/${users.eve.id}`)).status).toBe(200)
})

test('merging gives friendships to the survivor, the stronger of two, the notes on their sides', async () => {
  const [survivor, other, both, alone] = [
    await project.user(),
    await project.user(),
    await project.user(),
    await project.user(),
  ]
  await befriend(survivor, both, 'pending', [{ note: 'kept' }, {}])
  await befriend(other, both, 'accepted', [{ note: 'lost' }, {}])
  await befriend(other, alone, 'accepted', [{ note: 'mine' }, { note: 'theirs' }])
  await befriend(survivor, other)
  const [{ moved }] = await project.sql('select internal.merge__friendships($1, $2) as moved', [survivor.id, other.id])
  expect(moved).toBe(2)
  expect(await project.sql('select from app.friendships where $1 in (user_a, user_b)', [other.id])).toHaveLength(0)
  const rows = await project.sql('select * from app.friendships where $1 in (user_a, user_b)', [survivor.id])
  const notes = (row: any) =>
    row.user_a === survivor.id ? [row.metadata_a, row.metadata_b] : [row.metadata_b, row.metadata_a]
  const of = (user: User) => rows.find((row) => [row.user_a, row.user_b].includes(user.id))
  expect(rows).toHaveLength(2)
  expect([of(both).status, of(alone).status, of(alone).requested_by]).toEqual(['accepted', 'accepted', survivor.id])
  expect([notes(of(both))[0], ...notes(of(alone))]).toEqual([{ note: 'kept' }, { note: 'mine' }, { note: 'theirs' }])
})

test('merging leaves no friendship beside a block, whichever of the two had which', async () => {
  const [survivor, guest, one, two, three] = [
    await project.user(),
    await project.user(),
    await project.user(),
    await project.user(),
    await project.user(),
  ]
  await befriend(guest, one)
  await block(survivor, one)
  await befriend(survivor, two)
  await block(two, guest)
  await befriend(guest, three)
  await block(guest, survivor)
  const merged = await survivor.post('/client/auth/merge', { from_session_token: guest.sessionToken })
  expect(merged.status).toBe(200)
  expect(await as(survivor, 'select internal.friend_ids() as id')).toEqual([{ id: three.id }])
  expect((await as(survivor, 'select internal.blocked_ids() as id')).map(({ id }) => id).sort()).toEqual(
    [one.id, two.id].sort(),
  )
})

test('the end of a user ends friendships and blocks', async () => {
  const [one, two] = [await project.user(), await project.user()]
  await befriend(one, two)
  await block(two, one)
  await project.admin.delete(`/users/${one.id}`)
  expect(await project.sql('select from app.friendships where $1 in (user_a, user_b)', [two.id])).toHaveLength(0)
  expect(await project.sql('select from app.blocks where $1 in (blocker, blocked)', [two.id])).toHaveLength(0)
})
