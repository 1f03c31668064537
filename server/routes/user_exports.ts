import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { perSubject, refundLimits, takeLimits } from '#server/http/limits.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { AnyId, Flag, Text } from '#server/http/schemas.ts'
import { type StreamFormat, streamed, streamRows } from '#server/http/stream.ts'

const Format = z.enum(['csv', 'ndjson'], 'must be csv or ndjson').default('csv')

const exportUsers = (context: HandlerContext) => {
  const { format, since } = context.query as { format: StreamFormat; since?: string }
  return streamRows({
    format,
    filename: 'users-export',
    read: (cursor) => context.lines('users_export', { cursor, since, format }),
  })
}

const exportEvents = (context: HandlerContext) => {
  const { userId } = context.params
  return streamRows({
    format: context.query['format'] as StreamFormat,
    filename: `user-${userId}-events`,
    read: (cursor) => context.lines('user_events_export', { user_id: userId, cursor, ...context.query }),
  })
}

const exportBundle = (context: HandlerContext) => {
  const user_id = String(context.params['userId'])
  return bundle(user_id, (cursor) => context.lines('user_export', { user_id, cursor }))
}

/** One bundle in 24 hours; a bundle that could not begin is not counted, nor is a HEAD request. */
const exportOwn = async (context: HandlerContext) => {
  const { userId } = context.resolved.claims
  const limit = perSubject('user export', userId ?? '', [1, 'day'])
  await takeLimits(counting(context), limit, 'RATE_LIMITED')
  try {
    const answer = await bundle(userId ?? '', (cursor) => context.lines('me_export', { cursor }))
    if (context.request.method === 'HEAD') await refundLimits(counting(context), limit)
    return answer
  } catch (error) {
    await refundLimits(counting(context), limit)
    throw error
  }
}

/** All data of a user, under the contract's headers. */
const bundle = async (userId: string, read: Parameters<typeof streamRows>[0]['read']) => {
  const answer = await streamRows({ format: 'ndjson', filename: `user-${userId}-export`, read })
  return { ...answer, headers: { ...answer.headers, 'content-type': 'application/x-ndjson' } }
}

/** Calls run as the role that may count limits. */
const counting = (context: HandlerContext): Pick<HandlerContext, 'call'> => ({
  call: (name, args, settings) => context.call(name, args, { ...settings, role: 'app_auth' }),
})

const ofUser = { 400: ['INVALID_USER_ID'] }

export const userExports = area({
  stem: 'users',
  title: 'Users (admin)',
  part: 'People',
  about: 'Users of a project: search, change, reset, export, deletion.',
  source: 'contract',
  invalid: 'INVALID_BODY',
  unavailable: 502,
  routes: [
    ...group('/admin/projects/:projectId/users', administrator, [
      route('GET /export', 'All users, as CSV or NDJSON, oldest first', {
        handle: exportUsers,
        stale: true,
        query: { format: Format, since: z.string().optional() },
        replies: { 200: streamed('csv', 'ndjson') },
        refusals: { 400: ['INVALID_SINCE'] },
      }),
      route('GET /:userId/events/export', "A user's events, as CSV or NDJSON, oldest first", {
        handle: exportEvents,
        stale: true,
        description: '`since` is inclusive, `until` exclusive.',
        params: { userId: AnyId },
        query: {
          format: Format,
          since: z.string().optional(),
          until: z.string().optional(),
          event_name: Text(255, 1).optional(),
          include_system: Flag().describe('Also our own events, svc.*'),
        },
        replies: { 200: streamed('csv', 'ndjson') },
        refusals: { 400: ['INVALID_USER_ID', 'INVALID_SINCE', 'INVALID_UNTIL'] },
      }),
      route('GET /:userId/export', 'All data of a user, as NDJSON', {
        handle: exportBundle,
        stale: true,
        description:
          'Each line is `{section, data}`, with a section for each table; the last line is `export_complete`.',
        params: { userId: AnyId },
        replies: { 200: streamed('ndjson') },
        refusals: ofUser,
      }),
    ]),
  ],
})

export const ownExport = area({
  stem: 'users',
  title: 'Users',
  part: 'People',
  about: 'Profiles of end users: their own, and what others may see.',
  source: 'supplement',
  routes: [
    ...group('/client/users', endUser, [
      route('GET /me/export', 'All data of the caller, as NDJSON; once in 24 hours', {
        handle: exportOwn,
        operationId: 'exportMe',
        stale: true,
        source: 'supplement',
        replies: { 200: streamed('ndjson') },
        refusals: { 404: ['NOT_FOUND'] },
      }),
    ]),
  ],
})
