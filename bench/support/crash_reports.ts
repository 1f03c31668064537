// Reports and issues for bench/diagnostics.ts.
import { say } from './results.ts'

/** A stack of 8 KB, whose frames are those of one of a hundred places. */
const stackOf = (place: number): string => {
  const frames = Array.from(
    { length: 120 },
    (_, n) => `    at step${n}_${n === 0 ? place : ''} (https://app.example/assets/main.js:1:${n * 91})`,
  )
  return `TypeError: undefined is not a function\n${frames.join('\n')}`.slice(0, 8192)
}
export const reportOf = (n: number, place = n % 100) => ({
  kind: 'crash',
  level: 'fatal',
  message: `Lesson ${n} does not open`,
  stack: stackOf(place),
  app_version: `1.${n % 20}.0`,
  context: { screen: 'lesson' },
})

type Sql = <T extends Record<string, unknown>>(text: string, values?: unknown[]) => Promise<T[]>

/** Issues of twenty versions, and their reports over forty days. */
export const fillIssues = async (sql: Sql, issues: number, reports: number): Promise<void> => {
  await sql('delete from app.diagnostic_issues')
  await sql(
    `insert into app.diagnostic_issues (fingerprint, title, level, status, first_seen, last_seen, count, version_counts, day_counts)
     select md5(n::text), 'Failure ' || n, (array['fatal', 'error', 'warn'])[1 + n % 3],
            (array['open', 'open', 'open', 'resolved', 'ignored'])[1 + n % 5], now() - interval '40 days',
            now() - n * interval '1 second', 10, jsonb_build_object('1.' || n % 20 || '.0', 10),
            jsonb_build_object(to_char(now(), 'YYYY-MM-DD'), 10)
       from generate_series(1, $1::int) n`,
    [issues],
  )
  await sql(`insert into app.diagnostic_issue_versions (app_version, issue_id)
    select jsonb_object_keys(version_counts), id from app.diagnostic_issues`)
  for (let done = 0; done < reports; done += 250_000) {
    await sql(
      `insert into app.diagnostic_reports (issue_id, kind, level, message, stack, occurred_at, received_at, app_version)
       select i.ids[1 + n % cardinality(i.ids)], 'crash', 'fatal', 'Failure', 'at f (main.js:1:2)',
              now() - (1 - n::float8 / $3) * interval '40 days', now() - (1 - n::float8 / $3) * interval '40 days', '1.0.0'
         from generate_series($1::int, $2::int) n, (select array_agg(id) as ids from app.diagnostic_issues) i`,
      [done + 1, Math.min(done + 250_000, reports), reports],
    )
    say(`${Math.min(done + 250_000, reports)} reports`)
  }
  for (const table of ['diagnostic_issues', 'diagnostic_issue_versions', 'diagnostic_reports'])
    await sql(`vacuum analyze app.${table}`)
}

/** What is older than thirty days, in steps of 5,000 as the daily job takes them. */
export const measurePurge = async (sql: Sql) => {
  const began = performance.now()
  let purged = 0
  let longest = 0
  for (;;) {
    const from = performance.now()
    const [{ n } = { n: 0 }] = await sql<{ n: number }>('select internal.purge__diagnostics(5000)::int as n')
    longest = Math.max(longest, performance.now() - from)
    purged += n
    if (n === 0 || performance.now() - began > 20_000) break
  }
  return { purged, perSecond: (purged * 1000) / (performance.now() - began), longest }
}
