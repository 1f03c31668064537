import { newId } from './platform.ts'
import type { Mutation } from './sync_calls.ts'

export type Write = {
  readonly op: 'put' | 'patch' | 'delete'
  readonly collection: string
  readonly row_id: string
  readonly data?: Readonly<Record<string, unknown>> | undefined
  /** Not applied, `conflict`, when somebody else has changed the row meanwhile. Otherwise the last write of a column wins. */
  readonly ifUnchanged?: boolean | undefined
}

/** Columns that the server manages: a client does not write them. */
export const managed = new Set(['id', 'user_id', 'group_id', 'created_at', 'updated_at', 'deleted_at'])

/** The columns of a row that the client writes; `group_id` names the group of a new one. Names of libraries' own begin with $ or _. */
export const ownColumns = (row: Readonly<Record<string, unknown>>, isNew: boolean): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(row).filter(
      ([name, value]) =>
        value !== undefined && !/^[$_]/.test(name) && (!managed.has(name) || (isNew && name === 'group_id')),
    ),
  )

/** A write as it is sent. `base` is the `updated_at` of the row that it was made on; what has the same `tx` is applied together. */
export const mutationOf = (write: Write, about: { id?: string; base?: unknown; tx?: string | undefined }): Mutation => {
  const { op, collection, row_id, data = {} } = write
  const { id = newId(), base, tx } = about
  return {
    id,
    op,
    collection,
    // as the server writes it
    row_id: row_id.toLowerCase(),
    // as JSON has it: what JSON cannot say is refused to its writer, and stops no queue
    ...(op === 'delete' ? {} : { data: JSON.parse(JSON.stringify(ownColumns(data, op === 'put'))) }),
    ...(typeof base === 'string' ? { base_updated_at: base } : {}),
    ...(tx ? { tx } : {}),
  }
}
