import type { App } from './app.ts'
import type { Refusal, Row } from './sync_calls.ts'
import { createLibrary, isSame, type LibraryWrite, pick } from './sync_library.ts'
import { managed } from './sync_write.ts'

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

/** What RxDB's replication takes: `replicateRxCollection({ replicationIdentifier: 'trellis', ...rxdbSync(app, db.notes) })`. */
export const rxdbSync = <C extends RxdbCollection>(app: App, collection: C, options: RxdbOptions = {}) => {
  const { name = collection.name, tx, onRejected } = options
  const names = Object.keys(collection.schema.jsonSchema.properties).filter((column) => !column.startsWith('_'))
  const columns = names.filter((column) => !managed.has(column))
  const library = createLibrary(app, { collections: [name], columns, onRejected })
  const docOf = (row: Row): Doc => ({ ...pick(row, names), _deleted: false })

  const writeOf = (written: WriteRow): LibraryWrite => {
    const { newDocumentState: row, assumedMasterState: before } = written
    const about = { key: written, collection: name, row_id: row['id'] as string, tx: tx?.(row), row }
    if (row['_deleted']) return { ...about, op: 'delete', assumed: before }
    if (!before || before['_deleted']) return { ...about, op: 'put', data: pick(row, names) }
    const changed = columns.filter((column) => !isSame(row, before, [column]))
    return { ...about, op: 'patch', data: Object.fromEntries(changed.map((c) => [c, row[c] ?? null])), assumed: before }
  }

  return {
    collection,
    pull: {
      batchSize: 1000,
      // fewer documents than asked for are the end for RxDB: pages may be shorter
      async handler(last: { readonly at: string | null } | undefined, batchSize: number) {
        const { changes, checkpoint, isReplaced, isGone } = await library.pull(last?.at ?? null, batchSize)
        const rows = [...(changes.get(name)?.values() ?? [])]
        // RxDB keeps what it has not pushed yet
        const held = isReplaced || rows.includes(null) ? await collection.find().exec() : []
        const gone = held.filter(({ id }) => isGone(name, id)).map((doc) => ({ ...doc.toJSON(), _deleted: true }))
        const documents = [...rows.flatMap((row) => (row ? [docOf(row)] : [])), ...gone]
        return { documents: documents as never[], checkpoint: { at: checkpoint } }
      },
    },
    push: {
      batchSize: 500,
      async handler(rows: WriteRow[]): Promise<never[]> {
        const docs = new Map(rows.map(({ newDocumentState: doc }) => [doc['id'], doc]))
        const refused = await library.push(rows.map(writeOf))
        const states = refused.map(({ mutation, row }) =>
          row ? docOf(row) : { ...docs.get(mutation.row_id), _deleted: true },
        )
        return states as never[]
      },
    },
  }
}
