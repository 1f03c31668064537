import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { define, group } from '#test/support/collection_rows.ts'
import { startHarness, type User } from '#test/support/harness.ts'
import { sized } from '#test/support/sized.ts'
import { patch, put, remove, unlimited } from '#test/support/sync.ts'

const harness = await startHarness()
const project = await harness.project()
const columns = [
  { name: 'title', type: 'text', nullable: false },
  { name: 'n', type: 'integer', default: 0, max: 100 },
]
const names = ['notes', 'news', 'plans'] as const
await define(project, { name: 'notes', sync: true, columns })
await define(project, { name: 'news', sync: true, read_policy: 'public', columns })
await define(project, {
  name: 'plans',
  sync: true,
  owner_scope: 'group',
  read_policy: 'member',
  write_policy: 'member:member',
  columns,
})

type Device = ReturnType<typeof deviceOf>

/** A device with a queue, whose network loses some answers after the server has done what was asked. */
const deviceOf = (user: User, team: string) => {
  const client_id = randomUUID()
  const rows = new Map<string, { name: string; row: any }>()
  const queue: any[] = []
  const removed = new Set<string>()
  const firsts = new Map<string, any>()
  const shown = new Set<string>()
  let checkpoint: string | null = null
  // a pull from nothing brings what was pushed before too
  let isWhole = true
  let hasMore = false
  const pull = async (limit: number, isLost = false) => {
    const answer = await user.post('/client/sync/pull', { client_id, checkpoint, limit })
    await unlimited(project)
    if (answer.error?.code === 'CHECKPOINT_EXPIRED') {
      // it is not old: the user lost sight of rows in the middle of the pull
      expect(hasMore, 'a pull that has ended goes on').toBe(true)
      rows.clear()
      checkpoint = null
      isWhole = true
      return true
    }
    expect(answer.status, answer.text).toBe(200)
    if (isLost) return true
    const { data } = answer
    const seen = new Set<string>()
    for (const [name, { created, updated, deleted }] of Object.entries<any>(data.changes)) {
      for (const id of [...created.map((row: any) => row.id), ...updated.map((row: any) => row.id), ...deleted]) {
        expect(seen.has(id), 'an id stands once in an answer').toBe(false)
        seen.add(id)
      }
      for (const row of created) {
        if (!isWhole) expect(rows.has(row.id), `created, and held: ${row.id}`).toBe(false)
        rows.set(row.id, { name, row })
      }
      for (const row of updated) {
        expect(rows.has(row.id) || removed.has(row.id), `updated, and not held: ${row.id}`).toBe(true)
        rows.set(row.id, { name, row })
      }
      for (const id of deleted) rows.delete(id)
    }
    if (checkpoint !== null) expect(Number(data.checkpoint)).toBeGreaterThanOrEqual(Number(checkpoint))
    if (checkpoint !== null && seen.size > 0) expect(Number(data.checkpoint)).toBeGreaterThan(Number(checkpoint))
    checkpoint = data.checkpoint
    isWhole &&= data.has_more
    hasMore = data.has_more
    return hasMore
  }
  const push = async (isLost = false) => {
    if (queue.length === 0) return
    const sent = queue.slice(0, 20)
    // a row is there from the time that it is written
    for (const { id, op, row_id, data, collection } of sent) {
      if (op === 'put' && !shown.has(id) && !rows.has(row_id))
        rows.set(row_id, { name: collection, row: { id: row_id, ...data } })
      shown.add(id)
    }
    const answer = await user.post('/client/sync/push', { client_id, mutations: sent })
    expect(answer.status, answer.text).toBe(200)
    for (const [n, result] of (answer.data.results as any[]).entries()) {
      const { first_status, status, ...rest } = result
      const known = firsts.get(sent[n].id)
      if (known)
        expect({ first_status, status, ...rest }).toEqual({ ...known, status: 'duplicate', first_status: known.status })
      else firsts.set(sent[n].id, { status, ...rest })
    }
    if (isLost) return
    queue.splice(0, sent.length)
    for (const [n, { status, first_status, row }] of (answer.data.results as any[]).entries()) {
      const { row_id, collection, op } = sent[n]
      if (status === 'duplicate') {
        removed.add(row_id)
        // what a pull has brought meanwhile may be newer
        if (first_status !== 'applied' && op === 'put' && row === null && !rows.get(row_id)?.row.created_at) {
          rows.delete(row_id)
        }
        continue
      }
      if (op === 'delete' && status === 'applied') removed.add(row_id)
      // what was refused shows a row that a pull may yet have to bring
      if (!row) {
        // one that a pull has brought is the pulls' to take: its group may be joined again before the next
        if (status === 'applied' || !rows.get(row_id)?.row.created_at) rows.delete(row_id)
        removed.add(row_id)
      } else if (status === 'applied' || rows.has(row_id)) rows.set(row_id, { name: collection, row })
    }
  }
  const act = (kind: string, which: number, n: number) => {
    const held = [...rows]
    const [row_id, one] = held[which % Math.max(held.length, 1)] ?? []
    const id = randomUUID()
    const add = (...mutations: object[]) => queue.push(...mutations.map((each) => ({ id: randomUUID(), ...each })))
    if (kind === 'put') {
      const name = names[which % 3] ?? 'notes'
      add(put(name, id, { title: `${n}`, n, ...(name === 'plans' && { group_id: team }) }))
    }
    if (!row_id || !one) return
    const base = n % 3 === 0 && one.row.updated_at ? { base_updated_at: one.row.updated_at } : {}
    if (kind === 'patch') add(patch(one.name, row_id, { n }, base))
    if (kind === 'again') add(put(one.name, row_id, { title: 'again', n }))
    if (kind === 'delete') add(remove(one.name, row_id, base))
    if (kind === 'tx') {
      const tx = { tx: randomUUID() }
      // in the middle of some is one that fails
      add(
        patch(one.name, row_id, { n: 1 }, tx),
        put('notes', id, n % 2 ? { title: 'tx' } : {}, tx),
        patch(one.name, row_id, { n: 2 }, tx),
      )
    }
  }
  return { user, rows, queue, pull, push, act }
}

const step = fc.record({
  who: fc.nat(2),
  kind: fc.constantFrom(
    'put',
    'put',
    'put',
    'patch',
    'patch',
    'again',
    'delete',
    'tx',
    'push',
    'push',
    'push',
    'pull',
    'pull',
    'pull',
    'member',
    'policy',
  ),
  which: fc.nat(50),
  n: fc.integer({ min: 0, max: 110 }),
  isLost: fc.constantFrom(false, false, true),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

const play = async (steps: readonly Step[], atOnce: boolean) => {
  await project.sql('delete from collections.news')
  await project.admin.patch('/collections/news', { read_policy: 'public' })
  const [user, other] = [await project.user(), await project.user()]
  const team = await group(project, [
    [user, 'owner'],
    [other, 'member'],
  ])
  const devices = [deviceOf(user, team), deviceOf(user, team), deviceOf(other, team)]
  // a pull from nothing names nothing that is gone: later ones do
  for (const device of devices) while (await device.pull(100));
  const run = async ({ who, kind, which, n, isLost }: Step) => {
    const device = devices[who] as Device
    if (kind === 'push') await device.push(isLost)
    else if (kind === 'pull') await device.pull(1 + (which % 7), isLost)
    else if (kind === 'policy')
      await project.admin.patch('/collections/news', { read_policy: n % 2 ? 'owner' : 'public' })
    else if (kind === 'member')
      await project.sql(
        n % 2
          ? `delete from app.group_members where group_id = '${team}' and app_user_id = '${other.id}'`
          : `insert into app.group_members (group_id, app_user_id, role) values ('${team}', '${other.id}', 'member')
             on conflict do nothing`,
      )
    else device.act(kind, which, n)
  }
  if (atOnce)
    await Promise.all(
      [0, 1, 2].map(async (who) => {
        // what decides changes in the other test, between whole pulls and pushes
        for (const one of steps) if (one.who === who && !['member', 'policy'].includes(one.kind)) await run(one)
      }),
    )
  else for (const one of steps) await run(one)
  for (const device of devices) while (device.queue.length > 0) await device.push()
  // the first may be the end of a pull that began before the last push
  for (const device of [...devices, ...devices]) while (await device.pull(5));
  for (const { user: of, rows } of devices) {
    const shown = []
    for (const name of names) {
      const list = await of.get(`/client/collections/${name}?limit=100`)
      shown.push(...(list.data as any[]))
    }
    const sorted = (all: any[]) => all.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    expect(sorted([...rows.values()].map(({ row }) => row))).toEqual(sorted(shown))
  }
}

const parameters = (usual: number, nightly: number) => ({
  numRuns: sized(usual, nightly),
  seed: Number(process.env['FUZZ_SEED'] ?? 42),
  endOnFailure: true,
})

test('three devices with a network that drops answers have what the table has', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 40, maxLength: 90 }), (steps) => play(steps, false)),
    parameters(8, 60),
  )
})

test('and at once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 60, maxLength: 120 }), (steps) => play(steps, true)),
    parameters(5, 40),
  )
})
