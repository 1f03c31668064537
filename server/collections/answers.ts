/** The handlers of the routes of rows. */
import { hash } from 'node:crypto'
import { readCursor, writeCursor } from '#server/collections/cursors.ts'
import {
  aggregateRequest,
  batchRequest,
  deleteRequest,
  exactBody,
  findRequest,
  groupOf,
  insertRequest,
  invalid,
  nearestRequest,
  patchRequest,
  queryRequest,
  rowRequest,
} from '#server/collections/requests.ts'
import { type Request, shapeOf } from '#server/collections/statement_shapes.ts'
import type { Answered } from '#server/collections/statements.ts'
import { refusal } from '#server/errors.ts'
import { isKnown } from '#server/http/conditional.ts'
import type { Answer, HandlerContext } from '#server/http/route.ts'

export const ask = async (context: HandlerContext, kind: string, request: Request) => {
  const collection = String(context.params['name'])
  const { services, resolved } = context
  const question = { kind, collection, shape: shapeOf(request), request }
  const answer = await context.accounted((settings) =>
    services.statements.ask(resolved.place, resolved.role, resolved.claims, question, settings),
  )
  if (answer.cut === 0) throw invalid('include', 'adds more than 8 MB to one row')
  // these two have no next page
  if (answer.cut !== null && kind !== 'find')
    throw invalid('limit', 'is too large for these rows: they have more than 8 MB')
  return answer
}

/** A page by offset that 8 MB cut short has a smaller limit: the next one begins at offset + limit. */
const withPlace = (answer: Answered, request: Request): Answer => ({
  ...answer,
  body: `${answer.body.slice(0, -1)},"offset":${Number(request['offset'] ?? 0)},"limit":${answer.cut}}`,
})

const find = async (context: HandlerContext, request: Request, cursor: string | undefined): Promise<Answer> => {
  const { services, resolved, params } = context
  const { filter, search, order, include_deleted, group, is_text } = request
  const query = hash(
    'sha256',
    JSON.stringify([
      resolved.project?.projectId,
      params['name'],
      filter,
      search,
      order,
      include_deleted,
      group,
      is_text,
    ]),
    'base64',
  )
  const after = cursor === undefined ? undefined : readCursor(services.secrets, query, cursor)
  const answer = await ask(context, 'find', after ? { ...request, after } : request)
  if (!answer.pages) return answer.cut === null ? answer : withPlace(answer, request)
  const next = answer.next === null ? null : writeCursor(services.secrets, query, answer.next)
  // {"data": [...]} and the cursor of the next page
  return { ...answer, body: `${answer.body.slice(0, -1)},"next_cursor":${JSON.stringify(next)}}` }
}

type Body = Parameters<typeof findRequest>[0]

/** The handlers of the routes of rows; the administrator's routes use them in another role. */
export const answers = {
  find: (context: HandlerContext) => {
    const options = context.body as Body
    return find(context, findRequest(options, exactBody(context), groupOf(context)), options.cursor ?? undefined)
  },
  query: (context: HandlerContext) => {
    const { request, cursor } = queryRequest(context)
    return find(context, request, cursor)
  },
  /** With `user_id` as that user would find them: policies are part of the plan. */
  explain: (context: HandlerContext) => {
    const { resolved, params } = context
    const { user_id: userId, ...options } = context.body as Body & { user_id?: string | null }
    const { user_id: _, ...exact } = exactBody(context)
    const request = findRequest(options, exact, groupOf(context))
    const claims = { caller: 'user', userId: userId ?? '', projectId: resolved.project?.projectId ?? '' } as const
    const as = userId ? ({ role: 'app_user', as: { ...resolved, role: 'app_user', claims } } as const) : {}
    return context.call('collection_plan', { name: params['name'], request }, { ...as, readOnly: true })
  },
  aggregate: (context: HandlerContext) => ask(context, 'aggregate', aggregateRequest(context)),
  nearest: async (context: HandlerContext) => ask(context, 'nearest', await nearestRequest(context)),
  get: async (context: HandlerContext): Promise<Answer> => {
    const answer = await ask(context, 'get', rowRequest(context))
    const etag = answer.headers?.['ETag']
    const isSame = answer.status === 200 && etag && isKnown(context.request.headers['if-none-match'], etag)
    return isSame ? { status: 304, body: '', headers: answer.headers } : answer
  },
  insert: (context: HandlerContext) => ask(context, 'insert', insertRequest(context)),
  batch: (context: HandlerContext) => ask(context, 'batch', batchRequest(context)),
  patch: (context: HandlerContext) => ask(context, 'patch', patchRequest(context)),
  delete: (context: HandlerContext) => ask(context, 'delete', deleteRequest(context)),
  restore: (context: HandlerContext) => ask(context, 'restore', rowRequest(context)),
}

export const transaction = (context: HandlerContext) => {
  const operations = (context.body as { operations: unknown[] }).operations
  if (operations.length > 100) {
    throw refusal(400, 'BATCH_TOO_LARGE', 'A transaction has at most 100 operations.', {
      limit: 100,
      got: operations.length,
    })
  }
  return context.call(
    'collection_transaction',
    { operations: exactBody(context)['operations'], group_id: groupOf(context) },
    { retries: 5 },
  )
}
