import { randomInt, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { ask } from '#test/support/process.ts'

type Mutation = { readonly id: string; readonly op: string; readonly row_id: string; readonly data?: Row }
type Result = { id: string; status: string; first_status?: string; row: Row | null; code?: string; message?: string }
type Entry = { readonly mutation: Mutation; readonly result: Result }
type Row = { id: string; n: number; title: string }

export type Device = ReturnType<typeof deviceOf>

const isSame = (a: Result, b: Result) =>
  JSON.stringify([a.row, a.code, a.message]) === JSON.stringify([b.row, b.code, b.message])

/** A device that pushes and pulls until it is stopped, and keeps what it was answered. */
export const deviceOf = (urls: readonly string[], headers: Readonly<Record<string, string>>, userId: string) => {
  const client_id = randomUUID()
  const rows = new Map<string, Row>()
  /** The first answer to each mutation. */
  const ledger = new Map<string, Entry>()
  const counts = { repeated: 0, changed: 0, pulls: 0, unanswered: 0, nonsense: 0 }
  // what this device pushes it may be told as new or as changed
  const pushed = new Set<string>()
  let own: string[] = []
  const fresh: string[] = []
  let checkpoint: string | null = null
  let isStopped = false

  /** The answer of the server, or null: what was sent may have been applied. */
  const send = async (path: string, body: object) => {
    const answer = await ask(urls[randomInt(urls.length)] ?? '', 'POST', path, body, headers).catch(() => null)
    if (answer?.status === 200) return answer.body.data
    counts.unanswered += 1
    if (answer && answer.status !== 503 && answer.status !== 429 && answer.status < 500)
      throw new Error(`${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`)
    await sleep(answer ? 200 : 50)
    return null
  }

  const mutation = (op: string, row_id: string, data?: object, more: object = {}): Mutation =>
    ({
      id: randomUUID(),
      op,
      collection: 'notes',
      row_id,
      ...(data && { data }),
      ...more,
    }) as never
  const some = (): Mutation[] => {
    const row = own[randomInt(Math.max(own.length, 1))]
    const kind = randomInt(10)
    if (!row || kind < 4) {
      const made = Array.from({ length: randomInt(1, 30) }, () => randomUUID())
      own.push(...made)
      return made.map((id) => mutation('put', id, { title: 'new', n: 0 }))
    }
    if (kind < 8) return Array.from({ length: randomInt(1, 20) }, () => mutation('patch', row, { $inc: { n: 1 } }))
    if (kind === 8) {
      own = own.filter((one) => one !== row)
      return [mutation('delete', row), mutation('patch', row, { $inc: { n: 1 } })]
    }
    const tx = randomUUID()
    const isBad = randomInt(2) === 0
    return [
      mutation('patch', row, { $inc: { n: 1 } }, { tx }),
      mutation('put', randomUUID(), isBad ? { n: 1 } : { title: 'of a tx', n: 0 }, { tx }),
      mutation('patch', row, { $inc: { n: 1 } }, { tx }),
    ]
  }

  const take = (sent: readonly Mutation[], results: readonly Result[]) => {
    for (const [n, result] of results.entries()) {
      const each = sent[n] as Mutation
      const known = ledger.get(each.id)
      const first = result.status === 'duplicate' ? { ...result, status: String(result.first_status) } : result
      if (known) {
        counts.repeated += 1
        if (result.status !== 'duplicate' || first.status !== known.result.status || !isSame(first, known.result))
          counts.changed += 1
        continue
      }
      ledger.set(each.id, { mutation: each, result: first })
      fresh.push(each.id)
      if (first.status === 'applied' && each.op === 'put') pushed.add(each.row_id)
    }
  }

  const push = async () => {
    let sent = some()
    for (;;) {
      const answer = await send('/v1/client/sync/push', { client_id, mutations: sent })
      if (answer) {
        take(sent, answer.results)
        break
      }
      // as a queue that has grown meanwhile
      if (randomInt(2) === 0 && sent.length < 200) sent = [...sent, ...some()]
    }
    if (randomInt(8) > 0) return
    const answer = await send('/v1/client/sync/push', { client_id, mutations: sent })
    if (answer) take(sent, answer.results)
  }

  const pull = async () => {
    for (;;) {
      const answer = await send('/v1/client/sync/pull', { client_id, checkpoint, limit: randomInt(20, 400) })
      if (!answer) continue
      counts.pulls += 1
      const { created, updated, deleted } = answer.changes.notes
      for (const row of created) {
        if (checkpoint !== null && rows.has(row.id)) counts.nonsense += 1
        rows.set(row.id, row)
      }
      for (const row of updated) {
        if (!rows.has(row.id) && !pushed.has(row.id)) counts.nonsense += 1
        rows.set(row.id, row)
      }
      for (const id of deleted) rows.delete(id)
      checkpoint = answer.checkpoint
      if (!answer.has_more) return
    }
  }

  const live = async () => {
    while (!isStopped) {
      await push()
      if (randomInt(3) === 0) await pull()
      await sleep(randomInt(120))
    }
  }
  const stopped = live()
  return {
    userId,
    rows,
    ledger,
    counts,
    pull,
    /** Mutations that were answered since this was asked last. */
    takeAnswered: () => fresh.splice(0),
    stop() {
      isStopped = true
    },
    stopped,
  }
}

type Stored = { readonly id: string; readonly n: string; readonly is_live: boolean }

/** How many rows are not what the applied mutations make of them. Each row is written by one device, whose mutations are in order. */
export const wrongs = (ledger: readonly Entry[], stored: readonly Stored[]): number => {
  const expected = new Map<string, { n: number; isLive: boolean }>()
  for (const { mutation, result } of ledger) {
    if (result.status !== 'applied') continue
    const row = expected.get(mutation.row_id) ?? { n: 0, isLive: true }
    if (mutation.op === 'put') row.n = mutation.data?.n ?? 0
    if (mutation.op === 'patch') row.n += 1
    if (mutation.op === 'delete') row.isLive = false
    expected.set(mutation.row_id, row)
  }
  const there = new Map(stored.map((row) => [row.id, row]))
  const isWrong = (id: string) => {
    const [want, got] = [expected.get(id), there.get(id)]
    return !want || !got || want.n !== Number(got.n) || want.isLive !== got.is_live
  }
  return [...new Set([...expected.keys(), ...there.keys()])].filter(isWrong).length
}
