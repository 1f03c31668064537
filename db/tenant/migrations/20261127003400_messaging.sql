-- migrate:up
create table app.conversations (
  id               uuid primary key default internal.new_id(),
  type             text not null constraint conversations_type_known check (type in ('direct', 'group')),
  name             text constraint conversations_name_1_to_100 check (char_length(name) between 1 and 100),
  direct_key       bytea,
  message_count    int not null default 0 constraint conversations_message_count_not_negative
    check (message_count >= 0),
  top_level_count  int not null default 0 constraint conversations_top_level_count_not_negative
    check (top_level_count >= 0),
  last_activity_at timestamptz not null default internal.now(),
  created_at       timestamptz not null default internal.now(),
  updated_at       timestamptz not null default internal.now(),
  constraint conversations_direct_key_of_direct check (direct_key is null or type = 'direct'),
  -- one direct conversation for one set of participants, however many create it at once
  constraint conversations_one_direct unique (direct_key),
  constraint conversations_name_is_one_line check (internal.is_line(name))
);
comment on table app.conversations is
  'Conversations of end users. The counts are kept by triggers on app.messages: message_count of all messages,
   top_level_count of those that are no replies.';
comment on column app.conversations.direct_key is
  'Direct conversations: SHA-256 of the sorted ids of the participants. Null where a merge of users left two
   conversations with the same participants.';
comment on column app.conversations.last_activity_at is
  'The time of the newest message ever, or of the creation. Times of messages are after it, and so never equal.';
-- serves the list of administrators, newest first
create index conversations_newest on app.conversations (created_at desc, id desc);

create table app.conversation_participants (
  conversation_id  uuid not null references app.conversations on delete cascade,
  app_user_id      uuid not null references app.users on delete cascade,
  peer_id          uuid,
  is_owner         boolean not null default false,
  joined_at        timestamptz not null default internal.now(),
  last_read_at     timestamptz,
  last_activity_at timestamptz not null,
  unread_count     int not null default 0 constraint conversation_participants_unread_not_negative
    check (unread_count >= 0),
  mention_count    int not null default 0 constraint conversation_participants_mentions_not_negative
    check (mention_count >= 0),
  is_archived      boolean not null default false,
  muted_until      timestamptz,
  primary key (conversation_id, app_user_id)
);
comment on table app.conversation_participants is
  'Who takes part in a conversation. Triggers on app.messages keep unread_count, mention_count and last_activity_at,
   which lists of one user are read by.';
comment on column app.conversation_participants.peer_id is
  'The other user of a direct conversation of two: blocks between both hide it. Triggers keep it without a foreign key,
   whose index each message would write.';
comment on column app.conversation_participants.is_owner is
  'The creator of a group conversation, or the participant who succeeded the creator.';
-- serves a user's list, newest activity first, with its total
create index conversation_participants_newest
  on app.conversation_participants (app_user_id, is_archived, last_activity_at desc,
                                    conversation_id desc) include (peer_id);
-- serves a user's unread counts
create index conversation_participants_unread
  on app.conversation_participants (app_user_id, last_activity_at desc, conversation_id desc) include (unread_count,
                                        mention_count, peer_id)
  where unread_count > 0;
create unique index conversation_participants_one_owner on app.conversation_participants (conversation_id)
  where is_owner;

create table app.messages (
  id                uuid primary key default internal.new_id(),
  conversation_id   uuid not null references app.conversations on delete cascade,
  sender_id         uuid references app.users on delete cascade,
  body              text not null constraint messages_body_1_to_10240_bytes
    check (octet_length(body) between 1 and 10240),
  message_type      text not null default 'text' constraint messages_message_type_1_to_64
    check (char_length(message_type) between 1 and 64),
  metadata          jsonb not null default '{}' constraint messages_metadata_is_object
    check (jsonb_typeof(metadata) = 'object'),
  mentions          uuid[] not null default '{}',
  attachments       jsonb not null default '[]'
                    constraint messages_attachments_at_most_10
                      check (jsonb_typeof(attachments) = 'array' and jsonb_array_length(attachments) <= 10),
  parent_message_id uuid references app.messages on delete set null,
  reply_count       int not null default 0 constraint messages_reply_count_not_negative check (reply_count >= 0),
  created_at        timestamptz not null,
  edited_at         timestamptz,
  -- serves all messages of a conversation in their order: no two have one time
  constraint messages_in_order unique (conversation_id, created_at)
);
comment on table app.messages is
  'Messages of conversations; those of the system have no sender. reply_count is kept by triggers.';
comment on column app.messages.mentions is
  'The participants that metadata.mentions named when the message was written, without its sender.';
comment on column app.messages.created_at is
  'After every earlier message, entry and reading of its conversation, whatever the clock says.';
-- serve the messages of a conversation that are no replies, and the replies to one; the export and the deletion of a
-- user; the search; the statistics
create index messages_by_parent on app.messages (parent_message_id, conversation_id, created_at desc);
create index messages_of_sender on app.messages (sender_id, id);
create index messages_search on app.messages using gin (body extensions.gin_trgm_ops);
create index messages_by_time on app.messages using brin (created_at);

create table app.message_reactions (
  message_id  uuid not null references app.messages on delete cascade,
  emoji       text not null constraint message_reactions_emoji_1_to_64 check (char_length(emoji) between 1 and 64),
  app_user_id uuid not null references app.users on delete cascade,
  created_at  timestamptz not null default internal.now(),
  primary key (message_id, emoji, app_user_id)
);
comment on table app.message_reactions is 'Reactions to messages, each emoji once by each user.';
create index message_reactions_of_user on app.message_reactions (app_user_id, message_id);

-- migrate:down
drop table app.message_reactions;
drop table app.messages;
drop table app.conversation_participants;
drop table app.conversations;
