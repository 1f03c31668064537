-- Messages of mail. A message is stored and queued in one transaction, and sent by a worker in three steps: the attempt
-- is noted, the mail server is called, the outcome is stored. Between the second and the third a crash leaves an
-- attempt whose outcome nobody knows, because SMTP has no idempotency. A transactional message is then sent again,
-- under the same Message-ID: a code that comes twice is better than none. Any other message fails instead: nobody
-- misses an advertisement. Either way the message says so, in its events.
create or replace function internal.email_event(type text, detail text default null) returns jsonb
language sql stable
return jsonb_build_array(jsonb_strip_nulls(jsonb_build_object('type', email_event.type, 'at',
                                                              internal.iso(internal.now()),
                                                                'detail', left(email_event.detail, 500))));
comment on function internal.email_event is 'An entry of the events of a message, as a list to append.';

select internal.row_declare('email_message_json', null::app.email_messages,
                            '{id,user_id:app_user_id,to:to_address,from:from_address,reply_to,subject,
                             template_key,template_version,locale,category,status,attempts,send_at,next_attempt_at,last_error,sent_at,created_at,track,
                             opened_at,clicked_at,updated_at}');
comment on function internal.email_message_json is 'A message as lists show it, without its content.';

create or replace function internal.tg_email_messages__send() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- a lane of their own: at most ten at once in a project, and a slow mail server holds up nothing else
  perform internal.enqueue('email__send', new.id::text, due_at => coalesce(new.send_at, internal.now()),
                           lane => 'email');
  return null;
end $$;
comment on function internal.tg_email_messages__send is 'Queues a new message.';
create or replace trigger tg_email_messages__send
  after insert on app.email_messages
  for each row when (new.status = 'queued') execute function internal.tg_email_messages__send();

create or replace function internal.email_queue(sent jsonb, accepted text[], field text, delivery_id uuid default null)
returns app.email_messages
language plpgsql volatile security definer set search_path = '' as $$
declare
  them app.users;
  picked record;
  subject record;
  html record;
  body record;
  kind text := coalesce(email_queue.sent ->> 'category', 'transactional');
  address text;
  -- a random name: a value that contains {{unsubscribe_url}} stays text
  mark constant text := '{{unsubscribe_url.' || encode(extensions.gen_random_bytes(16), 'hex') || '}}';
  late jsonb;
  queued app.email_messages;
begin
  if internal.caller() not in ('developer', 'worker') then
    raise exception 'mail is sent by administrators and workers, not by %', internal.caller();
  end if;
  if email_queue.sent ->> 'user_id' is not null then
    select u.* into them from app.users u where u.id = (email_queue.sent ->> 'user_id')::uuid for key share;
    if not found then
      perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user.');
    elsif them.email is null then
      perform internal.invalid(email_queue.field || 'user_id', 'must be a user who has a mail address');
    end if;
    address := them.email;
  else
    address := btrim(email_queue.sent ->> 'to');
    if not coalesce(internal.is_email(address), false) then
      perform internal.invalid(email_queue.field || 'to', 'must be a mail address');
    end if;
    select u.* into them from app.users u where u.email = internal.email_normal(address) for key share;
  end if;
  if email_queue.sent ->> 'template_key' is not null then
    select * into picked
      from internal.email_template_pick(email_queue.sent ->> 'template_key',
                                        array_prepend(them.properties ->> 'locale', email_queue.accepted));
    if not found then
      perform internal.invalid(email_queue.field || 'template_key', 'must be the key of a template');
    end if;
    kind := coalesce(email_queue.sent ->> 'category', picked.category);
    subject := internal.email_render(picked.subject, coalesce(email_queue.sent -> 'variables', '{}'), 'header');
    -- the link to unsubscribe is made when the message is sent; transactional mail has none
    late := case kind when 'transactional' then '{}' else jsonb_build_object('unsubscribe_url', mark) end;
    html := internal.email_render(picked.html, coalesce(email_queue.sent -> 'variables', '{}'), 'html', late);
    body := internal.email_render(picked.text, coalesce(email_queue.sent -> 'variables', '{}'), 'text', late);
    perform internal.email_missing_check(array(select distinct m
                                                 from unnest(subject.missing || html.missing || body.missing) m
                                                   order by m));
  else
    select null::int as version, null::text as locale into picked;
    select email_queue.sent ->> 'subject' as rendered into subject;
    select email_queue.sent ->> 'html' as rendered into html;
    select email_queue.sent ->> 'text' as rendered into body;
  end if;
  if octet_length(coalesce(html.rendered, '')) + octet_length(coalesce(body.rendered, '')) > 1048576 then
    perform internal.invalid(email_queue.field || case when picked is null then 'html' else 'variables' end,
                             'must make a message of at most 1 MB');
  elsif char_length(subject.rendered) not between 1 and 998 then
    perform internal.invalid(email_queue.field || case when picked is null then 'subject' else 'variables' end,
                             'must make a subject of 1 to 998 characters');
  end if;
  insert into app.email_messages (app_user_id, to_address, from_address, reply_to, headers, subject, template_key,
                                  template_version, locale, category, status,
                                  send_at, next_attempt_at, events, delivery_id, track)
  select them.id, address, email_queue.sent ->> 'from', email_queue.sent ->> 'reply_to',
         coalesce(email_queue.sent -> 'headers', '{}'), subject.rendered,
         email_queue.sent ->> 'template_key', picked.version, picked.locale, kind, s.status, a.at,
         case s.status when 'queued' then coalesce(a.at, internal.now()) end, internal.email_event(s.status),
         email_queue.delivery_id,
         coalesce((email_queue.sent ->> 'track')::boolean, false)
    from (select case when internal.email_is_suppressed(address, kind, them.id) then 'suppressed'
                      else 'queued' end as status) s,
         (select (email_queue.sent ->> 'send_at')::timestamptz as at) a
  returning * into queued;
  if queued.status = 'queued' then
    insert into app.email_bodies (message_id, html, text, unsubscribe_mark)
    values (queued.id, html.rendered, body.rendered, case when late ? 'unsubscribe_url' then mark end);
  end if;
  return queued;
end $$;
comment on function internal.email_queue is
  'Stores one message and queues it, or stores it as suppressed. field is what stands before the names of fields in
   refusals. With delivery_id it is the message of a campaign''s delivery, which has one. Refuses 400 VALIDATION_ERROR,
   TEMPLATE_VARIABLE_MISSING, 404 USER_NOT_FOUND. Granted to the functions that send only.';

create or replace function internal.email_rate_check() returns void
language sql volatile security definer set search_path = '' as $$
  select internal.check_rate('email sends', 10, 1, 'A project sends at most ten times a second.')
$$;
comment on function internal.email_rate_check is
  'Counts one call of send or send-batch: ten a second for each project. Refuses 429 RATE_LIMITED.';

create or replace function internal.email_audit(first_id uuid, messages int) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() <> 'developer' then
    raise exception 'the audit trail records administrators, not %', internal.caller();
  end if;
  -- one row for a batch: the messages themselves say the rest
  perform internal.audit('email.send', 'email', email_audit.first_id::text,
                         json_build_object('messages', json_build_array(0, email_audit.messages)), 202);
end $$;
comment on function internal.email_audit is
  'Records in the audit trail that an administrator sent messages, with the id of the first and their number.';

create or replace function api.email_send(message jsonb, accepted text[] default '{}',
                                          idempotency_key text default null, body_hash text default null,
                                          is_comped boolean default false)
returns api.reply
language plpgsql volatile as $$
declare
  reply api.reply := internal.idempotency_begin('email send', email_send.idempotency_key, email_send.body_hash);
  queued app.email_messages;
begin
  if reply is not null then
    return reply;
  end if;
  perform internal.email_rate_check();
  perform internal.spend_check(email_send.is_comped);
  queued := internal.email_queue(email_send.message, email_send.accepted, '');
  if queued.status = 'suppressed' then
    perform internal.fail(409, 'SUPPRESSED', 'This address gets no mail of this category.');
  end if;
  perform internal.email_audit(queued.id, 1);
  reply := internal.reply(202, json_build_object('id', queued.id, 'status', queued.status));
  perform internal.idempotency_end('email send', email_send.idempotency_key, reply);
  return reply;
end $$;
comment on function api.email_send is
  'Queues one message: 202 {id, status}. Nothing is stored of a message that is refused. Refuses 400 VALIDATION_ERROR,
   TEMPLATE_VARIABLE_MISSING, 404 USER_NOT_FOUND, 402 SPEND_CEILING_REACHED, 409 SUPPRESSED, IDEMPOTENCY_CONFLICT, 429
   RATE_LIMITED.';

create or replace function internal.email_recipients_lock(messages jsonb) returns void
language sql volatile security definer set search_path = '' as $$
  select internal.lock_users(array(
    select u.id
      from jsonb_array_elements(email_recipients_lock.messages) m
      join app.users u on u.id = (m ->> 'user_id')::uuid or u.email = internal.email_normal(m ->> 'to')))
$$;
comment on function internal.email_recipients_lock is
  'Locks the users of a batch in one order, so that two batches never wait for each other in a circle.';

create or replace function api.email_send_batch(messages jsonb, accepted text[] default '{}',
                                                is_comped boolean default false)
returns api.reply
language plpgsql volatile as $$
declare
  made json[] := '{}';
  queued app.email_messages;
  item record;
begin
  perform internal.email_rate_check();
  perform internal.spend_check(email_send_batch.is_comped);
  -- locked in one order, as other writers of several users do
  perform internal.email_recipients_lock(email_send_batch.messages);
  for item in select m.value, m.n from jsonb_array_elements(email_send_batch.messages) with ordinality m (value, n) loop
    queued := internal.email_queue(item.value, email_send_batch.accepted, format('messages.%s.', item.n - 1));
    made := made || json_build_object('id', queued.id, 'status', queued.status);
  end loop;
  perform internal.email_audit((made[1] ->> 'id')::uuid, cardinality(made));
  return internal.reply(202, array_to_json(made));
end $$;
comment on function api.email_send_batch is
  'Queues up to 100 messages, all or none: 202 [{id, status}] in their order; a suppressed one has the status
   suppressed. Refuses 400 VALIDATION_ERROR, TEMPLATE_VARIABLE_MISSING, 402 SPEND_CEILING_REACHED, 404 USER_NOT_FOUND,
   429 RATE_LIMITED.';

select internal.list_declare('email_messages_page', null::app.email_messages, 'email_message_json', '{created_at,id}',
                             filters => '{status,app_user_id}',
                             by_cursor => true);

create or replace function api.email_messages(status text default null, user_id uuid default null,
                                              cursor text default null, page_limit int default 50,
                                              include text default null)
returns api.reply
language sql stable as $$
  select internal.reply_with_users(
    internal.email_messages_page(email_messages.status, email_messages.user_id, email_messages.cursor,
                                 email_messages.page_limit),
    email_messages.include, 'user_id')
$$;
comment on function api.email_messages is
  'Messages, newest first, by status and user. Refuses 400 INVALID_INPUT for a cursor of another list.';

create or replace function api.email_message_get(message_id uuid) returns api.reply
language plpgsql stable as $$
declare
  m app.email_messages;
begin
  select e.* into m from app.email_messages e where e.id = email_message_get.message_id;
  perform internal.check_found(m.id is not null, 'message');
  return internal.reply(200, internal.json_merge(internal.email_message_json(m),
                                                 json_build_object('headers', m.headers, 'events', m.events)));
end $$;
comment on function api.email_message_get is 'A message with its events. Refuses 404 NOT_FOUND.';

create or replace function internal.email_message_end(message_id uuid, status text, detail text default null)
returns app.email_messages
language plpgsql volatile security definer set search_path = '' as $$
declare
  ended app.email_messages;
begin
  update app.email_messages m
     set status = email_message_end.status, attempting_at = null, next_attempt_at = null, updated_at = internal.now(),
         sent_at = case email_message_end.status when 'sent' then internal.now() else m.sent_at end,
         last_error = case when email_message_end.status = 'failed' then left(email_message_end.detail, 500)
                           else m.last_error end,
         events = m.events || internal.email_event(email_message_end.status, email_message_end.detail)
   where m.id = email_message_end.message_id
  returning m.* into ended;
  delete from app.email_bodies b where b.message_id = email_message_end.message_id;
  return ended;
end $$;
comment on function internal.email_message_end is
  'Ends the sending of a message in a status, and deletes its content. The caller holds the message and has checked its
   status. Granted to nobody.';

create or replace function internal.email_message_users_lock(message_id uuid) returns void
language sql volatile security definer set search_path = '' as $$
  select internal.lock_users(array[e.app_user_id])
    from app.email_messages e where e.id = email_message_users_lock.message_id and e.delivery_id is not null
$$;
comment on function internal.email_message_users_lock is
  'Locks the user of a campaign''s message, whose outcome is written to its delivery too: as whoever merges or deletes
   users locks first. Granted to nobody.';

create or replace function internal.email_message_cancel(message_id uuid) returns app.email_messages
language plpgsql volatile security definer set search_path = '' as $$
declare
  m app.email_messages;
begin
  perform internal.check_caller('developer', 'mail is cancelled by administrators');
  perform internal.email_message_users_lock(email_message_cancel.message_id);
  select e.* into m from app.email_messages e where e.id = email_message_cancel.message_id for update;
  perform internal.check_found(m.id is not null, 'message');
  if m.status <> 'queued' then
    perform internal.fail(409, 'CONFLICT', format('The message is %s: only a queued one can be cancelled.', m.status),
                          json_build_object('status', m.status));
  elsif m.attempting_at > internal.now() - interval '5 minutes' then
    perform internal.fail(409, 'CONFLICT', 'The message is being sent.', '{"status": "queued"}');
  end if;
  return internal.email_message_end(m.id, 'cancelled');
end $$;
comment on function internal.email_message_cancel is
  'Cancels a queued message that no worker is sending. Refuses 404 NOT_FOUND, 409 CONFLICT. Locks the message.';

create or replace function api.email_message_cancel(message_id uuid) returns api.reply
language sql volatile as $$
  select internal.reply(200,
                        internal.email_message_json(internal.email_message_cancel(email_message_cancel.message_id)))
$$;
comment on function api.email_message_cancel is
  'Cancels a message while it is queued. Refuses 404 NOT_FOUND, 409 CONFLICT.';

create or replace function api.email_message_from(message_id uuid) returns api.reply
language sql stable security definer set search_path = '' as $$
  select internal.reply(200, (
    select json_build_object('from', substring(m.from_address from '([^<>[:space:]]+)>?$'), 'to', m.to_address,
                             'has_own_server', internal.email_has_own_server())
      from app.email_messages m
     where m.id = email_message_from.message_id and m.status = 'queued'))
$$;
comment on function api.email_message_from is
  'For workers: the address that a queued message asks to be sent from, which may be null, its recipient, and whether
   the project''s own mail server carries it: {from, to, has_own_server}; null when nothing is queued.';

create or replace function api.email_attempt_begin(message_id uuid, unsubscribe_mark text default '{{unsubscribe_url}}')
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  m app.email_messages;
  body app.email_bodies;
begin
  perform internal.email_message_users_lock(email_attempt_begin.message_id);
  select e.* into m from app.email_messages e where e.id = email_attempt_begin.message_id for update;
  if m.id is null or m.status <> 'queued' then
    return internal.reply(200, null);
  end if;
  if m.attempting_at is null and internal.campaign_is_over(m.delivery_id) then
    perform internal.email_message_end(m.id, 'cancelled');
    return internal.reply(200, null);
  end if;
  if internal.email_is_suppressed(m.to_address, m.category, m.app_user_id) then
    perform internal.email_message_end(m.id, 'suppressed');
    return internal.reply(200, null);
  end if;
  if m.attempting_at is not null and m.category <> 'transactional' then
    perform internal.email_message_end(m.id, 'failed',
                                       'OUTCOME_UNKNOWN: a worker ended during the attempt, and the message may have '
                                       'been sent');
    return internal.reply(200, null);
  end if;
  update app.email_messages e
     set attempts = e.attempts + 1, attempting_at = internal.now(), updated_at = internal.now(),
         events = case when m.attempting_at is null then e.events
                       else e.events || internal.email_event('outcome_unknown',
                                                             'a worker ended during the attempt; the message is sent '
                                                             'again under the same Message-ID') end
   where e.id = m.id
  returning e.* into m;
  select b.* into body from app.email_bodies b where b.message_id = m.id;
  return internal.reply(200, json_build_object(
    'id', m.id, 'to', m.to_address, 'from', m.from_address, 'reply_to', m.reply_to, 'headers', m.headers,
      'subject', m.subject, 'category', m.category,
    'track', m.track, 'attempts', m.attempts,
    'html', replace(body.html, coalesce(body.unsubscribe_mark, '{{unsubscribe_url}}'),
                    email_attempt_begin.unsubscribe_mark),
    'text', replace(body.text, coalesce(body.unsubscribe_mark, '{{unsubscribe_url}}'),
                    email_attempt_begin.unsubscribe_mark),
    'smtp_sealed', (select i.config_sealed from app.integrations i where i.provider = 'smtp' and i.is_active)));
end $$;
comment on function api.email_attempt_begin is
  'For workers: notes an attempt and returns what to send, with the config of the project''s own mail server; null when
   there is nothing to send. A message whose last attempt has no outcome is sent again if it is transactional, and fails
   otherwise. unsubscribe_mark stands where the link to unsubscribe belongs. Locks the message.';

create or replace function api.email_attempt_end(message_id uuid, attempt int, outcome text, detail text default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  delays constant int[] := '{60,300,1800,7200,28800}';
  m app.email_messages;
  due timestamptz;
begin
  perform internal.email_message_users_lock(email_attempt_end.message_id);
  select e.* into m from app.email_messages e where e.id = email_attempt_end.message_id for update;
  -- a later attempt, or a worker that took this one for lost, has the word
  if m.id is null or m.attempts <> email_attempt_end.attempt or m.status <> 'queued' then
    return internal.reply(200, json_build_object('next_attempt_at', null));
  end if;
  if email_attempt_end.outcome = 'sent' then
    perform internal.email_message_end(m.id, 'sent');
    return internal.reply(200, json_build_object('next_attempt_at', null));
  elsif email_attempt_end.outcome = 'failed' or m.attempts > cardinality(delays) then
    perform internal.email_message_end(m.id, 'failed', email_attempt_end.detail);
    return internal.reply(200, json_build_object('next_attempt_at', null));
  end if;
  due := internal.now() + make_interval(secs => delays[m.attempts]);
  update app.email_messages e
     set attempting_at = null, next_attempt_at = due, updated_at = internal.now(), last_error =
       left(email_attempt_end.detail, 500),
         events = e.events || internal.email_event('attempt_failed', email_attempt_end.detail)
   where e.id = m.id;
  return internal.reply(200, json_build_object('next_attempt_at', internal.iso(due)));
end $$;
comment on function api.email_attempt_end is
  'For workers: stores the outcome of an attempt: sent, failed (for good), or retry, after 1, 5, 30 minutes, 2 and 8
   hours. Returns when the next attempt is due, or null. Locks the message.';

create or replace function internal.purge__email(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  select greatest(internal.purge_rows('app.email_messages',
                                      't.status <> ''queued'' and t.created_at < internal.now() - interval ''90 days''',
                                        purge__email.most),
                  internal.purge_rows('app.email_provider_events',
                                      't.received_at < internal.now() - interval ''30 days''', purge__email.most))
$$;
comment on function internal.purge__email is 'Daily: messages after 90 days, ids of providers'' events after 30 days.';
