import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { between, Deleted, data, Page, page, Text, Time, Uuid } from '#server/http/schemas.ts'
import { isLine } from '#server/lines.ts'

const statuses = ['pending', 'published', 'rejected', 'hidden'] as const
const Status = z.enum(statuses, `must be one of ${statuses.join(', ')}`)
const SubjectType = z
  .string()
  .regex(
    /^(catalog_item|content|app|user|collection:[a-z][a-z0-9_]{0,62})$/,
    'must be catalog_item, content, app, user or collection:<name>',
  )
const SubjectId = Text(255, 1)
/** One line; white space alone, of whatever kind, is no title. */
const Title = Text(120).refine((text) => !text.trim() || isLine(text), 'must be one line of text')
const reasons = ['spam', 'abuse', 'sexual', 'violence', 'self_harm', 'copyright', 'other'] as const
/** A rating in a query: one digit. */
const Rating = z
  .string()
  .regex(/^[1-5]$/, 'must be a whole number of 1 to 5')
  .transform(Number)
  .optional()
  .meta({ type: 'integer', minimum: 1, maximum: 5 })

const Review = z.strictObject({
  id: Uuid,
  app_user_id: Uuid,
  subject_type: z.string(),
  subject_id: Uuid,
  rating: z.int().min(1).max(5),
  title: z.string().nullable(),
  body: z.string().nullable(),
  status: Status,
  helpful_count: z.int(),
  reply: z.strictObject({ body: z.string(), at: Time }).nullable(),
  locale: z.string().nullable(),
  app_version: z.string().nullable(),
  created_at: Time,
  updated_at: Time,
  user: z.strictObject({ id: Uuid, display_name: z.string().nullable(), avatar_url: z.string().nullable() }),
})
const Shown = Review.extend({ voted: z.boolean() })
const Summary = z.strictObject({
  average: z.number().nullable(),
  count: z.int(),
  histogram: z.strictObject({ '1': z.int(), '2': z.int(), '3': z.int(), '4': z.int(), '5': z.int() }),
})
const Voted = data(z.strictObject({ id: Uuid, helpful_count: z.int(), voted: z.boolean() }))
const Received = data(z.strictObject({ id: Uuid, status: z.enum(['received', 'action_taken', 'no_action']) }))
const Settings = z.strictObject({
  reviews_auto_publish: z.boolean(),
  reviews_require_purchase: z.boolean(),
  prompt: z.strictObject({ segment_id: Uuid.nullable(), min_sessions: z.int(), gap_days: z.int() }),
})

const subject = z
  .string()
  .max(150, 'must have at most 150 characters')
  .optional()
  .describe('A type, or a type and an id: `catalog_item:<uuid>`, `collection:notes`, `collection:notes:<uuid>`')

/** The language and the version of the app by the headers, where the body has none; an invalid version counts as absent. */
const told = ({ headers }: FastifyRequest) => {
  const version = headers['x-app-version']
  return {
    accept_language: headers['accept-language'],
    app_version: typeof version === 'string' && /^[\x20-\x7e]{1,64}$/.test(version) ? version : undefined,
  }
}

export const reviews = area({
  stem: 'reviews',
  title: 'Reviews',
  part: 'Social',
  about: 'What users think of items, content, each other and the app: ratings, replies, votes.',
  words: {
    subject_type: ['What is reviewed', 'The kind of the subject.'],
    subject_id: ['Id', 'The id of the subject, or the key of an item or an entry.', { unset: 'The app' }],
    rating: ['Rating', 'Stars, 1 to 5.'],
    title: ['Title', 'The review in a few words.'],
    body: ['Text', 'What the user or the developer has to say.'],
    locale: ['Language', 'The language of the text.', { unset: 'The first of Accept-Language' }],
    app_version: ['App version', 'Such as `1.4.0`.', { unset: 'X-App-Version' }],
    status: ['Status', 'Users see published reviews.'],
    reason: ['Reason', 'What is wrong with it.'],
    details: ['Details', 'In own words.'],
    reviews_auto_publish: ['Publish at once', 'Reviews that no moderation rule catches.', { default: true }],
    reviews_require_purchase: [
      'Buyers only',
      'Items are reviewed by users who were given or bought them.',
      { default: false },
    ],
    prompt: ['Prompt', 'Whom an app may ask for a review in the app store.', { unset: 'As it is' }],
    'prompt.segment_id': ['Segment', 'Only its members are asked.', { unset: 'Everybody' }],
    'prompt.min_sessions': ['Sessions', 'How many sessions a user has had before.', { default: 3 }],
    'prompt.gap_days': ['Gap', 'Days between two prompts; 0 for none.', { default: 90 }],
  },
  routes: [
    ...group('/client/reviews', endUser, [
      route('PUT /', "Write the caller's review of a subject; at most 20 a day", {
        call: 'review_put',
        operationId: 'writeReview',
        description:
          'The whole review: 201 when it is new, 200 when it takes the place of the former one. A review that a moderation rule catches waits in the queue.',
        body: z.object({
          subject_type: SubjectType,
          subject_id: SubjectId.nullish(),
          rating: between(1, 5),
          title: Title.nullish(),
          body: Text(4000).nullish(),
          locale: Text(35, 1).nullish(),
          app_version: Text(64, 1).nullish(),
        }),
        headers: { 'Accept-Language': z.string().optional(), 'X-App-Version': z.string().optional() },
        args: ({ body, request }) => {
          const { accept_language, app_version } = told(request)
          return { ...body, accept_language, app_version: body['app_version'] ?? app_version }
        },
        example: { subject_type: 'app', rating: 5, title: 'Works', body: 'It does what it says.' },
        replies: { 200: data(Shown), 201: data(Shown) },
      }),
      route('GET /', 'The published reviews of a subject, with their summary', {
        call: 'reviews_list',
        operationId: 'listReviews',
        description: 'The summary is of all published reviews of the subject, whatever the filter.',
        query: {
          subject_type: SubjectType,
          subject_id: SubjectId.optional().describe('May be left out for `app`'),
          sort: z.enum(['newest', 'helpful', 'rating'], 'must be newest, helpful or rating').default('newest'),
          rating: Rating,
          ...Page,
        },
        replies: { 200: page(Shown).extend({ summary: Summary }) },
      }),
      route('GET /mine', "The caller's reviews in every status, newest first", {
        call: 'reviews_mine',
        operationId: 'listMyReviews',
        query: Page,
        replies: { 200: page(Shown) },
      }),
      route('GET /prompt', 'Whether the caller may be asked for a review in the app store now', {
        call: 'review_prompt',
        operationId: 'getReviewPrompt',
        replies: {
          200: data(
            z.strictObject({
              should_prompt: z.boolean(),
              reason: z.enum(['ok', 'not_in_segment', 'too_few_sessions', 'shown_recently']),
            }),
          ),
        },
      }),
      route('POST /prompt-shown', 'Note that the caller was asked for a review in the app store', {
        call: 'review_prompt_shown',
        operationId: 'noteReviewPrompt',
        replies: { 201: data(z.strictObject({ shown_at: Time })) },
      }),
      route('DELETE /:reviewId', "Delete one of the caller's reviews", {
        call: 'review_delete_own',
        operationId: 'deleteReview',
        replies: { 200: Deleted },
      }),
      route('POST /:reviewId/helpful', 'Vote for a review as helpful', {
        call: 'review_helpful',
        operationId: 'voteForReview',
        description: '201 the first time, 200 again.',
        replies: { 200: Voted, 201: Voted },
      }),
      route('DELETE /:reviewId/helpful', 'Take the vote back', {
        call: 'review_not_helpful',
        operationId: 'unvoteReview',
        replies: { 200: Voted },
      }),
      route('POST /:reviewId/report', 'Report a review; at most 30 reports a day', {
        call: 'review_report',
        operationId: 'reportReview',
        description: 'As POST /v1/client/moderation/reports: 200 when the caller has reported it already.',
        body: z.object({
          reason: z.enum(reasons, `must be one of ${reasons.join(', ')}`),
          details: Text(1000).optional(),
        }),
        example: { reason: 'spam' },
        replies: { 200: Received, 201: Received },
      }),
    ]),
    ...group('/admin/projects/:projectId/reviews', administrator, [
      route('GET /', 'The reviews of the project, newest first', {
        call: 'reviews_all',
        operationId: 'adminListReviews',
        query: { status: Status.optional(), rating: Rating, user_id: Uuid.optional(), subject, ...Page },
        replies: { 200: page(Review) },
      }),
      route('GET /summary', 'The summary of the project, or of one subject or type', {
        call: 'reviews_summary',
        operationId: 'getReviewsSummary',
        query: { subject },
        replies: {
          200: data(
            Summary.extend({
              by_status: z.strictObject({
                pending: z.int(),
                published: z.int(),
                rejected: z.int(),
                hidden: z.int(),
              }),
            }),
          ),
        },
      }),
      route('GET /settings', 'The settings of reviews', {
        call: 'review_settings_get',
        operationId: 'getReviewSettings',
        replies: { 200: data(Settings) },
      }),
      route('PUT /settings', 'Set how reviews are published, who writes them, and who is asked for one', {
        call: 'review_settings_put',
        operationId: 'setReviewSettings',
        description: 'Fields that are left out stay as they are, those of `prompt` too.',
        body: z.object({
          reviews_auto_publish: z.boolean().optional(),
          reviews_require_purchase: z.boolean().optional(),
          prompt: z
            .object({
              segment_id: Uuid.nullable().optional(),
              min_sessions: between(0, 1000).optional(),
              gap_days: between(0, 3650).optional(),
            })
            .optional(),
        }),
        args: ({ body }) => ({
          patch: body,
          reviews_auto_publish: undefined,
          reviews_require_purchase: undefined,
          prompt: undefined,
        }),
        example: { reviews_require_purchase: true },
        replies: { 200: data(Settings) },
      }),
      route('PATCH /:reviewId', 'Publish, reject or hide a review', {
        call: 'review_update',
        operationId: 'updateReview',
        description:
          'pending to published or rejected, published to hidden, hidden and rejected to published; the same status again changes nothing.',
        body: z.object({ status: Status }),
        example: { status: 'hidden' },
        replies: { 200: data(Review) },
      }),
      route('DELETE /:reviewId', 'Delete a review of any user', {
        call: 'review_delete',
        operationId: 'adminDeleteReview',
        replies: { 200: Deleted },
      }),
      route('PUT /:reviewId/reply', 'Answer a review; a second reply takes the place of the first', {
        call: 'review_reply',
        operationId: 'replyToReview',
        body: z.object({ body: Text(4000, 1) }),
        example: { body: 'Thank you!' },
        replies: { 200: data(Review) },
      }),
      route('DELETE /:reviewId/reply', 'Delete the reply to a review', {
        call: 'review_reply_delete',
        operationId: 'deleteReviewReply',
        replies: { 200: Deleted },
      }),
    ]),
  ],
})
