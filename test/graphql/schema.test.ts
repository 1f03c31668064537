import { expect, test } from 'vitest'
import { ask, dataFor, graphqlProject, innermost, introspection, type Named } from '#test/support/graphql.ts'
import { startHarness } from '#test/support/harness.ts'

/** What GraphQL shows is what the role may read, and nothing else: the whole schema is compared with the grants. */
const harness = await startHarness()
const project = await graphqlProject(harness)

type Arg = { name: string; type: Named }
type Type = {
  kind: string
  name: string
  fields: { name: string; args: Arg[]; type: Named }[] | null
  inputFields: Arg[] | null
  enumValues: { name: string }[] | null
}

const camel = (name: string) => name.replace(/_+([a-z0-9])/g, (_all, letter: string) => letter.toUpperCase())
const columnField = (column: string) => (column === 'app_user_id' ? 'userId' : camel(column))
const shownAs: Readonly<Record<string, string>> = {
  onboarding_progress: 'onboardingProgresses',
  collection_indexes: 'collectionIndices',
  // tables whose comment gives them another name
  campaigns: 'pushCampaigns',
  campaign_counts: 'pushCounts',
  campaign_deliveries: 'pushDeliveries',
}

/** The allow-list: columns by table, from the catalog. */
const granted = async () => {
  const rows = await project.sql<{ table: string; column: string }>(
    `select c.relname as "table", a.attname as "column"
       from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relnamespace in ('app'::regnamespace, 'collections'::regnamespace) and c.relkind in ('r', 'p', 'v', 'm') and not c.relispartition
        and has_column_privilege('app_dashboard', c.oid, a.attnum, 'select')`,
  )
  const tables = new Map<string, Set<string>>()
  for (const { table, column } of rows) tables.set(table, (tables.get(table) ?? new Set()).add(column))
  return tables
}

test('every type, field, argument and value is of a column that the role may read', async () => {
  await project.admin.post('/collections', {
    name: 'notes',
    columns: [
      { name: 'title', type: 'text', unique: true },
      { name: 'points', type: 'bigint' },
    ],
  })
  const { __schema: found } = await dataFor(project, introspection)
  expect([found.queryType.name, found.mutationType, found.subscriptionType]).toEqual(['Query', null, null])
  const types = new Map<string, Type>(found.types.map((type: Type) => [type.name, type]))
  const tables = await granted()
  expect(tables.size).toBeGreaterThan(90)

  const query = types.get('Query') as Type
  const lists = new Map(
    query.fields?.flatMap(({ name, type }) => {
      const of = innermost(type).name ?? ''
      return of.endsWith('Connection') ? [[name, of.slice(0, -'Connection'.length)] as const] : []
    }),
  )
  const fieldOf = (table: string) => shownAs[table] ?? camel(table)
  expect([...lists.keys()].sort()).toEqual([...tables.keys()].map(fieldOf).sort())

  const known = new Set(['Query', 'PageInfo'])
  const tableOf = new Map<string, string>()
  for (const table of tables.keys()) tableOf.set(lists.get(fieldOf(table)) ?? '', table)
  const isLeaf = (type: Named) => ['SCALAR', 'ENUM'].includes(innermost(type).kind)
  for (const [node, table] of tableOf) {
    const columns = tables.get(table) as Set<string>
    const fields = new Set([...columns].map(columnField))
    const orders = new Set([...columns].map((column) => (column === 'app_user_id' ? 'USER_ID' : column.toUpperCase())))
    for (const name of [node, `${node}Connection`, `${node}Edge`, `${node}Condition`, `${node}OrderBy`]) known.add(name)

    const leaves = types
      .get(node)
      ?.fields?.filter(({ type }) => isLeaf(type))
      .map(({ name }) => name)
    expect(leaves?.sort(), `fields of ${node}`).toEqual([...fields].sort())
    for (const { type, name } of types.get(node)?.fields ?? []) {
      const of = innermost(type)
      if (!isLeaf(type)) expect(tableOf.has(of.name?.replace(/Connection$/, '') ?? ''), `${node}.${name}`).toBe(true)
    }
    for (const { name } of types.get(`${node}Condition`)?.inputFields ?? [])
      expect(fields.has(name), `condition ${node}.${name}`).toBe(true)
    for (const { name } of types.get(`${node}OrderBy`)?.enumValues ?? []) {
      if (/^(NATURAL|PRIMARY_KEY_ASC|PRIMARY_KEY_DESC)$/.test(name)) continue
      expect(orders.has(name.replace(/_(ASC|DESC)$/, '')), `order ${node}.${name}`).toBe(true)
    }
  }
  for (const { name, args, type } of query.fields ?? []) {
    const table = tableOf.get(innermost(type).name ?? '')
    if (!table) continue
    const fields = new Set([...(tables.get(table) ?? [])].map(columnField))
    for (const arg of args) expect(fields.has(arg.name), `${name}(${arg.name})`).toBe(true)
  }
  const others = [...types.values()].filter(
    ({ name, kind }) => !known.has(name) && !name.startsWith('__') && kind !== 'SCALAR',
  )
  expect(others.map(({ name }) => name)).toEqual([])
})

test('names read well', async () => {
  const { __schema: found } = await dataFor(project, introspection)
  const names = found.types.flatMap((type: Type) => [
    type.name,
    ...(type.fields ?? []).map(({ name }) => `${type.name}.${name}`),
  ])
  // app_sessions is the name of a table
  expect(
    names.filter(
      (name: string) =>
        /(^|\.)app[A-Z]|App[A-Z]|rowId|nodeId|collections[A-Z]/.test(name) &&
        !/appSession|AppSession|appVersion|appliesT?o?/.test(name),
    ),
  ).toEqual([])
  for (const name of [
    'User.id',
    'User.userStreaks',
    'UserStreak.user',
    'UserStreak.userId',
    'ReferralClaim.referralCode',
    'Note.title',
  ])
    expect(names).toContain(name)
  for (const text of ['409 ', '400 ']) expect(JSON.stringify(found)).not.toContain(`"${text}`)
})

test('the role reads no more than administrators do, writes nothing, and sees nothing named like a secret', async () => {
  const offenders = await project.sql(
    `select c.relname || '.' || a.attname as name, has_column_privilege('app_admin', c.oid, a.attnum, 'select') as is_read,
            a.atttypid = 'bytea'::regtype or a.attname ~ '(secret|password|token|hash|seal|digest|credential|signature|nonce|salt|verifier|_key_id)' as is_suspect
       from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      where c.relnamespace in ('app'::regnamespace, 'internal'::regnamespace, 'ops'::regnamespace) and c.relkind in ('r', 'p', 'v', 'm')
        and has_column_privilege('app_dashboard', c.oid, a.attnum, 'select')`,
  )
  expect(offenders.filter(({ is_read }) => !is_read)).toEqual([])
  expect(
    offenders
      .filter(({ is_suspect }) => is_suspect)
      .map(({ name }) => name)
      .sort(),
  ).toEqual(['ai_invocations.input_tokens', 'ai_invocations.output_tokens', 'ai_prompts.max_tokens'])
  expect(
    await project.sql(
      `select c.relname from pg_class c
        where c.relnamespace in ('app'::regnamespace, 'collections'::regnamespace) and c.relkind in ('r', 'p')
          and (has_any_column_privilege('app_dashboard', c.oid, 'insert, update')
               or has_table_privilege('app_dashboard', c.oid, 'insert, update, delete, truncate, trigger'))`,
    ),
  ).toEqual([])
  for (const table of [
    'user_passwords',
    'user_codes',
    'user_sessions',
    'push_tokens',
    'webhook_secrets',
    'settings',
    'idempotency_keys',
  ])
    await expect(project.as('app_dashboard', {}, `select from app.${table}`)).rejects.toThrow(/permission denied/)
})

test('a column that is named like a secret stops the load until somebody decides', async () => {
  const own = await harness.project()
  const declare = (shown: string, columns = '') => own.sql(`select internal.graphql_declare('app.${shown}'${columns})`)
  const columns = async (table: string) =>
    (
      await own.sql<{ name: string }>(
        `select attname as name from pg_attribute
          where attrelid = 'app.${table}'::regclass and attnum > 0 and not attisdropped
            and has_column_privilege('app_dashboard', attrelid, attnum, 'select')`,
      )
    ).map(({ name }) => name)
  await own.sql(`
    create table app.vaults (id uuid primary key, recovery_token text, entry bytea, words text);
    alter table app.vaults enable row level security`)
  await expect(declare('vaults')).rejects.toThrow(
    `internal.graphql_declare('app.vaults'): recovery_token, entry looks like a secret: name it in "hidden", or in "plain"`,
  )
  await expect(declare('vaults', `, hidden => '{recovery_token}'`)).rejects.toThrow("app.vaults'): entry looks like")
  await expect(declare('vaults', `, hidden => '{recovery_token,seal}', plain => '{entry}'`)).rejects.toThrow(
    'app.vaults has not all of the columns',
  )
  expect(await columns('vaults')).toEqual([])
  await declare('vaults', `, hidden => '{recovery_token}', plain => '{entry}'`)
  expect(await columns('vaults')).toEqual(['id', 'entry', 'words'])
  await expect(declare('cellars')).rejects.toThrow('relation "app.cellars" does not exist')
})

test('rows of a table that is not shown are in no relation', async () => {
  expect((await ask(project, '{ users { nodes { pushTokens { totalCount } } } }')).codes).toEqual(['INVALID_QUERY'])
  expect((await ask(project, '{ pushTokens { totalCount } }')).codes).toEqual(['INVALID_QUERY'])
  expect((await ask(project, '{ webhooks { nodes { targetUrl secretId } } }')).codes).toEqual([
    'INVALID_QUERY',
    'INVALID_QUERY',
  ])
})
