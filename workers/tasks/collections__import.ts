import { runOperation } from '#workers/operation.ts'
import { job } from '#workers/task.ts'

type Input = { collection: string; import_id: string; developer_id: string; actor: unknown }
type Part = { is_over: boolean; rows: number; inserted: number; failed: number; errors: unknown[] }

/** Inserts what a request staged, part by part; each part goes in the transaction of its rows, so none is inserted twice. */
export const collectionsImport = job('collections__import', (services, { operation_id = '' }) =>
  runOperation(
    services,
    operation_id,
    async ({ input, call, progress }) => {
      const { collection, import_id } = input as Input
      for (;;) {
        const { is_over, rows, inserted, failed, errors } = await call<Part>('collection_import_part', { import_id })
        if (is_over) return { collection, inserted, failed, errors }
        // what was cancelled stays as far as it came
        if (!(await progress(inserted + failed, rows))) return null
      }
    },
    {
      developer: (input) => {
        const { developer_id, actor } = input as Input
        return { developerId: developer_id, actor: JSON.stringify(actor) }
      },
      // the staged rows stay as long as the operation may be tried again
      afterwards: ({ input, call }) => call('collection_import_drop', { import_id: (input as Input).import_id }),
    },
  ),
)
