import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { asUserSignIn, perSubject, takeLimits } from '#server/http/limits.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { data, IncludeUser, Moment, Page, page, Text, Time, Uuid, withUser } from '#server/http/schemas.ts'

const AppSession = z.strictObject({
  id: Uuid,
  app_user_id: Uuid,
  started_at: Time,
  last_seen_at: Time,
  ended_at: Time.nullable(),
  duration_seconds: z.int().nullable(),
  platform: z.string().nullable(),
  app_version: z.string().nullable(),
  os_version: z.string().nullable(),
  device_model: z.string().nullable(),
  locale: z.string().nullable(),
  end_reason: z.enum(['client', 'timeout', 'replaced']).nullable(),
})
const word = Text(100).nullish()

const Stats = z.strictObject({
  period: z.enum(['24h', '7d', '30d', '90d']),
  dau: z.int(),
  period_active_users: z.int(),
  total_sessions: z.int(),
  avg_duration_seconds: z.number().nullable(),
  median_duration_seconds: z.number().nullable(),
  is_estimate: z.boolean(),
  margin: z.int(),
})
const Listed = AppSession.pick({
  id: true,
  app_user_id: true,
  started_at: true,
  ended_at: true,
  duration_seconds: true,
})

/** 10 starts a minute for each user. */
const start = async (context: HandlerContext) => {
  const perUser = perSubject('app session start', String(context.resolved.claims.userId), [10, 'minute'])
  await takeLimits(asUserSignIn(context), perUser, 'RATE_LIMITED')
  return context.call('app_session_start', context.body)
}

export const appSessions = area({
  stem: 'app_sessions',
  title: 'App sessions',
  part: 'People',
  about: 'How long and how often people use the app.',
  words: {
    id: ['Id', 'A uuid of your own: a start sent again with it counts once.', { unset: 'A new one' }],
    platform: ['Platform', 'Such as `ios`.'],
    app_version: ['App version', 'Such as `2.10.0`.'],
    os_version: ['System version', 'Such as `19.1`.'],
    device_model: ['Device', 'Such as `iPhone17,3`.'],
    locale: ['Language', 'Such as `de-AT`.'],
    started_at: ['Started at', 'When the app was opened.', { unset: 'Now' }],
    ended_at: ['Ended at', 'When the app was left.', { unset: 'Now' }],
  },
  routes: [
    ...group('/client/sessions', endUser, [
      route('POST /start', 'Start an app session; with an id from the client a retry is idempotent', {
        handle: start,
        calls: ['app_session_start'],
        operationId: 'startAppSession',
        description: 'An open session on the same device (`platform` and `device_model`) ends as `replaced`.',
        body: z.object({
          id: Uuid.optional(),
          platform: word,
          app_version: word,
          os_version: word,
          device_model: word,
          locale: word,
          started_at: Moment.optional(),
        }),
        example: { platform: 'ios', app_version: '2.1.0', device_model: 'iPhone17,1' },
        replies: { 200: data(AppSession), 201: data(AppSession) },
        refusals: { 404: ['NOT_FOUND'] },
      }),
      route('POST /:sessionId/heartbeat', 'Heartbeat of a session: every 60 seconds in the foreground', {
        call: 'app_session_heartbeat',
        operationId: 'heartbeatAppSession',
        replies: { 200: data(AppSession) },
      }),
      route('POST /:sessionId/end', 'End a session; ending it again returns the same row', {
        call: 'app_session_finish',
        operationId: 'endAppSession',
        body: z.object({ ended_at: Moment.optional() }),
        replies: { 200: data(AppSession) },
      }),
    ]),
  ],
})

export const sessionAnalytics = area({
  stem: 'app_sessions',
  title: 'App sessions',
  codes: 'by area',
  invalid: 'INVALID_INPUT',
  routes: [
    ...group('/admin/projects/:projectId/sessions', administrator, [
      route('GET /', 'Users and sessions of a period; dau is always of the last 24 hours', {
        operationId: 'getAppSessionAnalytics',
        description:
          'Of many sessions the figures are estimates from a sample of users: then `is_estimate` is true, and `period_active_users` is within `margin` in 95 of 100 samples.',
        query: {
          period: z
            .string()
            .max(100)
            .default('7d')
            .meta({ enum: ['24h', '7d', '30d', '90d'] }),
        },
        invalidQuery: 'INVALID_PERIOD',
        handle: ({ call, query }) => call('app_sessions_stats', { period: query['period'] }, { timeoutMs: 30_000 }),
        replies: { 200: data(Stats) },
      }),
      route('GET /list', 'Sessions of all users, newest first', {
        call: 'app_sessions_list',
        operationId: 'listAppSessions',
        query: { ...IncludeUser, ...Page },
        replies: { 200: page(withUser(Listed)) },
      }),
    ]),
    ...group('/admin/projects/:projectId/users', administrator, [
      route('GET /:userId/sessions', 'Sessions of a user in the app with their devices, newest first', {
        call: 'user_app_sessions',
        operationId: 'listUserAppSessions',
        codes: 'by part',
        query: Page,
        replies: { 200: page(AppSession) },
      }),
    ]),
  ],
})
