import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { AnyId, Flag, Text } from '#server/http/schemas.ts'
import { streamed } from '#server/http/stream.ts'
import { exportBundle, exportEvents, exportOwn, exportUsers } from '#server/users/exports.ts'

const Format = z.enum(['csv', 'ndjson'], 'must be csv or ndjson').default('csv')

const ofUser = { 400: ['INVALID_USER_ID'] }

export const userExports = area({
  stem: 'users',
  title: 'Users (admin)',
  part: 'People',
  about: 'Users of a project: search, change, reset, export, deletion.',
  codes: 'by area',
  invalid: 'INVALID_BODY',
  unavailable: 502,
  routes: [
    ...group('/admin/projects/:projectId/users', administrator, [
      route('GET /export', 'All users, as CSV or NDJSON, oldest first', {
        handle: exportUsers,
        calls: ['users_export'],
        stale: true,
        query: { format: Format, since: z.string().optional() },
        replies: { 200: streamed('csv', 'ndjson') },
      }),
      route('GET /:userId/events/export', "A user's events, as CSV or NDJSON, oldest first", {
        handle: exportEvents,
        calls: ['user_events_export'],
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
  routes: [
    ...group('/client/users', endUser, [
      route('GET /me/export', 'All data of the caller, as NDJSON; once in 24 hours', {
        handle: exportOwn,
        calls: ['me_export'],
        operationId: 'exportMe',
        stale: true,
        codes: 'by part',
        replies: { 200: streamed('ndjson') },
      }),
    ]),
  ],
})
