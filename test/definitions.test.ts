import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { OfDefinition, Route } from '#server/http/route.ts'
import { invalidCode } from '#server/http/route.ts'
import { type Answer, startHarness } from '#test/support/harness.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

/** One contract for every entity that developers define: it reads the routes and the registry, so that a new entity is tested by being there. */
const harness = await startHarness()
// the dates of the examples are still to come
harness.setTime('2026-11-21T12:00:00Z')
const project = await harness.project()
const stranger = await harness.project()

type Registered = {
  kind: string
  table_name: string
  key_column: string | null
  found_by: string
  not_found_code: string
  max_count: number | null
  fixed_columns: string[]
  state_columns: string[]
}
const registered: Registered[] = await project.sql('select * from internal.definitions order by create_order, kind')

const routes = harness.running.areas.flatMap((area) =>
  area.routes.flatMap((route) => (route.definition ? [{ area, route, ...route.definition }] : [])),
)
type Entry = (typeof routes)[number]
const entry = (kind: string, verb: OfDefinition['verb']): Entry | undefined =>
  routes.find((one) => one.kind === kind && one.verb === verb)
const pathOf = (route: Route) => route.path.replace('/admin/projects/:projectId', '').replace(/\/:[A-Za-z]+$/, '')

type Schema = {
  type?: string
  anyOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  minLength?: number
  maxLength?: number
  maxItems?: number
  enum?: unknown[]
  pattern?: string
  format?: string
}
const schemaOf = (route: Route) =>
  z.toJSONSchema(route.body ?? z.object({}), { io: 'input', unrepresentable: 'any' }) as Schema
const isNullable = (schema: Schema) => schema.anyOf?.some(({ type }) => type === 'null') ?? false
const coreOf = (schema: Schema): Schema => schema.anyOf?.find(({ type }) => type !== 'null') ?? schema
const beyond = 9_007_199_254_740_991

/** Values that a field does not take, by its declared bounds. */
const wrongOf = (declared: Schema): unknown[] => {
  const { type, minimum, maximum, exclusiveMinimum, minLength, maxLength, maxItems, enum: known } = coreOf(declared)
  if (type === 'boolean') return ['true', 1, {}]
  if (type === 'array') return [{}, 'text', ...(maxItems && maxItems < 300 ? [Array(maxItems + 1).fill('a')] : [])]
  if (type === 'object') return [[], 'text', 5]
  if (type === 'integer' || type === 'number')
    return [
      ...['text', true, {}],
      ...(type === 'integer' ? [1.5] : []),
      ...(minimum !== undefined && minimum > -beyond ? [minimum - 1] : []),
      ...(exclusiveMinimum !== undefined ? [exclusiveMinimum] : []),
      ...(maximum !== undefined && maximum < beyond ? [maximum + 1] : []),
    ]
  if (type !== 'string') return []
  return [
    ...[5, true, {}],
    ...(minLength ? ['x'.repeat(minLength - 1)] : []),
    ...(maxLength ? ['x'.repeat(maxLength + 1)] : []),
    ...(known ? ['no such value'] : []),
    ...(coreOf(declared).pattern || coreOf(declared).format ? ['~ nothing of the kind ~'] : []),
  ]
}

/** Values at the bounds of a field. */
const edgesOf = (declared: Schema): unknown[] => {
  const { type, minimum, maximum, maxLength, minLength, enum: known, pattern, format } = coreOf(declared)
  if (type === 'boolean') return [true, false]
  if (type === 'integer' || type === 'number') return [minimum, maximum].filter((edge) => edge !== undefined)
  if (known) return known
  if (type !== 'string' || pattern || format) return []
  return [minLength, maxLength].filter((length) => length !== undefined).map((length) => 'x'.repeat(length))
}

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`

let made = 0
/** A creation's body with a key that is not taken. */
const bodyOf = (of: Registered): Record<string, any> => {
  made += 1
  const body: Record<string, unknown> = { ...(entry(of.kind, 'create')?.route.example as object) }
  const key = of.key_column
  const fresh = /^[A-Z]/.test(String(body[key ?? ''])) && key === 'code' ? `C${made}` : `${body[key ?? '']}-${made}`
  return key ? { ...body, [key]: fresh } : body
}

const refused = (answer: Answer, status: number, code: string) =>
  expect([answer.status, answer.error?.code], answer.text).toEqual([status, code])
/** What was sent as answers show it: times have milliseconds and are in UTC. */
const shown = (sent: object) =>
  Object.fromEntries(
    Object.entries(sent).map(([name, value]) => [
      name,
      typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value) ? new Date(value).toISOString() : value,
    ]),
  )
const bare = ({ updated_at: _, ...row }: Record<string, unknown>) => row
const words = (kind: string) => ({
  at: pathOf((entry(kind, 'list') ?? entry(kind, 'get') ?? entry(kind, 'delete'))!.route),
  invalid: invalidOf(kind),
})
const invalidOf = (kind: string) => {
  const found = entry(kind, 'update') ?? entry(kind, 'create')
  return found ? invalidCode(found.area, found.route, 'body') : 'VALIDATION_ERROR'
}

test('what is registered has routes, and what has routes is registered', () => {
  const kinds = [...new Set(routes.map(({ kind }) => kind))].sort()
  expect(kinds).toEqual(registered.map(({ kind }) => kind).sort())
})

/** Kinds whose creation and change are the common ones: the others are tested by their areas. */
const common = registered.filter(({ kind }) => entry(kind, 'create') && entry(kind, 'update'))

describe.each(common.map((of) => [of.kind, of] as const))('%s', (kind, of) => {
  const { at, invalid } = words(kind)
  const create = async (where = project) => {
    const body = bodyOf(of)
    const answer = await where.admin.post(at, body)
    expect(answer.status, answer.text).toBe(201)
    return { row: answer.data, id: of.found_by === 'key' ? answer.data[of.key_column ?? ''] : answer.data.id, body }
  }
  /** By the route that shows one, or from the list where there is none. */
  const read = async (id: string) =>
    entry(kind, 'get')
      ? (await project.admin.get(`${at}/${id}`)).data
      : (await project.admin.get(`${at}?limit=200`)).data.find((row: { id: string }) => row.id === id)
  const total = async () => (await project.admin.get(`${at}?limit=1`)).body.total as number

  test('is created with what was sent, read, listed, left alone by an empty change, and deleted', async () => {
    const before = await total()
    const { row, id, body } = await create()
    expect(row).toMatchObject(shown(body))
    expect(await read(id)).toEqual(row)
    if (of.key_column && of.found_by !== 'id')
      expect((await project.admin.get(`${at}/${encodeURIComponent(row[of.key_column])}`)).data).toEqual(row)
    const listed = await project.admin.get(`${at}?limit=200`)
    expect(listed.body).toMatchObject({ total: before + 1, offset: 0, limit: 200 })
    expect(listed.data).toContainEqual(row)
    expect((await project.admin.get(`${at}?limit=200&offset=${before + 1}`)).data).toEqual([])
    harness.advance(1)
    expect((await project.admin.patch(`${at}/${id}`, {})).data).toEqual(row)
    const example = entry(kind, 'update')?.route.example as object
    const changed = await project.admin.patch(`${at}/${id}`, example)
    expect(changed.data).toMatchObject(shown(example))
    expect(changed.data.updated_at > row.updated_at).toBe(true)
    expect((await project.admin.patch(`${at}/${id}`, example)).data).toEqual(changed.data)
    expect((await project.admin.delete(`${at}/${id}`)).data).toEqual({ deleted: true })
    for (const answer of [
      ...(entry(kind, 'get') ? [await project.admin.get(`${at}/${id}`)] : []),
      await project.admin.patch(`${at}/${id}`, example),
      await project.admin.delete(`${at}/${id}`),
    ])
      refused(answer, 404, of.not_found_code)
    expect(await total()).toBe(before)
  })

  test('takes fields within their bounds only, and refuses the others by name, changing nothing', async () => {
    const { row, id } = await create()
    const { properties = {}, required = [] } = schemaOf(entry(kind, 'create')!.route)
    const before = await total()
    for (const [field, declared] of Object.entries(properties)) {
      for (const value of [...wrongOf(declared), ...(required.includes(field) ? [undefined] : [])]) {
        const answer = await project.admin.post(at, { ...bodyOf(of), [field]: value })
        refused(answer, 400, invalid)
        expect(answer.error?.details.field.split('.')[0], answer.text).toBe(field)
      }
    }
    expect(await total()).toBe(before)
    const changeable = schemaOf(entry(kind, 'update')!.route).properties ?? {}
    for (const [field, declared] of Object.entries(changeable)) {
      for (const value of wrongOf(declared))
        refused(await project.admin.patch(`${at}/${id}`, { [field]: value }), 400, invalid)
    }
    expect(await read(id)).toEqual(row)
    for (const [field, declared] of Object.entries(changeable)) {
      for (const value of edgesOf(declared)) {
        const answer = await project.admin.patch(`${at}/${id}`, { [field]: value })
        // two fields may hold each other within narrower bounds
        if (answer.status === 200) expect(answer.data[field]).toEqual(value)
        else expect([400, 409], answer.text).toContain(answer.status)
        if (answer.status === 200) await project.admin.patch(`${at}/${id}`, { [field]: row[field] })
      }
    }
  })

  test('null clears what can be absent and is refused elsewhere; absent fields stay; unknown ones are ignored', async () => {
    const { row, id } = await create()
    for (const [field, declared] of Object.entries(schemaOf(entry(kind, 'update')!.route).properties ?? {})) {
      const answer = await project.admin.patch(`${at}/${id}`, { [field]: null })
      if (!isNullable(declared)) {
        refused(answer, 400, invalid)
        continue
      }
      if (answer.status === 200) expect(answer.data).toMatchObject({ ...bare(row), [field]: answer.data[field] })
      else refused(answer, 400, invalid)
      const back = await project.admin.patch(`${at}/${id}`, { [field]: row[field] })
      expect(bare(back.data), back.text).toEqual(bare(row))
    }
    const hostile = {
      id: crypto.randomUUID(),
      created_at: '2020-01-01T00:00:00Z',
      nonsense: 1,
      '"; drop table app.users --': 2,
    }
    const answer = await project.admin.patch(`${at}/${id}`, hostile)
    expect(bare(answer.data), answer.text).toEqual(bare(row))
    const more = await project.admin.post(at, { ...bodyOf(of), ...hostile })
    expect(more.status, more.text).toBe(201)
    expect(more.data.id).not.toBe(hostile.id)
    // what the schemas of the routes take away, SQL does not take either
    const state = await project.sql(`select to_jsonb(t) as row from ${of.table_name} t where id = $1`, [row.id])
    const fixed = [...of.fixed_columns, ...of.state_columns, 'id', 'created_at']
    const others = Object.fromEntries(fixed.map((name) => [name, state[0].row[name] === 1 ? 2 : '1']))
    await project.as('app_admin', { 'app.caller': 'developer' }, 'select api.definition_update($1, $2, $3)', [
      ...[kind, id, JSON.stringify(others)],
    ])
    expect(await project.sql(`select to_jsonb(t) as row from ${of.table_name} t where id = $1`, [row.id])).toEqual(
      state,
    )
  })

  test('a key is taken once', async () => {
    if (!of.key_column || !entry(kind, 'create')?.route.refusals?.[409]?.includes('CONFLICT')) return
    const { body } = await create()
    const answer = await project.admin.post(at, body)
    refused(answer, 409, 'CONFLICT')
    expect(answer.error?.details).toEqual({ field: of.key_column })
    const twice = bodyOf(of)
    const answers = await Promise.all(Array.from({ length: 4 }, () => project.admin.post(at, twice)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409])
  })

  test('fifty who create at once do not pass the limit together', async () => {
    if (of.max_count === null) return
    const { row, body } = await create(stranger)
    const columns = await stranger.sql(
      `select string_agg(quote_ident(attname), ', ') as list, string_agg('(n.r).' || quote_ident(attname), ', ') as fields
         from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
      [of.table_name],
    )
    const prefix = /^[A-Z]/.test(String(body[of.key_column ?? ''])) ? 'X' : 'x'
    const key = of.key_column ? `, '${of.key_column}', '${prefix}' || n` : ''
    await stranger.sql(
      `insert into ${of.table_name} (${columns[0].list})
       select ${columns[0].fields}
         from (select jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid()${key})) as r
                 from ${of.table_name} t,
                      generate_series(1, $2 - (select count(*)::int from ${of.table_name})) n
                where t.id = $1) n`,
      [row.id, of.max_count - 7],
    )
    const answers = await Promise.all(Array.from({ length: 50 }, () => stranger.admin.post(at, bodyOf(of))))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(7)
    const over = answers.find(({ status }) => status !== 201) as Answer
    refused(over, 409, 'LIMIT_REACHED')
    expect(over.error?.details).toEqual({ limit: of.max_count })
    expect((await stranger.admin.get(`${at}?limit=1`)).body.total).toBe(of.max_count)
  })

  test('one who changes it and one who deletes it at once come one after the other', async () => {
    const administrator = () => openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
    const example = entry(kind, 'update')?.route.example as object
    const first = await create()
    const deletion = await administrator()
    await deletion.query('select api.definition_delete($1, $2)', [kind, first.id])
    const changing = project.admin.patch(`${at}/${first.id}`, example)
    await untilBlocked(project)
    await deletion.commit()
    refused(await changing, 404, of.not_found_code)

    const second = await create()
    const change = await administrator()
    await change.query('select api.definition_update($1, $2, $3)', [kind, second.id, JSON.stringify(example)])
    const deleting = project.admin.delete(`${at}/${second.id}`)
    await untilBlocked(project)
    await change.commit()
    expect((await deleting).data).toEqual({ deleted: true })
  })

  test('every change is in the audit trail, with what it changed, and none that changed nothing', async () => {
    const { row, id } = await create()
    const example = entry(kind, 'update')?.route.example as Record<string, unknown>
    await project.admin.patch(`${at}/${id}`, example)
    await project.admin.patch(`${at}/${id}`, example)
    await project.admin.delete(`${at}/${id}`)
    const { data } = await project.admin.get(`/audit-events?target_id=${row.id}`)
    const actions = data.map(({ action }: { action: string }) => action.split('.')[1]).reverse()
    expect(actions).toEqual(['create', 'update', 'delete'])
    expect(data[1].actor).toMatchObject({ type: 'developer', id: project.developer.id })
  })

  test('belongs to its project, and to its developers alone', async () => {
    const { id } = await create()
    const { method } = entry(kind, 'update')!.route
    refused(await stranger.admin.patch(`${at}/${id}`, {}), 404, of.not_found_code)
    for (const client of [stranger.developer, project.app, project.server, harness.anyone, await project.user()]) {
      const one = `/admin/projects/${project.id}${at}/${id}`
      for (const answer of [await client.request(method, one, {}), await client.delete(one)])
        expect([401, 403, 404], answer.text).toContain(answer.status)
    }
    expect((await project.admin.patch(`${at}/${id}`, {})).status).toBe(200)
    for (const role of ['app_user', 'app_server', 'app_anon', 'app_worker'] as const)
      await expect(
        project.as(role, { 'app.caller': 'developer' }, 'select api.definition_delete($1, $2)', [kind, id]),
      ).rejects.toThrow(/permission denied/)
  })
})

describe('dynamic SQL', () => {
  const asAdministrator = (text: string, values: unknown[]) =>
    project.as('app_admin', { 'app.caller': 'developer' }, text, values)
  const hostile = [
    ...[
      '',
      ' ',
      '"',
      "'",
      '""',
      "''",
      '$1',
      '%I',
      '%s',
      '%',
      '\\',
      ';',
      '--',
      '/*',
      'null',
      'xp_rules',
      'app.xp_rules',
    ],
    ...[
      "x'; drop table app.xp_rules; --",
      'x"; drop table app.xp_rules; --',
      "xp_rule'",
      'xp_rule"',
      'XP_RULE',
      'xp_rule ',
    ],
    ...['internal.xp_rule_check', '(select 1)', 'id) values (1); --', '\u202e', 'ключ', 'a'.repeat(10_000)],
  ]
  const state = () =>
    project.sql(
      'select count(*)::int as count, md5(string_agg(r::text, null order by r.id)) as hash from app.xp_rules r',
    )

  test('knows no kind but those that are declared', async () => {
    for (const kind of hostile) {
      for (const call of ['definition_list($1)', "definition_get($1, 'a')", "definition_create($1, '{}')"])
        await expect(asAdministrator(`select api.${call}`, [kind])).rejects.toThrow('no definition is declared as')
      for (const call of ["definition_update($1, 'a', '{}')", "definition_delete($1, 'a')"])
        await expect(asAdministrator(`select api.${call}`, [kind])).rejects.toThrow('no definition is declared as')
    }
  })

  test('takes what callers send as values only', async () => {
    await project.admin.post('/xp/rules', { key: 'stays', name: 'Stays', event_name: 'stays', amount: 5 })
    const before = await state()
    for (const text of hostile) {
      for (const call of ["definition_get('xp_rule', $1)", "definition_delete('xp_rule', $1)"])
        await expect(asAdministrator(`select api.${call}`, [text]), text).rejects.toThrow('There is no such rule.')
      await asAdministrator("select api.definition_update('xp_rule', 'stays', $1)", [JSON.stringify({ [text]: text })])
      await asAdministrator("select api.definition_list('xp_rule', filter => $1)", [JSON.stringify({ [text]: text })])
      const named = await project.admin.patch('/xp/rules/stays', { name: text.slice(0, 200) || 'x' })
      expect(named.data?.name, named.text).toBe(text.slice(0, 200) || 'x')
    }
    expect((await project.admin.patch('/xp/rules/stays', { name: 'Stays' })).status).toBe(200)
    expect((await state())[0].count).toBe(before[0].count)
  })

  test('quotes what the catalog holds, whatever its name and its default', async () => {
    const column = 'Wéird "%I" \'$1\'; drop table app.xp_rules; --'
    const [{ made, again }] = await project
      .sql(
        `do $do$ begin
         execute format('alter table app.xp_boosts add column %I text default %L', ${literal(column)}, ${literal(column)});
         perform internal.definition_declare('xp_boost');
       end $do$`,
      )
      .then(() =>
        project.sql(
          `select r.row as made, (api.definition_update('xp_boost', 'Weird', jsonb_build_object($1::text, 'other'))).body -> 'data' as again
           from (select (api.definition_create('xp_boost', '{"name": "Weird", "multiplier": 2}')).body -> 'data' as row) r`,
          [column],
        ),
      )
    expect([made[column], again[column]]).toEqual([column, 'other'])
  })
})
