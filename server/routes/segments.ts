import { z } from 'zod'
import { administrator } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { area, route } from '#server/http/route.ts'
import {
  Deleted,
  data,
  Json,
  JsonObject,
  Key,
  Limit,
  Line,
  Page,
  page,
  Text,
  Time,
  Uuid,
} from '#server/http/schemas.ts'

const Kind = z.enum(['dynamic', 'static'], 'must be dynamic or static')
const Rules = JsonObject.nullable()

const Segment = z.strictObject({
  id: Uuid,
  key: z.string(),
  name: z.string(),
  description: z.string().nullable(),
  kind: Kind,
  rules: Rules,
  member_count: z.int(),
  last_evaluated_at: Time.nullable(),
  is_active: z.boolean(),
  created_at: Time,
  updated_at: Time,
})
const Member = z.strictObject({
  id: Uuid,
  email: z.string().nullable(),
  external_id: z.string().nullable(),
  display_name: z.string(),
  avatar_url: z.string().nullable(),
})
const Preview = z.strictObject({
  count: z.int(),
  is_estimate: z.boolean(),
  margin: z.int(),
  sample: z.array(Member).max(10),
  sql: z.string(),
  explain: z.strictObject({ cost: z.number(), rows: z.number() }),
})
const Explanation = z.strictObject({
  member: z.boolean(),
  leaves: z.array(z.strictObject({ path: z.string(), matched: z.boolean(), actual: Json })),
})

const notFound = { 404: ['NOT_FOUND'] }
const segment = '/admin/projects/:projectId/segments' as const
const example = { and: [{ source: 'property', column: 'plan.tier', op: 'eq', value: 'pro' }] }

export const segments = area({
  stem: 'segments',
  title: 'Segments',
  part: 'People',
  about: 'Groups of users by rules or by list, and their members.',
  source: 'supplement',
  routes: [
    route(`POST ${segment}`, {
      caller: administrator,
      summary: 'Define a segment; at most 200',
      body: z.object({
        key: Key,
        name: Line(200, 1),
        kind: Kind.optional(),
        description: Text(2000).nullish(),
        rules: Rules.optional(),
        is_active: z.boolean().optional(),
      }),
      example: { key: 'pro_users', name: 'Pro users', rules: example },
      call: 'segment_create',
      replies: { 201: data(Segment) },
    }),
    ...definitions('segment', {
      path: '/segments',
      row: Segment,
      refusals: { get: notFound, delete: { ...notFound, 409: ['SEGMENT_IN_USE'] } },
      summaries: {
        list: 'Segments, newest first',
        get: 'A segment',
        delete: 'Delete a segment that nothing refers to',
      },
    }),
    route(`POST ${segment}/preview`, {
      operationId: 'previewSegment',
      caller: administrator,
      summary: 'Preview the users who match rules now, and the compiled SQL',
      body: z.object({ rules: JsonObject }),
      example: { rules: example },
      call: 'segment_preview',
      readOnly: true,
      replies: { 200: data(Preview) },
    }),
    route(`PATCH ${segment}/:idOrKey`, {
      caller: administrator,
      summary: 'Change a segment',
      body: z
        .object({ name: Line(200, 1), description: Text(2000).nullable(), rules: Rules, is_active: z.boolean() })
        .partial(),
      patch: true,
      example: { name: 'Paying users' },
      call: 'segment_update',
      replies: { 200: data(Segment) },
    }),
    route(`POST ${segment}/:idOrKey/refresh`, {
      caller: administrator,
      summary: 'Evaluate now, in the background',
      call: 'segment_refresh',
      replies: { 202: data(z.strictObject({ segment_id: Uuid, status: z.literal('queued') })) },
      failure: 'UPDATE_FAILED',
    }),
    route(`GET ${segment}/:idOrKey/history`, {
      caller: administrator,
      summary: 'Members by day',
      query: { days: Limit(366, 30) },
      call: 'segment_history',
      replies: { 200: data(z.array(z.strictObject({ day: z.iso.date(), member_count: z.int() }))) },
      failure: 'FETCH_FAILED',
    }),
    route(`GET ${segment}/:idOrKey/members`, {
      caller: administrator,
      summary: 'Members, newest first; of a dynamic segment those of the last evaluation',
      query: Page,
      call: 'segment_members',
      replies: { 200: page(z.strictObject({ app_user_id: Uuid, entered_at: Time, app_users: Member })) },
    }),
    route(`POST ${segment}/:idOrKey/members`, {
      operationId: 'addSegmentMembers',
      caller: administrator,
      summary: 'Put users into a static segment',
      body: z.object({ user_ids: z.array(Uuid).min(1, 'must be 1 to 1000 ids').max(1000, 'must be 1 to 1000 ids') }),
      example: { user_ids: ['00000000-0000-4000-8000-000000000000'] },
      call: 'segment_members_add',
      replies: { 200: data(z.strictObject({ added: z.int(), unknown: z.array(Uuid) })) },
    }),
    route(`DELETE ${segment}/:idOrKey/members/:userId`, {
      operationId: 'removeSegmentMember',
      caller: administrator,
      summary: 'Take a user out of a static segment',
      call: 'segment_member_remove',
      replies: { 200: Deleted },
    }),
    route(`GET ${segment}/:idOrKey/members/:userId/explain`, {
      caller: administrator,
      summary: 'Why a user is in a segment, or is not',
      call: 'segment_explain',
      replies: { 200: data(Explanation) },
    }),
  ],
})
