import { expect, test } from 'vitest'
import { startCollections } from '#test/support/definitions.ts'

const { project, define, insert } = await startCollections()
const user = await project.user()
const get = (name: string, query = '') => project.admin.get(`/collections/${name}/export${query}`)

test('every row, as find shows it, in the order of their making', async () => {
  const name = await define({
    columns: [
      { name: 't', type: 'text' },
      { name: 'b', type: 'bigint' },
      { name: 'n', type: 'numeric' },
      { name: 'at', type: 'timestamptz' },
      { name: 'day', type: 'date' },
      { name: 'j', type: 'jsonb' },
      { name: 'l', type: 'bigint[]' },
      { name: 'v', type: 'vector', dimensions: 2 },
    ],
  })
  const [native] = await project.sql(`select to_regtype('extensions.vector') is not null as yes`)
  const full = {
    t: '=1+1, "x"\n',
    b: '9007199254740993',
    n: '0.1',
    at: '2026-01-02T03:04:05.678Z',
    day: '2026-01-02',
    j: '{"a": [1]}',
    l: '{1,9007199254740993}',
    v: native.yes ? '[1,2]' : '{1,2}',
  }
  await insert(name, full, user)
  await insert(name, {}, user)
  const gone = await insert(name, { t: 'gone' }, user)
  await project.sql(`update collections.${name} set deleted_at = now() where id = $1`, [gone.id])

  const lines = await get(name)
  expect(lines.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8')
  expect(lines.headers.get('content-disposition')).toBe(`attachment; filename="${name}.ndjson"`)
  const rows = lines.text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const found = await project.admin.post(`/collections/${name}/find`, { order: [{ column: 'id', direction: 'asc' }] })
  expect(rows).toEqual(found.data)
  expect(rows[0]).toMatchObject({
    b: '9007199254740993',
    n: 0.1,
    at: '2026-01-02T03:04:05.678Z',
    day: '2026-01-02',
    j: { a: [1] },
    l: [1, '9007199254740993'],
    v: [1, 2],
  })
  expect((await get(name, '?include_deleted=true')).text.trim().split('\n')).toHaveLength(3)

  const csv = await get(name, '?format=csv')
  expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(csv.text.startsWith('id,user_id,created_at,updated_at,deleted_at,t,b,n,at,day,j,l,v\r\n')).toBe(true)
  expect(csv.text).toContain(
    `"'=1+1, ""x""\n",9007199254740993,0.1,2026-01-02T03:04:05.678Z,2026-01-02,"{""a"":[1]}","[1,""9007199254740993""]","[1,2]"\r\n`,
  )
})

test('columns of any name', async () => {
  const name = await define({
    columns: [...'abcdefghijklmnopqrstuvwxyz'].map((letter) => ({ name: letter, type: 'text' })),
  })
  await insert(name, { d: 'a date' }, user)
  expect(JSON.parse((await get(name)).text)).toMatchObject({ d: 'a date', t: null })
})

test('any number of rows', async () => {
  const name = await define({ columns: [{ name: 'n', type: 'integer' }] })
  for (const [rows, total] of [
    [0, 0],
    [499, 499],
    [1, 500],
    [1, 501],
    [999, 1500],
  ] as const) {
    await project.sql(
      `insert into collections.${name} (user_id, n) select $1, n from generate_series(1, ${rows}) as n`,
      [user.id],
    )
    const lines = (await get(name)).text.split('\n').filter(Boolean)
    expect(lines).toHaveLength(total)
    expect(new Set(lines.map((line) => JSON.parse(line).id)).size).toBe(total)
  }
})

test('refusals', async () => {
  const name = await define()
  expect((await get('nowhere')).error?.code).toBe('COLLECTION_NOT_FOUND')
  expect((await get(name, '?format=xml')).error?.code).toBe('INVALID_INPUT')
  expect((await get(name, '?include_deleted=1')).error?.code).toBe('INVALID_INPUT')
})
