import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { startCollections } from '#test/support/definitions.ts'
import { runOperationJob } from '#test/support/jobs.ts'

/**
 * The rules of rows, and the ways in which a row is written: each rule holds in each way. GraphQL and realtime write no rows. Who is banned has no session
 * (test/moderation-bans), rates are those of the routes, and a key of idempotency belongs to the route of one insert.
 */
const { harness, project, define, tried } = await startCollections()
await project.admin.patch('', { rest_enabled: true })
const [user, other, muted] = [await project.user(), await project.user(), await project.user()]
const notes = await define({ columns: [{ name: 'text', type: 'text' }] })
const columns = [
  { name: 'title', type: 'text', moderated: true, max_length: 50 },
  { name: 'slug', type: 'text', unique: true },
  { name: 'n', type: 'numeric' },
  { name: 'body', type: 'jsonb' },
  { name: 'note_id', type: 'uuid', references: { collection: notes, on_delete: 'set_null' } },
]
const rows = await define({ columns })
const path = `/client/collections/${rows}`
const hidden = (await other.post(`/client/collections/${notes}`, { text: 'private' })).data.id as string
const rule = { name: 'Words', rule_type: 'keyword', config: { words: ['casino'], action: 'block' } }
expect((await project.admin.post('/moderation/rules', rule)).status).toBe(201)

type Who = typeof user
type Data = Readonly<Record<string, unknown>>
const codeOf = (answer: { error?: { code: string } | undefined }) => answer.error?.code ?? 'written'
const rest = async (who: Who, method: string, query: string, data: Data, more: Record<string, string> = {}) => {
  const headers = { apikey: project.clientKey, authorization: `Bearer ${who.sessionToken}`, ...more }
  const response = await fetch(`${harness.url}/rest/v1/${rows}${query}`, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(data),
  })
  return response.status < 400 ? 'written' : ((await response.json()) as { code: string }).code
}
const onBehalf = (who: Who) => ({ 'x-api-key': project.serverKey, 'x-on-behalf-of': who.id })
/** The row that a change changes, of each user. */
const rowOf = new Map<string, string>()
beforeAll(async () => {
  for (const who of [user, other, muted]) rowOf.set(who.id, (await who.post(path, { slug: randomUUID() })).data.id)
  await project.admin.patch(`/users/${muted.id}`, { muted_until: '2100-01-01T00:00:00Z' })
})

const ways: Readonly<Record<string, (who: Who, data: Data, row?: string) => Promise<string>>> = {
  insert: async (who, data) => codeOf(await who.post(path, data)),
  batch: async (who, data) => codeOf(await who.post(`${path}/batch`, { rows: [data] })),
  upsert: async (who, data) =>
    codeOf(await who.post(`${path}?on_conflict=update&conflict_target=slug`, { slug: randomUUID(), ...data })),
  change: async (who, data, row = rowOf.get(who.id)) => codeOf(await who.patch(`${path}/${row}`, data)),
  'insert in a transaction': async (who, data) =>
    codeOf(
      await who.post('/client/collections/transaction', {
        operations: [{ op: 'insert', collection: rows, data }],
      }),
    ),
  'change in a transaction': async (who, data, row = rowOf.get(who.id)) =>
    codeOf(
      await who.post('/client/collections/transaction', {
        operations: [{ op: 'update', collection: rows, id: row, data }],
      }),
    ),
  'a server key on behalf': async (who, data) => codeOf(await harness.anyone.post(path, data, onBehalf(who))),
  'REST insert': (who, data) => rest(who, 'POST', '', data),
  'REST upsert': (who, data) =>
    rest(who, 'POST', '', { id: rowOf.get(who.id), ...data }, { prefer: 'resolution=merge-duplicates' }),
  'REST change': (who, data, row = rowOf.get(who.id)) => rest(who, 'PATCH', `?id=eq.${row}`, data),
  'REST on behalf': (who, data) =>
    rest(who, 'POST', '', data, { apikey: project.serverKey, authorization: '', 'x-on-behalf-of': who.id }),
  SQL: async (who, data) => {
    const names = Object.keys(data)
    const values = Object.values(data).map((value) => (typeof value === 'object' ? JSON.stringify(value) : value))
    const done = await tried(
      'app_user',
      who.id,
      `insert into collections.${rows} (${names.join(', ')}) values (${names.map((_, n) => `$${n + 1}`).join(', ')})`,
      values,
    )
    return typeof done === 'string' ? done : 'written'
  },
  import: async (who, data) => {
    const started = await project.admin.request(
      'POST',
      `/collections/${rows}/import?format=ndjson`,
      JSON.stringify({ user_id: who.id, ...data }),
      { 'content-type': 'application/x-ndjson' },
    )
    if (started.error) return started.error.code
    const done = await runOperationJob(harness, project, 'collections__import', started.data.operation_id)
    return done.result.errors[0]?.code ?? 'written'
  },
}

const deep = JSON.parse('['.repeat(201) + ']'.repeat(201)) as unknown
const rules: readonly [string, Who, Data, Readonly<Record<string, RegExp>>][] = [
  ['a bound of the column', user, { title: 'x'.repeat(51) }, { REST: /^23514$/, SQL: /^(23514|INVALID_BODY)$/ }],
  ['digits of a number', user, { n: `1${'0'.repeat(1000)}` }, {}],
  ['nesting', user, { body: deep }, { '': /^INVALID_(JSON|BODY)$/ }],
  ['a reference to a hidden row', user, { note_id: hidden }, { import: /^written$/ }],
  ['a reference to no row', user, { note_id: randomUUID() }, { SQL: /^(23503|INVALID_BODY)$/ }],
  // an administrator may write what moderation would refuse
  ['moderation', user, { title: 'casino' }, { '': /^CONTENT_REJECTED$/, SQL: /./, import: /^written$/ }],
  ['a mute', muted, { title: 'quiet' }, { '': /^USER_MUTED$/, SQL: /./, import: /^written$/ }],
]

describe.each(Object.entries(ways))('%s', (name, write) => {
  test.each(rules)('%s', async (_rule, who, data, codes) => {
    const key = Object.keys(codes).find((one) => one !== '' && name.startsWith(one)) ?? ''
    expect(await write(who, data)).toMatch(codes[key] ?? /^INVALID_BODY$/)
  })
})

test.each(['change', 'change in a transaction', 'REST change'])(
  'policies: %s of the row of another user',
  async (name) => {
    const row = rowOf.get(other.id)
    // PostgREST says that no row was found by changing none
    expect(await ways[name]?.(user, { title: 'taken' }, row)).toMatch(/^(NOT_FOUND|written)$/)
    expect(await project.sql(`select title from collections.${rows} where id = $1`, [row])).toEqual([{ title: null }])
  },
)
