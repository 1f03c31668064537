import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type pg from 'pg'
import { readProgram } from '#fleet/load/files.ts'
import { root } from '#server/root.ts'
import type { Job, OutboxTask } from '#workers/task.ts'
import { table } from './table.ts'

type Client = Pick<pg.Client, 'query'>

/** The file of each function and trigger: by `function internal.name` and `trigger name`. */
const readSources = async (): Promise<ReadonlyMap<string, string>> => {
  const programs = [await readProgram('control'), await readProgram('tenant')]
  const found = new Map<string, string>()
  const files = programs.flatMap(({ base, functions, policies }) => [...base, ...functions, ...policies])
  for (const { path, text } of files) {
    for (const [, kind, name] of text.matchAll(/^ *create (?:or replace )?(function|trigger) ([\w.]+)/gm))
      found.set(`${kind} ${name}`, path)
    // counters are made by a declaration, of a list or of their own
    for (const [, name = '', rest = ''] of text.matchAll(/internal\.(?:count|list)_declare\('(\w+)'([^;]*)/g)) {
      const filters = /counted_filters => '\{([\w,]+)\}'/.exec(rest)?.[1]?.split(',') ?? []
      for (const counter of [name, ...filters.map((filter) => `${name}_by_${filter}`)])
        for (const made of ['tg_count__', 'count_now__']) found.set(`function internal.${made}${counter}`, path)
    }
    for (const [, name] of text.matchAll(/^ *select internal\.audit_declare\('app\.(\w+)'/gm))
      found.set(`trigger tg_${name}__audit`, path)
    // so are the JSON of a row, which may be a hook of a definition, and the sources of realtime
    for (const [, name] of text.matchAll(/internal\.row_declare\('(\w+)'/g))
      found.set(`function internal.${name}`, path)
    for (const [, name] of text.matchAll(/internal\.source_declare\(null::app\.(\w+)/g))
      for (const made of ['publish', 'publish_change']) found.set(`function internal.tg_${name}__${made}`, path)
    for (const [, name] of text.matchAll(/internal\.event_source_declare\('(\w+)'/g))
      for (const made of ['event_plan__realtime__', 'published_event__'])
        found.set(`function internal.${made}${name}`, path)
  }
  return found
}

const link = (path: string | undefined) => (path === undefined ? '' : `[${path}](../${path})`)

const triggers = `
  select t.tgrelid::regclass::text as on, t.tgname::text as name, t.tgfoid::regproc::text as function,
         (case when t.tgtype & 2 = 2 then 'before' else 'after' end) || ' '
           || concat_ws(' or ', case when t.tgtype & 4 = 4 then 'insert' end, case when t.tgtype & 16 = 16 then 'update' end,
                        case when t.tgtype & 8 = 8 then 'delete' end, case when t.tgtype & 32 = 32 then 'truncate' end)
           || (case when t.tgtype & 1 = 1 then ', each row' else ', each statement' end)
           || (case when t.tgdeferrable then ', deferred' else '' end) as moment
    from pg_catalog.pg_trigger t
    join pg_catalog.pg_class c on c.oid = t.tgrelid and not c.relispartition
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace and n.nspname in ('app', 'internal', 'ops')
   where not t.tgisinternal
   order by t.tgrelid::regclass::text collate "C", t.tgname collate "C"`

/** Functions that are found by their names; those of a kind of definition are compiled, and none of a file's. */
const byConvention = `
  select split_part(p.proname, '__', 1) as hook, p.proname::text as name,
         regexp_replace(coalesce(pg_catalog.obj_description(p.oid, 'pg_proc'), ''), '\\s+', ' ', 'g') as comment
    from pg_catalog.pg_proc p
   where p.pronamespace = 'internal'::regnamespace and p.proname ~ '[a-z]__[a-z]' and p.proname !~ '^tg_'
     and split_part(p.proname, '__', 1) not in (select d.kind from internal.definitions d)
   order by p.proname collate "C"`

const definitionHooks = `
  select d.kind, d.table_name, h.hook, d.kind || '_' || h.hook as name, d.declared_in
    from internal.definitions d
   cross join unnest(array['before_write', 'before_update', 'check', 'after_write', 'before_delete', 'json', 'find', 'listed'])
         with ordinality as h (hook, n)
   where internal.definition_hook(d, h.hook) is not null
   order by d.kind collate "C", h.n`

const definers = `
  select p.proname::text as name,
         (select string_agg(r.rolname, ', ' order by r.rolname collate "C")
            from pg_catalog.aclexplode(p.proacl) a join pg_catalog.pg_roles r on r.oid = a.grantee where a.grantee <> p.proowner) as roles
    from pg_catalog.pg_proc p
   where p.pronamespace = 'api'::regnamespace and p.prosecdef
   order by p.proname collate "C"`

const userData = `
  select u.table_name, u.user_column, u.section, array_to_string(u.export_columns, ', ') as exported,
         u.reset_section, u.on_merge, u.on_delete, u.declared_in
    from internal.user_data u
   order by u.table_name collate "C", u.user_column collate "C"`

type Row = Readonly<Record<string, string | null>>
const ask = async (client: Client, text: string) => (await client.query<Record<string, string | null>>(text)).rows
const code = (text: string | null | undefined) => (text ? `\`${text}\`` : '')

const triggerTable = (rows: readonly Row[], sources: ReadonlyMap<string, string>) =>
  table(
    ['table', 'trigger', 'when', 'file'],
    rows.map((row) => [
      code(row['on']),
      code(row['name']),
      row['moment'] ?? '',
      link(sources.get(`trigger ${row['name']}`) ?? sources.get(`function ${row['function']}`)),
    ]),
  )

const jobRows = async (): Promise<string[][]> => {
  const folder = join(root, 'workers/tasks')
  const crontab = await readFile(join(root, 'workers/crontab'), 'utf8')
  const files = (await readdir(folder)).filter((name) => name.endsWith('.ts')).sort()
  const rows: string[][] = []
  for (const file of files) {
    const exported = Object.values((await import(join(folder, file))) as Record<string, Job | OutboxTask>)
    for (const task of exported.filter((each) => each?.kind === 'job' || each?.kind === 'outbox')) {
      const share = task.kind === 'job' ? { urgency: task.urgency } : task.share
      const line = crontab.split('\n').find((each) => each.split(' ')[5] === task.name)
      const limit = 'atOnce' in share && share.atOnce ? `, ${share.atOnce} at once` : ''
      rows.push([
        code(task.name),
        task.kind === 'job' ? 'job of control' : 'row of an outbox',
        `${share.urgency ?? 'usual'}${limit}`,
        code(line?.split(' ').slice(0, 5).join(' ')),
        link(`workers/tasks/${file}`),
      ])
    }
  }
  // a module lists what it exports in an order of its own
  return rows.sort(([a = ''], [b = '']) => (a < b ? -1 : 1))
}

/** What runs without being called by name: triggers, functions by convention, registrations of tables, background tasks. */
export const hooksPage = async (control: Client, tenant: Client): Promise<string> => {
  const sources = await readSources()
  const fileOf = (name: string | null | undefined) => link(sources.get(`function internal.${name}`))
  const [ofTenant, ofControl] = [await ask(tenant, triggers), await ask(control, triggers)]
  const named = await ask(tenant, byConvention)
  const hooks = await ask(tenant, definitionHooks)
  const data = await ask(tenant, userData)
  // a function of functions/shared is in both kinds of database
  const definerRows = [
    ...new Map(
      [...(await ask(control, definers)), ...(await ask(tenant, definers))].map((row) => [row['name'], row]),
    ).values(),
  ]
  return `# Hooks

What runs without being called by its name, and the file that defines it. Made from the catalogs of freshly migrated databases by
\`npm run docs\`; a test fails when it is not current.

## Triggers in a project's database

Triggers of one table and event run in the order of their names. The one on \`app.engagement_events\` hands events to the hooks of the areas ([events.md](events.md)).

${triggerTable(ofTenant, sources)}

## Triggers in control

${triggerTable(ofControl, sources)}

## Functions by convention

A mechanism runs every function \`internal.<hook>__<part>\`: an area adds itself by writing one.

${table(
  ['hook', 'function', 'what it does', 'file'],
  named.map((row) => [row['hook'] ?? '', code(row['name']), row['comment'] ?? '', fileOf(row['name'])]),
)}

## Hooks of definitions

\`internal.<kind>_<hook>\`, called by the functions that all definitions share ([definitions.md](definitions.md)).

${table(
  ['kind', 'table', 'hook', 'file'],
  hooks.map((row) => [row['kind'] ?? '', code(row['table_name']), row['hook'] ?? '', fileOf(row['name'])]),
)}

## Definer functions of api

They run with the rights of their owner: no policy applies inside them. Each reads who calls before anything else, or is granted only to a role that no user of
an app and no developer of another project has; a lint test checks it.

${table(
  ['function', 'who may execute it', 'file'],
  definerRows.map((row) => [
    code(`api.${row['name']}`),
    row['roles'] ?? '',
    link(sources.get(`function api.${row['name']}`)),
  ]),
)}

## Tables of users

How export, reset, merge and deletion of a user treat each table (\`internal.user_data\`, registered beside its policies).

${table(
  ['table', 'column of the user', 'section', 'exported columns', 'reset with', 'merge', 'deletion', 'file'],
  data.map((row) => [
    code(row['table_name']),
    code(row['user_column']),
    row['section'] ?? '',
    row['exported'] ?? '',
    row['reset_section'] ?? '',
    row['on_merge'] ?? '',
    row['on_delete'] ?? '',
    link(row['declared_in'] ?? undefined),
  ]),
)}

## Background tasks

An outbox row names its task, and a trigger or function queues it with \`internal.enqueue\`; jobs of control are graphile-worker's.

${table(['task', 'kind', 'urgency', 'schedule (UTC)', 'file'], await jobRows())}
`
}
