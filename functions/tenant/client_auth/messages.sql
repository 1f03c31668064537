-- Messages of sign-in: a code or link is queued in the transaction that creates it, and sent by workers.
create or replace function internal.tg_user_codes__send() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- separate lanes, so that a slow mail server delays no other work
  perform internal.enqueue(case new.channel when 'email' then 'client_auth__mail' else 'client_auth__sms' end, new.id::text,
                           lane => 'client_auth ' || new.channel);
  return null;
end $$;
comment on function internal.tg_user_codes__send is
  'Queues the message of a new code or link. The payload is the id only: the content is encrypted in the row.';

create or replace trigger tg_user_codes__send_new
  after insert on app.user_codes
  for each row execute function internal.tg_user_codes__send();
create or replace trigger tg_user_codes__send_again
  after update of id on app.user_codes
  for each row when (old.id <> new.id) execute function internal.tg_user_codes__send();

create or replace function api.auth_message_begin(code_id uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select json_build_object('id', c.id, 'kind', c.kind, 'channel', c.channel, 'address', c.address, 'purpose', c.purpose,
                             'sealed', c.sealed,
                             'provider_sealed', case when c.channel = 'phone' then
                               (select i.config_sealed from app.integrations i where i.provider = 'sms' and i.is_active) end)
      from app.user_codes c
     where c.id = auth_message_begin.code_id and c.sealed is not null
       and c.used_at is null and c.expires_at > internal.now()))
$$;
comment on function api.auth_message_begin is 'The message that a worker is to send; null when it was sent, used or replaced, or has expired.';

create or replace function api.auth_message_sent(code_id uuid) returns api.reply
language sql volatile as $$
  update app.user_codes c set sealed = null, sent_at = internal.now() where c.id = auth_message_sent.code_id;
  select internal.reply(200, 'true')
$$;
comment on function api.auth_message_sent is 'Records that the message was sent, and deletes its encrypted content.';
