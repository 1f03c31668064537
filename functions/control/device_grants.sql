-- The device authorization grant (RFC 8628): a tool shows a user code, a developer approves it in a browser, and the
-- tool gets a session.
create or replace function api.device_grant_create(device_hash text, user_code_mac text, client_name text,
                                                   ip text default null)
returns api.reply
language plpgsql volatile as $$
begin
  delete from app.device_grants g
   where g.user_code_mac = device_grant_create.user_code_mac and g.expires_at <= internal.now();
  insert into app.device_grants (device_hash, user_code_mac, client_name, ip, expires_at)
  values (device_grant_create.device_hash, device_grant_create.user_code_mac, device_grant_create.client_name,
          device_grant_create.ip,
          internal.now() + interval '10 minutes')
  on conflict on constraint device_grants_user_code_unique do nothing;
  return internal.reply(200, to_json(found));
end $$;
comment on function api.device_grant_create is
  'Stores a grant that waits for ten minutes. false: the user code is taken by a live grant, and the server draws
   another one.';

create or replace function api.device_grant_redeem(device_hash text, sid uuid, refresh_hash text, ip text default null,
                                                   user_agent text default null)
returns api.reply
language plpgsql volatile as $$
declare
  device app.device_grants;
  them app.developers;
  is_hasty boolean;
begin
  select g.* into device from app.device_grants g where g.device_hash = device_grant_redeem.device_hash for update;
  if device.id is null or device.expires_at <= internal.now() then
    return internal.refuse(400, 'EXPIRED_TOKEN', 'This device code is unknown, used or expired: start again.');
  end if;
  if device.status = 'denied' then
    delete from app.device_grants g where g.id = device.id;
    return internal.refuse(400, 'ACCESS_DENIED', 'The developer has refused this sign-in.');
  end if;
  is_hasty := coalesce(device.polled_at > internal.now() - make_interval(secs => device.interval_seconds), false);
  -- returned, not raised: the time of the poll and the longer interval must be stored
  update app.device_grants g
     set polled_at = internal.now(), interval_seconds = least(g.interval_seconds + case when is_hasty then 5 else 0 end,
                                                              60)
   where g.id = device.id;
  if is_hasty then
    return internal.refuse(400, 'SLOW_DOWN', 'Wait five seconds longer than before between two requests.');
  end if;
  if device.status = 'pending' then
    return internal.refuse(400, 'AUTHORIZATION_PENDING',
                           'The developer has not decided yet: ask again after the interval.');
  end if;
  select d.* into them from app.developers d where d.id = device.developer_id for share;
  delete from app.device_grants g where g.id = device.id;
  return internal.developer_session(them, 200, device_grant_redeem.sid, device_grant_redeem.refresh_hash,
                                    device_grant_redeem.ip,
                                    device_grant_redeem.user_agent);
end $$;
comment on function api.device_grant_redeem is
  'Signs in a tool whose grant was approved, once: 200 {developer}. Refuses 400 AUTHORIZATION_PENDING, SLOW_DOWN (each
   adds five seconds to the interval, at most to a minute), EXPIRED_TOKEN (also for an unknown or used code),
   ACCESS_DENIED (once). Locks the grant, then the account.';

create or replace function api.device_grant_get(user_code_mac text) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  device app.device_grants;
begin
  select g.* into device
    from app.device_grants g
   where g.user_code_mac = device_grant_get.user_code_mac and g.status = 'pending' and g.expires_at > internal.now();
  perform internal.check_found(device.id is not null, 'code');
  return internal.reply(200, json_build_object('client_name', device.client_name, 'ip', device.ip,
                                               'created_at', internal.iso(device.created_at),
                                               'expires_at', internal.iso(device.expires_at)));
end $$;
comment on function api.device_grant_get is
  'What a developer sees of the tool that waits under a user code before they decide: {client_name, ip, created_at,
   expires_at}; ip is where the tool asked from. Refuses 404 NOT_FOUND.';

create or replace function api.device_grant_approve(user_code_mac text, approve boolean) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  decided_id uuid;
  tool text;
begin
  -- a change of the password or a reclaim of the account ends approvals that have no session yet: see
  -- internal.tg_developers__device_grants
  perform internal.lock_own_account();
  update app.device_grants g
     set status = case when device_grant_approve.approve then 'approved' else 'denied' end,
         developer_id = case when device_grant_approve.approve then internal.developer_id() end
   where g.user_code_mac = device_grant_approve.user_code_mac and g.status = 'pending' and g.expires_at > internal.now()
  returning g.id, g.client_name into decided_id, tool;
  perform internal.check_found(decided_id is not null, 'code');
  if device_grant_approve.approve then
    perform internal.audit_developer('developer.device_approved', internal.developer_id(),
                                     json_build_object('client_name', json_build_array(null, tool)));
  end if;
  return internal.reply(200, json_build_object('approved', device_grant_approve.approve));
end $$;
comment on function api.device_grant_approve is
  'Approves or refuses a waiting grant for the caller, who is signed in: 200 {approved}. Refuses 404 NOT_FOUND, also for
   a grant that is decided, used or expired, 401 INVALID_DEVELOPER_TOKEN. Locks the account, then the grant.';

create or replace function internal.tg_developers__device_grants() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.device_grants g where g.developer_id = new.id;
  return null;
end $$;
comment on function internal.tg_developers__device_grants is
  'A new password, or the reclaim of an account, also ends what was approved before and has not become a session yet.';
create or replace trigger tg_developers__device_grants
  after update of password_hash on app.developers
  for each row execute function internal.tg_developers__device_grants();

create or replace function internal.purge_device_grants() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.device_grants g where g.expires_at < internal.now() - interval '1 day';
end $$;
comment on function internal.purge_device_grants is
  'Daily, with the accounts: deletes grants that expired a day ago. Granted to nobody.';
