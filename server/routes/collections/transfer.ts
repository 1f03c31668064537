import { z } from 'zod'
import { exportRows, fileTypes, importRows } from '#server/collections/transfer.ts'
import { administrator } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { data, Flag, Uuid } from '#server/http/schemas.ts'
import { streamed } from '#server/http/stream.ts'

const Format = z.enum(['csv', 'ndjson'], 'must be csv or ndjson')

export const collectionTransfer = area({
  stem: 'collections',
  title: 'Collections: import and export',
  part: 'Data',
  about: 'Many rows of a collection at once, as CSV or JSON lines.',
  routes: [
    ...group('/admin/projects/:projectId/collections', administrator, [
      route('POST /:name/import', 'Insert the rows of a file', {
        handle: importRows,
        calls: ['collection_import_begin'],
        description:
          'The body is the file, up to 50 MB: NDJSON, or CSV whose first line names columns. Each row has its `user_id` or `group_id`. The result of the operation has the number of inserted rows, and the line and code of the first hundred that failed.',
        query: { format: Format.default('ndjson') },
        uploads: Object.values(fileTypes),
        replies: { 202: data(z.strictObject({ operation_id: Uuid, status: z.literal('queued') })) },
        refusals: { 400: ['INVALID_BODY', 'INVALID_COLUMN'] },
      }),
      route('GET /:name/export', 'All rows of a collection, as a stream', {
        handle: exportRows,
        calls: ['collection_export'],
        stale: true,
        description:
          'In the order of their creation, without deleted ones unless `include_deleted=true`. NDJSON has the rows as `find` shows them; CSV has lists and JSON as JSON texts.',
        query: { format: Format.default('ndjson'), include_deleted: Flag() },
        replies: { 200: streamed('ndjson', 'csv') },
      }),
    ]),
  ],
})
