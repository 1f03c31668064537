// A collection of a million rows of ten thousand owners, and one that everybody reads.
import { asAdmin, type Installation, type Scenario } from './installation.ts'

const columns = [
  { name: 'title', type: 'text' },
  { name: 'body', type: 'text' },
  { name: 'rank', type: 'integer' },
  { name: 'done', type: 'boolean' },
  { name: 'tags', type: 'text[]' },
  { name: 'meta', type: 'jsonb' },
  { name: 'due', type: 'timestamptz' },
]

const define = (name: string, readPolicy: string) => `
  do $$ begin
    perform set_config('app.developer_id', gen_random_uuid()::text, true), set_config('app.caller', 'developer', true);
    perform internal.collection_create('${JSON.stringify({ name, read_policy: readPolicy, columns })}', false);
  end $$`

const fill = (name: string, rows: number, owners: number) => `
  alter table collections.${name} disable trigger all;
  insert into collections.${name} (user_id, created_at, updated_at, title, body, rank, done, tags, meta, due)
  select o.ids[1 + n % ${owners}], t.at, t.at, 'note ' || n, md5(n::text) || ' ' || md5((n * 7)::text), n % 1000, n % 3 = 0,
         array['t' || n % 5000, 'u' || n % 7], jsonb_build_object('k', n % 5000), t.at + interval '1 day'
    from (select array_agg(u.id order by u.created_at, u.id) as ids from app.users u) as o,
         generate_series(1, ${rows}) as n,
         lateral (select '2026-01-01T00:00:00Z'::timestamptz + n * interval '10 seconds' as at) as t;
  alter table collections.${name} enable trigger all`

const indexes = (name: string) => `
  create index on collections.${name} (rank);
  create index on collections.${name} (title);
  create index on collections.${name} (due);
  create index on collections.${name} using gin (tags);
  create index on collections.${name} using gin (meta);
  create index on collections.${name} using gin (body extensions.gin_trgm_ops)`

/** `notes` is everybody's own, `board` is public; both have an index for each operator that one serves. */
export const fillNotes = async (
  { cluster }: Installation,
  scenario: Scenario,
  rows: number,
  owners: number,
): Promise<void> => {
  const run = (text: string) => asAdmin(cluster, scenario.database, text)
  await run(`insert into app.users (display_name, created_at)
             select 'owner ' || n, internal.now() + n * interval '1 microsecond' from generate_series(1, ${owners - scenario.users.length}) as n`)
  for (const [name, policy] of [
    ['notes', 'owner'],
    ['board', 'public'],
  ] as const) {
    await run(define(name, policy))
    await run(`set session_replication_role = replica; ${fill(name, rows, owners)}`)
    await run(`set maintenance_work_mem = '512MB'; ${indexes(name)}`)
    await run(`vacuum (analyze) collections.${name}`)
  }
}
