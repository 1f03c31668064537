/** Requests for rows, from the bodies, query strings and headers of HTTP. */
import type { z } from 'zod'
import { vectorOf } from '#server/ai/embeddings.ts'
import { type AggregateOptions, FindOptions, type NearestOptions } from '#server/collections/options.ts'
import type { Request } from '#server/collections/statement_shapes.ts'
import { refusal } from '#server/errors.ts'
import { wantedTags } from '#server/http/conditional.ts'
import { idempotencyKey } from '#server/http/idempotency.ts'
import { parseJson } from '#server/http/json.ts'
import type { HandlerContext } from '#server/http/route.ts'

type Body = Record<string, unknown>

/** The body as it was sent, with numbers exactly as written. */
export const exactBody = ({ sent }: HandlerContext): Body => sent as Body

/** Without fields that are null or absent, so that these have one shape. */
const sent = (request: Body): Request =>
  Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined && value !== null))

export const groupOf = ({ request }: HandlerContext): string | undefined => {
  const group = request.headers['x-group-context']
  return group === undefined ? undefined : String(group)
}

export const invalid = (path: string, reason: string) =>
  refusal(400, 'INVALID_BODY', `${path}: ${reason}`, { path, reason })

type Find = z.infer<typeof FindOptions>

/** A search for similar words compares each of its trigrams with each row's, which limits its length. */
const mostQ = 200

/** A request for a page, with its keys in one order; `exact` has its values as written. */
export const findRequest = (options: Find, exact: Body, group: string | undefined, isText = false): Request => {
  if (options.cursor && options.offset !== undefined && options.offset !== null) {
    throw invalid('cursor', 'cannot be sent together with offset')
  }
  if (options.cursor && (options.order?.length ?? 0) > 1) throw invalid('order', 'must be one column with a cursor')
  if ([...(options.search?.q.slice(0, mostQ * 2 + 1) ?? '')].length > mostQ)
    throw invalid('search.q', `must have at most ${mostQ} characters`)
  const search = options.search && {
    q: options.search.q,
    columns: options.search.columns,
    fuzzy: options.search.fuzzy ?? false,
    threshold: options.search.threshold ?? 0.3,
  }
  return sent({
    group,
    filter: exact['filter'],
    ...(isText ? { is_text: true } : {}),
    search,
    order: options.order,
    limit: options.limit,
    offset: options.offset,
    select: options.select,
    include_deleted: options.include_deleted || undefined,
    include: options.include,
  })
}

export const countRequest = (
  filter: unknown,
  includeDeleted: unknown,
  group: string | undefined,
  isText: boolean,
): Request =>
  sent({ group, filter, ...(isText ? { is_text: true } : {}), include_deleted: includeDeleted || undefined })

export const aggregateRequest = (context: HandlerContext): Request => {
  const options = context.body as z.infer<typeof AggregateOptions>
  const exact = exactBody(context)
  return sent({
    group: groupOf(context),
    filter: exact['filter'],
    group_by: options.group_by,
    aggregates: options.aggregates,
    having: exact['having'],
    order: options.order,
    limit: options.limit,
    include_deleted: options.include_deleted || undefined,
  })
}

/** A search by a vector, or by a text, whose vector the embedding provider makes. */
export const nearestRequest = async (context: HandlerContext): Promise<Request> => {
  const options = context.body as z.infer<typeof NearestOptions>
  const exact = exactBody(context)
  if (options.text === undefined && options.vector === undefined) throw invalid('vector', 'is required')
  if (options.text !== undefined && options.vector !== undefined)
    throw invalid('text', 'cannot be sent together with vector')
  const vector = options.text === undefined ? exact['vector'] : await vectorOf(context, options.column, options.text)
  return sent({
    group: groupOf(context),
    filter: exact['filter'],
    column: options.column,
    // a column that is none of vectors is refused with any vector
    vector: vector ?? [0],
    metric: options.metric ?? 'cosine',
    limit: options.limit,
    max_distance: options.max_distance,
    select: options.select,
  })
}

/** JSON in a query parameter. */
const jsonOf = (text: string, name: string): unknown => {
  const parsed = parseJson(Buffer.from(text), 'The text')
  if (parsed.kind === 'broken')
    throw refusal(400, 'INVALID_JSON', `${name}: ${parsed.reason}`, { path: name, reason: parsed.reason })
  return parsed.value
}

const optionNames = new Set([
  'query',
  'limit',
  'offset',
  'cursor',
  'select',
  'order',
  'include',
  'include_deleted',
  'q',
  'q_columns',
])

const lists = new Set(['in', 'not_in', 'contains', 'contained_by', 'containedBy', 'overlaps'])
const tests = new Set(['is_null', 'is_not_null'])

const listOf = (text: string) => (text === '' ? [] : text.split(','))

const leafOf = (column: string, op: string, text: string) => {
  if (tests.has(op)) return { column, op }
  return { column, op, value: lists.has(op) ? listOf(text) : text }
}

/** `price[gte]=10`, `filter[limit]=5`, `filter[limit][lt]=5`; a name that is not an option is a filter. */
const leavesOf = (query: Readonly<Record<string, unknown>>, options: ReadonlySet<string>) => {
  const leaves: object[] = []
  for (const [name, value] of Object.entries(query)) {
    if (options.has(name)) continue
    const [, wrapped, wrappedOp, plain, plainOp] =
      /^(?:filter\[([^[\]]+)\](?:\[([^[\]]+)\])?|([^[\]]+)(?:\[([^[\]]+)\])?)$/.exec(name) ?? []
    const column = wrapped ?? plain
    if (column === undefined) throw invalid(name.slice(0, 100), 'must be column or column[op]')
    for (const text of Array.isArray(value) ? value : [value]) {
      leaves.push(leafOf(column, wrappedOp ?? plainOp ?? 'eq', String(text)))
    }
  }
  return leaves
}

const filterOf = (leaves: readonly object[]) =>
  leaves.length === 0 ? undefined : leaves.length === 1 ? leaves[0] : { and: leaves }

const wellFormed = (query: Readonly<Record<string, unknown>>) => {
  for (const [name, value] of Object.entries(query)) {
    for (const text of [name, ...(Array.isArray(value) ? value : [value])]) {
      if (String(text).includes('\0') || !String(text).isWellFormed())
        throw invalid(name.slice(0, 100), 'has a character that cannot be stored')
    }
  }
}

const orderOf = (text: string) =>
  listOf(text).map((part) => {
    const [column = '', direction = 'asc', ...more] = part.split('.')
    if ((direction !== 'asc' && direction !== 'desc') || more.length > 0)
      throw invalid('order', 'must be column.asc or column.desc')
    return { column, direction }
  })

const checked = (schema: typeof FindOptions, options: unknown): Find => {
  const parsed = schema.safeParse(options)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw invalid(issue?.path.join('.') || 'query', (issue?.message ?? 'is not valid').replace(/^Invalid input: /, ''))
}

const numberOf = (text: unknown, name: string) => {
  if (text === undefined) return undefined
  if (typeof text !== 'string' || !/^\d+$/.test(text)) throw invalid(name, 'must be a whole number')
  return Math.min(Number(text), Number.MAX_SAFE_INTEGER)
}

const textOf = (value: unknown, name: string): string | undefined => {
  if (value === undefined || typeof value === 'string') return value
  throw invalid(name, 'must be sent once')
}

/** `GET /collections/:name`: `?query=` takes precedence, else the shorthand. */
export const queryRequest = (context: HandlerContext): { request: Request; cursor: string | undefined } => {
  const query = context.request.query as Record<string, unknown>
  wellFormed(query)
  const group = groupOf(context)
  const whole = textOf(query['query'], 'query')
  if (whole !== undefined) {
    const exact = jsonOf(whole, 'query')
    const options = checked(FindOptions, exact)
    return { request: findRequest(options, exact as Body, group), cursor: options.cursor ?? undefined }
  }
  const of = (name: string) => textOf(query[name], name)
  const deleted = of('include_deleted')
  if (deleted !== undefined && deleted !== 'true' && deleted !== 'false')
    throw invalid('include_deleted', 'must be true or false')
  const q = of('q')
  const options = checked(FindOptions, {
    limit: numberOf(query['limit'], 'limit'),
    offset: numberOf(query['offset'], 'offset'),
    cursor: of('cursor'),
    select: of('select') === undefined ? undefined : listOf(of('select') ?? ''),
    include: of('include') === undefined ? undefined : listOf(of('include') ?? ''),
    order: of('order') === undefined ? undefined : orderOf(of('order') ?? ''),
    include_deleted: deleted === 'true',
    search: q === undefined ? undefined : { q, columns: listOf(of('q_columns') ?? '') },
  })
  const filter = filterOf(leavesOf(query, optionNames))
  return {
    request: findRequest(options, { filter }, group, filter !== undefined),
    cursor: options.cursor ?? undefined,
  }
}

const countNames = new Set(['filter', 'include_deleted'])

/** `GET /collections/:name/count`: `?filter=<JSON>`, or the shorthand. */
export const countQuery = (context: HandlerContext): Request => {
  const query = context.request.query as Record<string, unknown>
  wellFormed(query)
  const deleted = textOf(query['include_deleted'], 'include_deleted')
  if (deleted !== undefined && deleted !== 'true' && deleted !== 'false')
    throw invalid('include_deleted', 'must be true or false')
  const whole = textOf(query['filter'], 'filter')
  const leaves = leavesOf(query, countNames)
  if (whole !== undefined) {
    if (leaves.length > 0) throw invalid('filter', 'cannot be sent together with other conditions')
    return countRequest(jsonOf(whole, 'filter'), deleted === 'true', groupOf(context), false)
  }
  return countRequest(filterOf(leaves), deleted === 'true', groupOf(context), leaves.length > 0)
}

/** Its refusal has the format of the other refusals of collections. */
export const keyOf = (context: HandlerContext): string | undefined =>
  idempotencyKey(context, (reason) => invalid('Idempotency-Key', reason))

export const insertRequest = (context: HandlerContext): Request => {
  const { on_conflict, conflict_target } = context.query as { on_conflict?: string; conflict_target?: string }
  return sent({
    group: groupOf(context),
    key: keyOf(context),
    on_conflict: on_conflict === 'error' ? undefined : on_conflict,
    conflict_target: conflict_target === undefined || on_conflict === 'error' ? undefined : listOf(conflict_target),
    data: exactBody(context),
  })
}

export const batchRequest = (context: HandlerContext): Request => {
  const { rows } = exactBody(context)
  if (!Array.isArray(rows)) throw invalid('rows', 'must be an array of rows')
  if (rows.length > 500) {
    throw refusal(400, 'BATCH_TOO_LARGE', 'A batch has at most 500 rows.', { limit: 500, got: rows.length })
  }
  return sent({ group: groupOf(context), rows })
}

/** A list for `string_to_array`: tags of rows have no commas. None of it is the version of any row where no tag can match. */
const matchOf = ({ request }: HandlerContext): string | undefined => wantedTags(request.headers['if-match'])?.join(',')

export const patchRequest = (context: HandlerContext): Request =>
  sent({ group: groupOf(context), id: context.params['id'], if_match: matchOf(context), data: exactBody(context) })

export const rowRequest = (context: HandlerContext): Request =>
  sent({ group: groupOf(context), id: context.params['id'] })

export const deleteRequest = (context: HandlerContext): Request =>
  sent({
    group: groupOf(context),
    id: context.params['id'],
    if_match: matchOf(context),
    hard: context.query['hard'] ? true : undefined,
  })
