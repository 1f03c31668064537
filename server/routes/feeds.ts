import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { area, route } from '#server/http/route.ts'
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
const admin = '/admin/projects/:projectId/feeds' as const

export const feeds = area({
  stem: 'feeds',
  title: 'Feeds',
  part: 'Social',
  about: 'Posts for everybody, for friends, for a group.',
  source: 'contract',
  invalid: 'INVALID_INPUT',
  routes: [
    route('GET /client/feeds', {
      operationId: 'listFeedEntries',
      caller: endUser,
      summary: "The caller's home feed: own entries, and those of friends and of the system; newest first",
      description:
        'With `since` the entries from that time on. Actions in the property `feed_hidden_actions` are left out.',
      query: { since: Moment.optional(), ...feedPage },
      call: 'feed_home',
      replies: { 200: page(Entry) },
    }),
    route('GET /client/feeds/me', {
      operationId: 'listMyFeed',
      caller: endUser,
      summary: "The caller's own entries, newest first",
      query: feedPage,
      call: 'feed_own',
      replies: { 200: page(Entry) },
    }),
    route('GET /client/feeds/group/:groupId', {
      operationId: 'listGroupFeed',
      caller: endUser,
      summary: 'What was posted to a group, newest first; for its members',
      query: feedPage,
      call: 'feed_of_group',
      replies: { 200: page(Entry) },
    }),
    route('POST /client/feeds', {
      operationId: 'createFeedEntry',
      caller: endUser,
      source: 'supplement',
      summary: 'Post an entry; at most 30 an hour',
      description: 'Actions that system events make, such as `achievement.unlocked`, cannot be posted.',
      body: NewEntry,
      example: { action: 'workout.finished', target_id: '5k', metadata: { minutes: 27 } },
      call: 'feed_post',
      replies: { 201: data(Entry) },
    }),
    route('DELETE /client/feeds/:entryId', {
      operationId: 'deleteFeedEntry',
      caller: endUser,
      source: 'supplement',
      summary: "Delete one of the caller's entries",
      call: 'feed_delete',
      replies: { 200: Deleted },
    }),
    route(`POST ${admin}`, {
      operationId: 'adminCreateFeedEntry',
      caller: administrator,
      source: 'supplement',
      summary: 'Post an entry of a user, or of the system, which all users see',
      description: 'Send either `as_user_id` or `system: true`.',
      body: NewEntry.extend({ as_user_id: Uuid.optional(), system: z.boolean('must be true or false').optional() }),
      example: { system: true, action: 'season.started' },
      call: 'feed_post_as',
      replies: { 201: data(Entry) },
    }),
    route(`GET ${admin}`, {
      operationId: 'adminListFeedEntries',
      caller: administrator,
      source: 'supplement',
      summary: 'Entries of the project, newest first',
      query: { user_id: Uuid.optional(), group_id: Uuid.optional(), action: Action.optional(), ...Page },
      call: 'feed_entries',
      replies: { 200: page(Entry) },
    }),
    route(`DELETE ${admin}/:entryId`, {
      operationId: 'adminDeleteFeedEntry',
      caller: administrator,
      source: 'supplement',
      summary: 'Delete an entry of any user or of the system',
      call: 'feed_remove',
      replies: { 200: Deleted },
    }),
    route(`PUT ${admin}/settings`, {
      caller: administrator,
      source: 'supplement',
      summary: 'Set which system events make entries, by their actions',
      body: z.object({ events: z.array(Action).max(100, 'must have at most 100 items') }),
      example: { events: ['achievement.unlocked', 'level.reached'] },
      call: 'feed_settings_put',
      replies: { 200: data(z.strictObject({ events: z.array(z.string()) })) },
    }),
  ],
})
