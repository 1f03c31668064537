import pg from 'pg'
import { afterAll, inject } from 'vitest'
import type { Case, Truth } from '#test/support/filters.ts'
import { startHarness } from '#test/support/harness.ts'

/** Connects to a project's database, and evaluates filters there in batches. */
export const startFilters = async () => {
  const harness = await startHarness()
  const project = await harness.project()
  const url = new URL(inject('dsn'))
  url.pathname = `/${project.database}`
  const client = new pg.Client({ connectionString: url.href })
  await client.connect()
  await client.query(`set search_path = ''`)
  afterAll(() => client.end())

  const truths = async (
    cases: readonly Case[],
  ): Promise<{ truth: Truth; matches: boolean; problem: string | null }[]> => {
    const { rows } = await client.query(
      `select internal.filter_truth(c.filter::jsonb, c."row"::jsonb) as truth,
              internal.filter_matches(c.filter, c."row") as matches,
              internal.filter_problem(c.filter) as problem
         from rows from (json_to_recordset($1) as (filter json, "row" json)) with ordinality as c (filter, "row", n)
        order by c.n`,
      [JSON.stringify(cases)],
    )
    return rows
  }

  /** Texts rather than values, so that JSON can be sent which JavaScript would not write. */
  const onTexts = async (cases: readonly { filter: string; row: string }[]) => {
    const { rows } = await client.query<{ matches: boolean; problem: string | null; path: string | null }>(
      `select internal.filter_matches(c.filter::json, c."row"::json) as matches,
              internal.filter_problem(c.filter::json) as problem,
              (internal.filter_check(c.filter::json)).path
         from unnest($1::text[], $2::text[]) with ordinality as c (filter, "row", n)
        order by c.n`,
      [cases.map((item) => item.filter), cases.map((item) => item.row)],
    )
    return rows
  }

  const problems = async (filters: readonly unknown[]) => {
    const answers = await onTexts(filters.map((filter) => ({ filter: JSON.stringify(filter), row: '{}' })))
    return answers.map((answer) => answer.problem)
  }
  return { project, client, truths, onTexts, problems }
}
