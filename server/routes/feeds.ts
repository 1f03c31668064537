import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import {
  Deleted,
  data,
  JsonObject,
  Limit,
  Moment,
  Offset,
  Page,
  page,
  SmallJson,
  Text,
  Time,
  Uuid,
} from '#server/http/schemas.ts'

const Action = z.string().regex(/^[a-z][a-z0-9_.]{0,63}$/, 'must match ^[a-z][a-z0-9_.]{0,63}$')
const Entry = z.strictObject({
  id: Uuid,
  actor_id: Uuid.nullable(),
  action: z.string(),
  target_id: z.string().nullable(),
  group_id: Uuid.nullable(),
  metadata: JsonObject,
  created_at: Time,
  actor: z.strictObject({ id: Uuid, display_name: z.string(), avatar_url: z.string().nullable() }).nullable(),
})
const NewEntry = z.object({
  action: Action,
  target_id: Text(255, 1).nullish(),
  group_id: Uuid.nullish(),
  metadata: SmallJson(4096).optional(),
})

const feedPage = { limit: Limit(200, 20), offset: Offset }

export const feeds = area({
  stem: 'feeds',
  title: 'Feeds',
  part: 'Social',
  about: 'Posts for everybody, for friends, for a group.',
  codes: 'by area',
  invalid: 'INVALID_INPUT',
  words: {
    action: ['Action', 'What happened, such as `workout.finished`.'],
    target_id: ['About', 'The id of what it is about.'],
    group_id: ['Group', 'Only its members see it.', { unset: 'Friends see it' }],
    as_user_id: ['As', 'The id of the user whose entry it is.'],
    system: ['System entry', 'It has no author.', { default: false }],
    events: ['Events', 'What becomes an entry by itself, such as `achievement.unlocked`.'],
  },
  routes: [
    ...group('/client/feeds', endUser, [
      route('GET /', "The caller's home feed: own entries, and those of friends and of the system; newest first", {
        call: 'feed_home',
        operationId: 'listFeedEntries',
        description:
          'With `since` the entries from that time on. Actions in the property `feed_hidden_actions` are left out.',
        query: { since: Moment.optional(), ...feedPage },
        replies: { 200: page(Entry) },
      }),
      route('GET /me', "The caller's own entries, newest first", {
        call: 'feed_own',
        operationId: 'listMyFeed',
        query: feedPage,
        replies: { 200: page(Entry) },
      }),
      route('GET /group/:groupId', 'What was posted to a group, newest first; for its members', {
        call: 'feed_of_group',
        operationId: 'listGroupFeed',
        query: feedPage,
        replies: { 200: page(Entry) },
      }),
      route('POST /', 'Post an entry; at most 30 an hour', {
        call: 'feed_post',
        operationId: 'createFeedEntry',
        codes: 'by part',
        description: 'Actions that system events make, such as `achievement.unlocked`, cannot be posted.',
        body: NewEntry,
        example: { action: 'workout.finished', target_id: '5k', metadata: { minutes: 27 } },
        replies: { 201: data(Entry) },
      }),
      route('DELETE /:entryId', "Delete one of the caller's entries", {
        call: 'feed_delete',
        operationId: 'deleteFeedEntry',
        codes: 'by part',
        replies: { 200: Deleted },
      }),
    ]),
    ...group('/admin/projects/:projectId/feeds', administrator, [
      route('POST /', 'Post an entry of a user, or of the system, which all users see', {
        call: 'feed_post_as',
        operationId: 'adminCreateFeedEntry',
        codes: 'by part',
        description: 'Send either `as_user_id` or `system: true`.',
        body: NewEntry.extend({ as_user_id: Uuid.optional(), system: z.boolean('must be true or false').optional() }),
        example: { system: true, action: 'season.started' },
        replies: { 201: data(Entry) },
      }),
      route('GET /', 'Entries of the project, newest first', {
        call: 'feed_entries',
        operationId: 'adminListFeedEntries',
        codes: 'by part',
        query: { user_id: Uuid.optional(), group_id: Uuid.optional(), action: Action.optional(), ...Page },
        replies: { 200: page(Entry) },
      }),
      route('DELETE /:entryId', 'Delete an entry of any user or of the system', {
        call: 'feed_remove',
        operationId: 'adminDeleteFeedEntry',
        codes: 'by part',
        replies: { 200: Deleted },
      }),
      route('PUT /settings', 'Set which system events make entries, by their actions', {
        call: 'feed_settings_put',
        codes: 'by part',
        body: z.object({ events: z.array(Action).max(100, 'must have at most 100 items') }),
        example: { events: ['achievement.unlocked', 'level.reached'] },
        replies: { 200: data(z.strictObject({ events: z.array(z.string()) })) },
      }),
    ]),
  ],
})
