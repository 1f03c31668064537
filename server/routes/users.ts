import { z } from 'zod'
import { deleteAccount } from '#server/accounts/end_users.ts'
import { Code } from '#server/accounts/one_time_codes.ts'
import { projectOf } from '#server/accounts/sessions.ts'
import { endUser, sessionUser } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { data, JsonObject, Limit, Line, Text, Uuid } from '#server/http/schemas.ts'
import { User } from '#server/routes/client_auth/shapes.ts'
import { getMe } from '#server/users/profile.ts'

/** Properties of `properties.public` are added to these. */
const Profile = z.looseObject({ id: Uuid, display_name: z.string(), avatar_url: z.string().nullable() })

export const users = area({
  stem: 'users',
  title: 'Users',
  codes: 'by area',
  invalid: 'INVALID_INPUT',
  words: {
    confirm: ['Confirmation', 'The word DELETE.'],
    code: ['Code', 'Six digits from a mail.'],
    properties: ['Properties', 'Keys are merged; null removes one.'],
  },
  routes: [
    ...group('/client/users', endUser, [
      route('GET /me', "The caller's profile", {
        operationId: 'getMe',
        description:
          'A valid IANA zone in X-Service-Timezone, or else in Time-Zone, is stored when the profile has none.',
        handle: getMe,
        calls: ['me_get'],
        replies: { 200: data(User) },
      }),
      route('PATCH /me', "Change the caller's profile", {
        call: 'me_update',
        operationId: 'updateMe',
        description:
          'Only `display_name`, `avatar_url`, `properties` and `timezone` are changed. `properties` are merged at the top level; a null removes its key.',
        body: z.looseObject({}),
        documentedBody: z.object({
          display_name: Line(100, 1).optional(),
          avatar_url: Text(2048, 1).nullable().optional(),
          properties: JsonObject.optional(),
          timezone: z.string().optional(),
        }),
        example: { display_name: 'Ada', properties: { level: 3 }, timezone: 'Europe/Berlin' },
        patch: true,
        replies: { 200: data(User) },
      }),
      route('DELETE /me', "Delete the caller's account with all of its data", {
        handle: deleteAccount,
        calls: ['me_delete'],
        operationId: 'deleteMe',
        caller: sessionUser,
        codes: 'by part',
        description:
          'Needs `confirm: "DELETE"` in the body or the query. A user with an identity must have signed in less than 10 minutes ago, or send a `code` that was requested with purpose `delete`.',
        query: { confirm: z.string().optional(), code: Code.optional() },
        body: z.looseObject({ confirm: z.unknown().optional(), code: Code.optional() }),
        documentedBody: z.object({ confirm: z.literal('DELETE').optional(), code: Code.optional() }),
        example: { confirm: 'DELETE' },
        replies: { 200: data(z.strictObject({ deleted: z.literal(true) })) },
      }),
      route('GET /search', 'Users by the beginning of their name, if the project allows it', {
        codes: 'by part',
        description: '`q`: two characters or more. 403 unless the project has `user_search_enabled`.',
        query: { q: Text(100).optional(), limit: Limit(50, 20) },
        handle: ({ call, query, resolved }) =>
          call('users_search', {
            q: query['q'],
            page_limit: query['limit'],
            is_enabled: projectOf(resolved).userSearchEnabled,
          }),
        calls: ['users_search'],
        replies: { 200: data(z.array(Profile)) },
      }),
      route('GET /:userId', "A user's public profile", {
        call: 'user_profile',
        codes: 'by part',
        replies: { 200: data(Profile) },
      }),
    ]),
  ],
})
