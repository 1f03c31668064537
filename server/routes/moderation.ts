import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { answer, fieldsOf } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { data, IncludeUser, JsonObject, Page, page, Text, Time, Uuid, withUser } from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const subjectTypes = ['user', 'message', 'review', 'media', 'feed_entry', 'group', 'collection_row', 'content'] as const
const SubjectType = z.enum(subjectTypes, `must be one of ${subjectTypes.join(', ')}`)
const reasons = ['spam', 'abuse', 'sexual', 'violence', 'self_harm', 'copyright', 'other'] as const
const Reason = z.enum(reasons, `must be one of ${reasons.join(', ')}`)
const statuses = ['pending', 'approved', 'rejected', 'escalated'] as const
const Status = z.enum(statuses, `must be one of ${statuses.join(', ')}`)
const ReportStatus = z.enum(['received', 'action_taken', 'no_action'])
const ruleTypes = ['keyword', 'regex', 'report_threshold', 'rate', 'link', 'new_account'] as const
const levels = ['new', 'trusted', 'moderator'] as const
const Level = z.enum(levels, `must be one of ${levels.join(', ')}`)

const Rule = fieldsOf('moderation_rule', { rule_type: z.enum(ruleTypes, `must be one of ${ruleTypes.join(', ')}`) })
const Item = answer('moderation_item_json', {
  subject_type: z.enum([...subjectTypes, 'ai_invocation']),
  snapshot: JsonObject,
  reasons: JsonObject,
  status: Status,
})
/** Named, because the rows of the queue may have a user and are another schema. */
const ItemReply = data(Item).meta({ title: 'ModerationQueueReply' })
const Report = answer('moderation_report_json', { subject_type: SubjectType, reason: Reason })
const Received = z.strictObject({ id: Uuid, status: ReportStatus })
const Trust = answer('moderation_trust_json', { trust_level: Level })
const Tested = z.strictObject({
  matches: z.boolean(),
  found: z.array(z.string()),
  action: z.enum(['queue', 'hide', 'block']),
  is_active: z.boolean(),
})
const Simulated = z.strictObject({
  days: z.int(),
  checked: z.int(),
  caught: z.int(),
  by_kind: JsonObject,
  is_complete: z.boolean(),
})

const ruleId = { ruleId: Uuid }
const Note = { note: Text(2000).optional() }
const anId = '00000000-0000-4000-8000-000000000000'

const move = (
  verb: 'approve' | 'reject' | 'escalate',
  summary: string,
  body: z.ZodType,
  example: Record<string, unknown>,
) =>
  route(`POST /queue/:itemId/${verb}`, summary, {
    call: `moderation_${verb}`,
    operationId: `${verb}ModerationItem`,
    body,
    example,
    replies: { 200: ItemReply },
  })

const ruleForm: Form = {
  Basics: { name: true },
  Rule: {
    rule_type: ['Kind', 'What it looks for: words, a pattern, links, too many texts, new accounts, or reports.'],
    config: ['Settings', 'The fields of its kind, `applies_to` and `action`: queue, hide or block.'],
    is_active: true,
  },
}

export const moderation = area({
  stem: 'moderation',
  title: 'Moderation',
  part: 'Social',
  about: 'Reports, the queue of content to review, and rules.',
  codes: 'by area',
  invalid: 'INVALID_INPUT',
  words: {
    note: ['Note', 'For other moderators.'],
    action: ['Against the author', 'Nothing, a warning, silence for a day, or a ban.', { default: 'none' }],
    text: ['Text', 'A text to try the rule on.'],
    days: ['Days', 'How many of the last days are looked at.'],
    trust_level: ['Trust', 'Kept for your own use; the queue does not read it.', { unset: 'As it is' }],
    auto_approve: ['Approve at once', 'Kept for your own use; the queue does not read it.', { unset: 'As it is' }],
    subject_type: ['What is reported', 'A user, or something that a user wrote.'],
    subject_id: ['Id', 'The id of it.'],
    reason: ['Reason', 'What is wrong with it.'],
    details: ['Details', 'In own words.'],
  },
  routes: [
    ...group('/admin/projects/:projectId/moderation', administrator, [
      route('GET /queue', 'Items of the queue with a status, newest first', {
        call: 'moderation_queue',
        description: '`include=user` adds the user of `subject_user_id`.',
        query: { status: Status.default('pending'), ...IncludeUser, ...Page },
        replies: { 200: page(withUser(Item)) },
      }),
      move('approve', 'The content stays; what was hidden is shown again', z.object(Note), { note: 'Satire' }),
      move(
        'reject',
        'The content is removed; with `action` its author is warned, muted for 24 hours or banned',
        z.object({
          ...Note,
          action: z.enum(['none', 'warn', 'mute_24h', 'ban'], 'must be none, warn, mute_24h or ban').optional(),
        }),
        { action: 'warn' },
      ),
      move('escalate', 'Leave a pending item to somebody else', z.object(Note), {}),
      ...definitions('moderation_rule', {
        form: ruleForm,
        path: '/rules',
        id: ruleId,
        fields: Rule,
        row: z.strictObject({ id: Uuid, ...Rule, created_at: Time, updated_at: Time }),
        refusals: { create: { 409: ['LIMIT_REACHED'] } },
        example: {
          create: {
            name: 'No spam',
            rule_type: 'keyword',
            config: { words: ['casino'], match: 'word', applies_to: ['display_name'], action: 'queue' },
          },
          update: { is_active: false },
        },
        summaries: {
          create: {
            summary: 'Define a rule; at most 50',
            description:
              '`config` depends on `rule_type`; `applies_to` and `action` (`queue`, `hide`, `block`) stand in it.',
          },
          list: 'Rules, newest first',
          update: 'Change a rule',
          delete: 'Delete a rule; what it queued stays',
        },
      }),
      route('POST /rules/:ruleId/test', 'Whether a text matches a rule', {
        call: 'moderation_rule_test',
        codes: 'by part',
        invalid: 'VALIDATION_ERROR',
        invalidBody: 'INVALID_BODY',
        body: z.object({ text: Text(10_000, 1) }),
        example: { text: 'Visit my casino' },
        readOnly: true,
        replies: { 200: data(Tested) },
      }),
      route('POST /rules/:ruleId/simulate', 'How many texts of the last days a rule would have matched', {
        call: 'moderation_rule_simulate',
        codes: 'by part',
        invalid: 'VALIDATION_ERROR',
        invalidBody: 'INVALID_BODY',
        body: z.object({ days: z.int().min(1).max(90).optional() }),
        example: { days: 7 },
        readOnly: true,
        replies: { 200: data(Simulated) },
      }),
      route('POST /trust', 'Set the trust level of a user', {
        call: 'moderation_trust_put',
        operationId: 'setModerationTrust',
        description: 'Trust levels are stored and listed; the queue does not use them.',
        body: z.object({ app_user_id: Uuid, trust_level: Level.optional(), auto_approve: z.boolean().optional() }),
        example: { app_user_id: anId, trust_level: 'trusted' },
        args: ({ body }) => ({ patch: body, trust_level: undefined, auto_approve: undefined }),
        replies: { 200: data(Trust) },
        failure: 'UPSERT_FAILED',
      }),
      route('GET /trust', 'Trust levels of users, newest first', {
        call: 'moderation_trust_list',
        query: { ...IncludeUser, ...Page },
        replies: { 200: page(withUser(Trust)) },
      }),
    ]),
    ...group('/client/moderation', endUser, [
      route('POST /reports', 'Report content or a user; at most 30 a day', {
        call: 'moderation_report',
        codes: 'by part',
        invalid: 'VALIDATION_ERROR',
        invalidBody: 'INVALID_BODY',
        description: '200 when the caller has reported the same already.',
        body: z.object({ subject_type: SubjectType, subject_id: Uuid, reason: Reason, details: Text(1000).optional() }),
        example: { subject_type: 'user', subject_id: anId, reason: 'spam' },
        replies: { 200: data(Received), 201: data(Received) },
      }),
      route('GET /reports', "The caller's reports, newest first", {
        call: 'moderation_reports',
        codes: 'by part',
        invalidQuery: 'INVALID_INPUT',
        query: Page,
        replies: { 200: page(Report) },
      }),
    ]),
  ],
})
