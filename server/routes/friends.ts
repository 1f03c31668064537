import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { area, group, route } from '#server/http/route.ts'
import { Deleted, data, JsonObject, Page, page, SmallJson, Text, Time, Uuid } from '#server/http/schemas.ts'

const Person = z.strictObject({ id: Uuid, display_name: z.string(), avatar_url: z.string().nullable() })
const Status = z.enum(
  ['accepted', 'pending_incoming', 'pending_outgoing'],
  'must be accepted, pending_incoming or pending_outgoing',
)
const Friend = z.strictObject({ user: Person, status: Status, since: Time, metadata: JsonObject })
const FriendOf = z.strictObject({ user_id: Uuid, friend_id: Uuid, friend: Person, status: Status, since: Time })
const Online = z
  .enum(['true', 'false'], 'must be true or false')
  .transform((text) => text === 'true')
  .optional()
  .meta({ type: 'boolean' })
const Code = z.strictObject({ code: z.string() })
const Block = z.strictObject({ user: Person, created_at: Time })

const nobody = '00000000-0000-4000-8000-000000000000'

export const friends = area({
  stem: 'friends',
  title: 'Friends',
  part: 'Social',
  about: 'Requests, friends, blocks and suggestions.',
  words: {
    friend_code: ['Friend code', 'The code that the other user shows; or a user id.'],
    status: ['Status', 'Friends at once, or a request that waits.'],
    friend_id: ['Friend', 'The id of the other user.'],
  },
  routes: [
    ...group('/client/friends', endUser, [
      route('POST /requests', 'Send a friend request; accepts the other request if that user has sent one', {
        call: 'friend_request',
        operationId: 'sendFriendRequest',
        description:
          'With `user_id` or `friend_code`. 201 for a new request, 200 where there was one or where the two are friends now. At most 30 an hour, 100 open ' +
          'ones, 1,000 friends. Who is blocked, either way, or banned answers 404.',
        body: z.object({ user_id: Uuid.optional(), friend_code: Text(64, 1).optional() }),
        example: { user_id: nobody },
        replies: { 201: data(Friend), 200: data(Friend) },
      }),
      route('GET /requests', 'Requests that the caller received, or sent; newest first', {
        call: 'friend_requests',
        query: {
          direction: z.enum(['incoming', 'outgoing'], 'must be incoming or outgoing').default('incoming'),
          ...Page,
        },
        replies: { 200: page(Friend) },
      }),
      route('POST /requests/:userId/accept', "Accept a user's request", {
        call: 'friend_accept',
        replies: { 200: data(Friend) },
      }),
      route('POST /requests/:userId/decline', "Decline a user's request, without notifying them", {
        call: 'friend_decline',
        replies: { 200: data(z.strictObject({ declined: z.literal(true) })) },
      }),
      route('DELETE /requests/:userId', 'Withdraw a request', {
        call: 'friend_withdraw',
        operationId: 'cancelFriendRequest',
        replies: { 200: Deleted },
      }),
      route('GET /', "The caller's friends, newest first, with the caller's own notes about them", {
        call: 'friends_list',
        description:
          'Friends say whether they are `online`: whether they have a connection of realtime. `online` chooses among friends.',
        query: { status: Status.default('accepted'), online: Online, ...Page },
        replies: { 200: page(Friend.extend({ online: z.boolean().optional() })) },
      }),
      route('PATCH /:userId', 'Replace the private note about a friend, which the friend does not see', {
        call: 'friend_update',
        body: z.object({ metadata: SmallJson(8192) }).partial(),
        patch: true,
        example: { metadata: { nickname: 'Ada' } },
        replies: { 200: data(Friend) },
      }),
      route('DELETE /:userId', 'End a friendship', {
        call: 'friend_remove',
        operationId: 'removeFriend',
        replies: { 200: Deleted },
      }),
      route('POST /:userId/block', 'Block a user, which ends a friendship and requests', {
        call: 'friend_block',
        operationId: 'blockUser',
        description:
          'Neither finds the other any more: requests, profile and search answer as if there were no such user, boards show no name. 200 for one who is ' +
          'blocked already.',
        replies: { 201: data(Block), 200: data(Block) },
      }),
      route('DELETE /:userId/block', 'Unblock a user; a former friendship is not restored', {
        call: 'friend_unblock',
        operationId: 'unblockUser',
        replies: { 200: Deleted },
      }),
      route('GET /blocked', 'Users whom the caller has blocked, newest first', {
        call: 'friends_blocked',
        operationId: 'listBlockedUsers',
        query: Page,
        replies: { 200: page(Block) },
      }),
      route('GET /code', "The caller's code, by which others send requests; created at the first call", {
        call: 'friend_code',
        readOnly: false,
        replies: { 200: data(Code) },
      }),
      route('POST /code/rotate', 'Replace the code; the old one becomes invalid', {
        call: 'friend_code_rotate',
        replies: { 200: data(Code) },
      }),
      route('GET /suggestions', 'Friends of friends, most mutual friends first; at most 20', {
        call: 'friend_suggestions',
        replies: { 200: data(z.array(z.strictObject({ user: Person, common_count: z.int() }))) },
      }),
    ]),
    ...group('/admin/projects/:projectId/friends', administrator, [
      route('GET /', 'The friends or requests of a user, newest first; without private notes', {
        call: 'friends_of_user',
        operationId: 'listFriendships',
        query: { user_id: Uuid, status: Status.default('accepted'), ...Page },
        replies: { 200: page(FriendOf) },
      }),
      route('POST /', 'Make two users friends, or send a request from one to the other', {
        call: 'friend_add',
        operationId: 'createFriendship',
        description: '200 when there is a request or a friendship already.',
        body: z.object({
          user_id: Uuid,
          friend_id: Uuid,
          status: z.enum(['accepted', 'pending'], 'must be accepted or pending').default('accepted'),
        }),
        example: { user_id: nobody, friend_id: '00000000-0000-4000-8000-000000000001' },
        replies: { 201: data(FriendOf), 200: data(FriendOf) },
      }),
      route('DELETE /:userId/:friendId', 'End a friendship or a request of two users', {
        call: 'friend_delete',
        operationId: 'deleteFriendship',
        replies: { 200: Deleted },
      }),
    ]),
  ],
})
