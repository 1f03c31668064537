select internal.row_declare('push_token_json', null::app.push_tokens,
                            '{id,app_user_id,token,platform,provider,is_active,created_at,updated_at}');
comment on function internal.push_token_json is 'A push token as responses show it.';

create or replace function internal.push_token_claim(token text, platform text) returns app.push_tokens
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  sid constant uuid := internal.session_id();
  registered app.push_tokens;
begin
  if me is null then
    raise exception 'push tokens are registered by users, not by %', internal.caller();
  end if;
  -- lock order: the user first; a concurrent deletion of the user waits, or has committed before
  perform from app.users u where u.id = me for key share;
  perform internal.check_found(found, 'user');
  -- whoever ends the session waits, and then sees the registration
  if sid is not null then
    perform from app.user_sessions s where s.id = sid and s.app_user_id = me and s.ended_at is null
      and s.expires_at > internal.now() for share;
    if not found then
      perform internal.fail(401, 'UNAUTHORIZED', 'The session has ended.');
    end if;
  end if;
  loop
    update app.push_tokens p
       set platform = push_token_claim.platform, is_active = true, session_id = sid, updated_at = internal.now()
     where p.token = push_token_claim.token and p.app_user_id = me
    returning p.* into registered;
    exit when found;
    -- another user's row is deleted, with its id and its dates: nothing reveals to the new owner that it existed
    delete from app.push_tokens p where p.token = push_token_claim.token and p.app_user_id <> me;
    insert into app.push_tokens (app_user_id, token, platform, session_id)
    values (me, push_token_claim.token, push_token_claim.platform, sid)
    on conflict on constraint push_tokens_token_unique do nothing
    returning * into registered;
    -- a concurrent request registered the token: try again
    exit when found;
  end loop;
  return registered;
end $$;
comment on function internal.push_token_claim is
  'Assigns a token to the caller and the calling session, whether it is new, the caller''s already or another user''s.
   Refuses 404 NOT_FOUND, 401 UNAUTHORIZED where the session has ended. Locks the user''s key, the session and the
   token''s row.';

create or replace function internal.tg_user_sessions__push_tokens() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  update app.push_tokens p set is_active = false, updated_at = internal.now()
    where p.session_id = old.id and p.is_active;
  return null;
end $$;
comment on function internal.tg_user_sessions__push_tokens is
  'A session has ended, whatever ended it: nothing more is pushed to the devices that it registered, until another one
   registers them.';
create or replace trigger tg_user_sessions__push_tokens after update of ended_at on app.user_sessions
  for each row when (old.ended_at is null and new.ended_at is
                     not null) execute function internal.tg_user_sessions__push_tokens();
create or replace trigger tg_user_sessions__push_tokens_delete after delete on app.user_sessions
  for each row execute function internal.tg_user_sessions__push_tokens();

create or replace function internal.push_tokens_hand_over(from_sid uuid) returns void
language sql volatile security definer set search_path = '' as $$
  update app.push_tokens p set session_id = internal.session_id()
    where p.session_id = push_tokens_hand_over.from_sid and p.is_active
$$;
comment on function internal.push_tokens_hand_over is
  'The calling session takes over the devices of another one, which is merged into it and is of the same app. The caller
   has checked that. Called by the merge of users.';

create or replace function internal.purge__push_tokens(most int default 5000) returns bigint
language plpgsql volatile security definer set search_path = '' as $$
declare
  expired bigint;
begin
  update app.push_tokens p
     set is_active = false, updated_at = internal.now()
   where p.id in (select t.id
                    from app.push_tokens t
                    left join app.user_sessions s on s.id = t.session_id
                   where t.is_active and t.session_id is not null
                     and (s.id is null or s.ended_at is not null or s.expires_at <= internal.now())
                   order by t.id limit purge__push_tokens.most);
  get diagnostics expired = row_count;
  return expired;
end $$;
comment on function internal.purge__push_tokens is
  'Daily: switches off the devices whose session has expired. Nothing has been pushed to them since: who sends asks for
   the session.';

create or replace function api.push_token_register(token text, platform text) returns api.reply
language plpgsql volatile as $$
begin
  if push_token_register.token !~ '^[!-~]+$' or char_length(push_token_register.token) > 2048 then
    perform internal.invalid('token', 'must be 1 to 2048 printable ASCII characters', 'INVALID_INPUT');
  end if;
  if push_token_register.platform not in ('ios', 'android') then
    perform internal.invalid('platform', 'must be ios or android', 'INVALID_INPUT');
  end if;
  perform internal.check_session();
  return internal.reply(200, internal.push_token_json(internal.push_token_claim(push_token_register.token,
                                        push_token_register.platform)));
end $$;
comment on function api.push_token_register is
  'Registers a device for the caller: 200 with the row, the same whether the token is new, known or was another user''s.
   Refuses 400 INVALID_INPUT, 404 NOT_FOUND.';

create or replace function api.push_token_unregister(token text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  update app.push_tokens p
     set is_active = false, updated_at = internal.now()
   where p.token = push_token_unregister.token and p.app_user_id = internal.user_id() and p.is_active;
  return internal.reply(200, '{"unregistered": true}');
end $$;
comment on function api.push_token_unregister is
  'Deactivates a token of the caller. Always 200, so that the response does not reveal whether the token was the
   caller''s.';

create or replace function internal.account_reclaim__push_tokens(app_user_id uuid) returns void
language sql volatile security definer set search_path = '' as $$
  update app.push_tokens p
     set is_active = false, updated_at = internal.now()
   where p.app_user_id = account_reclaim__push_tokens.app_user_id and p.is_active
$$;
comment on function internal.account_reclaim__push_tokens is
  'Deactivates the devices of an account that is reclaimed by the owner of its address. Called by sign-in; granted to
   nobody.';

create or replace function internal.push_device_json(t app.push_tokens) returns json
language sql stable as $$
  -- the token itself is what messages can be sent with: administrators see its end
  select json_build_object('id', (push_device_json.t).id, 'platform', (push_device_json.t).platform,
                           'provider', (push_device_json.t).provider, 'is_active', (push_device_json.t).is_active,
                           'token_end', right((push_device_json.t).token, 6),
                           'created_at', internal.iso((push_device_json.t).created_at),
                           'updated_at', internal.iso((push_device_json.t).updated_at))
$$;
comment on function internal.push_device_json is 'A device that is registered for push, as administrators see it.';

select internal.list_declare('push_devices_page', null::app.push_tokens, 'push_device_json', '{id}',
                             required => '{app_user_id}');

create or replace function api.user_devices(user_id uuid, page_offset int default 0, page_limit int default 50)
returns api.reply
language plpgsql stable as $$
begin
  perform internal.check_found(exists (select from app.users u where u.id = user_devices.user_id), 'user');
  return internal.push_devices_page(user_devices.user_id, user_devices.page_offset, user_devices.page_limit);
end $$;
comment on function api.user_devices is
  'Devices that a user has registered for push, newest first. Refuses 404 NOT_FOUND.';
