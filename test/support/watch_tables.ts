/** Runs SQL in one database as the owner of its objects. */
type Run = (text: string, values?: unknown[]) => Promise<Record<string, unknown>[]>

/** Large lists that no request changes. */
const lists = '^(disposable_domains|timezones|name_words)$'

const isWatched = `c.relkind = 'r' and c.relname !~ $1 and c.relname !~ '${lists}'`
const uncounted = `select c.oid::regclass::text as name from pg_class c where c.relnamespace = to_regnamespace('collections') and ${isWatched}`
const counts = `
  select c.oid::regclass::text as name, coalesce(pg_sequence_last_value(s.oid), 0)::text as count
    from pg_class c
    join pg_class s on s.relname = c.relname and s.relnamespace = 'watch'::regnamespace
   where c.relnamespace = 'app'::regnamespace and ${isWatched}`

const countersWithout = (without: string) => `
  create schema watch;
  create sequence watch.total;
  create function watch.count() returns trigger language plpgsql security definer as $$ begin
    perform nextval('watch.total'), nextval(format('watch.%I', tg_table_name)::regclass); return null; end $$;
  do $$ declare t record; begin
    for t in select c.oid::regclass as name, c.relname from pg_class c where c.relnamespace = 'app'::regnamespace and c.relkind = 'r'
                and c.relname !~ '${without}' loop
      execute format('create sequence watch.%I', t.relname);
      execute format('create constraint trigger watch after insert or update or delete on %s deferrable initially deferred for each row execute function watch.count()', t.name);
    end loop;
  end $$`

const hashOf = (name: string) =>
  `select '${name.replaceAll("'", "''")}' as name, coalesce(md5(string_agg((to_jsonb(t) - 'last_written_at')::text, ',' order by t::text)), '') as hash from ${name} t`

/**
 * The rows of each table of a database as a hash, under the table's name; tables whose name matches `without` are left out, and so is when
 * a project was last written to, which is noted after an answer. Hashing all tables after each request takes longer than the request. So
 * each table counts the rows that transactions have changed for good, and is hashed again when its count has moved. Tables of
 * collections have no count, because they are made later: with `hasCollections` they are hashed each time.
 */
export const watchTables = async (
  run: Run,
  without: string,
  hasCollections = false,
): Promise<() => Promise<Record<string, string>>> => {
  await run(countersWithout(without))
  const known = new Map<string, { count: string; hash: string }>()
  let last: { total: string; hashes: Record<string, string> } | undefined
  const hash = async (names: readonly string[]) =>
    names.length === 0 ? [] : ((await run(names.map(hashOf).join(' union all '))) as { name: string; hash: string }[])
  return async () => {
    const [now] = (await run('select last_value::text || is_called::text as total from watch.total')) as [
      { total: string },
    ]
    // the same object, which is compared at once
    if (last?.total === now.total && !hasCollections) return last.hashes
    if (last?.total !== now.total) {
      const found = (await run(counts, [without])) as { name: string; count: string }[]
      const moved = new Map(
        found.filter(({ name, count }) => known.get(name)?.count !== count).map((t) => [t.name, t.count]),
      )
      // what changes between the queries has moved its count, and is hashed once more
      for (const one of await hash([...moved.keys()]))
        known.set(one.name, { count: moved.get(one.name) ?? '', hash: one.hash })
    }
    const hashes = new Map([...known].map(([name, one]) => [name, one.hash]))
    if (hasCollections) {
      const found = (await run(uncounted, [without])) as { name: string }[]
      for (const one of await hash(found.map(({ name }) => name))) hashes.set(one.name, one.hash)
    }
    last = { total: now.total, hashes: Object.fromEntries([...hashes].sort(([a], [b]) => (a < b ? -1 : 1))) }
    return last.hashes
  }
}
