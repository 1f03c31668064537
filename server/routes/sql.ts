import { z } from 'zod'
import { dashboard } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { data, Text } from '#server/http/schemas.ts'
import { query } from '#server/sql/handler.ts'

const Answered = z.strictObject({
  columns: z.array(z.strictObject({ name: z.string(), type: z.string() })),
  rows: z.array(z.array(z.union([z.string(), z.number(), z.boolean()]).nullable())),
  row_count: z.int(),
  is_cut: z.boolean(),
  duration_ms: z.int(),
  plan: z.looseObject({}).nullable(),
})

export const sql = area({
  stem: 'sql',
  title: 'SQL',
  part: 'Platform',
  about: "SQL that reads a project's database.",
  words: {
    sql: ['SQL', 'One statement that reads: SELECT, VALUES, TABLE or WITH.'],
    explain: [
      'Explain',
      '`plan` answers how Postgres would run the statement and runs nothing; `analyze` runs it, and answers how it ran.',
      { unset: 'Rows alone' },
    ],
    limit: ['Rows', 'At most so many rows are answered.'],
  },
  routes: [
    ...group('/admin/projects/:projectId/sql', dashboard, [
      route('POST /', "Query the project's database with SQL; it reads only", {
        handle: query,
        description:
          'The statement runs as the role `app_dashboard`, in a transaction that only reads and is rolled back, for at most 10 seconds. `rows` has the values of ' +
          'each row in the order of `columns`: booleans and numbers of the types smallint, integer, real and double as JSON has them, all else as the text of ' +
          'Postgres. `is_cut` says that there are more rows, or that a value was shortened and ends in `…`.',
        body: z.object({
          sql: Text(20_000, 1),
          explain: z.enum(['plan', 'analyze']).optional(),
          limit: z.int().min(1).max(1000).default(100),
        }),
        example: { sql: 'select id, email, created_at from app.users order by created_at desc', limit: 20 },
        readOnly: true,
        replies: { 200: data(Answered) },
        refusals: {
          400: ['INVALID_SQL', 'SQL_READ_ONLY', 'SQL_TIMEOUT'],
          403: ['SQL_FORBIDDEN', 'SQL_DISABLED'],
          503: ['SQL_UNAVAILABLE'],
        },
        failure: null,
      }),
    ]),
  ],
})
