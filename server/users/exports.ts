/** Exports of users, of their events and of all that is stored about one. */
import { asUserSignIn, perSubject, refundLimits, takeLimits } from '#server/http/limits.ts'
import type { HandlerContext } from '#server/http/route.ts'
import { type StreamFormat, streamRows } from '#server/http/stream.ts'

export const exportUsers = (context: HandlerContext) => {
  const { format, since } = context.query as { format: StreamFormat; since?: string }
  return streamRows({
    format,
    filename: 'users-export',
    read: (cursor) => context.lines('users_export', { cursor, since, format }),
  })
}

export const exportEvents = (context: HandlerContext) => {
  const { userId } = context.params
  return streamRows({
    format: context.query['format'] as StreamFormat,
    filename: `user-${userId}-events`,
    read: (cursor) => context.lines('user_events_export', { user_id: userId, cursor, ...context.query }),
  })
}

export const exportBundle = (context: HandlerContext) => {
  const user_id = String(context.params['userId'])
  return bundle(user_id, (cursor) => context.lines('user_export', { user_id, cursor }))
}

/** One bundle in 24 hours; a bundle that could not begin is not counted, nor is a HEAD request. */
export const exportOwn = async (context: HandlerContext) => {
  const { userId } = context.resolved.claims
  const limit = perSubject('user export', userId ?? '', [1, 'day'])
  await takeLimits(asUserSignIn(context), limit, 'RATE_LIMITED')
  try {
    const answer = await bundle(userId ?? '', (cursor) => context.lines('me_export', { cursor }))
    if (context.request.method === 'HEAD') await refundLimits(asUserSignIn(context), limit)
    return answer
  } catch (error) {
    await refundLimits(asUserSignIn(context), limit)
    throw error
  }
}

/** All data of a user, with the headers of a download. */
const bundle = async (userId: string, read: Parameters<typeof streamRows>[0]['read']) => {
  const answer = await streamRows({ format: 'ndjson', filename: `user-${userId}-export`, read })
  return { ...answer, headers: { ...answer.headers, 'content-type': 'application/x-ndjson' } }
}
