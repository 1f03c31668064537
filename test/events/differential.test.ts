import fc from 'fast-check'
import pg from 'pg'
import { afterAll, expect, inject, test } from 'vitest'
import { beginning, history, type Step, start } from '#test/support/event_histories.ts'
import { startHarness } from '#test/support/harness.ts'

/*
 * One event alone takes the short path of each area, a batch the shortcuts of batches, and what they leave alone the functions for sets:
 * all must come to the same. Random histories happen in two databases, in one of which every event goes to the functions for sets; then every
 * answer, every stored row and the ranks of boards are compared.
 * EVENTS_HISTORIES says how many.
 */
const histories = Number(process.env['EVENTS_HISTORIES'] ?? 20)
const harness = await startHarness()

const open = async (path: 'set' | 'short') => {
  const { database } = await harness.project()
  const url = new URL(inject('dsn'))
  url.pathname = `/${database}`
  const client = new pg.Client({
    connectionString: url.href,
    options: `-c role=trellis_owner -c app.event_path=${path}`,
  })
  await client.connect()
  return client
}
const databases = [await open('short'), await open('set')]
afterAll(() => Promise.all(databases.map((client) => client.end())))

/** Left out: audit trails, what is folded by chance, and what only says which transaction or which of several inserts it was. */
const compared = await (async () => {
  const { rows } = await (databases[0] as pg.Client).query<{ name: string }>(`
    select c.relname as name from pg_class c
     where c.relnamespace = 'app'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and c.relname !~ '^(audit_|leaderboard_(changes|buckets|bucket_groups|folds)$|event_plans$|flag_sets$|timezones$|name_words$|schema_migrations$|settings$|rate_limits$|installation$|referral_defaults$|collection)'
     order by 1`)
  return rows.map(({ name }) => name)
})()
const dump = `
  ${compared
    .map(
      (
        name,
      ) => `select '${name}' as of, (case jsonb_typeof(to_jsonb(t) -> 'id') when 'number' then to_jsonb(t) - 'id' else to_jsonb(t) end
                   - '{transaction_id,made,fence,slot}'::text[])::text as row from app.${name} t${name === 'outbox' ? ` where t.task <> 'leaderboards__fold'` : ''}`,
    )
    .join('\n  union all\n  ')}
  union all
  select 'ranks', e.app_user_id || ' ' || r.leaderboard_id || ' ' || r.run_key || ' ' || internal.leaderboard_rank(e.run_id, e.place, e.reached_at, e.app_user_id)
         || ' of ' || internal.leaderboard_total(e.run_id)
    from app.leaderboard_entries e join app.leaderboard_runs r on r.id = e.run_id`

/** Ids that the database made are all alike. */
const normal = (text: string) =>
  text.replace(/(?!00000000-0000-4000)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '#')

const settings = (step: Step, now: Date) => {
  const values = {
    'app.clock': now.toISOString(),
    'app.caller': step.caller ?? 'server_key',
    'app.user_id': step.user ?? '',
    ...Object.fromEntries(
      ['effects', 'xp_notified', 'is_history', 'collects_effects', 'due_at', 'changed'].map((name) => [
        `app.${name}`,
        '',
      ]),
    ),
  }
  return `select ${Object.entries(values)
    .map(([name, value]) => `set_config('${name}', '${value}', true)`)
    .join(', ')}`
}

const take = async (client: pg.Client, step: Step, now: Date): Promise<string> => {
  await client.query(`savepoint step; ${settings(step, now)}`)
  try {
    const result = await client.query(step.sql)
    await client.query('release savepoint step')
    return normal(JSON.stringify((Array.isArray(result) ? result : [result]).map(({ rows }) => rows)))
  } catch (error) {
    await client.query('rollback to savepoint step')
    const { code, message } = error as { code: string; message: string }
    return normal(`${code} ${message}`)
  }
}

const state = async (client: pg.Client): Promise<string[]> => {
  const { rows } = await client.query<{ of: string; row: string }>(dump)
  return rows.map(({ of, row }) => normal(`${of}: ${row}`)).sort()
}

/** Rows that only one of both has, with its sign: `-` the short path, `+` that of sets. */
const differences = (short: readonly string[] = [], set: readonly string[] = []): string[] => {
  const left = new Map<string, number>()
  for (const row of short) left.set(row, (left.get(row) ?? 0) + 1)
  for (const row of set) left.set(row, (left.get(row) ?? 0) - 1)
  return [...left].filter(([, count]) => count !== 0).map(([row, count]) => `${count > 0 ? '-' : '+'} ${row}`)
}

/** Triggers keep the plans: computing them anew changes nothing. */
const stalePlans = async (client: pg.Client) => {
  const plans = 'select p.* from app.event_plans p order by p.event_name'
  const before = await client.query(plans)
  await client.query('select internal.event_plans_refresh()')
  expect((await client.query(plans)).rows).toEqual(before.rows)
}

test('an event alone, and the same event on the path of sets, answer and store the same', {
  timeout: histories * 20_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      let now = new Date(start)
      const first: Step = { what: 'begin', sql: beginning }
      await Promise.all(
        databases.map((client) =>
          client.query(`begin; set local timezone = 'UTC'; ${settings(first, now)}; ${first.sql}`),
        ),
      )
      try {
        for (const step of steps) {
          now = new Date(now.getTime() + (step.advance ?? 0) * 1000 + 1)
          const [short, set] = await Promise.all(databases.map((client) => take(client, step, now)))
          expect(short, step.what).toBe(set)
        }
        const [short, set] = await Promise.all(databases.map(state))
        expect(differences(short, set)).toEqual([])
        await stalePlans(databases[0] as pg.Client)
      } finally {
        await Promise.all(databases.map((client) => client.query('rollback')))
      }
    }),
    { numRuns: histories },
  )
})
