import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { define, group } from '#test/support/collection_rows.ts'
import { startHarness, type User } from '#test/support/harness.ts'
import { sized } from '#test/support/sized.ts'
import { ofMembers, patch, put, remove, unlimited } from '#test/support/sync.ts'

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
  ...ofMembers,
  columns,
})

/** An answer to a pull as a line: lists of ids. */
const short = ({ changes, has_more }: any) =>
  `${JSON.stringify(changes, (_, value) => (Array.isArray(value) ? value.map((one) => one.id ?? one) : value))} ${has_more}`

type Device = ReturnType<typeof deviceOf>

/** A device with a queue, whose network loses some answers after the server has done what was asked. */
const deviceOf = (user: User, team: string, note: (line: string) => void, told: (id: string) => string) => {
  const client_id = randomUUID()
  // what pulls have brought, and what pushes wrote, which stands for it until a pull has reached their hint
  const pulled = new Map<string, { name: string; row: any }>()
  const own = new Map<string, { name: string; row: any; hint: number; written: number }>()
  const queue: any[] = []
  const known = new Map<string, string>()
  const firsts = new Map<string, any>()
  let checkpoint: string | null = null
  // a pull from nothing brings what was pushed before too
  let isWhole = true
  let hasMore = false
  // where the last pull ended
  let ended = 0
  const rows = () => new Map([...pulled, ...own].filter(([, { row }]) => row !== null))
  const pull = async (limit: number, isLost = false) => {
    const answer = await user.post('/client/sync/pull', { client_id, checkpoint, limit })
    await unlimited(project)
    if (answer.error?.code === 'CHECKPOINT_EXPIRED') {
      // it is not old: the user lost sight of rows in the middle of the pull
      expect(hasMore, 'a pull that has ended goes on').toBe(true)
      note('pull: 409')
      pulled.clear()
      checkpoint = null
      isWhole = true
      return true
    }
    expect(answer.status, answer.text).toBe(200)
    const { data } = answer
    note(`pull ${isLost ? 'lost ' : ''}from ${checkpoint} to ${data.checkpoint}: ${short(data)}`)
    if (isLost) return true
    const seen = new Set<string>()
    for (const [name, { created, updated, deleted }] of Object.entries<any>(data.changes)) {
      for (const id of [...created.map((row: any) => row.id), ...updated.map((row: any) => row.id), ...deleted]) {
        expect(seen.has(id), 'an id stands once in an answer').toBe(false)
        seen.add(id)
        known.set(id, name)
      }
      for (const row of created) {
        const written = own.get(row.id)
        // what a pull has taken away since is not held, whatever a repeated push will answer
        const isHeld = pulled.has(row.id) || (written && written.row !== null && written.written > ended)
        if (!isWhole) expect(isHeld ?? false, `created, and held: ${told(row.id)}`).toBe(false)
        pulled.set(row.id, { name, row })
      }
      for (const row of updated) {
        expect(pulled.has(row.id) || own.has(row.id), `updated, and not held: ${told(row.id)}`).toBe(true)
        pulled.set(row.id, { name, row })
      }
      for (const id of deleted) pulled.delete(id)
    }
    if (checkpoint !== null) expect(Number(data.checkpoint)).toBeGreaterThanOrEqual(Number(checkpoint))
    if (checkpoint !== null && seen.size > 0) expect(Number(data.checkpoint)).toBeGreaterThan(Number(checkpoint))
    checkpoint = data.checkpoint
    isWhole &&= data.has_more
    hasMore = data.has_more
    if (!hasMore) {
      ended = Number(checkpoint)
      for (const [id, { hint }] of own) if (hint <= ended) own.delete(id)
    }
    return hasMore
  }
  const push = async (isLost = false) => {
    if (queue.length === 0) return
    const sent = queue.slice(0, 20)
    const answer = await user.post('/client/sync/push', { client_id, mutations: sent })
    expect(answer.status, answer.text).toBe(200)
    const hint = isLost ? Infinity : Number(answer.data.checkpoint_hint)
    for (const [n, result] of (answer.data.results as any[]).entries()) {
      const { first_status, status, row, ...rest } = result
      const { id, op, row_id, collection } = sent[n]
      note(`push ${isLost ? 'lost ' : ''}${op} ${row_id}: ${status} ${first_status ?? ''} ${row?.updated_at ?? row}`)
      const known = firsts.get(id)
      if (known) {
        expect(result).toEqual({ ...known, status: 'duplicate', first_status: known.status })
        const written = own.get(row_id)
        if (written && !isLost) written.hint = Math.min(written.hint, hint)
      } else {
        firsts.set(id, { status, row, ...rest })
        // the rows of a lost answer are held all the same: the client has them as it wrote them
        if (status === 'applied')
          own.set(row_id, { name: collection, row, hint, written: Number(answer.data.checkpoint_hint) })
      }
    }
    if (!isLost) queue.splice(0, sent.length)
  }
  const act = (kind: string, which: number, n: number) => {
    const held = [...rows()]
    const [row_id, one] = held[which % Math.max(held.length, 1)] ?? []
    const id = randomUUID()
    const add = (...mutations: object[]) => queue.push(...mutations.map((each) => ({ id: randomUUID(), ...each })))
    if (kind === 'put') {
      const name = names[which % 3] ?? 'notes'
      add(put(name, id, { title: `${n}`, n, ...(name === 'plans' && { group_id: team }) }))
    }
    const [back] = [...known].slice(which % Math.max(known.size, 1))
    // brings it back where it is gone
    if (kind === 'again' && back) {
      const [id, name] = back
      add(put(name, id, { title: 'again', n, ...(name === 'plans' && { group_id: team }) }))
    }
    if (!row_id || !one) return
    const base = n % 3 === 0 && one.row.updated_at ? { base_updated_at: one.row.updated_at } : {}
    if (kind === 'patch') add(patch(one.name, row_id, { n }, base))
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
  return { user, rows, own, queue, pull, push, act }
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
  // what happened, for the message of a failure
  const history: string[] = []
  const told = (id: string) =>
    `${id}\n${history.filter((line) => line.includes(id) || !line.includes('push')).join('\n')}`
  const device = (who: number, of: User) => deviceOf(of, team, (line) => history.push(`${who}: ${line}`), told)
  const devices = [device(0, user), device(1, user), device(2, other)]
  // a pull from nothing names nothing that is gone: later ones do
  for (const device of devices) while (await device.pull(100));
  const run = async ({ who, kind, which, n, isLost }: Step) => {
    const device = devices[who] as Device
    if (kind === 'push') await device.push(isLost)
    else if (kind === 'pull') await device.pull(1 + (which % 7), isLost)
    else if (kind === 'policy') {
      history.push(`policy ${n % 2} begins`)
      await project.admin.patch('/collections/news', { read_policy: n % 2 ? 'owner' : 'public' })
      history.push(`policy ${n % 2}`)
    } else if (kind === 'member') {
      history.push(`member ${n % 2} begins`)
      await project.sql(
        n % 2
          ? `delete from app.group_members where group_id = '${team}' and app_user_id = '${other.id}'`
          : `insert into app.group_members (group_id, app_user_id, role) values ('${team}', '${other.id}', 'member')
             on conflict do nothing`,
      )
      history.push(`member ${n % 2}`)
    } else device.act(kind, which, n)
  }
  if (atOnce)
    await Promise.all(
      [0, 1, 2].map(async (who) => {
        for (const one of steps) if (one.who === who) await run(one)
      }),
    )
  else for (const one of steps) await run(one)
  for (const device of devices) while (device.queue.length > 0) await device.push()
  // the first may be the end of a pull that began before the last push
  for (const device of [...devices, ...devices]) while (await device.pull(5));
  for (const [who, { user: of, rows, own }] of devices.entries()) {
    const shown = []
    for (const name of names) {
      const list = await of.get(`/client/collections/${name}?limit=100`)
      shown.push(...(list.data as any[]))
    }
    const sorted = (all: any[]) => all.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    const held = [...rows().values()].map(({ row }) => row)
    const texts = [held, shown].map((list) => list.map((row) => JSON.stringify(row)))
    const differs = [...held, ...shown].find((row) => texts.some((list) => !list.includes(JSON.stringify(row))))
    expect(sorted(held), differs && `device ${who}: ${told(differs.id)}`).toEqual(sorted(shown))
    expect(own.size, 'the last pull reaches every hint').toBe(0)
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
