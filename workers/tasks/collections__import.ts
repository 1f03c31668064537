import { runOperation } from '#workers/operation.ts'
import { job } from '#workers/task.ts'

type Input = { collection: string; import_id: string; developer_id: string; actor: unknown }
type Part = { is_over: boolean; rows: number; inserted: number; failed: number; errors: unknown[] }

/** Inserts the rows that a request staged, part by part. A part is deleted in the transaction that inserts its rows, so no row is inserted twice. */
export const collectionsImport = job('collections__import', (services, { operation_id = '' }) =>
  runOperation(
    services,
    operation_id,
    async ({ input, call, progress }) => {
      const { collection, import_id } = input as Input
      for (;;) {
        const { is_over, rows, inserted, failed, errors } = await call<Part>('collection_import_part', { import_id })
        if (is_over) return { collection, inserted, failed, errors }
        // a cancelled import keeps the rows that it has inserted
        if (!(await progress(inserted + failed, rows))) return null
      }
    },
    {
      developer: (input) => {
        const { developer_id, actor } = input as Input
        return { developerId: developer_id, actor: JSON.stringify(actor) }
      },
      // the staged rows are kept for as long as the operation may be retried
      afterwards: ({ input, call }) => call('collection_import_drop', { import_id: (input as Input).import_id }),
    },
  ),
)
