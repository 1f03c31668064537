import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group, type Input, route } from '#server/http/route.ts'
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
const Participant = answer('conversation_participant_json')
const Message = answer('message_json', {
  sender: z.strictObject({ id: Uuid, display_name: z.string(), avatar_url: z.string().nullable() }).nullable(),
  attachments: z.array(Attachment),
  reactions: Reactions,
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

const inConversation = { conversationId: AnyId }
const ofMessage = { ...inConversation, messageId: AnyId }

export const messaging = area({
  stem: 'messaging',
  title: 'Messaging',
  part: 'Social',
  about: 'Conversations, messages, reactions and receipts.',
  codes: 'by area',
  invalid: 'INVALID_PAYLOAD',
  words: {
    type: ['Kind', 'Between two users, or of a group.'],
    participant_ids: ['With', 'The ids of the other users.'],
    archived: ['Archived', 'The list leaves it out, for the caller alone.'],
    muted_until: ['Muted until', 'No push for it until then.', { unset: 'Not muted' }],
    body: ['Text', 'Of the message.'],
    message_type: ['Kind', 'A word of yours, such as `text` or `sticker`.', { default: 'text' }],
    attachments: ['Attachments', 'At most 10 files by address.'],
    'attachments.content_type': ['Type', 'Such as `image/png`.'],
    'attachments.size_bytes': ['Size', 'In bytes.'],
    parent_message_id: ['Answers', 'The id of the message that it answers.'],
    emoji: ['Emoji', 'The reaction.'],
    as_user_id: ['As', 'The id of the user who writes; or it is a system message.'],
    system: ['System message', 'It has no author.', { default: false }],
  },
  routes: [
    ...group('/client/messaging', endUser, [
      route('POST /conversations', 'Create a conversation; the caller is added', {
        call: 'conversation_create',
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
        replies: { 201: data(Mine), 200: data(Mine) },
      }),
      route('GET /conversations', "The caller's conversations, newest activity first", {
        call: 'conversations_list',
        description: 'With `archived=true` only those that the caller has archived, otherwise all others.',
        query: { archived: Flag(), limit: Limit(200, 20), offset: Offset },
        replies: { 200: page(Mine) },
        failure: 'FETCH_FAILED',
      }),
      route('GET /conversations/:conversationId', 'A conversation of the caller', {
        call: 'conversation_get',
        codes: 'by part',
        replies: { 200: data(Mine) },
      }),
      route('PATCH /conversations/:conversationId', 'Rename a conversation; mute or archive it for the caller only', {
        call: 'conversation_update',
        codes: 'by part',
        body: z.object({
          name: Line(100, 1).nullable().optional(),
          muted_until: Moment.nullable().optional(),
          archived: z.boolean('must be true or false').optional(),
        }),
        patch: true,
        example: { muted_until: '2030-01-01T00:00:00Z', archived: true },
        replies: { 200: data(Mine) },
      }),
      route('POST /conversations/:conversationId/messages', 'Send a message; at most 60 a minute', {
        call: 'message_send',
        operationId: 'sendMessage',
        description:
          'Participants whose ids are in `metadata.mentions` are mentioned. The parent of a reply is a message of the same conversation; a message has at most 10,000 replies.',
        params: inConversation,
        body: z.object({ ...written, parent_message_id: AnyId.nullish() }),
        documentedBody: z.object({ ...documented, parent_message_id: Uuid.nullish() }),
        example: {
          body: 'Hello',
          attachments: [{ url: 'https://files.example.com/a.png', content_type: 'image/png' }],
        },
        args: attachmentsAsJson,
        replies: { 201: data(Message) },
        failure: 'SEND_FAILED',
      }),
      route(
        'GET /conversations/:conversationId/messages',
        'Messages that are not replies, or the replies to one; newest first',
        {
          call: 'messages_list',
          operationId: 'listMessages',
          params: inConversation,
          query: { parent_message_id: AnyId.optional(), limit: Limit(200, 50), offset: Offset },
          replies: { 200: page(Message) },
          failure: 'FETCH_FAILED',
        },
      ),
      route(
        'PATCH /conversations/:conversationId/messages/:messageId',
        'Edit a message within 15 minutes, as its sender',
        {
          call: 'message_edit',
          operationId: 'updateMessage',
          codes: 'by part',
          body: z.object({ body: MessageText.optional(), metadata: SmallJson(8192).optional() }),
          patch: true,
          example: { body: 'Hello there' },
          replies: { 200: data(Message) },
        },
      ),
      route(
        'DELETE /conversations/:conversationId/messages/:messageId',
        'Delete a message, as its sender or the owner of the group conversation',
        {
          call: 'message_delete',
          operationId: 'deleteMessage',
          codes: 'by part',
          replies: { 200: Deleted },
        },
      ),
      route('POST /conversations/:conversationId/typing', 'Announce that the caller is typing; nothing is stored', {
        call: 'conversation_typing',
        operationId: 'sendTyping',
        params: inConversation,
        replies: { 202: data(z.strictObject({ accepted: z.literal(true) })) },
        failure: 'TYPING_FAILED',
      }),
      route(
        'POST /conversations/:conversationId/messages/:messageId/reactions',
        'React to a message; at most 20 different emojis on one message',
        {
          call: 'reaction_add',
          operationId: 'addReaction',
          description: '201, or 200 when the caller has reacted with this emoji already.',
          params: ofMessage,
          body: z.object({ emoji: Emoji }),
          example: { emoji: '👍' },
          replies: { 201: data(Reactions), 200: data(Reactions) },
        },
      ),
      route(
        'DELETE /conversations/:conversationId/messages/:messageId/reactions',
        'Remove a reaction, if there is one',
        {
          call: 'reaction_remove',
          operationId: 'removeReaction',
          params: ofMessage,
          query: { emoji: Emoji },
          replies: { 200: data(Reactions) },
        },
      ),
      route(
        'GET /conversations/:conversationId/messages/:messageId/reactions',
        'Reactions to a message by emoji, the oldest first',
        {
          call: 'reactions_list',
          operationId: 'listReactions',
          params: ofMessage,
          replies: { 200: data(Reactions) },
          failure: 'FETCH_FAILED',
        },
      ),
      route('GET /conversations/:conversationId/messages/:messageId/receipts', 'Read receipts of a message', {
        call: 'receipts_get',
        operationId: 'getMessageReceipts',
        params: ofMessage,
        replies: { 200: data(Receipts) },
      }),
      route('POST /conversations/:conversationId/participants', 'Add a user to a group conversation', {
        call: 'participant_add',
        operationId: 'addParticipants',
        description:
          '`app_user_id` is accepted for `user_id`. One who takes part already is answered with `already_member`.',
        params: inConversation,
        body: z
          .object({ user_id: Uuid.optional(), app_user_id: Uuid.optional() })
          .refine((sent) => sent.user_id ?? sent.app_user_id, { path: ['user_id'], message: 'is required' }),
        documentedBody: z.object({ user_id: Uuid }),
        example: { user_id: '00000000-0000-4000-8000-000000000000' },
        args: ({ body }) => ({ user_id: body['user_id'] ?? body['app_user_id'], app_user_id: undefined }),
        replies: { 200: data(Participant.extend({ already_member: z.literal(true).optional() })) },
        failure: 'CREATE_FAILED',
      }),
      route('DELETE /conversations/:conversationId/participants/me', 'Leave a group conversation', {
        call: 'conversation_leave',
        operationId: 'leaveConversation',
        codes: 'by part',
        replies: { 200: Deleted },
      }),
      route(
        'DELETE /conversations/:conversationId/participants/:userId',
        'Remove a participant, as the owner of the group conversation',
        {
          call: 'participant_remove',
          operationId: 'removeParticipant',
          codes: 'by part',
          replies: { 200: Deleted },
        },
      ),
      route('POST /conversations/:conversationId/read', 'Mark a conversation as read', {
        call: 'conversation_read',
        operationId: 'markConversationRead',
        params: inConversation,
        replies: { 200: data(Participant) },
      }),
      route('GET /unread', 'Unread messages and mentions, in total and by conversation', {
        call: 'unread_get',
        operationId: 'getUnreadCounts',
        codes: 'by part',
        description:
          '`total` counts every conversation; `conversations` are those with unread messages, newest activity first.',
        query: { limit: Limit(1000, 200) },
        replies: { 200: data(Unread) },
      }),
      route('GET /messages/search', "Messages of the caller's conversations by a part of their text, newest first", {
        call: 'messages_search',
        codes: 'by part',
        query: { q: Text(200, 2), ...Page },
        replies: { 200: page(Message) },
      }),
    ]),
    ...group('/admin/projects/:projectId/messaging', administrator, [
      route('GET /conversations', 'Conversations, newest first; with `user_id` those of a user', {
        call: 'conversations_admin',
        codes: 'by part',
        query: { user_id: Uuid.optional(), ...Page },
        replies: { 200: page(Conversation) },
      }),
      route(
        'GET /conversations/:conversationId/messages',
        'All messages of a conversation, including replies, newest first',
        {
          call: 'messages_admin',
          operationId: 'adminListMessages',
          codes: 'by part',
          query: Page,
          replies: { 200: page(Message) },
        },
      ),
      route('POST /conversations/:conversationId/messages', 'Post a message as a participant, or as the system', {
        call: 'message_post',
        operationId: 'adminSendMessage',
        codes: 'by part',
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
        replies: { 201: data(Message) },
        failure: 'SEND_FAILED',
      }),
      route('DELETE /conversations/:conversationId/messages/:messageId', 'Delete a message', {
        call: 'message_delete_admin',
        operationId: 'adminDeleteMessage',
        codes: 'by part',
        replies: { 200: Deleted },
      }),
      route('GET /stats', 'Statistics of conversations, messages and senders', {
        call: 'messaging_stats',
        operationId: 'getMessagingStats',
        stale: true,
        codes: 'by part',
        replies: { 200: data(Stats) },
      }),
    ]),
  ],
})
