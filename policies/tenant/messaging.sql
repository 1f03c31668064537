alter table app.conversations enable row level security;
select internal.checks_declare('app.conversations', 'INVALID_PAYLOAD');
alter table app.conversation_participants enable row level security;
alter table app.messages enable row level security;
select internal.checks_declare('app.messages', 'INVALID_PAYLOAD');
alter table app.message_reactions enable row level security;
select internal.checks_declare('app.message_reactions', 'INVALID_PAYLOAD');

create policy "users read their conversations" on app.conversations for select to app_user
  using (id in (select internal.my_conversation_ids()));
-- a row also has fields that only its user may see: functions show the names of others
create policy "users read their own parts" on app.conversation_participants for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "users read the messages of their conversations" on app.messages for select to app_user
  using (conversation_id in (select internal.my_conversation_ids()));
-- the messages that the policy above shows
create policy "users read the reactions to messages that they see" on app.message_reactions for select to app_user
  using (exists (select from app.messages m where m.id = message_id));
create policy "administrators read conversations" on app.conversations for select to app_admin using (true);
create policy "administrators read participants" on app.conversation_participants for select to app_admin using (true);
create policy "administrators read messages" on app.messages for select to app_admin using (true);
create policy "administrators read reactions" on app.message_reactions for select to app_admin using (true);

grant select on app.conversations, app.conversation_participants, app.messages,
  app.message_reactions to app_user, app_admin;
grant execute on function internal.my_conversation_ids, internal.participant_remove, api.conversation_create,
  api.conversation_update, api.participant_add, api.participant_remove, api.conversation_leave, api.conversation_read,
  api.conversation_typing, api.reaction_add, api.reaction_remove, api.message_send, api.message_edit,
  api.message_delete, api.conversations_list, api.conversation_get, api.messages_list, api.reactions_list,
  api.receipts_get, api.unread_get, api.messages_search to app_user;
grant execute on function api.conversations_admin, api.messages_admin, api.message_post, api.message_delete_admin,
  api.messaging_stats to app_admin;

select internal.graphql_declare('app.conversation_participants');
select internal.graphql_declare('app.conversations', hidden => '{direct_key}');
select internal.graphql_declare('app.message_reactions');
select internal.graphql_declare('app.messages');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, exempt_reason,
   declared_in)
values
  ('app.conversation_participants', 'app_user_id', 'conversation_participants',
   array['conversation_id', 'app_user_id', 'is_owner', 'joined_at', 'last_read_at', 'last_activity_at', 'unread_count',
         'mention_count', 'is_archived',
         'muted_until'], array['peer_id'],
   null, 'both', 'cascade', null, current_setting('trellis.file')),
  ('app.messages', 'sender_id', 'messages',
   array['id', 'conversation_id', 'sender_id', 'body', 'message_type', 'metadata', 'attachments', 'parent_message_id',
         'reply_count', 'created_at',
         'edited_at'], array['mentions'],
   'messages', 'with app.conversation_participants', 'cascade', null, current_setting('trellis.file')),
  ('app.message_reactions', 'app_user_id', 'message_reactions',
   array['message_id', 'emoji', 'app_user_id', 'created_at'], '{}',
   'messages', 'move', 'cascade', null, current_setting('trellis.file'));

grant execute on function internal.moderation_subject__message to app_user;

insert into internal.moderated_texts (kind, subject_type, table_name, text_columns, id_column, user_column, at_column,
                                      declared_in)
values ('message', 'message', 'app.messages', '{body}', 'id', 'sender_id', 'created_at',
        current_setting('trellis.file'));

grant execute on function api.message_push to app_worker;
