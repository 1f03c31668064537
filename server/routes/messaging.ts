import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { area, type Input, route } from '#server/http/route.ts'
import {
  AnyId,
  Deleted,
  data,
  Flag,
  Json,
  JsonObject,
  Limit,
  Line,
  Moment,
  Offset,
  Page,
  page,
  SmallJson,
  Text,
  Time,
  Uuid,
} from '#server/http/schemas.ts'

const bodyBytes = 10_240
const bodyReason = `must have 1 to ${bodyBytes} bytes and not only white space`
const MessageText = z
  .string()
  .refine((text) => text.trim() !== '' && Buffer.byteLength(text) <= bodyBytes, bodyReason)
  .meta({ minLength: 1, maxLength: bodyBytes })
const Emoji = Text(64, 1)

const Attachment = z.object({
  url: Text(2000, 1),
  content_type: Text(255).optional(),
  size_bytes: z.int().min(0).optional(),
  metadata: JsonObject.optional(),
})
const Reactions = z.array(z.strictObject({ emoji: z.string(), count: z.int(), reacted: z.boolean() }))
const Participant = z.strictObject({
  user_id: Uuid,
  display_name: z.string(),
  avatar_url: z.string().nullable(),
  last_read_at: Time.nullable(),
  joined_at: Time,
})
const Message = z.strictObject({
  id: Uuid,
  conversation_id: Uuid,
  sender_id: Uuid.nullable(),
  sender: z.strictObject({ id: Uuid, display_name: z.string(), avatar_url: z.string().nullable() }).nullable(),
  body: z.string(),
  message_type: z.string(),
  metadata: JsonObject,
  parent_message_id: Uuid.nullable(),
  attachments: z.array(Attachment),
  reactions: Reactions,
  reply_count: z.int(),
  created_at: Time,
  edited_at: Time.nullable(),
})
const Conversation = z.strictObject({
  id: Uuid,
  type: z.enum(['direct', 'group']),
  name: z.string().nullable(),
  owner_id: Uuid.nullable(),
  conversation_participants: z.array(Participant),
  last_message: z
    .strictObject({
      id: Uuid,
      sender_id: Uuid.nullable(),
      body: z.string(),
      message_type: z.string(),
      created_at: Time,
    })
    .nullable(),
  message_count: z.int(),
  last_activity_at: Time,
  created_at: Time,
  updated_at: Time,
})
const Mine = Conversation.extend({
  unread: z.int(),
  mentions: z.int(),
  muted_until: Time.nullable(),
  archived: z.boolean(),
})
const Unread = z.strictObject({
  total: z.int(),
  conversations: z.array(z.strictObject({ id: Uuid, unread: z.int(), mentions: z.int() })),
})
const Receipts = z.strictObject({
  read_by: z.array(z.strictObject({ user_id: Uuid, display_name: z.string(), read_at: Time })),
  read_count: z.int(),
  total_recipients: z.int(),
})
const Stats = z.strictObject({
  conversations: z.strictObject({ total: z.int(), direct: z.int(), group: z.int() }),
  messages: z.strictObject({ total: z.int(), last_24h: z.int(), last_7d: z.int() }),
  active_senders: z.strictObject({ last_24h: z.int(), last_7d: z.int() }),
})

/** SQL validates attachments, which have a separate code: a text that is not a list must reach it as JSON. */
const attachmentsAsJson = ({ body: { attachments } }: Pick<Input, 'body'>) => ({
  attachments: attachments === undefined ? undefined : JSON.stringify(attachments),
})
const written = {
  body: MessageText,
  message_type: Text(64, 1).optional(),
  metadata: SmallJson(8192).optional(),
  attachments: Json.optional(),
}
const documented = { ...written, attachments: z.array(Attachment).max(10).optional() }

const client = '/client/messaging/conversations' as const
const one = `${client}/:conversationId` as const
const oneMessage = `${one}/messages/:messageId` as const
const admin = '/admin/projects/:projectId/messaging' as const
const adminMessages = `${admin}/conversations/:conversationId/messages` as const

const inConversation = { conversationId: AnyId }
const ofMessage = { ...inConversation, messageId: AnyId }

export const messaging = area({
  stem: 'messaging',
  title: 'Messaging',
  part: 'Social',
  about: 'Conversations, messages, reactions and receipts.',
  source: 'contract',
  invalid: 'INVALID_PAYLOAD',
  routes: [
    route(`POST ${client}`, {
      caller: endUser,
      summary: 'Create a conversation; the caller is added',
      description:
        '200 with the direct conversation of the same participants when there is one. At most 100 participants. Users who are blocked, either way, are not found.',
      body: z.object({
        type: z.enum(['direct', 'group'], 'must be direct or group').optional(),
        name: Line(100, 1).nullish(),
        participant_ids: z
          .array(Uuid)
          .min(1, 'must name at least one user')
          .max(100, 'a conversation has at most 100 participants'),
      }),
      example: { type: 'group', name: 'Trip', participant_ids: ['00000000-0000-4000-8000-000000000000'] },
      call: 'conversation_create',
      replies: { 201: data(Mine), 200: data(Mine) },
    }),
    route(`GET ${client}`, {
      caller: endUser,
      summary: "The caller's conversations, newest activity first",
      description: 'With `archived=true` only those that the caller has archived, otherwise all others.',
      query: { archived: Flag(), limit: Limit(200, 20), offset: Offset },
      call: 'conversations_list',
      replies: { 200: page(Mine) },
      failure: 'FETCH_FAILED',
    }),
    route(`GET ${one}`, {
      caller: endUser,
      source: 'supplement',
      summary: 'A conversation of the caller',
      call: 'conversation_get',
      replies: { 200: data(Mine) },
    }),
    route(`PATCH ${one}`, {
      caller: endUser,
      source: 'supplement',
      summary: 'Rename a conversation; mute or archive it for the caller only',
      body: z.object({
        name: Line(100, 1).nullable().optional(),
        muted_until: Moment.nullable().optional(),
        archived: z.boolean('must be true or false').optional(),
      }),
      patch: true,
      example: { muted_until: '2030-01-01T00:00:00Z', archived: true },
      call: 'conversation_update',
      replies: { 200: data(Mine) },
    }),
    route(`POST ${one}/messages`, {
      operationId: 'sendMessage',
      caller: endUser,
      summary: 'Send a message; at most 60 a minute',
      description:
        'Participants whose ids are in `metadata.mentions` are mentioned. The parent of a reply is a message of the same conversation; a message has at most 10,000 replies.',
      params: inConversation,
      body: z.object({ ...written, parent_message_id: AnyId.nullish() }),
      documentedBody: z.object({ ...documented, parent_message_id: Uuid.nullish() }),
      example: { body: 'Hello', attachments: [{ url: 'https://files.example.com/a.png', content_type: 'image/png' }] },
      args: attachmentsAsJson,
      call: 'message_send',
      replies: { 201: data(Message) },
      failure: 'SEND_FAILED',
    }),
    route(`GET ${one}/messages`, {
      operationId: 'listMessages',
      caller: endUser,
      summary: 'Messages that are not replies, or the replies to one; newest first',
      params: inConversation,
      query: { parent_message_id: AnyId.optional(), limit: Limit(200, 50), offset: Offset },
      call: 'messages_list',
      replies: { 200: page(Message) },
      failure: 'FETCH_FAILED',
    }),
    route(`PATCH ${oneMessage}`, {
      operationId: 'updateMessage',
      caller: endUser,
      source: 'supplement',
      summary: 'Edit a message within 15 minutes, as its sender',
      body: z.object({ body: MessageText.optional(), metadata: SmallJson(8192).optional() }),
      patch: true,
      example: { body: 'Hello there' },
      call: 'message_edit',
      replies: { 200: data(Message) },
    }),
    route(`DELETE ${oneMessage}`, {
      operationId: 'deleteMessage',
      caller: endUser,
      source: 'supplement',
      summary: 'Delete a message, as its sender or the owner of the group conversation',
      call: 'message_delete',
      replies: { 200: Deleted },
    }),
    route(`POST ${one}/typing`, {
      operationId: 'sendTyping',
      caller: endUser,
      summary: 'Announce that the caller is typing; nothing is stored',
      params: inConversation,
      call: 'conversation_typing',
      replies: { 202: data(z.strictObject({ accepted: z.literal(true) })) },
      failure: 'TYPING_FAILED',
    }),
    route(`POST ${oneMessage}/reactions`, {
      operationId: 'addReaction',
      caller: endUser,
      summary: 'React to a message; at most 20 different emojis on one message',
      description: '201, or 200 when the caller has reacted with this emoji already.',
      params: ofMessage,
      body: z.object({ emoji: Emoji }),
      example: { emoji: '👍' },
      call: 'reaction_add',
      replies: { 201: data(Reactions), 200: data(Reactions) },
    }),
    route(`DELETE ${oneMessage}/reactions`, {
      operationId: 'removeReaction',
      caller: endUser,
      summary: 'Remove a reaction, if there is one',
      params: ofMessage,
      query: { emoji: Emoji },
      call: 'reaction_remove',
      replies: { 200: data(Reactions) },
    }),
    route(`GET ${oneMessage}/reactions`, {
      operationId: 'listReactions',
      caller: endUser,
      summary: 'Reactions to a message by emoji, the oldest first',
      params: ofMessage,
      call: 'reactions_list',
      replies: { 200: data(Reactions) },
      failure: 'FETCH_FAILED',
    }),
    route(`GET ${oneMessage}/receipts`, {
      operationId: 'getMessageReceipts',
      caller: endUser,
      summary: 'Read receipts of a message',
      params: ofMessage,
      call: 'receipts_get',
      replies: { 200: data(Receipts) },
    }),
    route(`POST ${one}/participants`, {
      operationId: 'addParticipants',
      caller: endUser,
      summary: 'Add a user to a group conversation',
      description:
        '`app_user_id` is accepted for `user_id`. One who takes part already is answered with `already_member`.',
      params: inConversation,
      body: z
        .object({ user_id: Uuid.optional(), app_user_id: Uuid.optional() })
        .refine((sent) => sent.user_id ?? sent.app_user_id, { path: ['user_id'], message: 'is required' }),
      documentedBody: z.object({ user_id: Uuid }),
      example: { user_id: '00000000-0000-4000-8000-000000000000' },
      args: ({ body }) => ({ user_id: body['user_id'] ?? body['app_user_id'], app_user_id: undefined }),
      call: 'participant_add',
      replies: { 200: data(Participant.extend({ already_member: z.literal(true).optional() })) },
      failure: 'CREATE_FAILED',
    }),
    route(`DELETE ${one}/participants/me`, {
      operationId: 'leaveConversation',
      caller: endUser,
      source: 'supplement',
      summary: 'Leave a group conversation',
      call: 'conversation_leave',
      replies: { 200: Deleted },
    }),
    route(`DELETE ${one}/participants/:userId`, {
      operationId: 'removeParticipant',
      caller: endUser,
      source: 'supplement',
      summary: 'Remove a participant, as the owner of the group conversation',
      call: 'participant_remove',
      replies: { 200: Deleted },
    }),
    route(`POST ${one}/read`, {
      operationId: 'markConversationRead',
      caller: endUser,
      summary: 'Mark a conversation as read',
      params: inConversation,
      call: 'conversation_read',
      replies: { 200: data(Participant) },
    }),
    route('GET /client/messaging/unread', {
      operationId: 'getUnreadCounts',
      caller: endUser,
      source: 'supplement',
      summary: 'Unread messages and mentions, in total and by conversation',
      description:
        '`total` counts every conversation; `conversations` are those with unread messages, newest activity first.',
      query: { limit: Limit(1000, 200) },
      call: 'unread_get',
      replies: { 200: data(Unread) },
    }),
    route('GET /client/messaging/messages/search', {
      caller: endUser,
      source: 'supplement',
      summary: "Messages of the caller's conversations by a part of their text, newest first",
      query: { q: Text(200, 2), ...Page },
      call: 'messages_search',
      replies: { 200: page(Message) },
    }),
    route(`GET ${admin}/conversations`, {
      caller: administrator,
      source: 'supplement',
      summary: 'Conversations, newest first; with `user_id` those of a user',
      query: { user_id: Uuid.optional(), ...Page },
      call: 'conversations_admin',
      replies: { 200: page(Conversation) },
    }),
    route(`GET ${adminMessages}`, {
      operationId: 'adminListMessages',
      caller: administrator,
      source: 'supplement',
      summary: 'All messages of a conversation, including replies, newest first',
      query: Page,
      call: 'messages_admin',
      replies: { 200: page(Message) },
    }),
    route(`POST ${adminMessages}`, {
      operationId: 'adminSendMessage',
      caller: administrator,
      source: 'supplement',
      summary: 'Post a message as a participant, or as the system',
      body: z.object({
        ...written,
        as_user_id: Uuid.nullish(),
        system: z.boolean('must be true or false').optional(),
        parent_message_id: Uuid.nullish(),
      }),
      documentedBody: z.object({
        ...documented,
        as_user_id: Uuid.nullish(),
        system: z.boolean().optional(),
        parent_message_id: Uuid.nullish(),
      }),
      example: { body: 'Welcome', system: true },
      args: attachmentsAsJson,
      call: 'message_post',
      replies: { 201: data(Message) },
      failure: 'SEND_FAILED',
    }),
    route(`DELETE ${adminMessages}/:messageId`, {
      operationId: 'adminDeleteMessage',
      caller: administrator,
      source: 'supplement',
      summary: 'Delete a message',
      call: 'message_delete_admin',
      replies: { 200: Deleted },
    }),
    route(`GET ${admin}/stats`, {
      operationId: 'getMessagingStats',
      caller: administrator,
      stale: true,
      source: 'supplement',
      summary: 'Statistics of conversations, messages and senders',
      call: 'messaging_stats',
      replies: { 200: data(Stats) },
    }),
  ],
})
