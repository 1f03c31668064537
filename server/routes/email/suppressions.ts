import { z } from 'zod'
import { refusal } from '#server/errors.ts'
import { administrator, endUser } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import { Deleted, data, Email, JsonObject, Page, page } from '#server/http/schemas.ts'
import { Category, emailWords } from '#server/routes/email/shapes.ts'

const Reason = z.enum(
  ['bounce', 'complaint', 'unsubscribe', 'manual'],
  'must be bounce, complaint, unsubscribe or manual',
)
const Suppression = answer('email_suppression_json')
const Preferences = z.strictObject({
  categories: z.record(z.string(), z.boolean()),
  unsubscribed_all: z.boolean(),
})

const Choices = JsonObject.superRefine((chosen, context) => {
  const fail = (message: string) => context.addIssue({ code: 'custom', message })
  const entries = Object.entries(chosen)
  if (entries.length > 100) fail('must be at most 100')
  else if (!entries.every(([name]) => Category.safeParse(name).success && name !== 'transactional'))
    fail('must match ^[a-z][a-z0-9_-]{0,63}$, and not be transactional')
  else if (!entries.every(([, value]) => typeof value === 'boolean')) fail('must be true or false each')
})

/** In the query, or in the body for clients that send one with DELETE. */
const remove = ({ body, query, call }: HandlerContext) => {
  const address = body['address'] ?? query['address']
  if (address === undefined)
    throw refusal(400, 'VALIDATION_ERROR', 'address: is required', { field: 'address', reason: 'is required' })
  return call('email_suppression_delete', { address })
}

export const emailSuppressions = area({
  stem: 'email',
  title: 'Email',
  words: emailWords,
  routes: [
    ...group('/admin/projects/:projectId/email', administrator, [
      route('POST /suppressions', 'Suppress an address', {
        call: 'email_suppression_put',
        description:
          '`unsubscribe` stops mail of one category, or all that is not transactional. Every other reason stops everything.',
        body: z.object({ address: Email, reason: Reason.optional(), category: Category.nullish() }),
        example: { address: 'user@example.com', reason: 'unsubscribe', category: 'news' },
        replies: { 201: data(Suppression), 200: data(Suppression) },
      }),
      route('GET /suppressions', 'Suppressed addresses, newest first', {
        call: 'email_suppressions',
        query: { ...Page, address: Email.optional(), reason: Reason.optional() },
        replies: { 200: page(Suppression) },
      }),
      route('DELETE /suppressions', 'Delete all suppressions of an address', {
        handle: remove,
        operationId: 'deleteEmailSuppression',
        query: { address: Email.optional() },
        body: z.object({ address: Email.optional() }),
        example: { address: 'user@example.com' },
        replies: { 200: Deleted },
      }),
    ]),
    ...group('/client/email', endUser, [
      route('GET /preferences', 'Which mail the caller gets', {
        call: 'email_preferences',
        replies: { 200: data(Preferences) },
      }),
      route('PUT /preferences', 'Choose which mail the caller gets; categories that are not named stay', {
        call: 'email_preferences_put',
        body: z.object({
          categories: Choices.optional(),
          unsubscribed_all: z.boolean('must be true or false').optional(),
        }),
        example: { categories: { news: false }, unsubscribed_all: false },
        args: ({ body }) => ({
          categories: body['categories'] === undefined ? undefined : JSON.stringify(body['categories']),
        }),
        replies: { 200: data(Preferences) },
      }),
    ]),
  ],
})
