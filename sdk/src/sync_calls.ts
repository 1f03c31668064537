import type { App } from './app.ts'
import { isRefusal, TrellisError } from './errors.ts'
import { pull, push } from './generated/client.ts'
import type { PullResult, PushInput, PushReply } from './generated/schemas.ts'
import type { Operation } from './operation.ts'
import type { Credentials } from './transport.ts'

export type Row = Readonly<Record<string, unknown>> & { readonly id: string }

/** One write, known by its id: the server applies it once, however often it is sent. */
export type Mutation = PushInput['mutations'][number]

/** What became of a mutation. `row` is the row of the server afterwards, null when there is none for this user. */
export type Verdict = {
  readonly mutation: Mutation
  readonly status: 'applied' | 'conflict' | 'rejected'
  /** Whether `row` is that of now: not so of a mutation that the server has known already. */
  readonly isCurrent: boolean
  readonly row: Row | null
  readonly code?: string | undefined
  readonly message?: string | undefined
}

/** A mutation that the server did not apply. */
export type Refusal = Verdict & { readonly status: 'conflict' | 'rejected' }

/** `isWhole`: the checkpoint was none, or one that the server does not take any more; what is not named here is gone. */
export type Pulled = PullResult & { readonly isWhole: boolean }

export type PulledAll = {
  readonly changes: ReadonlyMap<string, ReadonlyMap<string, Row | null>>
  readonly checkpoint: string
  /** The checkpoint was one that the server does not take any more: what is not named here is gone. Then it is all pages. */
  readonly isReplaced: boolean
}
export type Most = { readonly enough: number; readonly isCounted: (collection: string, id: string) => boolean }

export type SyncCalls = {
  /** A page of what has changed. */
  pullPage(checkpoint: string | null, limit?: number): Promise<Pulled>
  /** All pages, or those with `enough` rows that count, as the last state of each row: null is gone. */
  pullAll(checkpoint: string | null, most?: Most): Promise<PulledAll>
  /** The verdicts, in the order in which the server applied the mutations, and the checkpoint with which a pull has what they wrote. */
  push(mutations: readonly Mutation[]): Promise<{ readonly verdicts: readonly Verdict[]; readonly hint: string }>
}

/** A request has at most this many mutations, and a body of less than 1 MB. */
const most = 500
const mostLength = 500_000

/** Mutations of one `tx` together, at the place of the first: as the server applies them. */
const unitsOf = (mutations: readonly Mutation[]): Mutation[][] => {
  const units = new Map<unknown, Mutation[]>()
  for (const mutation of mutations) {
    const unit = units.get(mutation.tx ?? mutation)
    if (unit) unit.push(mutation)
    else units.set(mutation.tx ?? mutation, [mutation])
  }
  return [...units.values()]
}

/** What one request takes of a queue: `mustWait` says what has to know the verdicts of those before it. */
export const nextBatch = (
  mutations: readonly Mutation[],
  mustWait: (unit: readonly Mutation[], batch: readonly Mutation[]) => boolean = () => false,
): Mutation[] => {
  const batch: Mutation[] = []
  let length = 0
  for (const unit of unitsOf(mutations)) {
    length += JSON.stringify(unit).length
    const isFull = batch.length + unit.length > most || length > mostLength || mustWait(unit, batch)
    if (batch.length > 0 && isFull) break
    batch.push(...unit)
  }
  return batch
}

/** Of two checkpoints. */
const later = (a: string, b: string) => (Number(a) > Number(b) ? a : b)

const verdictOf = (mutation: Mutation, result: PushReply['data']['results'][number] | undefined): Verdict => {
  const { status = 'rejected', first_status, row = null, code, message } = result ?? {}
  return {
    mutation,
    status: (status === 'duplicate' ? (first_status ?? 'applied') : status) as Verdict['status'],
    isCurrent: status !== 'duplicate',
    row: row as Row | null,
    code,
    message,
  }
}

/** Whose rows they are, and the id of the installation for this user. */
export type Owner = { readonly userId: string; readonly clientId: string }

export const otherUser = () =>
  new TrellisError('ABORTED', 'These rows are of a user who is not signed in: open a database of the user who is.')

/** The calls of sync for one user: nothing is sent for another one who has signed in meanwhile, and nothing of another is taken. */
export const createSyncCalls = (
  app: App,
  owner: () => Promise<Owner>,
  collections: readonly string[] | undefined,
  onMissing?: (error: unknown) => void,
): SyncCalls => {
  const { transport, sessions } = app.inside
  const { credentials } = sessions
  const check = async (userId: string) => {
    if ((await sessions.current())?.userId !== userId) throw otherUser()
  }
  const asOwner = async <B, R>(operation: Operation<{ body: B }, R>, bodyOf: (clientId: string) => B): Promise<R> => {
    const { userId, clientId } = await owner()
    const own: Credentials = {
      ...credentials,
      async headers() {
        await check(userId)
        const headers = await credentials.headers()
        await check(userId)
        return headers
      },
    }
    const { body } = await transport.send(own, operation, { body: bodyOf(clientId), repeatable: true })
    await check(userId)
    return body
  }

  let asked = collections
  const ask = async (checkpoint: string | null, limit?: number) =>
    (
      await asOwner(pull, (client_id) => ({
        client_id,
        checkpoint,
        ...(asked ? { collections: [...asked] } : {}),
        ...(limit === undefined ? {} : { limit }),
      }))
    ).data

  /** A collection that the project has dropped since this version of the app was made does not keep the others from syncing. */
  const askKnown: typeof ask = async (checkpoint, limit) => {
    try {
      return await ask(checkpoint, limit)
    } catch (error) {
      if (!asked || !isRefusal(error, 'COLLECTION_NOT_FOUND')) throw error
      const { schema } = (await asOwner(pull, (client_id) => ({ client_id, checkpoint: null, limit: 1 }))).data
      const known = asked.filter((name) => name in schema)
      if (known.length === 0 || known.length === asked.length) throw error
      asked = known
      onMissing?.(error)
      return await ask(checkpoint, limit)
    }
  }

  const pullPage: SyncCalls['pullPage'] = async (checkpoint, limit) => {
    try {
      return { ...(await askKnown(checkpoint, limit)), isWhole: checkpoint === null }
    } catch (error) {
      if (checkpoint === null || !isRefusal(error, 'CHECKPOINT_EXPIRED')) throw error
      return { ...(await askKnown(null, limit)), isWhole: true }
    }
  }

  const pushBatch = async (batch: readonly Mutation[]): Promise<{ verdicts: Verdict[]; hint: string }> => {
    try {
      const { results, checkpoint_hint } = (await asOwner(push, (client_id) => ({ client_id, mutations: [...batch] })))
        .data
      return { verdicts: batch.map((mutation, index) => verdictOf(mutation, results[index])), hint: checkpoint_hint }
    } catch (error) {
      const isTooMuch = isRefusal(error, 'BATCH_TOO_LARGE') || (isRefusal(error) && error.status === 413)
      if (!isTooMuch) throw error
      const units = unitsOf(batch)
      if (units.length === 1) {
        const { code, message } = error
        const refused = { status: 'rejected', isCurrent: false, row: null, code, message } as const
        return { verdicts: batch.map((mutation) => ({ ...refused, mutation })), hint: '1' }
      }
      const half = units.length >> 1
      const [a, b] = [await pushBatch(units.slice(0, half).flat()), await pushBatch(units.slice(half).flat())]
      return { verdicts: [...a.verdicts, ...b.verdicts], hint: later(a.hint, b.hint) }
    }
  }

  return {
    pullPage,
    async pullAll(checkpoint, most) {
      const changes = new Map<string, Map<string, Row | null>>()
      const isEnough = (): boolean => {
        if (!most) return false
        const counted = [...changes].map(
          ([name, rows]) => [...rows].filter(([id, row]) => row && most.isCounted(name, id)).length,
        )
        return counted.reduce((sum, count) => sum + count, 0) >= most.enough
      }
      let isReplaced = false
      for (let from = checkpoint; ; ) {
        const page = await pullPage(from, most?.enough)
        // an expired checkpoint in the middle begins from nothing
        if (page.isWhole) changes.clear()
        isReplaced ||= page.isWhole && from !== null
        for (const [name, { created, updated, deleted }] of Object.entries(page.changes)) {
          const rows = changes.get(name) ?? new Map<string, Row | null>()
          changes.set(name, rows)
          for (const row of [...created, ...updated] as Row[]) rows.set(row.id, row)
          for (const id of deleted) rows.set(id, null)
        }
        from = page.checkpoint
        if (!page.has_more || (!isReplaced && isEnough())) return { changes, checkpoint: from, isReplaced }
      }
    },
    async push(mutations) {
      const verdicts: Verdict[] = []
      let hint = '1'
      for (let rest = mutations; rest.length > 0; ) {
        const batch = nextBatch(rest)
        const pushed = await pushBatch(batch)
        verdicts.push(...pushed.verdicts)
        hint = later(hint, pushed.hint)
        const done = new Set(batch)
        rest = rest.filter((mutation) => !done.has(mutation))
      }
      return { verdicts, hint }
    },
  }
}
