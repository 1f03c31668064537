import { escapeIdentifier, escapeLiteral } from 'pg'
import { type Dependency, type Item, itemKey, type State } from '#fleet/load/state.ts'

export type FunctionText = { readonly text: string | null; readonly comment: string }

/** The input of statementsOf: the state of a database before and after an upgrade, with the dependencies in both and the SQL of functions. */
export type Change = {
  readonly before: State
  readonly after: State
  readonly dependenciesBefore: readonly Dependency[]
  readonly dependenciesAfter: readonly Dependency[]
  /** The SQL of a function in the state after the upgrade. */
  readonly textOf: (identity: string) => FunctionText | undefined
}

type Sides = { readonly removed: Item[]; readonly changed: Item[]; readonly added: Item[] }

/** The items that differ. `changed` holds their definitions after the upgrade. */
const compare = (before: State, after: State): Sides => {
  const sides: Sides = { removed: [], changed: [], added: [] }
  for (const [key, item] of after) {
    const old = before.get(key)
    if (!old) sides.added.push(item)
    else if (old.definition !== item.definition || old.shape !== item.shape) sides.changed.push(item)
  }
  for (const [key, item] of before) if (!after.has(key)) sides.removed.push(item)
  return sides
}

const of = (kind: string, ...lists: readonly (readonly Item[])[]) => lists.flat().filter((item) => item.kind === kind)

/** Identities of the functions that the upgrade creates or replaces, including those that are dropped and created again. `textOf` must know all of them. */
export const changedFunctions = (before: State, after: State, dependencies: readonly Dependency[]): string[] => {
  const sides = compare(before, after)
  const dropped = droppedFunctions(sides, before, dependencies)
  return [...new Set([...of('function', sides.added, sides.changed).map((item) => item.identity), ...dropped])].filter(
    (identity) => after.has(itemKey('function', identity)),
  )
}

/** Functions to drop: those that are removed, those whose signature `create or replace` cannot change, and the functions that depend on either. */
const droppedFunctions = (
  { removed, changed }: Sides,
  before: State,
  dependencies: readonly Dependency[],
): ReadonlySet<string> => {
  const isReshaped = (item: Item) => before.get(itemKey('function', item.identity))?.shape !== item.shape
  const dropped = new Set(
    [...of('function', removed), ...of('function', changed).filter(isReshaped)].map((item) => item.identity),
  )
  for (const identity of dropped) {
    // the loop also visits the elements that it adds
    for (const { kind, identity: dependent, on } of dependencies) {
      if (on === identity && kind === 'function') dropped.add(dependent)
    }
  }
  return dropped
}

/** Topological order: a function comes after the functions that it depends on. */
const inOrder = (identities: readonly string[], dependencies: readonly Dependency[]): string[] => {
  const wanted = new Set(identities)
  const ordered = new Set<string>()
  const entered = new Set<string>()
  const visit = (identity: string) => {
    if (!wanted.has(identity) || entered.has(identity)) return
    entered.add(identity)
    for (const { kind, identity: dependent, on } of dependencies) {
      if (kind === 'function' && dependent === identity) visit(on)
    }
    ordered.add(identity)
  }
  for (const identity of identities) visit(identity)
  return [...ordered]
}

const tableOf = (identity: string) => identity.slice(identity.lastIndexOf(' on ') + 4)

/**
 * The statements that upgrade a database from one state to the other. Null where that is not possible with statements: a table, a type or an
 * aggregate changed, or an object that the loader does not manage depends on a function that has to be dropped.
 */
export const statementsOf = (change: Change): string | null => {
  const { before, after, dependenciesBefore } = change
  const sides = compare(before, after)
  const { removed, changed, added } = sides
  if (['table', 'type'].some((kind) => of(kind, removed, changed, added).length > 0)) return null

  const dropped = droppedFunctions(sides, before, dependenciesBefore)
  const dependent = dependenciesBefore.filter(({ on }) => dropped.has(on))
  if (dependent.some(({ kind }) => kind === 'other')) return null
  const withDependent = (kind: 'policy' | 'trigger') => {
    const leaning = new Set(dependent.filter((found) => found.kind === kind).map(({ identity }) => identity))
    const isAltered = ({ identity, shape }: Item) =>
      kind === 'policy' && !leaning.has(identity) && before.get(itemKey(kind, identity))?.shape === shape
    const altered = of(kind, changed).filter(isAltered)
    const anew = new Set([
      ...of(kind, removed, changed)
        .filter((item) => !altered.includes(item))
        .map((item) => item.identity),
      ...leaning,
    ])
    const back = [...anew].flatMap((identity) => after.get(itemKey(kind, identity)) ?? [])
    return { drop: [...anew], altered, create: [...of(kind, added), ...back].map((item) => item.definition) }
  }
  const policies = withDependent('policy')
  const triggers = withDependent('trigger')

  const made = functionStatements(change, dropped)
  if (made === null) return null
  const alteredPolicies = policies.altered.map((item) => item.identity)
  const tables = [...policies.drop, ...alteredPolicies, ...triggers.drop, ...addedTo(sides)].map(tableOf)
  return [
    lockTables([...new Set([...tables, ...of('row security', changed, added).map((item) => item.identity)])]),
    ...policies.drop.map((identity) => `drop policy if exists ${identity}`),
    ...triggers.drop.map((identity) => `drop trigger if exists ${identity}`),
    // dependents first
    ...inOrder([...dropped], dependenciesBefore)
      .reverse()
      .map((identity) => `drop routine if exists ${identity}`),
    ...made,
    ...of('row security', changed, added).flatMap(rowSecurity),
    ...policies.altered.map((item) => alterPolicy(before.get(itemKey('policy', item.identity)), item)),
    ...policies.create,
    ...triggers.create,
    ...privileges(sides, before, after, dropped),
    ...rows(sides),
    ...bookkeeping(sides),
  ].join(';\n')
}

/** Replaces a function only if its definition changed, and its comment only if the comment changed, since each statement writes a row of the catalog. */
const functionStatements = (
  { before, after, dependenciesBefore, dependenciesAfter, textOf }: Change,
  dropped: ReadonlySet<string>,
): string[] | null => {
  const statements: string[] = []
  for (const identity of inOrder(changedFunctions(before, after, dependenciesBefore), dependenciesAfter)) {
    const found = textOf(identity)
    if (!found?.text) return null
    const key = itemKey('function', identity)
    const [body, comment] = dropped.has(identity) ? [] : (before.get(key)?.definition.split(' ') ?? [])
    const [newBody, newComment] = after.get(key)?.definition.split(' ') ?? []
    if (body !== newBody) statements.push(found.text)
    if (comment !== newComment) statements.push(found.comment)
  }
  return statements
}

/** The `create policy` statement and the `comment on policy` statement; the second is empty where there is no comment. */
const partsOf = ({ identity, definition }: Item): readonly [string, string] => {
  const at = definition.lastIndexOf(`; comment on policy ${identity} is `)
  return at < 0 ? [definition, ''] : [definition.slice(0, at), definition.slice(at + 2)]
}

/** Changes roles and expressions with `alter policy`: to drop and create the policy would rewrite its row, its comment and all its dependencies. */
const alterPolicy = (before: Item | undefined, after: Item): string => {
  const [statement, comment] = partsOf(after)
  const made = statement.slice(`create policy ${after.identity}`.length)
  const altered = `alter policy ${after.identity}${made.replace(/^ as [a-z]+ for [a-z]+/, '')}`
  return before && partsOf(before)[1] === comment
    ? altered
    : [altered, comment || `comment on policy ${after.identity} is null`].join(';\n')
}

const addedTo = ({ added }: Sides) => [...of('policy', added), ...of('trigger', added)].map((item) => item.identity)

/** Locks all tables in one statement, in the order in which requests lock them (parents first), to avoid deadlocks: see lockTables of policies.ts. */
const lockTables = (names: readonly string[]): string => `do $locks$
declare names text;
begin
  select string_agg(t.oid::regclass::text, ', ' order by t.oid) into names
    from pg_catalog.pg_class t where t.oid = any (array[${names.map((name) => `to_regclass(${escapeLiteral(name)})`).join(', ')}]::oid[]);
  if names is not null then execute 'lock table ' || names || ' in access exclusive mode'; end if;
end $locks$`

const rowSecurity = ({ identity, definition }: Item): string[] => {
  const [enabled, ...forced] = definition.split(' ')
  return [
    `alter table ${identity} ${enabled} row level security`,
    `alter table ${identity} ${forced.join(' ')} row level security`,
  ]
}

type Privilege = readonly [privilege: string, grantee: string, isGrantable: boolean]

const privilegesOf = (item: Item | undefined) => (item ? (JSON.parse(item.definition) as Privilege[]) : [])

/** Splits the identity of a privilege, such as "function api.f(uuid)" or "column name app.users", into the object after `on` and the list of columns before it. */
const target = (identity: string): { columns: string; on: string } => {
  const [kind = '', ...rest] = identity.split(' ')
  const name = rest.join(' ')
  if (kind === 'function') return { columns: '', on: `routine ${name}` }
  if (kind !== 'column') return { columns: '', on: `${kind} ${name}` }
  const space = name.lastIndexOf(' ')
  return { columns: ` (${name.slice(0, space)})`, on: `table ${name.slice(space + 1)}` }
}

const grant = (identity: string, [privilege, grantee, isGrantable]: Privilege): string => {
  const { columns, on } = target(identity)
  return `grant ${privilege}${columns} on ${on} to ${grantee}${isGrantable ? ' with grant option' : ''}`
}

const privileges = (
  { removed, changed, added }: Sides,
  before: State,
  after: State,
  dropped: ReadonlySet<string>,
): string[] => {
  const isDropped = ({ identity }: Item) => dropped.has(identity.replace(/^function /, ''))
  const revokes: string[] = []
  const grants = new Set<string>()
  const giveAll = (item: Item) => {
    for (const one of privilegesOf(item)) grants.add(grant(item.identity, one))
  }
  for (const item of of('privileges', removed, changed).filter((one) => !isDropped(one))) {
    const key = itemKey('privileges', item.identity)
    const stays = new Set(privilegesOf(after.get(key)).map(String))
    const gone = privilegesOf(before.get(key)).filter((one) => !stays.has(String(one)))
    const { columns, on } = target(item.identity)
    revokes.push(...gone.map(([privilege, grantee]) => `revoke ${privilege}${columns} on ${on} from ${grantee}`))
    // revoking a privilege on a table also revokes it on each column, so grants on columns are repeated
    if (gone.length > 0 && item.identity.startsWith('table ')) {
      const columnsOfIt = [...after.values()].filter(
        (one) => one.kind === 'privileges' && one.identity.startsWith('column ') && target(one.identity).on === on,
      )
      for (const column of columnsOfIt) giveAll(column)
    }
  }
  for (const item of of('privileges', changed, added)) giveAll(item)
  for (const item of after.values()) if (item.kind === 'privileges' && isDropped(item)) giveAll(item)
  return [...revokes, ...grants]
}

/** Statements for rows of the registries, whose identity is the table and the row: "internal.user_data {json}". */
const rows = ({ removed, added }: Sides): string[] => {
  const parts = ({ identity }: Item) => {
    const space = identity.indexOf(' ')
    return { table: identity.slice(0, space), json: `${escapeLiteral(identity.slice(space + 1))}::jsonb` }
  }
  return [
    ...of('row', removed)
      .map(parts)
      .map(({ table, json }) => `delete from ${table} r where to_jsonb(r) = ${json}`),
    ...of('row', added)
      .map(parts)
      .map(
        ({ table, json }) => `insert into ${table} select r.* from jsonb_populate_record(null::${table}, ${json}) r`,
      ),
  ]
}

/** Updates the loader's records in schema ops: files, the objects that each made, the privileges that each granted. */
const bookkeeping = ({ removed, changed, added }: Sides): string[] => {
  const record = (table: string, columns: readonly string[], items: readonly Item[]) =>
    items.map((item) => {
      const path = escapeLiteral(item.identity)
      const values = columns.map((column, index) => `e ->> ${index} as ${escapeIdentifier(column)}`).join(', ')
      return `insert into ops.${table} (path, ${columns.join(', ')})
  select ${path}, r.* from (select ${values} from json_array_elements(${escapeLiteral(item.definition)}::json) e) r`
    })
  const forget = (table: string, items: readonly Item[]) =>
    items.length === 0
      ? []
      : [`delete from ops.${table} where path in (${items.map((item) => escapeLiteral(item.identity)).join(', ')})`]
  const files = of('file', changed, added).map(
    ({ identity, definition }) => `(${escapeLiteral(identity)}, ${escapeLiteral(definition)})`,
  )
  return [
    ...(files.length === 0
      ? []
      : [
          `insert into ops.files (path, hash) values ${files.join(', ')}
  on conflict (path) do update set hash = excluded.hash, applied_at = now()`,
        ]),
    ...forget('objects', of('objects', removed, changed)),
    ...record('objects', ['kind', 'identity'], of('objects', changed, added)),
    ...forget('grants', of('grants', removed, changed)),
    ...record('grants', ['kind', 'identity', 'columns', 'grantee', 'privilege'], of('grants', changed, added)),
    ...forget('files', of('file', removed)),
  ]
}
