import { z } from 'zod'
import { dataOf } from '#server/database/database.ts'
import { administrator } from '#server/http/callers.ts'
import { area, type HandlerContext, route } from '#server/http/route.ts'
import { Flag } from '#server/http/schemas.ts'
import { type Batch, streamed, streamRows } from '#server/http/stream.ts'

const Format = z.enum(['csv', 'ndjson'], 'must be csv or ndjson')

type Part = Batch & { readonly columns: readonly string[] }

/** Rows in the order of their making: what is written after the export began may be in it, at its end. */
const exportRows = async (context: HandlerContext) => {
  const { format, include_deleted } = context.query as { format: 'csv' | 'ndjson'; include_deleted: boolean }
  const name = String(context.params['name'])
  const read = async (after: string | null) =>
    dataOf<Part>(await context.call('collection_export', { name, include_deleted, ...(after ? { after } : {}) }))
  const first = await read(null)
  return streamRows({
    format,
    filename: name,
    columns: first.columns,
    read: async (cursor) => (cursor === null ? first : read(cursor)),
  })
}

export const collectionTransfer = area({
  stem: 'collections',
  title: 'Collections: export',
  source: 'supplement',
  routes: [
    route('GET /admin/projects/:projectId/collections/:name/export', {
      caller: administrator,
      summary: 'All rows of a collection, as a stream',
      description:
        'In the order of their making, without deleted ones unless `include_deleted=true`. NDJSON has the rows as `find` shows them; CSV has lists and JSON as JSON texts.',
      params: { name: z.string() },
      query: { format: Format.default('ndjson'), include_deleted: Flag() },
      handle: exportRows,
      replies: { 200: streamed('ndjson', 'csv') },
      refusals: { 400: ['INVALID_INPUT'], 404: ['COLLECTION_NOT_FOUND'] },
      failure: 'FETCH_FAILED',
    }),
  ],
})
