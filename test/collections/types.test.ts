import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { expect, onTestFinished, test } from 'vitest'
import { root } from '#server/root.ts'
import { startCollections, whole } from '#test/support/definitions.ts'

/** Types of collections for programs: what the server answers and takes fits them, and nothing else does. */
const { harness, project, define } = await startCollections()
const ajv = new Ajv2020({ strict: true, allowUnionTypes: true })
;(addFormats as unknown as (ajv: object) => void)(ajv)
const types = async (admin = project.admin) => (await admin.get('/types')).data
const fits = (schema: object, value: unknown) => ajv.validate(schema, value)

/** What the compiler says of a program that uses the types. */
const compiled = async (typescript: string, program: string): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'trellis-types-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'a.ts')
  await writeFile(file, `${typescript}\n${program}`)
  const tsc = join(root, 'node_modules/typescript/lib/tsc.js')
  const args = [tsc, '--noEmit', '--strict', '--ignoreConfig', '--lib', 'es2022', '--types', '', file]
  return promisify(execFile)(process.execPath, args, { timeout: 60_000 })
    .then(({ stdout }) => stdout)
    .catch((error: { stdout: string }) => error.stdout)
}

test('a project without collections has an empty interface', async () => {
  const other = await harness.project()
  expect(await types(other.admin)).toEqual({ typescript: 'export interface Collections {\n}\n', json_schema: {} })
})

test('rows fit their type as they are answered, and bodies as they are sent', async () => {
  const every = {
    label: 'text',
    n: 'integer',
    big: 'bigint',
    amount: 'numeric',
    ratio: 'double',
    done: 'boolean',
    ref: 'uuid',
    day: 'date',
    at: 'timestamptz',
    data: 'jsonb',
    texts: 'text[]',
    ns: 'integer[]',
    bigs: 'bigint[]',
    amounts: 'numeric[]',
    flags: 'boolean[]',
    refs: 'uuid[]',
  }
  const id = '0192f0c1-2345-7abc-8def-0123456789ab'
  const name = await define({
    name: 'every',
    read_policy: 'public',
    columns: Object.entries(every).map(([column, type]) => ({ name: column, type })),
  })
  const { input, row } = (await types()).json_schema[name]
  const user = await project.user()
  const full = {
    label: 'a',
    n: 1,
    big: '9007199254740993',
    amount: '0.1000000000000000000001',
    ratio: 0.5,
    done: true,
    ref: id,
    day: '2026-10-03',
    at: '2026-10-03T10:00:00',
    data: [null, { a: 1 }],
    texts: ['a', null],
    ns: [1, null],
    bigs: ['9007199254740993', 2],
    amounts: [0.5, null],
    flags: [true, null],
    refs: [id],
  }
  for (const sent of [full, {}, Object.fromEntries(Object.keys(every).map((column) => [column, null]))]) {
    expect(fits(input, sent), ajv.errorsText()).toBe(true)
    const made = await user.post(`/client/collections/${name}`, sent)
    expect(made.status, made.text).toBe(201)
    expect(fits(row, made.data), ajv.errorsText()).toBe(true)
  }
  for (const wrong of [
    { n: 'x' },
    { label: 1 },
    { done: 'true' },
    { ref: 'x' },
    { day: 'x' },
    { texts: 'a' },
    { no: 1 },
  ]) {
    expect(fits(input, wrong), JSON.stringify(wrong)).toBe(false)
    expect((await user.post(`/client/collections/${name}`, wrong)).status).toBe(400)
  }
})

test('limits, required columns and enums are those of the definition', async () => {
  await define(whole)
  const { typescript, json_schema: schemas } = await types()
  const { row, input } = schemas.posts
  expect(input.required).toEqual(['title'])
  expect(row.required.slice(0, 6)).toEqual(['id', 'user_id', 'created_at', 'updated_at', 'deleted_at', 'title'])
  expect(input.properties.title).toEqual({ type: ['string'], maxLength: 20 })
  expect(input.properties.score).toEqual({ type: ['number', 'null'], minimum: 0, maximum: 10 })
  expect(input.properties.embedding).toMatchObject({ minItems: 3, maxItems: 3, items: { type: 'number' } })
  expect(input.properties.kind.enum).toEqual(["it's", 'b', null])
  expect(input.properties.extra).toEqual({})
  const user = await project.user()
  const made = await user.post('/client/collections/posts', { title: 'a', embedding: [1, 2, 3] })
  expect(fits(row, made.data), ajv.errorsText()).toBe(true)
  const program = `
    type Post = Collections['posts']
    const row: Post['row'] = ${JSON.stringify(made.data)}
    const input: Post['input'] = { title: 'a', kind: 'b', big: '9007199254740993' }
    // @ts-expect-error a column that is not nullable and has no default
    const without: Post['input'] = { score: 1 }
    // @ts-expect-error not of the enum
    const other: Post['input'] = { title: 'a', kind: 'c' }
    // @ts-expect-error may be null
    const kind: string = row.kind
    export const all = [input, without, other, kind]`
  expect(await compiled(typescript, program)).toBe('')
})

test('a description is a comment, whatever it says, and rows of groups have their group', async () => {
  const description = 'Ends here */ } \n\n and "goes" on */*/ \\'
  await define({
    name: 'shared',
    description,
    owner_scope: 'group',
    columns: [{ name: 'class', type: 'text', nullable: false }],
  })
  const { typescript, json_schema: schemas } = await types()
  expect(Object.keys(schemas)).toEqual([...Object.keys(schemas)].sort())
  expect(schemas.shared.row.properties.user_id.type).toEqual(['string', 'null'])
  expect(schemas.shared.row.required).toContain('group_id')
  const program = `
    export const input: Collections['shared']['input'] = { class: 'a' }
    export const of = (row: Collections['shared']['row']): string => row.group_id + (row.user_id ?? '')`
  expect(await compiled(typescript, program)).toBe('')
})

test('who may not see the project does not see its types', async () => {
  const stranger = await harness.developer()
  const refused = await stranger.get(`/admin/projects/${project.id}/types`)
  expect([refused.status, refused.error?.code]).toEqual([403, 'PROJECT_FORBIDDEN'])
  const user = await project.user()
  expect((await user.get(`/admin/projects/${project.id}/types`)).status).toBe(401)
})
