import { z } from 'zod'
import { health, ping, report } from '#server/diagnostics/handlers.ts'
import { Level, Report, Status, Stored } from '#server/diagnostics/schemas.ts'
import { administrator, appOrUser } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { Cursor, cursorPage, data, Limit, Page, page, Text, Time, Uuid } from '#server/http/schemas.ts'

const Counts = z.record(z.string(), z.int())
const Issue = z.strictObject({
  id: Uuid,
  fingerprint: z.string(),
  title: z.string(),
  level: Level,
  first_seen: Time,
  last_seen: Time,
  count: z.int(),
  users: z.int(),
  status: Status,
  app_versions: z.array(z.string()),
  version_counts: Counts,
  day_counts: Counts,
})

export const diagnostics = area({
  stem: 'diagnostics',
  title: 'Diagnostics',
  part: 'Platform',
  about: 'Errors and crashes of apps, grouped into issues, and the health of a project.',
  words: {
    reports: ['Reports', 'What happened, 1 to 50.'],
    'reports.id': ['Id', 'A uuid, by which a report whose answer was lost is known again.', { unset: 'A new one' }],
    'reports.kind': ['Kind', 'What it is: a log, an error, a crash, or a measurement.'],
    'reports.level': ['Level', 'How bad it is.'],
    'reports.message': ['Message', 'What happened; what is longer than 4,096 bytes is cut.'],
    'reports.stack': ['Stack', 'A frame a line; what is longer than 32,768 bytes is cut.', { unset: 'None' }],
    'reports.context': ['Context', 'Whatever helps to understand it, up to 16 KB.', { unset: 'None' }],
    'reports.fingerprint': ['Fingerprint', 'Reports with the same are one issue.', { unset: 'By the frames' }],
    'reports.occurred_at': ['Occurred at', 'When it happened.', { unset: 'Now' }],
    'reports.app_version': ['App version', 'Such as `1.4.0`.', { unset: 'None' }],
    'reports.os_version': ['System version', 'Such as `iOS 26.1`.', { unset: 'None' }],
    'reports.device_model': ['Device', 'Such as `Pixel 9`.', { unset: 'None' }],
  },
  routes: [
    ...group('/client/diagnostics', appOrUser, [
      route('GET /ping', 'What the server makes of the key and the session, and its time', {
        handle: ping,
        operationId: 'ping',
        description: '`min_app_version` is the remote-config key of that name, where it is a text.',
        replies: {
          200: data(
            z.strictObject({
              server_time: Time,
              api_version: z.literal('1.0.0'),
              project_id: Uuid,
              key_type: z.enum(['client', 'server']),
              environment: z.enum(['development', 'production']),
              user_id: Uuid.nullable(),
              session_expires_at: Time.nullable(),
              request_id: z.string(),
              min_app_version: z.string().nullable(),
            }),
          ),
        },
      }),
      route('POST /reports', 'Report errors, crashes, logs and performance, up to 50 at once', {
        handle: report,
        operationId: 'sendReports',
        description:
          'One bad report refuses all. Long messages, stacks and versions are cut. 100 a minute for a device; `dropped` counts what came over the limits. A report with an `id` that was stored before counts no second time.',
        body: z.looseObject({}),
        cleansText: true,
        documentedBody: z.object({ reports: z.array(Report).min(1).max(50) }),
        example: { reports: [{ kind: 'crash', level: 'fatal', message: 'Index out of range', app_version: '1.4.0' }] },
        replies: { 202: data(z.strictObject({ accepted: z.int(), dropped: z.int() })) },
        refusals: { 400: ['BATCH_TOO_LARGE'] },
      }),
    ]),
    ...group('/admin/projects/:projectId/diagnostics', administrator, [
      route('GET /issues', 'Issues, last seen first', {
        call: 'diagnostics_issues',
        operationId: 'listIssues',
        description: '`app_version`: issues that have it. `day_counts` are the reports of the last 30 days (UTC).',
        query: {
          ...Page,
          status: Status.optional(),
          level: Level.optional(),
          app_version: Text(64).optional(),
        },
        replies: { 200: page(Issue) },
      }),
      route('GET /issues/:issueId', 'An issue', {
        call: 'diagnostics_issue',
        operationId: 'getIssue',
        replies: { 200: data(Issue) },
      }),
      route('PATCH /issues/:issueId', 'Resolve, ignore or open an issue', {
        call: 'diagnostics_issue_update',
        operationId: 'updateIssue',
        description: 'A resolved issue opens again by a report of a newer version than it has; an ignored one stays.',
        body: z.object({ status: Status.optional() }),
        words: { status: ['Status', 'Resolved issues open again by newer versions, ignored ones never.'] },
        example: { status: 'resolved' },
        replies: { 200: data(Issue) },
      }),
      route('GET /issues/:issueId/reports', 'The reports of an issue of the last 30 days, newest first', {
        call: 'diagnostics_issue_reports',
        operationId: 'listReports',
        query: { cursor: Cursor, limit: Limit() },
        replies: { 200: cursorPage(Stored) },
      }),
      route('GET /health', 'Whether the database, the queue, webhooks, realtime and the storage of a project work', {
        handle: health,
        operationId: 'getProjectHealth',
        replies: {
          200: data(
            z.strictObject({
              database: z.strictObject({ ok: z.boolean(), latency_ms: z.number(), schema_version: z.string() }),
              queue_lag_seconds: z.number(),
              outbox_pending: z.int(),
              webhook_dlq: z.int(),
              realtime_connections: z.int(),
              storage_ok: z.boolean(),
            }),
          ),
        },
      }),
    ]),
  ],
})
