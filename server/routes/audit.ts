import { z } from 'zod'
import { Cursor, exportAll, get, list } from '#server/audit/trail.ts'
import { verify } from '#server/audit/verify.ts'
import { organizationMember, projectOwner } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { cursorPage, data, Limit, Moment, Text, Uuid } from '#server/http/schemas.ts'
import { streamed } from '#server/http/stream.ts'

const AuditEvent = answer('audit_json', {
  actor: z.strictObject({
    type: z.enum(['developer', 'pat', 'service_account', 'operator_token', 'server_key', 'system']),
    id: z.string().nullable(),
    label: z.string().nullable(),
  }),
  changes: z.record(z.string(), z.tuple([z.unknown(), z.unknown()])),
})

const range = { since: Moment.optional(), until: Moment.optional() }

const filtered = {
  limit: Limit(),
  cursor: Cursor.optional(),
  ...range,
  actor_id: Text(200).optional(),
  action: Text(200).optional(),
  target_type: Text(200).optional(),
  target_id: Text(200).optional(),
}

const reachable = { 503: ['TENANT_UNAVAILABLE', 'TENANT_MIGRATION_PENDING'] }

export const audit = area({
  stem: 'audit',
  title: 'Audit events',
  part: 'Platform',
  about: 'Who changed what in a project, in a chain that shows tampering.',
  routes: [
    ...group('/admin/organizations', organizationMember, [
      route(
        'GET /:orgId/audit-events',
        'Who changed what in an organization: its members, invites and projects, newest first',
        {
          handle: list,
          description: 'Changes inside of a project are in the trail of the project. `action` is a prefix.',
          query: filtered,
          replies: { 200: cursorPage(AuditEvent) },
        },
      ),
    ]),
    ...group('/admin/projects/:projectId/audit-events', projectOwner, [
      route('GET /', 'Who changed what in a project, newest first', {
        handle: list,
        description: '`action` is a prefix: `streaks.` finds all changes of streaks.',
        query: filtered,
        replies: { 200: cursorPage(AuditEvent) },
        refusals: reachable,
      }),
      route('GET /export', 'The whole trail as a file, newest first', {
        handle: exportAll,
        stale: true,
        query: { format: z.enum(['ndjson', 'csv'], 'must be ndjson or csv').default('ndjson'), ...range },
        replies: { 200: streamed('ndjson', 'csv') },
        refusals: reachable,
      }),
      route(
        'GET /verify',
        'Verify that no row of the trail was changed, removed, inserted or cut off, and up to which row it is sealed',
        {
          handle: verify,
          query: range,
          replies: {
            200: data(
              z.strictObject({
                verified: z.boolean(),
                checked: z.int(),
                first_broken_id: Uuid.nullable(),
                sealed_through_id: Uuid.nullable(),
                unsealed: z.int(),
              }),
            ),
          },
          refusals: reachable,
        },
      ),
      route('GET /:eventId', 'One change', { handle: get, replies: { 200: data(AuditEvent) }, refusals: reachable }),
    ]),
  ],
})
