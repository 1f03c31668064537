import { PgSimplifyInflectionPreset } from '@graphile/simplify-inflection'
import fc from 'fast-check'
import { buildInflection } from 'postgraphile/graphile-build'
import type { GraphQLObjectType } from 'postgraphile/graphql'
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber'
import { afterAll, describe, expect, test } from 'vitest'
import { targetOf } from '#server/database/cluster.ts'
import { createConnections } from '#server/graphql/connections.ts'
import { ofCatalog } from '#server/graphql/messages.ts'
import {
  camelCase,
  constantCase,
  distinctPluralize,
  planNames,
  singularize,
  upperCamelCase,
} from '#server/graphql/naming.ts'
import { buildSchema } from '#server/graphql/schema.ts'
import { shapeOf } from '#server/graphql/shape.ts'
import { ask, dataFor, graphqlProject } from '#test/support/graphql.ts'
import { type Project, startHarness } from '#test/support/harness.ts'
import { sized } from '#test/support/sized.ts'

const harness = await startHarness()
const connections = createConnections()
afterAll(() => connections.close())

const name = fc.stringMatching(/^[a-z][a-z0-9_]{0,20}$/)

describe('the rules', () => {
  const inflection = buildInflection({ extends: [PostGraphileAmberPreset, PgSimplifyInflectionPreset] })
  const odd = fc.oneof(
    name,
    fc.stringMatching(
      /^(ox|axis|box|fish|datum|person|child|status|bus|1st|2nd|11th|x1|input|patch|user)(_[a-z0-9]{1,8}){0,3}s?$/,
    ),
    fc.stringMatching(/^[A-Za-z][A-Za-z0-9]{0,20}(-[a-z_]{1,8}){0,2}$/),
  )
  const rules = { camelCase, upperCamelCase, constantCase, singularize, distinctPluralize }
  test.each(Object.keys(rules) as (keyof typeof rules)[])('of %s are the generator’s', (rule) => {
    const theirs = inflection[rule] as unknown as (text: string) => string
    fc.assert(
      fc.property(odd, (text) => {
        expect(rules[rule](text), text).toBe(theirs(text))
      }),
      { numRuns: sized(500, 20_000) },
    )
  })
})

type Definition = { name: string; columns: { name: string; type: string; unique?: boolean; references?: object }[] }

const define = async (project: Project, definitions: readonly Definition[]) => {
  for (const definition of definitions)
    await project.as(
      'app_admin',
      { 'app.caller': 'developer', 'app.developer_id': project.developer.id, 'app.project_id': project.id },
      'select internal.collection_create($1, false)',
      [JSON.stringify(definition)],
    )
}

/** The schema of a project's database, made here. */
const schemaOf = async (project: Project) => {
  const { services } = harness.running
  const target = targetOf(services.control.cluster, project.database, 'app_dashboard', services.secrets)
  const connection = connections.request(
    target,
    { projectId: project.id, developerId: project.developer.id, sessionId: '' },
    ofCatalog,
  )
  const shape = await shapeOf(connection)
  return { ...(await buildSchema(connection, shape.tables)), shape }
}

/** All that is wrong with the names of a project's collections: nothing is missing, nothing is another's. */
const wrongIn = async (project: Project): Promise<string[]> => {
  const { schema, problems, shape } = await schemaOf(project)
  const wrong = [...problems]
  const query = schema.getQueryType()?.getFields() ?? {}
  const types = new Set<string>()
  for (const [table, { list, type, columns }] of planNames(shape.tables)) {
    const made = schema.getType(type) as GraphQLObjectType | undefined
    if (String(query[list]?.type) !== `${type}Connection`) wrong.push(`${table}: ${list} is ${query[list]?.type}`)
    if (types.has(type)) wrong.push(`${table}: ${type} is another's`)
    types.add(type)
    const fields = made?.getFields() ?? {}
    for (const [column, { field }] of columns) if (!fields[field]) wrong.push(`${table}.${column}: no ${type}.${field}`)
  }
  for (const [table, type] of ours) {
    if (String(query[table]?.type) !== `${type}Connection`) wrong.push(`ours: ${table} is ${query[table]?.type}`)
  }
  return wrong
}

/** Our own lists, as they are without any collection. */
const ours: [string, string][] = []
const bare = await graphqlProject(harness)
for (const [field, { type }] of Object.entries((await schemaOf(bare)).schema.getQueryType()?.getFields() ?? {})) {
  const [, of] = /^(\w+)Connection$/.exec(String(type)) ?? []
  if (of) ours.push([field, of])
}

const text = (names: string) => names.split(' ').map((column) => ({ name: column, type: 'text' }))
const pairs: readonly (readonly [string, ...string[]])[] = [
  // what is one of ours in the singular, the plural or with a suffix
  ...'subscription flag message block group_member xp_total currency_balance push_template media_folder flag_value push_token users user_connection user_edge user_condition user_order_by user_input user_patch user_base_input flag_by_key flag_by_keys'
    .split(' ')
    .map((one) => [one] as const),
  ['region', 'regions'],
  ['person', 'people'],
  ['child', 'children'],
  ['order_item', 'order_items'],
  ['class', 'classes'],
  ['index', 'indices', 'indexes'],
  ['data', 'datum'],
  ['stat', 'stats', 'status', 'statuses'],
  ['a1b', 'a_1b'],
  ['a_b', 'a__b', 'ab'],
  ['plant', 'plant_connection', 'plant_condition', 'plant_by_title'],
  [
    'query',
    'page_info',
    'node',
    'json',
    'uuid',
    'date',
    'cursor',
    'int_connection',
    'interval',
    'interval_input',
    'float',
    'boolean',
    'string',
    'big_int',
    'datetime',
    'point',
    'mutation',
  ],
  ['collection_users', 'collection_2_users', 'propertie', 'display_name'],
]

test('every name that another makes the same is in the schema, under a name of its own', async () => {
  const project = await graphqlProject(harness)
  const columns = text('a1 a_1 x_y x__y title primary_key user__id id_ users nodes')
  await define(
    project,
    pairs.flat().map((one) => ({
      name: one,
      columns: one === 'plant' ? [...columns, { name: 'title_', type: 'text', unique: true }] : text('a1 a_1'),
    })),
  )
  expect(await wrongIn(project)).toEqual([])
})

test('relations get names that no column and no other relation has', async () => {
  const project = await graphqlProject(harness)
  const to = (column: string, collection: string) => ({ name: column, type: 'uuid', references: { collection } })
  await define(project, [
    { name: 'plants', columns: text('title') },
    {
      name: 'leaves',
      columns: [
        ...text('plant users title'),
        to('plant_id', 'plants'),
        to('plant__id', 'plants'),
        to('plant_uuid', 'plants'),
        to('other', 'plants'),
        to('parent_id', 'leaves'),
        to('child_id', 'leaves'),
      ],
    },
    { name: 'leafs', columns: [to('plant_id', 'plants'), ...text('leaves')] },
  ])
  const { schema, problems } = await schemaOf(project)
  expect(problems).toEqual([])
  const relations = (type: string) =>
    Object.values((schema.getType(type) as GraphQLObjectType).getFields())
      .filter((field) => /^(Plant|Leaf|User|Collection\w*Leaf)(Connection)?!?$/.test(String(field.type)))
      .map((field) => `${field.name}: ${field.type}`)
      .sort()
  expect(relations('Leaf')).toMatchInlineSnapshot(`
    [
      "child: Leaf",
      "childLeaves: LeafConnection!",
      "columnPlant_: Plant",
      "parent: Leaf",
      "parentLeaves: LeafConnection!",
      "plantByOther: Plant",
      "plantByPlantId: Plant",
      "plantByPlantUuid: Plant",
      "user: User",
    ]
  `)
  expect(relations('Plant')).toMatchInlineSnapshot(`
    [
      "collectionLeavesByPlantId: CollectionLeafConnection!",
      "leavesByColumnPlantId: LeafConnection!",
      "leavesByOther: LeafConnection!",
      "leavesByPlantId: LeafConnection!",
      "leavesByPlantUuid: LeafConnection!",
      "user: User",
    ]
  `)
})

test('no two names are planned the same, whatever the tables are', () => {
  const table = fc.record({
    name,
    keys: fc.array(name, { maxLength: 2 }),
    columns: fc.uniqueArray(name, { maxLength: 5 }),
    graphql_name: fc.option(fc.constantFrom('users', 'collectionUsers', 'a', 'xs'), { freq: 4 }),
    ours: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.uniqueArray(table, { maxLength: 20, selector: (one) => `${one.ours} ${one.name}` }), (tables) => {
      const plan = planNames(
        tables.map((one) => ({
          ...one,
          columns: one.ours ? [] : one.columns.map((column) => ({ name: column, graphql_name: null })),
        })),
      )
      const planned = [...plan.values()]
      expect(plan.size).toBe(tables.filter((one) => !one.ours).length)
      expect(new Set(planned.map(({ list }) => list)).size).toBe(planned.length)
      expect(new Set(planned.map(({ type }) => type)).size).toBe(planned.length)
      for (const { columns } of planned)
        expect(new Set([...columns.values()].map(({ field }) => field)).size).toBe(columns.size)
      // what was told stays, once it is kept
      const again = planNames(
        tables.map((one) => ({
          ...one,
          graphql_name: one.ours ? null : (plan.get(one.name)?.list ?? null),
          columns: one.ours
            ? []
            : one.columns.map((column) => ({
                name: column,
                graphql_name: plan.get(one.name)?.columns.get(column)?.field ?? null,
              })),
        })),
      )
      expect(again).toEqual(plan)
    }),
    { numRuns: sized(50, 5000) },
  )
})

test('whatever the names are, nothing is missing', async () => {
  const project = await graphqlProject(harness)
  const word = fc.constantFrom(
    'user',
    'users',
    'flag',
    'a',
    'a1',
    '1',
    's',
    'status',
    'by',
    'id',
    'connection',
    'person',
    'people',
    'x',
  )
  const joined = fc
    .tuple(word, fc.constantFrom('', '_', '__'), word, fc.constantFrom('', '_', 's'), fc.constantFrom('', 'key', '2'))
    .map((parts) => parts.join('').replace(/^[0-9_]+/, ''))
    .filter((one) => /^[a-z]/.test(one) && one.length > 0)
  const named = fc.uniqueArray(fc.oneof(joined, name), { minLength: 8, maxLength: 8 })
  const definitions = fc.tuple(named, fc.uniqueArray(fc.oneof(joined, name), { minLength: 1, maxLength: 8 }))
  const reserved = new Set(
    (await project.sql(`select word from pg_get_keywords() where catcode in ('R', 'T')`)).map(({ word: one }) => one),
  )
  for (const one of [
    'id',
    'user_id',
    'group_id',
    'created_at',
    'updated_at',
    'deleted_at',
    'tableoid',
    'xmin',
    'cmin',
    'xmax',
    'cmax',
    'ctid',
  ])
    reserved.add(one)
  const isFree = (one: string) => !reserved.has(one)
  await fc.assert(
    fc.asyncProperty(definitions, async ([collections, columns]) => {
      await project.sql(`do $$ declare t text; begin
        for t in select name from app.collections loop execute format('drop table collections.%I cascade', t); end loop;
        delete from app.collection_columns; delete from app.collections; end $$`)
      const chosen = collections.filter(isFree)
      await define(
        project,
        chosen.map((one, n) => ({
          name: one,
          columns: [
            ...columns
              .filter(isFree)
              .map((column, at) => ({ name: column, type: 'text', unique: at === 0 && n % 2 === 0 })),
            ...(n > 0 &&
            !columns.includes(`${chosen[n - 1]}_id`) &&
            `${chosen[n - 1]}_id` !== 'user_id' &&
            `${chosen[n - 1]}_id` !== 'group_id'
              ? [{ name: `${chosen[n - 1]}_id`.slice(0, 60), type: 'uuid', references: { collection: chosen[n - 1] } }]
              : []),
          ],
        })),
      )
      expect(await wrongIn(project), chosen.join(' ')).toEqual([])
    }),
    // a schema takes seconds: shrinking would take minutes
    { numRuns: sized(1, 40), endOnFailure: true },
  )
}, 300_000)

describe('the answer of the definition', () => {
  test('tells the name, which stays when the other collection has gone', async () => {
    const project = await graphqlProject(harness)
    const made = async (body: object) => (await project.admin.post('/collections', body)).data
    expect((await made({ name: 'region', columns: text('a1 a_1') })).graphql_name).toBe('regions')
    const second = await made({ name: 'regions', columns: text('x_y') })
    expect(second.graphql_name).toBe('collectionRegions')
    expect(await dataFor(project, '{ regions { nodes { a1 columnA1 } } collectionRegions { nodes { xY } } }')).toEqual({
      regions: { nodes: [] },
      collectionRegions: { nodes: [] },
    })
    const added = await project.admin.post('/collections/regions/columns', { name: 'x__y', type: 'text' })
    expect([added.status, added.data.graphql_name]).toEqual([201, 'columnXY'])
    const renamed = await project.admin.patch('/collections/regions/columns/x__y', { name: 'z' })
    expect(renamed.data.graphql_name).toBe('z')

    expect((await project.admin.delete('/collections/region?confirm=region')).status).toBe(200)
    const { data } = await project.admin.get('/collections/regions')
    expect(data.graphql_name).toBe('collectionRegions')
    expect(data.columns.map(({ graphql_name }: { graphql_name: string }) => graphql_name)).toEqual(['xY', 'z'])
    await dataFor(project, '{ collectionRegions { nodes { xY z } } }')
    expect((await ask(project, '{ regions { totalCount } }')).codes).toEqual(['INVALID_QUERY'])
  })

  test('tells the names of collections that were made before there were any, once it is asked', async () => {
    const project = await graphqlProject(harness)
    await define(project, [
      { name: 'person', columns: text('a1 a_1') },
      { name: 'people', columns: text('x') },
    ])
    expect(await project.sql('select from app.graphql_names')).toEqual([])
    // two at once make them once
    const lists = await Promise.all([project.admin.get('/collections'), project.admin.get('/collections')])
    for (const { data } of lists)
      expect(
        data.map((one: any) => [one.name, one.graphql_name, one.columns.map((column: any) => column.graphql_name)]),
      ).toEqual([
        ['people', 'collectionPeople', ['x']],
        ['person', 'people', ['a1', 'columnA1']],
      ])
    expect(await project.sql('select count(*)::int as n from app.graphql_names')).toEqual([{ n: 5 }])
    // a document that is promoted has none
    const { data: document } = await project.admin.get('/promotion/export')
    expect(JSON.stringify(document)).not.toContain('graphql_name')
  })
})
