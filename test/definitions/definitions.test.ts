import { afterEach, describe, expect, test } from 'vitest'
import type { OfDefinition } from '#server/http/route.ts'
import { invalidCode } from '#server/http/route.ts'
import { edgesOf, isNullable, schemaOf, wrongOf } from '#test/support/field_bounds.ts'
import { type Answer, startHarness } from '#test/support/harness.ts'
import { expectRefusal } from '#test/support/refusals.ts'
import { openTransaction, untilBlocked } from '#test/support/transaction.ts'

/** One contract test for every entity that developers define: it reads the routes and the registry, so that a new entity is tested automatically. */
const harness = await startHarness()
// the dates of the examples are in the future at this time
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
  order_by: string[]
  is_descending: boolean
  fixed_columns: string[]
  state_columns: string[]
}
const registered: Registered[] = await project.sql('select * from internal.definitions order by create_order, kind')

const everyRoute = harness.running.areas.flatMap((area) => area.routes.map((route) => ({ area, route })))
const routes = everyRoute.flatMap((one) => (one.route.definition ? [{ ...one, ...one.route.definition }] : []))
type Verb = OfDefinition['verb']
type Entry = (typeof everyRoute)[number]
const declared = (kind: string, verb: Verb): Entry | undefined =>
  routes.find((one) => one.kind === kind && one.verb === verb)
const pathOf = (kind: string) =>
  (routes.find((one) => one.kind === kind)?.route.path ?? '')
    .replace('/admin/projects/:projectId', '')
    .replace(/\/:[A-Za-z]+$/, '')

/** Routes that an area declares itself instead of the common ones. A PUT creates or replaces a row. */
const methods = { create: ['POST'], list: ['GET'], get: ['GET'], update: ['PATCH', 'PUT'], delete: ['DELETE'] } as const
const own = (kind: string, verb: Verb): Entry | undefined => {
  const many = `/admin/projects/:projectId${pathOf(kind)}`
  const isOne = (path: string) => path.startsWith(`${many}/:`) && !path.slice(many.length + 2).includes('/')
  return everyRoute.find(
    ({ route }) =>
      (methods[verb] as readonly string[]).includes(route.method) &&
      (verb === 'create' || verb === 'list' ? route.path === many : isOne(route.path)),
  )
}
const entry = (kind: string, verb: Verb): Entry | undefined =>
  declared(kind, verb) ?? own(kind, verb) ?? (verb === 'create' ? own(kind, 'update') : undefined)

let made = 0
/** The body of a creation with a key that is not taken. */
const bodyOf = (of: Registered): Record<string, any> => {
  made += 1
  const body: Record<string, unknown> = { ...(entry(of.kind, 'create')?.route.example as object) }
  const key = of.key_column
  const fresh = /^[A-Z]/.test(String(body[key ?? ''])) && key === 'code' ? `C${made}` : `${body[key ?? '']}-${made}`
  return key ? { ...body, [key]: fresh } : body
}

/** The fields that were sent, as responses show them: times have milliseconds and are in UTC. */
const shown = (sent: object) =>
  Object.fromEntries(
    Object.entries(sent).map(([name, value]) => [
      name,
      typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value) ? new Date(value).toISOString() : value,
    ]),
  )
const invalidOf = (kind: string) => {
  const found = entry(kind, 'update')
  return found ? invalidCode(found.area, found.route, 'body') : 'VALIDATION_ERROR'
}

test('what is registered has routes, and what has routes is registered', () => {
  const kinds = [...new Set(routes.map(({ kind }) => kind))].sort()
  expect(kinds).toEqual(registered.map(({ kind }) => kind).sort())
})

/** Fields that an entity with functions of its own adds to the stored row in responses. */
const beside: Readonly<Record<string, readonly string[]>> = {
  webhook: ['secret', 'stats'],
  config_key: ['version', 'default_value'],
  email_template: ['version'],
}
/** Fields that responses show under another name or in another form. */
const creationOnly = ['prices', 'bundle_contents']
/** Query parameters that make a list show all rows, where it shows only some of them by default. */
const everyRow: Readonly<Record<string, string>> = { catalog_item: '&include_inactive=true' }
/** A change that differs from the row of the example. */
const changes: Readonly<Record<string, object>> = {
  webhook: { status: 'disabled' },
  event_definition: { status: 'blocked' },
}

describe.each(registered.map((of) => [of.kind, of] as const))('%s', (kind, of) => {
  const at = pathOf(kind)
  const invalid = invalidOf(kind)
  const creation = entry(kind, 'create') as Entry
  const change = entry(kind, 'update') as Entry
  const example = changes[kind] ?? (change.route.example as Record<string, unknown>)
  const replaces = change.route.method === 'PUT'
  const key = of.key_column ?? ''
  const isPaged = 'offset' in (entry(kind, 'list')?.route.query ?? {})
  const everything = (paging = 'limit=200') => `${at}?${paging}${everyRow[kind] ?? ''}`

  // each test makes a few
  if ((of.max_count ?? 100) < 20) afterEach(() => project.sql(`delete from ${of.table_name}`))

  const post = (where: typeof project, body: Record<string, unknown>) => {
    if (creation.route.method === 'POST') return where.admin.post(at, body)
    const { [key]: name, ...rest } = body
    return where.admin.put(`${at}/${name}`, rest)
  }
  const patch = (where: typeof project, id: string, body: unknown) =>
    where.admin.request(change.route.method, `${at}/${id}`, body)
  const stored = (row: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(row).filter(([name]) => !beside[kind]?.includes(name)))
  const bare = (row: Record<string, unknown>) => {
    const { updated_at: _, ...rest } = stored(row)
    return rest
  }
  const idOf = (row: Record<string, any>) => (of.found_by === 'key' ? row[key] : row['id']) as string
  const create = async (where = project, more: object = {}) => {
    const body: Record<string, any> = { ...bodyOf(of), ...more }
    const answer = await post(where, body)
    expect(answer.status, answer.text).toBe(201)
    return { row: stored(answer.data) as Record<string, any>, id: idOf(answer.data), body }
  }
  const list = async (where = project, paging?: string) => (await where.admin.get(everything(paging))).data as any[]
  /** Reads a row by its GET route, or from the list where there is none. */
  const read = async (id: string) =>
    stored(
      entry(kind, 'get')
        ? (await project.admin.get(`${at}/${id}`)).data
        : (await list()).find((row: Record<string, any>) => idOf(row) === id),
    )
  const total = async (where = project) =>
    isPaged ? ((await where.admin.get(everything('limit=1'))).body.total as number) : (await list(where)).length
  const targetOf = async (id: string) =>
    (
      await project.sql(`select t.id from ${of.table_name} t where ${of.found_by === 'key' ? key : 'id::text'} = $1`, [
        id,
      ])
    )[0].id

  test('is created with what was sent, found, listed, left alone by an empty change, and deleted', async () => {
    const before = await total()
    const { row, id, body } = await create()
    const sent = Object.fromEntries(Object.entries(body).filter(([name]) => !creationOnly.includes(name)))
    expect(row).toMatchObject(shown(sent))
    expect(await read(id)).toEqual(row)
    if (of.key_column && of.found_by !== 'id' && entry(kind, 'get'))
      expect(stored((await project.admin.get(`${at}/${encodeURIComponent(row[key])}`)).data)).toEqual(row)
    const listed = (await list()).find((one) => idOf(one) === id)
    expect(row).toMatchObject(stored(listed))
    harness.advance(1)
    if (!replaces) expect(stored((await patch(project, id, {})).data)).toEqual(row)
    const changed = await patch(project, id, example)
    expect(changed.data, changed.text).toMatchObject(shown(example))
    expect(changed.data.updated_at > row['updated_at']).toBe(true)
    expect(bare((await patch(project, id, example)).data)).toEqual(bare(changed.data))
    expect((await project.admin.delete(`${at}/${id}`)).data).toEqual({ deleted: true })
    for (const answer of [
      ...(entry(kind, 'get') ? [await project.admin.get(`${at}/${id}`)] : []),
      ...(replaces ? [] : [await patch(project, id, example)]),
      await project.admin.delete(`${at}/${id}`),
    ])
      expectRefusal(answer, 404, of.not_found_code)
    expect(await total()).toBe(before)
  })

  test('is found by what its declaration says, and by nothing else', async () => {
    const { row, id } = await create()
    const keyed = of.key_column && encodeURIComponent(row[key])
    if (of.found_by === 'id or key' && !replaces) {
      const changed = await patch(project, keyed as string, example)
      expect([changed.status, changed.data?.id], changed.text).toEqual([200, id])
    }
    const unknown = [crypto.randomUUID(), ...(of.found_by === 'id' ? [] : ['no-such-key'])]
    for (const one of of.found_by === 'key' && row['id'] ? [...unknown, row['id']] : unknown)
      for (const answer of [
        ...(entry(kind, 'get') ? [await project.admin.get(`${at}/${one}`)] : []),
        ...(replaces ? [] : [await patch(project, one, example)]),
        await project.admin.delete(`${at}/${one}`),
      ])
        expectRefusal(answer, 404, of.not_found_code)
    // a key does not find a row where rows are found by id
    if (of.found_by === 'id' && keyed) {
      const answer = await patch(project, keyed, example)
      expect([400, 404], answer.text).toContain(answer.status)
    }
    const gone = await project.admin.delete(`${at}/${of.found_by === 'id or key' ? keyed : id}`)
    expect(gone.data, gone.text).toEqual({ deleted: true })
  })

  test('is listed in the declared order, page by page', async () => {
    for (let n = 0; n < 5; n += 1) {
      // two rows with the same time, which are ordered by id
      if (n !== 3) harness.advance(1)
      await create()
    }
    const order = of.order_by.map((name) => `t.${name}${of.is_descending ? ' desc' : ''}`).join(', ')
    const name = of.found_by === 'key' ? key : 'id'
    const rows = await project.sql(`select t.${name}::text as name from ${of.table_name} t order by ${order}`)
    const all = await list()
    expect(all.map(idOf)).toEqual(rows.map((row) => row['name']))
    if (!isPaged) return
    const pages: any[] = []
    for (let offset = 0; offset < all.length; offset += 2) {
      const page = await project.admin.get(everything(`limit=2&offset=${offset}`))
      expect(page.body).toMatchObject({ total: all.length, offset, limit: 2 })
      pages.push(...page.data)
    }
    expect(pages).toEqual(all)
    expect(await list(project, `offset=${all.length}`)).toEqual([])
    expect((await project.admin.get(everything('limit=201'))).body.limit).toBe(200)
    for (const wrong of ['limit=0', 'limit=x', 'offset=-1', 'offset=x'])
      expect((await project.admin.get(everything(wrong))).status, wrong).toBe(400)
  })

  test('takes fields within their bounds only, and refuses the others by name, changing nothing', async () => {
    const { row, id } = await create()
    const { properties = {}, required = [] } = schemaOf(creation.route)
    const before = await total()
    for (const [field, declared] of Object.entries(properties)) {
      for (const value of [...wrongOf(declared), ...(required.includes(field) ? [undefined] : [])]) {
        const answer = await post(project, { ...bodyOf(of), [field]: value })
        expectRefusal(answer, 400, invalid)
        expect(answer.error?.details.field.split('.')[0], answer.text).toBe(field)
      }
    }
    expect(await total()).toBe(before)
    const changeable = schemaOf(change.route).properties ?? {}
    for (const [field, declared] of Object.entries(changeable)) {
      for (const value of wrongOf(declared)) expectRefusal(await patch(project, id, { [field]: value }), 400, invalid)
    }
    expect(await read(id)).toEqual(row)
    for (const [field, declared] of Object.entries(changeable)) {
      for (const value of edgesOf(declared)) {
        const answer = await patch(project, id, { [field]: value })
        // a constraint between two fields may have narrower bounds
        if (answer.status === 200) expect(answer.data[field]).toEqual(value)
        else expect([400, 409], answer.text).toContain(answer.status)
        if (answer.status === 200) await patch(project, id, { [field]: row[field] })
      }
    }
  })

  test('null clears what can be absent and is refused elsewhere; absent fields stay; unknown ones are ignored', async () => {
    const { row, id } = await create()
    for (const [field, declared] of Object.entries(schemaOf(change.route).properties ?? {})) {
      const answer = await patch(project, id, { [field]: null })
      if (!isNullable(declared)) {
        expectRefusal(answer, 400, invalid)
        continue
      }
      if (answer.status !== 200) expectRefusal(answer, 400, invalid)
      else if (!replaces) expect(answer.data).toMatchObject({ ...bare(row), [field]: answer.data[field] })
      const back = await patch(project, id, replaces ? row : { [field]: row[field] })
      expect(bare(back.data), back.text).toEqual(bare(row))
    }
    const hostile = {
      id: crypto.randomUUID(),
      created_at: '2020-01-01T00:00:00Z',
      nonsense: 1,
      '"; drop table app.users --': 2,
    }
    const answer = await patch(project, id, replaces ? { ...row, ...hostile } : hostile)
    expect(bare(answer.data), answer.text).toEqual(bare(row))
    const more = await post(project, { ...bodyOf(of), ...hostile })
    expect(more.status, more.text).toBe(201)
    expect(more.data.id).not.toBe(hostile.id)
    expect(more.data.created_at).not.toMatch(/^2020/)
    // SQL ignores the fields that the schemas of the routes strip
    const target = await targetOf(id)
    const state = await project.sql(`select to_jsonb(t) as row from ${of.table_name} t where id = $1`, [target])
    const fixed = [...of.fixed_columns, ...of.state_columns, 'id', 'created_at']
    const others = Object.fromEntries(fixed.map((name) => [name, state[0].row[name] === 1 ? 2 : '1']))
    await project.as('app_admin', { 'app.caller': 'developer' }, 'select api.definition_update($1, $2, $3)', [
      ...[kind, id, JSON.stringify(others)],
    ])
    expect(await project.sql(`select to_jsonb(t) as row from ${of.table_name} t where id = $1`, [target])).toEqual(
      state,
    )
  })

  test.runIf(of.key_column)('a key is taken once', async () => {
    const before = await total()
    const { body } = await create()
    const answer = await post(project, body)
    const twice = bodyOf(of)
    if (creation.route.refusals?.[409]?.includes('CONFLICT')) {
      expectRefusal(answer, 409, 'CONFLICT')
      expect(answer.error?.details).toEqual({ field: of.key_column })
      const answers = await Promise.all(Array.from({ length: 4 }, () => post(project, twice)))
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409])
    } else {
      // a PUT creates or replaces
      expect([200, 201], answer.text).toContain(answer.status)
      const answers = await Promise.all(Array.from({ length: 4 }, () => post(project, twice)))
      for (const one of answers) expect([200, 201], one.text).toContain(one.status)
    }
    expect(await total()).toBe(before + 2)
  })

  test.runIf(of.max_count !== null)('fifty who create at once do not pass the limit together', async () => {
    const { row, id, body } = await create(stranger)
    const columns = await stranger.sql(
      `select string_agg(quote_ident(attname), ', ') as list, string_agg('(n.r).' || quote_ident(attname), ', ') as fields
         from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
      [of.table_name],
    )
    const prefix = /^[A-Z]/.test(String(body[key])) ? 'X' : 'x'
    const named = of.key_column ? `, '${of.key_column}', '${prefix}' || n` : ''
    await stranger.sql(
      `insert into ${of.table_name} (${columns[0].list})
       select ${columns[0].fields}
         from (select jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid()${named})) as r
                 from ${of.table_name} t,
                      generate_series(1, $2 - (select count(*)::int from ${of.table_name})) n
                where t.${of.found_by === 'key' ? key : 'id'} = $1) n`,
      [of.found_by === 'key' ? row[key] : id, (of.max_count ?? 0) - 7],
    )
    const answers = await Promise.all(Array.from({ length: 50 }, () => post(stranger, bodyOf(of))))
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(7)
    const over = answers.find(({ status }) => status !== 201) as Answer
    expectRefusal(over, 409, 'LIMIT_REACHED')
    expect(over.error?.details).toEqual({ limit: of.max_count })
    expect(await total(stranger)).toBe(of.max_count)
  })

  test('one who changes it and one who deletes it at once come one after the other', async () => {
    const administrator = () => openTransaction(project, 'app_admin', { 'app.caller': 'developer' })
    const first = await create()
    const deletion = await administrator()
    await deletion.query('select api.definition_delete($1, $2)', [kind, first.id])
    const changing = patch(project, first.id, example)
    await untilBlocked(project)
    await deletion.commit()
    if (replaces) expect((await changing).status).toBe(201)
    else expectRefusal(await changing, 404, of.not_found_code)

    const second = await create()
    const changed = await administrator()
    await changed.query('select api.definition_update($1, $2, $3)', [kind, second.id, JSON.stringify(example)])
    const deleting = project.admin.delete(`${at}/${second.id}`)
    await untilBlocked(project)
    await changed.commit()
    expect((await deleting).data).toEqual({ deleted: true })
  })

  test('every change is in the audit trail, with what it changed, and none that changed nothing', async () => {
    const { id } = await create()
    const target = await targetOf(id)
    await patch(project, id, example)
    await patch(project, id, example)
    await project.admin.delete(`${at}/${id}`)
    const { data } = await project.admin.get(`/audit-events?target_id=${target}`)
    const actions = data.map(({ action }: { action: string }) => action.split('.')[1]).reverse()
    expect(actions).toEqual(['create', 'update', 'delete'])
    expect(data[1].actor).toMatchObject({ type: 'developer', id: project.developer.id })
  })

  test('belongs to its project, and to its developers alone', async () => {
    const { id } = await create()
    const { method } = change.route
    if (!replaces) expectRefusal(await patch(stranger, id, {}), 404, of.not_found_code)
    expectRefusal(await stranger.admin.delete(`${at}/${id}`), 404, of.not_found_code)
    for (const client of [stranger.developer, project.app, project.server, harness.anyone, await project.user()]) {
      const one = `/admin/projects/${project.id}${at}/${id}`
      for (const answer of [await client.request(method, one, {}), await client.delete(one)])
        expect([401, 403, 404], answer.text).toContain(answer.status)
    }
    expect((await patch(project, id, {})).status).toBe(200)
    for (const role of ['app_user', 'app_server', 'app_anon', 'app_worker'] as const)
      await expect(
        project.as(role, { 'app.caller': 'developer' }, 'select api.definition_delete($1, $2)', [kind, id]),
      ).rejects.toThrow(/permission denied/)
  })
})
