-- Messages of sign-in: a code or link is queued in the transaction that creates it, and sent by workers.
create or replace function internal.tg_user_codes__send() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- separate lanes, so that a slow mail server delays no other work
  perform internal.enqueue(case new.channel when 'email' then 'client_auth__mail' else 'client_auth__sms' end,
                           new.id::text,
                           lane => 'client_auth ' || new.channel);
  return null;
end $$;
comment on function internal.tg_user_codes__send is
  'Queues the message of a new code or link. The payload is the id only: the content is encrypted in the row.';

create or replace trigger tg_user_codes__send_new
  after insert on app.user_codes
  -- what an administrator asked for is not mailed
  for each row when (new.sealed is not null) execute function internal.tg_user_codes__send();
create or replace trigger tg_user_codes__send_again
  after update of id on app.user_codes
  for each row when (old.id <> new.id and new.sealed is not null) execute function internal.tg_user_codes__send();

create or replace function internal.auth_message_content(address text, kind text, purpose text, locales text[],
                                                         brand text, has_link boolean, marks jsonb)
returns json
language plpgsql stable security definer set search_path = '' as $$
declare
  key constant text := case when auth_message_content.kind = 'magic_link' then case
                                        when auth_message_content.has_link then 'auth.magic_link'
                                          else 'auth.magic_token' end
                            else case auth_message_content.purpose when 'link' then 'auth.link_code'
                                      when 'delete' then 'auth.delete_code' else 'auth.otp' end end;
  variables constant jsonb := jsonb_build_object('brand', auth_message_content.brand);
  picked record;
begin
  select * into picked
    from internal.email_template_pick(key, array_prepend(
           (select u.properties ->> 'locale' from app.users u where u.email = auth_message_content.address),
             auth_message_content.locales));
  -- the secret is put in by the server, which alone can decrypt it
  return json_build_object(
    'is_own', picked.version > 0, 'subject', (internal.email_render(picked.subject, variables, 'header')).rendered,
    'html', (internal.email_render(picked.html, variables, 'html', auth_message_content.marks)).rendered,
    'text', (internal.email_render(picked.text, variables, 'text', auth_message_content.marks)).rendered);
end $$;
comment on function internal.auth_message_content is
  'The content of a message of sign-in, {is_own, subject, html, text}, is_own: of the project''s own template; in the
   language of the user or of the request; marks says what stands for {{code}} and {{link}}, which the server fills in.
   Granted to workers.';

create or replace function api.auth_message_begin(code_id uuid, brand text default null, has_link boolean default false,
                                                   marks jsonb default '{"code": "{{code}}", "link": "{{link}}"}')
returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select json_build_object('id', c.id, 'kind', c.kind, 'channel', c.channel, 'address', c.address,
                             'purpose', c.purpose,
                             'sealed', c.sealed,
                             'content', case when c.channel = 'email' then
                               internal.auth_message_content(c.address, c.kind, c.purpose, c.locales,
                                                             auth_message_begin.brand, auth_message_begin.has_link,
                                                              auth_message_begin.marks) end,
                             'provider_sealed', case when c.channel = 'phone' then
                               (select i.config_sealed from app.integrations i
                                 where i.provider = 'sms' and i.is_active) end)
      from app.user_codes c
     where c.id = auth_message_begin.code_id and c.sealed is not null
       and c.used_at is null and c.expires_at > internal.now()
       -- an address that bounced, complained or was suppressed by hand gets no mail at all, and nobody is told
       and not (c.channel = 'email' and internal.email_is_suppressed(c.address, 'transactional', null))))
$$;
comment on function api.auth_message_begin is
  'The message that a worker is to send; null when it was sent, used or replaced, has expired, or goes to an address
   that is suppressed. brand is the project''s name in messages; has_link: the project has a URL that links lead to;
   marks: what stands for {{code}} and {{link}} in the content.';

create or replace function api.auth_message_sent(code_id uuid) returns api.reply
language sql volatile as $$
  update app.user_codes c set sealed = null, sent_at = internal.now() where c.id = auth_message_sent.code_id;
  select internal.reply(200, 'true')
$$;
comment on function api.auth_message_sent is 'Records that the message was sent, and deletes its encrypted content.';
