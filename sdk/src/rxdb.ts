import type { App } from './app.ts'
import { newId } from './platform.ts'
import { createSyncCalls, type Mutation, managed, ownerOf, type Refusal, type Row, type Verdict } from './sync_calls.ts'

type Doc = Record<string, unknown>
type WriteRow = { readonly newDocumentState: Doc; readonly assumedMasterState?: Doc | undefined }
type Known = { readonly id: string; toJSON(): object }
/** What is used of RxDB's collection. */
type RxdbCollection = {
  readonly name: string
  readonly schema: { readonly jsonSchema: { readonly properties: object } }
  find(): { exec(): Promise<Known[]> }
}

export type RxdbOptions = {
  /** The name of the server's collection, where it is not that of RxDB's. */
  readonly name?: string | undefined
  /** Documents with the same answer are applied together or not at all. */
  readonly tx?: ((doc: Doc) => string | undefined) | undefined
  /** The server has refused a write. Its row takes the place of the document, or the document is deleted, unless a conflict handler of yours does other. */
  readonly onRejected?: ((refusal: Refusal) => void) | undefined
}

const pick = (row: Doc, names: readonly string[]): Doc =>
  Object.fromEntries(names.filter((name) => row[name] !== undefined).map((name) => [name, row[name]]))
const isSame = (a: Doc | null | undefined, b: Doc | null | undefined, names: readonly string[]): boolean =>
  !!a && !!b && names.every((name) => JSON.stringify(a[name] ?? null) === JSON.stringify(b[name] ?? null))

/** What RxDB's replication takes: `replicateRxCollection({ replicationIdentifier: 'trellis', ...rxdbSync(app, db.notes) })`. */
export const rxdbSync = <C extends RxdbCollection>(app: App, collection: C, options: RxdbOptions = {}) => {
  const { name = collection.name, tx, onRejected } = options
  const calls = createSyncCalls(app, ownerOf(app), [name])
  const columns = Object.keys(collection.schema.jsonSchema.properties).filter((column) => !column.startsWith('_'))
  const own = columns.filter((column) => !managed.has(column))
  /** RxDB tries again with the same object: the server then knows the mutation, should only its answer have been lost. */
  const ids = new WeakMap<WriteRow, string>()
  const idOf = (row: WriteRow): string => {
    const id = ids.get(row) ?? newId()
    ids.set(row, id)
    return id
  }

  /** Ids that are being pushed, and those that were since the pull began: what it has of them may be older than the push. */
  const pushing = new Set<string>()
  let touched = new Set<string>()

  const mutationOf = (row: WriteRow, id: string, base: unknown): Mutation => {
    const { newDocumentState: doc, assumedMasterState: before } = row
    const group = tx?.(doc)
    const about = { id, collection: name, row_id: doc['id'] as string, ...(group ? { tx: group } : {}) }
    if (!doc['_deleted'] && (!before || before['_deleted'])) {
      return { ...about, op: 'put', data: pick(doc, [...own, 'group_id']) }
    }
    const known = typeof base === 'string' ? { base_updated_at: base } : {}
    if (doc['_deleted']) return { ...about, ...known, op: 'delete' }
    const changed = own.filter((column) => !isSame(doc, before, [column]))
    return { ...about, ...known, op: 'patch', data: Object.fromEntries(changed.map((c) => [c, doc[c] ?? null])) }
  }

  const push = async (rows: readonly WriteRow[]): Promise<Verdict[]> => {
    const byId = new Map(rows.map((row) => [idOf(row), row] as const))
    const send = async (mutations: Mutation[]) => {
      const { verdicts } = await calls.push(mutations)
      // what is as it should be needs nothing: a deletion of what is gone, a write that has been applied under another id
      return verdicts.filter(({ status, mutation, row, code }) => {
        const isGone = mutation.op === 'delete' && code === 'NOT_FOUND'
        const isThere = status === 'conflict' && isSame(row, docs.get(mutation.row_id)?.newDocumentState, own)
        return status !== 'applied' && !isGone && !(isThere && mutation.op !== 'delete')
      })
    }
    const docs = new Map(rows.map((row) => [row.newDocumentState['id'] as string, row] as const))
    const refused = await send(
      [...byId].map(([id, row]) => mutationOf(row, id, row.assumedMasterState?.['updated_at'])),
    )
    // after a push RxDB does not know the new updated_at until the next pull: nobody else has written what it assumes is there
    const isOwn = ({ status, mutation, row }: Verdict) =>
      status === 'conflict' && isSame(row, docs.get(mutation.row_id)?.assumedMasterState, own)
    const isRepeated = (one: Verdict) => {
      const { tx: group } = one.mutation
      const unit = refused.filter((other) => other === one || (group !== undefined && other.mutation.tx === group))
      return unit.some(isOwn) && unit.every((other) => isOwn(other) || other.code === 'TRANSACTION_ROLLED_BACK')
    }
    const again = refused.filter(isRepeated).map(({ mutation, row }) => {
      const written = docs.get(mutation.row_id) as WriteRow
      const base = isSame(row, written.assumedMasterState, own) ? row?.['updated_at'] : mutation.base_updated_at
      return mutationOf(written, newId(), base)
    })
    return [...refused.filter((one) => !isRepeated(one)), ...(again.length > 0 ? await send(again) : [])]
  }

  return {
    collection,
    pull: {
      batchSize: 1000,
      async handler(last: { readonly at: string | null } | undefined, batchSize: number) {
        const documents = new Map<string, Doc>()
        const gone = new Set<string>()
        let at = last?.at ?? null
        let isWhole = false
        touched = new Set(pushing)
        // fewer documents than asked for are the end for RxDB: pages may be shorter
        for (let hasMore = true; hasMore && (isWhole || documents.size < batchSize); ) {
          const page = await calls.pullPage(at, batchSize)
          isWhole ||= page.isWhole && at !== null
          const { created = [], updated = [], deleted = [] } = page.changes[name] ?? {}
          for (const row of [...created, ...updated] as Row[]) {
            gone.delete(row.id)
            documents.set(row.id, { ...pick(row, columns), _deleted: false })
          }
          for (const id of deleted) {
            documents.delete(id)
            gone.add(id)
          }
          at = page.checkpoint
          hasMore = page.has_more
        }
        if (isWhole || gone.size > 0) {
          // RxDB keeps what it has not pushed yet
          for (const doc of await collection.find().exec()) {
            const isGone = gone.has(doc.id) || (isWhole && !documents.has(doc.id))
            if (isGone) documents.set(doc.id, { ...doc.toJSON(), _deleted: true })
          }
        }
        // a push changes the row or has a verdict on it: the next pull or the verdict tells
        for (const id of touched) documents.delete(id)
        return { documents: [...documents.values()] as never[], checkpoint: { at } }
      },
    },
    push: {
      batchSize: 500,
      async handler(rows: WriteRow[]): Promise<never[]> {
        const written = new Map(rows.map(({ newDocumentState: doc }) => [doc['id'] as string, doc]))
        for (const id of written.keys()) {
          pushing.add(id)
          touched.add(id)
        }
        const refused = await push(rows).finally(() => {
          for (const id of written.keys()) pushing.delete(id)
        })
        for (const one of refused) if (one.status === 'rejected') onRejected?.(one as Refusal)
        const states = refused.map(({ mutation, row }) =>
          row ? { ...pick(row, columns), _deleted: false } : { ...written.get(mutation.row_id), _deleted: true },
        )
        return states as never[]
      },
    },
  }
}
