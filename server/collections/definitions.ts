/** Changes of the definitions of collections. */
import { keepNames } from '#server/graphql/kept_names.ts'
import { callControl } from '#server/http/project.ts'
import type { Answer, HandlerContext } from '#server/http/route.ts'

/** A change may rewrite a table: its time limit is longer than that of a request for rows. */
const changeMs = 600_000

/** Schema changes take locks and make every server compile statements again, so that they are limited to five a second in a project. */
const changing = async (context: HandlerContext, name: string, args: Record<string, unknown>) => {
  const { services, resolved, query, params } = context
  if (!query['dry_run']) {
    services.rateLimiter.take([{ key: `schema ${resolved.project?.projectId}`, perSecond: 5, burst: 5 }])
  }
  const { projectId: _, ...named } = params
  return context.call(name, { ...named, ...query, ...args }, { timeoutMs: changeMs })
}

/** An answer that tells names in GraphQL: where one is not made yet it is made and kept, and the definition read again. */
export const named =
  (run: (context: HandlerContext) => Promise<Answer>, read: (context: HandlerContext) => Promise<Answer>) =>
  async (context: HandlerContext): Promise<Answer> => {
    const reply = await run(context)
    const { place, project } = context.resolved
    if (!project || !/"graphql_name" ?: ?null/.test(String(reply.body))) return reply
    await keepNames(context.services, place, project.projectId)
    return { ...(await read(context)), status: reply.status }
  }
export const readCollection = ({ call, params, body }: HandlerContext) =>
  call('collection_get', { name: params['name'] ?? body['name'] })
export const readColumn = ({ call, params, body }: HandlerContext) =>
  call('collection_column_get', { name: params['name'], column: body['name'] ?? params['column'] })
export const listCollections = ({ call, query }: HandlerContext) =>
  call('collections_list', { page_limit: query['limit'], page_offset: query['offset'] })

export const change =
  (name: string, args: (context: HandlerContext) => Record<string, unknown> = () => ({})) =>
  (context: HandlerContext) =>
    changing(context, name, args(context))

/** An index of a large collection is built in the background: control stores the operation. */
export const addIndex = async (context: HandlerContext): Promise<Answer> => {
  const { params, body } = context
  const reply = await changing(context, 'collection_index_add', { definition: body })
  if (reply.status !== 202) return reply
  const input = { collection: params['name'], definition: body }
  return callControl(context, 'collection_operation', { type: 'collections.index', input })
}
