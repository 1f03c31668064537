create or replace function internal.push_token_json(token app.push_tokens) returns json
language sql stable as $$
  select json_build_object(
    'id', (push_token_json.token).id, 'app_user_id', (push_token_json.token).app_user_id, 'token', (push_token_json.token).token,
    'platform', (push_token_json.token).platform, 'provider', (push_token_json.token).provider,
    'is_active', (push_token_json.token).is_active, 'created_at', internal.iso((push_token_json.token).created_at),
    'updated_at', internal.iso((push_token_json.token).updated_at))
$$;
comment on function internal.push_token_json is 'A push token as the contract shows it.';

create or replace function internal.push_token_claim(token text, platform text) returns app.push_tokens
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  registered app.push_tokens;
begin
  if me is null then
    raise exception 'push tokens are registered by users, not by %', internal.caller();
  end if;
  -- lock order: the user first; a concurrent deletion of the user waits, or has committed before
  perform from app.users u where u.id = me for key share;
  if not found then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such user.');
  end if;
  loop
    update app.push_tokens p
       set platform = push_token_claim.platform, is_active = true, updated_at = internal.now()
     where p.token = push_token_claim.token and p.app_user_id = me
    returning p.* into registered;
    exit when found;
    -- another user's row is deleted, with its id and its dates: nothing reveals to the new owner that it existed
    delete from app.push_tokens p where p.token = push_token_claim.token and p.app_user_id <> me;
    insert into app.push_tokens (app_user_id, token, platform)
    values (me, push_token_claim.token, push_token_claim.platform)
    on conflict on constraint push_tokens_token_unique do nothing
    returning * into registered;
    -- a concurrent request registered the token: try again
    exit when found;
  end loop;
  return registered;
end $$;
comment on function internal.push_token_claim is 'Assigns a token to the caller, whether it is new, the caller''s already or another user''s. Refuses 404 NOT_FOUND. Locks the token''s row.';

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
  return internal.reply(200, internal.push_token_json(internal.push_token_claim(push_token_register.token, push_token_register.platform)));
end $$;
comment on function api.push_token_register is
  'Registers a device for the caller: 200 with the row, the same whether the token is new, known or was another user''s. Refuses 400 INVALID_INPUT,
   404 NOT_FOUND.';

create or replace function internal.push_token_deactivate(token text) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  update app.push_tokens p
     set is_active = false, updated_at = internal.now()
   where p.token = push_token_deactivate.token and p.app_user_id = internal.user_id() and p.is_active;
end $$;
comment on function internal.push_token_deactivate is 'Deactivates a token of the caller.';

create or replace function api.push_token_unregister(token text) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.push_token_deactivate(push_token_unregister.token);
  return internal.reply(200, '{"unregistered": true}');
end $$;
comment on function api.push_token_unregister is 'Deactivates a device. Always 200, so that the response does not reveal whether the token was the caller''s.';

create or replace function internal.account_reclaim__push_tokens(app_user_id uuid) returns void
language sql volatile security definer set search_path = '' as $$
  update app.push_tokens p
     set is_active = false, updated_at = internal.now()
   where p.app_user_id = account_reclaim__push_tokens.app_user_id and p.is_active
$$;
comment on function internal.account_reclaim__push_tokens is
  'Deactivates the devices of an account that is reclaimed by the owner of its address. Called by sign-in; granted to nobody.';
