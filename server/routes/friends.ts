import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { area, route } from '#server/http/route.ts'
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
  source: 'supplement',
  routes: [
    route('POST /client/friends/requests', {
      operationId: 'sendFriendRequest',
      caller: endUser,
      summary: 'Send a friend request; accepts the other request if that user has sent one',
      description:
        'With `user_id` or `friend_code`. 201 for a new request, 200 where there was one or where the two are friends now. At most 30 an hour, 100 open ' +
        'ones, 1,000 friends. Who is blocked, either way, or banned answers 404.',
      body: z.object({ user_id: Uuid.optional(), friend_code: Text(64, 1).optional() }),
      example: { user_id: nobody },
      call: 'friend_request',
      replies: { 201: data(Friend), 200: data(Friend) },
    }),
    route('GET /client/friends/requests', {
      caller: endUser,
      summary: 'Requests that the caller received, or sent; newest first',
      query: {
        direction: z.enum(['incoming', 'outgoing'], 'must be incoming or outgoing').default('incoming'),
        ...Page,
      },
      call: 'friend_requests',
      replies: { 200: page(Friend) },
    }),
    route('POST /client/friends/requests/:userId/accept', {
      caller: endUser,
      summary: "Accept a user's request",
      call: 'friend_accept',
      replies: { 200: data(Friend) },
    }),
    route('POST /client/friends/requests/:userId/decline', {
      caller: endUser,
      summary: "Decline a user's request, without notifying them",
      call: 'friend_decline',
      replies: { 200: data(z.strictObject({ declined: z.literal(true) })) },
    }),
    route('DELETE /client/friends/requests/:userId', {
      operationId: 'cancelFriendRequest',
      caller: endUser,
      summary: 'Withdraw a request',
      call: 'friend_withdraw',
      replies: { 200: Deleted },
    }),
    route('GET /client/friends', {
      caller: endUser,
      summary: "The caller's friends, newest first, with the caller's own notes about them",
      description:
        'Friends say whether they are `online`: whether they have a connection of realtime. `online` chooses among friends.',
      query: { status: Status.default('accepted'), online: Online, ...Page },
      call: 'friends_list',
      replies: { 200: page(Friend.extend({ online: z.boolean().optional() })) },
    }),
    route('PATCH /client/friends/:userId', {
      caller: endUser,
      summary: 'Replace the private note about a friend, which the friend does not see',
      body: z.object({ metadata: SmallJson(8192) }).partial(),
      patch: true,
      example: { metadata: { nickname: 'Ada' } },
      call: 'friend_update',
      replies: { 200: data(Friend) },
    }),
    route('DELETE /client/friends/:userId', {
      operationId: 'removeFriend',
      caller: endUser,
      summary: 'End a friendship',
      call: 'friend_remove',
      replies: { 200: Deleted },
    }),
    route('POST /client/friends/:userId/block', {
      operationId: 'blockUser',
      caller: endUser,
      summary: 'Block a user, which ends a friendship and requests',
      description:
        'Neither finds the other any more: requests, profile and search answer as if there were no such user, boards show no name. 200 for one who is ' +
        'blocked already.',
      call: 'friend_block',
      replies: { 201: data(Block), 200: data(Block) },
    }),
    route('DELETE /client/friends/:userId/block', {
      operationId: 'unblockUser',
      caller: endUser,
      summary: 'Unblock a user; a former friendship is not restored',
      call: 'friend_unblock',
      replies: { 200: Deleted },
    }),
    route('GET /client/friends/blocked', {
      operationId: 'listBlockedUsers',
      caller: endUser,
      summary: 'Users whom the caller has blocked, newest first',
      query: Page,
      call: 'friends_blocked',
      replies: { 200: page(Block) },
    }),
    route('GET /client/friends/code', {
      caller: endUser,
      summary: "The caller's code, by which others send requests; created at the first call",
      readOnly: false,
      call: 'friend_code',
      replies: { 200: data(Code) },
    }),
    route('POST /client/friends/code/rotate', {
      caller: endUser,
      summary: 'Replace the code; the old one becomes invalid',
      call: 'friend_code_rotate',
      replies: { 200: data(Code) },
    }),
    route('GET /client/friends/suggestions', {
      caller: endUser,
      summary: 'Friends of friends, most mutual friends first; at most 20',
      call: 'friend_suggestions',
      replies: { 200: data(z.array(z.strictObject({ user: Person, common_count: z.int() }))) },
    }),

    route('GET /admin/projects/:projectId/friends', {
      operationId: 'listFriendships',
      caller: administrator,
      summary: 'The friends or requests of a user, newest first; without private notes',
      query: { user_id: Uuid, status: Status.default('accepted'), ...Page },
      call: 'friends_of_user',
      replies: { 200: page(FriendOf) },
    }),
    route('POST /admin/projects/:projectId/friends', {
      operationId: 'createFriendship',
      caller: administrator,
      summary: 'Make two users friends, or send a request from one to the other',
      description: '200 when there is a request or a friendship already.',
      body: z.object({
        user_id: Uuid,
        friend_id: Uuid,
        status: z.enum(['accepted', 'pending'], 'must be accepted or pending').default('accepted'),
      }),
      example: { user_id: nobody, friend_id: '00000000-0000-4000-8000-000000000001' },
      call: 'friend_add',
      replies: { 201: data(FriendOf), 200: data(FriendOf) },
    }),
    route('DELETE /admin/projects/:projectId/friends/:userId/:friendId', {
      operationId: 'deleteFriendship',
      caller: administrator,
      summary: 'End a friendship or a request of two users',
      call: 'friend_delete',
      replies: { 200: Deleted },
    }),
  ],
})
