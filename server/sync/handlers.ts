import { randomUUID } from 'node:crypto'
import { groupOf } from '#server/collections/requests.ts'
import { shapeOf as shapeOfRequest } from '#server/collections/statement_shapes.ts'
import { dataOf } from '#server/database/database.ts'
import { refusal } from '#server/errors.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { isExactNumber, numberText } from '#server/json/lossless_json.ts'
import { Mutation, MutationFields } from '#server/sync/schemas.ts'

const mostMutations = 500
const mostEntries = 5000

/** Stands in a text where a character that Postgres cannot store stood: what the body of a push is read with. */
export const unstorable = randomUUID()

/** Gives places to what is committed, in transactions of their own, and answers what a pull that has all of it reaches. */
const number = async ({ call }: HandlerContext, needsPlace = false): Promise<string> => {
  for (;;) {
    const { is_over, hint } = dataOf<{ is_over: boolean; hint: string }>(
      await call('sync_number', { needs_place: needsPlace }, { readOnly: false }),
    )
    if (is_over) return hint
  }
}

/** A call that answers 0 when places are to be given first: seldom, so that a pull with nothing new is one round trip. */
const numbered = async (context: HandlerContext, name: string, args: Record<string, unknown>) => {
  const asked = await context.call(name, { ...args, is_numbered: false }, { readOnly: false, retries: 5 })
  if (asked.status !== 0) return asked
  let { needs_place } = JSON.parse(asked.body) as { needs_place: boolean }
  for (;;) {
    await number(context, needs_place)
    const answer = await context.call(name, { ...args, is_numbered: true }, { readOnly: false, retries: 5 })
    if (answer.status !== 0) return answer
    needs_place = (JSON.parse(answer.body) as { needs_place: boolean }).needs_place
  }
}

/** What is neither digits nor a number is refused as any other text that no pull has answered. */
const numberOrNull = (checkpoint: unknown): string | null =>
  checkpoint === null || checkpoint === undefined ? null : (numberText(checkpoint) ?? 'x')

export const pull = (context: HandlerContext) => {
  const { client_id, checkpoint, collections, limit } = context.body as Record<string, unknown>
  return numbered(context, 'sync_pull', {
    client_id,
    checkpoint: typeof checkpoint === 'string' ? checkpoint : numberOrNull(checkpoint),
    collections,
    page_limit: Math.min(Number(limit), mostEntries),
  })
}

export const status = (context: HandlerContext) =>
  numbered(context, 'sync_status', { client_id: context.query['client_id'] })

const isObject = (item: unknown): item is Record<string, unknown> =>
  typeof item === 'object' && item !== null && !Array.isArray(item) && !isExactNumber(item)

const isUnstorable = (value: unknown): boolean => (JSON.stringify(value) ?? 'null').includes(unstorable)

const problemOf = (item: unknown, isClean: boolean): string | null => {
  if (!isClean && isUnstorable(item)) return 'has a character that cannot be stored: U+0000 or half of a surrogate pair'
  if (!isObject(item)) return 'must be an object'
  const result = Mutation.safeParse(item)
  if (result.success) return null
  const [issue] = result.error.issues
  const field = String(issue?.path[0] ?? '')
  return `${field}: ${item[field] === undefined ? 'is required' : (issue?.message ?? 'is not valid')}`
}

const managed = new Set(['id', 'user_id', 'group_id', 'created_at', 'updated_at', 'deleted_at'])

/** What puts that one statement may insert have in common: their group and their columns. */
const shapeOf = (data: Record<string, unknown>): string =>
  JSON.stringify([
    data['group_id'] ?? null,
    ...Object.keys(data)
      .filter((key) => !managed.has(key))
      .sort(),
  ])

/** What SQL gets of a mutation: the fields that are well formed, its id as it was sent, and what is wrong with it. */
const understood = (item: unknown, isClean: boolean) => {
  const problem = problemOf(item, isClean)
  if (!isObject(item)) return { id: null, problem }
  const kept = (name: keyof typeof MutationFields) => {
    const value = item[name] ?? null
    if (problem === null) return value
    return MutationFields[name].safeParse(value).success && !isUnstorable(value) ? value : null
  }
  return {
    id: !isClean && isUnstorable(item['id'] ?? null) ? null : (item['id'] ?? null),
    known_id: kept('id'),
    op: kept('op'),
    collection: kept('collection'),
    row_id: kept('row_id'),
    tx: kept('tx'),
    base_updated_at: kept('base_updated_at'),
    data: problem === null ? (item['data'] ?? null) : null,
    shape: problem === null && item['op'] === 'put' ? shapeOf(item['data'] as Record<string, unknown>) : null,
    problem,
  }
}

type Understood = Extract<ReturnType<typeof understood>, { readonly shape: string | null }>

const haveOne = (values: readonly unknown[]) => values.every((value) => value === values[0])
const differ = (values: readonly string[]) => new Set(values.map((value) => value.toLowerCase())).size === values.length

/** The arguments of a push of nothing but puts of one shape under ids that differ, as most large ones are: null of any other. */
const newRowsOf = (mutations: readonly ReturnType<typeof understood>[]) => {
  const puts = mutations.filter((each) => 'shape' in each && each.shape !== null) as Understood[]
  const [first] = puts
  const isOne =
    first !== undefined &&
    mutations.length > 1 &&
    puts.length === mutations.length &&
    // an id is answered as it was sent
    puts.every(
      ({ id, tx, base_updated_at }) => id === String(id).toLowerCase() && tx === null && base_updated_at === null,
    ) &&
    haveOne(puts.map(({ collection, shape }) => `${collection} ${shape}`)) &&
    differ(puts.map(({ known_id }) => String(known_id))) &&
    differ(puts.map(({ row_id }) => String(row_id)))
  if (!isOne) return null
  return {
    collection: String(first.collection),
    first: first.data as Record<string, unknown>,
    ids: puts.map(({ known_id }) => known_id),
    row_ids: puts.map(({ row_id }) => row_id),
    // of two fields called id the last one counts
    rows: puts.map(({ data, row_id }) => ({ ...(data as object), id: row_id })),
  }
}

/** Applies them by one statement; status 0 where it cannot. Their values are checked here, as those of a batch are. */
const putRows = async (
  context: HandlerContext,
  client_id: string,
  { collection, first, ids, row_ids, rows }: NonNullable<ReturnType<typeof newRowsOf>>,
) => {
  const { services, resolved } = context
  const group_id = groupOf(context)
  const request = { keyed: true, group: first['group_id'] ?? group_id, rows }
  const question = { kind: 'batch', collection, shape: shapeOfRequest(request), request }
  const { version } = await context.accounted((settings) =>
    services.statements.check(resolved.place, resolved.role, resolved.claims, question, settings),
  )
  const args = {
    client_id,
    collection,
    ids: `{${ids.join(',')}}`,
    row_ids: `{${row_ids.join(',')}}`,
    rows: JSON.stringify(rows),
    first,
    group_id,
    checked: version,
  }
  return context.call('sync_put', args, { retries: 5 })
}

export const push = async (context: HandlerContext) => {
  const { client_id, mutations } = context.sent as { client_id: string; mutations: unknown[] }
  if (mutations.length > mostMutations)
    throw refusal(400, 'BATCH_TOO_LARGE', `A push has at most ${mostMutations} mutations.`, {
      limit: mostMutations,
      got: mutations.length,
    })
  const isClean = !isUnstorable(mutations)
  const sent = mutations.map((item) => understood(item, isClean))
  const group_id = groupOf(context)
  const rows = newRowsOf(sent)
  const put = rows && (await putRows(context, client_id, rows))
  const pushed =
    put && put.status !== 0
      ? put
      : await context.call('sync_push', { client_id, mutations: sent, group_id }, { retries: 5 })
  // the next pull gives places, to all that was pushed until then
  const { hint } = dataOf<{ hint: string | null }>(await context.call('sync_hint', {}))
  return { ...pushed, body: pushed.body.replace(/}}$/, `,"checkpoint_hint":"${hint ?? (await number(context))}"}}`) }
}
