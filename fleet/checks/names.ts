import { type Client, escapeLiteral } from 'pg'
import { escapeRegExp, type Finding, type Sources } from '#fleet/checks/finding.ts'
import { type Body, lookingBlock, noticeOf } from '#fleet/checks/plpgsql/looking.ts'
import { Unknowable } from '#fleet/checks/plpgsql/tokens.ts'

type Function = {
  readonly oid: string
  readonly name: string
  readonly identity: string
  readonly language: 'sql' | 'plpgsql'
  readonly source: string
  readonly names: readonly string[]
  readonly types: readonly string[]
  readonly searchPath: string | null
  readonly isTrigger: boolean
  /** Of each table that has it as a trigger: its rows, and the names of its transition tables. */
  readonly tables: readonly { readonly row: string; readonly passing: readonly string[] }[]
}

/** Functions of ours. Those whose body Postgres has parsed when they were made need no look. */
const functions = `
  select p.oid::text, p.proname as name, p.oid::regprocedure::text as identity, l.lanname as language, p.prosrc as source,
         coalesce(p.proargnames, '{}')::text[] as names,
         array(select format_type(t.oid, null) from unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) with ordinality t (oid, n) order by t.n) as types,
         (select substr(c, 13) from unnest(p.proconfig) c where c like 'search_path=%') as "searchPath",
         p.prorettype = 'trigger'::regtype as "isTrigger",
         coalesce((select json_agg(distinct jsonb_build_object('row', g.tgrelid::regclass, 'passing', array_remove(array[g.tgnewtable, g.tgoldtable], null)))
                     from pg_catalog.pg_trigger g where g.tgfoid = p.oid and not g.tgisinternal), '[]') as tables
    from pg_catalog.pg_proc p
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace and n.nspname in ('api', 'internal', 'ops')
    join pg_catalog.pg_language l on l.oid = p.prolang and l.lanname in ('sql', 'plpgsql')
   where p.prokind in ('f', 'p') and p.prosqlbody is null
   order by 3`

/** Types of which a variable cannot be declared, and what a function that asks whether something is there may name in vain. */
const unknowable = /^(any|record$|internal$|trigger$|event_trigger$|cstring$)|polymorphic/
const asksFirst = /\bto_reg[a-z]+\s*\(|\bcreate\s+(temp|temporary|table|unlogged)\b/i

const bodiesOf = (found: Function): Body[] => {
  const { name, source, names, types } = found
  if (asksFirst.test(source)) throw new Unknowable('it asks what is there')
  if (types.some((type) => unknowable.test(type))) throw new Unknowable('a parameter of any type')
  const variables = names.flatMap((one, index) => (one ? [{ name: one, type: types[index] ?? '' }] : []))
  if (!found.isTrigger) return [{ name, source, variables, passing: [] }]
  const told = ['tg_name', 'tg_when', 'tg_level', 'tg_op', 'tg_table_name', 'tg_table_schema', 'tg_relname'].map(
    (one) => ({ name: one, type: 'text' }),
  )
  return found.tables.map(({ row, passing }) => ({
    name,
    source,
    variables: [
      ...told,
      ...[
        { name: 'tg_relid', type: 'oid' },
        { name: 'tg_nargs', type: 'int' },
        { name: 'tg_argv', type: 'text[]' },
      ],
      ...['new', 'old'].map((one) => ({ name: one, type: row })),
    ],
    passing,
  }))
}

type Problem = { readonly at: number; readonly problem: string }

/** A way to run DO blocks and hear their notices. */
const listening = async <T>(
  client: Client,
  work: (run: (block: string) => Promise<Problem[]>) => Promise<T>,
): Promise<T> => {
  let problems: Problem[] = []
  const hear = ({ message = '' }: { message?: string | undefined }) => {
    const found = noticeOf(message)
    if (found) problems.push(found)
  }
  client.on('notice', hear)
  try {
    return await work(async (block) => {
      problems = []
      // what this reader has not understood is not said to be wrong, nor does it end a transaction of the caller
      await client.query(
        `do ${escapeLiteral(`begin execute ${escapeLiteral(block)}; exception when others then null; end`)}`,
      )
      return problems
    })
  } finally {
    client.off('notice', hear)
  }
}

/** What a function says of names in vain, with every table whose trigger it is: a branch may be for one of them. */
const problemsOf = async (found: Function, run: (block: string) => Promise<Problem[]>): Promise<readonly Problem[]> => {
  let blocks: string[]
  try {
    blocks = bodiesOf(found).map(lookingBlock)
  } catch (error) {
    if (error instanceof Unknowable) return []
    throw error
  }
  let left: readonly Problem[] | undefined
  for (const block of blocks) {
    const problems = await run(block)
    left = left?.filter((one) => problems.some(({ at }) => at === one.at)) ?? problems
    if (left.length === 0) break
  }
  return left ?? []
}

type Failed = { readonly message: string; readonly internalPosition?: string; readonly where?: string }

/** What a function is to those that call it, and its body, by its name with its arguments. */
export type Signatures = ReadonlyMap<
  string,
  { readonly name: string; readonly signature: string; readonly body: string }
>

export const signaturesOf = async (client: Client): Promise<Signatures> => {
  const { rows } = await client.query<{ identity: string; name: string; signature: string; body: string }>(
    `select p.oid::regprocedure::text as identity, p.proname as name, md5(p.prosrc) as body,
            md5(concat_ws(' ', pg_get_function_arguments(p.oid), pg_get_function_result(p.oid))) as signature
       from pg_catalog.pg_proc p
       join pg_catalog.pg_namespace n on n.oid = p.pronamespace and n.nspname in ('api', 'internal', 'ops')`,
  )
  return new Map(rows.map(({ identity, ...row }) => [identity, row]))
}

/**
 * Functions that may have become wrong since: those that have changed, and those that name one which is new, gone, or called in another way. To look
 * at all of them takes seconds.
 */
const suspects = (rows: readonly Function[], former: Signatures, present: Signatures): Function[] => {
  const others = new Set<string>()
  for (const [identity, { name, signature }] of present)
    if (former.get(identity)?.signature !== signature) others.add(name)
  for (const [identity, { name }] of former) if (!present.has(identity)) others.add(name)
  const words = others.size > 0 ? new RegExp(`\\b(${[...others].map(escapeRegExp).join('|')})\\b`) : null
  return rows.filter(
    ({ identity, source }) => former.get(identity)?.body !== present.get(identity)?.body || words?.test(source),
  )
}

/** What Postgres says when it reads the body: the syntax of PL/pgSQL, and syntax and names of SQL. The caller may have begun a transaction. */
const compiled = async (client: Client, { oid, language }: Function): Promise<Problem | null> => {
  const isInside = await client.query('savepoint compiled').then(
    () => true,
    () => false,
  )
  const found = await client
    .query(`select pg_catalog.${language === 'sql' ? 'fmgr_sql_validator' : 'plpgsql_validator'}($1)`, [oid])
    .then(
      () => null,
      ({ message, internalPosition, where }: Failed) => ({
        at: Number(internalPosition ?? 0) - 1,
        problem: `${message}${!internalPosition && where ? ` (${where.split('\n')[0]})` : ''}`,
      }),
    )
  if (isInside) await client.query('rollback to savepoint compiled')
  return found
}

/** Each function in a subtransaction, so that one message finds those with a problem. */
const uncompiled = (oids: readonly string[]) => `
  do $all$
  declare f record;
  begin
    for f in select p.oid, l.lanname from pg_catalog.pg_proc p
               join pg_catalog.pg_language l on l.oid = p.prolang
              where p.oid = any ('{${oids.join(',')}}'::oid[])
    loop
      begin
        if f.lanname = 'sql' then
          perform pg_catalog.fmgr_sql_validator(f.oid);
        else
          perform pg_catalog.plpgsql_validator(f.oid);
        end if;
      exception when others then
        raise notice using message = 'trellis ' || f.oid || ' does not compile';
      end;
    end loop;
  end $all$`

/**
 * Functions that the first request would find broken: a syntax error, or a column, table or function that does not exist. Files are loaded with
 * check_function_bodies off, as functions refer to each other in any order, and Postgres looks at the names in PL/pgSQL when a statement runs. Nothing is
 * written. `former` is what was loaded before: then only what may have become wrong since is looked at.
 */
export const checkFunctions = async (
  client: Client,
  sources: Sources,
  former?: Signatures | undefined,
): Promise<Finding[]> => {
  await client.query(
    `set search_path = ''; set check_function_bodies = on; set default_transaction_read_only = on; set plan_cache_mode = force_generic_plan`,
  )
  try {
    const { rows: all } = await client.query<Function>(functions)
    const rows = former ? suspects(all, former, await signaturesOf(client)) : all
    if (rows.length === 0) return []
    return await listening(client, async (run) => {
      const broken = new Set((await run(uncompiled(rows.map(({ oid }) => oid)))).map(({ at }) => String(at)))
      const findings: Finding[] = []
      for (const found of rows) {
        const problems = broken.has(found.oid)
          ? [await compiled(client, found)].flatMap((one) => one ?? [])
          : found.language === 'plpgsql'
            ? await problemsOf(found, (block) => run(`${pathOf(found)}; ${block}`))
            : []
        for (const { at, problem } of problems) findings.push(findingOf(found, at, problem, sources))
      }
      return findings
    })
  } finally {
    await client.query(
      'reset search_path; reset check_function_bodies; reset default_transaction_read_only; reset plan_cache_mode',
    )
  }
}

const pathOf = ({ searchPath }: Function) =>
  `select set_config('search_path', ${escapeLiteral(searchPath ?? '"$user", public')}, true)`

const findingOf = ({ identity, source }: Function, at: number, problem: string, sources: Sources): Finding => {
  const [path, line] = sources.find(source, 'functions/').split(':')
  const added = at > 0 ? source.slice(0, at).split('\n').length - 1 : 0
  return {
    place: line ? `${path}:${Number(line) + added}` : `${path}`,
    severity: 'error',
    problem: `${identity} would fail: ${problem}.`,
    remedy: 'Correct its body.',
  }
}
