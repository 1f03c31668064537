import { z } from 'zod'
import { administrator } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { SegmentRules } from '#server/http/grammars.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { Deleted, data, Json, Key, Limit, Line, Page, page, Text, Time, Uuid } from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const Kind = z.enum(['dynamic', 'static'], 'must be dynamic or static')
const Rules = SegmentRules.nullable()

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
const Member = answer('segment_user_json')
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
const example = { and: [{ source: 'property', column: 'plan.tier', op: 'eq', value: 'pro' }] }

const segmentForm: Form = {
  Basics: { name: true, key: true, description: true },
  Members: {
    kind: ['Kind', 'Dynamic: by rules, kept up to date. Static: users that you put in. It never changes.'],
    rules: ['Rules', 'Who belongs to a dynamic segment.', { unset: 'None, for a static segment' }],
    is_active: ['Active', 'Switched off, it has no members.'],
  },
}

export const segments = area({
  stem: 'segments',
  title: 'Segments',
  part: 'People',
  about: 'Groups of users by rules or by list, and their members.',
  routes: [
    ...group('/admin/projects/:projectId/segments', administrator, [
      route('POST /', 'Define a segment; at most 200', {
        form: segmentForm,
        defaultsOf: 'segment',
        call: 'segment_create',
        body: z.object({
          key: Key,
          name: Line(200, 1),
          kind: Kind.optional(),
          description: Text(2000).nullish(),
          rules: Rules.optional(),
          is_active: z.boolean().optional(),
        }),
        example: { key: 'pro_users', name: 'Pro users', rules: example },
        replies: { 201: data(Segment) },
      }),
      ...definitions('segment', {
        row: Segment,
        refusals: { get: notFound, delete: { ...notFound, 409: ['SEGMENT_IN_USE'] } },
        summaries: {
          list: 'Segments, newest first',
          get: 'A segment',
          delete: 'Delete a segment that nothing refers to',
        },
      }),
      route('POST /preview', 'Preview the users who match rules now, and the compiled SQL', {
        call: 'segment_preview',
        operationId: 'previewSegment',
        body: z.object({ rules: SegmentRules }),
        example: { rules: example },
        readOnly: true,
        replies: { 200: data(Preview) },
      }),
      route('PATCH /:idOrKey', 'Change a segment', {
        form: segmentForm,
        call: 'segment_update',
        body: z
          .object({ name: Line(200, 1), description: Text(2000).nullable(), rules: Rules, is_active: z.boolean() })
          .partial(),
        patch: true,
        example: { name: 'Paying users' },
        replies: { 200: data(Segment) },
      }),
      route('POST /:idOrKey/refresh', 'Evaluate now, in the background', {
        call: 'segment_refresh',
        replies: { 202: data(z.strictObject({ segment_id: Uuid, status: z.literal('queued') })) },
        failure: 'UPDATE_FAILED',
      }),
      route('GET /:idOrKey/history', 'Members by day', {
        call: 'segment_history',
        query: { days: Limit(366, 30) },
        replies: { 200: data(z.array(z.strictObject({ day: z.iso.date(), member_count: z.int() }))) },
        failure: 'FETCH_FAILED',
      }),
      route('GET /:idOrKey/members', 'Members, newest first; of a dynamic segment those of the last evaluation', {
        call: 'segment_members',
        query: Page,
        replies: { 200: page(z.strictObject({ app_user_id: Uuid, entered_at: Time, app_users: Member })) },
      }),
      route('POST /:idOrKey/members', 'Put users into a static segment', {
        call: 'segment_members_add',
        operationId: 'addSegmentMembers',
        body: z.object({ user_ids: z.array(Uuid).min(1, 'must be 1 to 1000 ids').max(1000, 'must be 1 to 1000 ids') }),
        example: { user_ids: ['00000000-0000-4000-8000-000000000000'] },
        replies: { 200: data(z.strictObject({ added: z.int(), unknown: z.array(Uuid) })) },
      }),
      route('DELETE /:idOrKey/members/:userId', 'Take a user out of a static segment', {
        call: 'segment_member_remove',
        operationId: 'removeSegmentMember',
        replies: { 200: Deleted },
      }),
      route('GET /:idOrKey/members/:userId/explain', 'Why a user is in a segment, or is not', {
        call: 'segment_explain',
        replies: { 200: data(Explanation) },
      }),
    ]),
    ...group('/admin/projects/:projectId/users', administrator, [
      route('GET /:userId/segments', 'Segments that a user is in, the newest first', {
        call: 'user_segments',
        description: 'Of dynamic segments the members of the last evaluation count.',
        replies: {
          200: data(
            z.array(
              z.strictObject({
                id: Uuid,
                key: z.string(),
                name: z.string(),
                kind: z.enum(['static', 'dynamic']),
                entered_at: Time,
              }),
            ),
          ),
        },
      }),
    ]),
  ],
})
