-- Developer accounts. The server hashes passwords and signs tokens; the database receives only hashes.
comment on index app.developers_mailbox_unique is '409 EMAIL_EXISTS email: An account with this mailbox exists.';

create or replace function internal.developer_json(d app.developers) returns json
language sql stable as $$
  select json_build_object(
    'id', (developer_json.d).id, 'email', (developer_json.d).email, 'name', (developer_json.d).name,
    'oauth_providers', to_json((developer_json.d).oauth_providers), 'email_verified', (developer_json.d).email_verified,
    'has_password', (developer_json.d).password_hash is not null, 'account_state', (developer_json.d).account_state,
    'can_provision', (developer_json.d).provisioning = 'on',
    'created_at', internal.iso((developer_json.d).created_at),
    'updated_at', internal.iso((developer_json.d).updated_at))
$$;
comment on function internal.developer_json is 'A developer as responses show it, without the password hash.';

create or replace function internal.is_disposable(email text) returns boolean
language sql stable as $$
  -- the domain itself and every parent domain: x.mailinator.com counts as mailinator.com
  with parts as (
    select string_to_array(split_part(internal.email_normal(is_disposable.email), '@', 2), '.') as labels
  )
  select exists (
    select from parts p
     cross join lateral generate_series(1, array_length(p.labels, 1) - 1) as first
      join app.disposable_domains d on d.domain = array_to_string(p.labels[first:], '.'))
$$;
comment on function internal.is_disposable is 'Whether an address is at a disposable mail domain.';

create or replace function internal.developer_session(developer app.developers, status int, sid uuid, refresh_hash text,
                                                      ip text, user_agent text)
returns api.reply
language plpgsql volatile as $$
begin
  insert into app.developer_sessions (id, developer_id, refresh_hash, expires_at, ip, user_agent)
  values (developer_session.sid, (developer_session.developer).id, developer_session.refresh_hash,
          internal.now() + interval '30 days', developer_session.ip, left(developer_session.user_agent, 500));
  return internal.reply(developer_session.status,
                        json_build_object('developer', internal.developer_json(developer_session.developer)));
end $$;
comment on function internal.developer_session is 'Starts a session of 30 days.';

create or replace function internal.developer_make(email text, password_hash text, name text, signup_mode text,
                                                   request_access json, invite_hash text)
returns app.developers
language plpgsql volatile as $$
declare
  invite_id uuid;
  made app.developers;
begin
  if not internal.is_email(btrim(developer_make.email)) then
    perform internal.invalid('email', 'must be a mail address', 'INVALID_INPUT');
  end if;
  if developer_make.signup_mode = 'closed' then
    perform internal.fail(403, 'SIGNUPS_CLOSED', 'Sign-up is closed at the moment, even with an invite code.',
                          developer_make.request_access);
  end if;
  if internal.is_disposable(developer_make.email) then
    perform internal.fail(400, 'DISPOSABLE_EMAIL',
                          'Addresses of disposable mailboxes are not accepted: use another address.',
                            '{"field": "email"}');
  end if;
  if developer_make.invite_hash is not null then
    invite_id := internal.invite_lock(developer_make.invite_hash, developer_make.request_access);
  elsif developer_make.signup_mode <> 'open' then
    perform internal.fail(403, 'INVITE_REQUIRED', 'Signing up needs an invite code.', developer_make.request_access);
  end if;
  insert into app.developers (email, mailbox, name, password_hash)
  values (internal.email_normal(developer_make.email), internal.email_mailbox(developer_make.email),
          developer_make.name,
          developer_make.password_hash)
  on conflict (mailbox) do nothing
  returning * into made;
  if made.id is null then
    perform internal.fail(409, 'EMAIL_EXISTS', 'An account with this mailbox exists.', '{"field": "email"}');
  end if;
  update app.invites i set used_at = internal.now(), used_by = made.id where i.id = invite_id;
  return made;
end $$;
comment on function internal.developer_make is
  'Creates an account, for every way to sign up. Refuses as api.developer_signup. Locks the invite.';

create or replace function api.developer_signup(sid uuid, refresh_hash text, email text, password_hash text,
                                                signup_mode text, request_access json, invite_hash text default null,
                                                name text default null, ip text default null,
                                                user_agent text default null)
returns api.reply
language plpgsql volatile as $$
begin
  return internal.developer_session(
    internal.developer_make(developer_signup.email, developer_signup.password_hash, developer_signup.name,
                            developer_signup.signup_mode,
                            developer_signup.request_access, developer_signup.invite_hash),
    201, developer_signup.sid, developer_signup.refresh_hash, developer_signup.ip, developer_signup.user_agent);
end $$;
comment on function api.developer_signup is
  'Creates an account and signs it in: 201 {developer}. An invite code in the request must be valid in every mode (open,
   invite, closed), and is not consumed when anything is refused. Refuses 400 INVALID_INPUT, DISPOSABLE_EMAIL, 403
   SIGNUPS_CLOSED, INVITE_REQUIRED, INVITE_INVALID (with request_access as details), 409 EMAIL_EXISTS (an alias of the
   same mailbox counts). Locks the invite.';

create or replace function api.developer_password(email text) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('mailbox', m.mailbox, 'developer_id', d.id,
                                               'password_hash', d.password_hash))
    from (select internal.email_mailbox(developer_password.email) as mailbox) m
    left join app.developers d on d.mailbox = m.mailbox
$$;
comment on function api.developer_password is
  'For the server: the account and password hash to check, nulls when there is no account, and the mailbox, which failed
   attempts are counted by. Granted only to control_auth.';

create or replace function api.developer_login(sid uuid, refresh_hash text, developer_id uuid, password_hash text,
                                               ip text default null, user_agent text default null,
                                               renewed_hash text default null)
returns api.reply
language plpgsql volatile as $$
declare
  them app.developers;
begin
  -- the password may have changed while it was being checked
  select d.* into them
    from app.developers d
   where d.id = developer_login.developer_id and d.password_hash = developer_login.password_hash
     for no key update;
  if them.id is null then
    perform internal.fail(401, 'INVALID_CREDENTIALS', 'The email or the password is wrong.');
  end if;
  if developer_login.renewed_hash is not null then
    update app.developers d set password_hash = developer_login.renewed_hash where d.id = them.id;
  end if;
  return internal.developer_session(them, 200, developer_login.sid, developer_login.refresh_hash, developer_login.ip,
                                    developer_login.user_agent);
end $$;
comment on function api.developer_login is
  'Signs in a developer if the hash that the server checked is still the stored one, which renewed_hash replaces: 200
   {developer}. Refuses 401 INVALID_CREDENTIALS. Locks the account.';

create or replace function api.developer_refresh(sid uuid, presented_hash text, next_hash text,
                                                 is_browser boolean default false)
  returns api.reply
language plpgsql volatile as $$
declare
  session app.developer_sessions;
  is_repeated boolean;
begin
  select s.* into session from app.developer_sessions s where s.id = developer_refresh.sid for update;
  if session.id is null or session.ended_at is not null or session.expires_at <= internal.now() then
    return internal.refuse(401, 'INVALID_TOKEN',
                           'The refresh token is invalid or its session has ended: sign in again.');
  end if;
  -- the answer of a browser's last renewal may never have arrived: its page was loaded anew before it came
  is_repeated := coalesce(developer_refresh.is_browser and session.former_hash = developer_refresh.presented_hash
                          and session.replaced_at > internal.now() - interval '1 minute', false);
  if session.refresh_hash <> developer_refresh.presented_hash and not is_repeated then
    -- returned, not raised: the end of the session must be stored
    update app.developer_sessions s set ended_at = internal.now(), end_reason = 'reuse' where s.id = session.id;
    perform internal.changed('session:' || session.id);
    return internal.refuse(401, 'REFRESH_TOKEN_REUSED',
                           'This refresh token had been replaced, so its session was ended: sign in again.');
  end if;
  update app.developer_sessions s
     set refresh_hash = developer_refresh.next_hash, last_used_at = internal.now(),
         expires_at = internal.now() + interval '30 days', former_hash = developer_refresh.presented_hash,
         replaced_at = case when is_repeated then session.replaced_at else internal.now() end
   where s.id = session.id;
  return internal.reply(200, json_build_object('developer_id', session.developer_id));
end $$;
comment on function api.developer_refresh is
  'Rotates the refresh token of a session. Refuses 401 INVALID_TOKEN; the reuse of an earlier token ends the session:
   401 REFRESH_TOKEN_REUSED. A browser (is_browser: a token in a cookie that no script reads) may present the last one
   again for a minute after it was replaced. Locks the session.';

create or replace function api.developer_logout(sid uuid) returns api.reply
language plpgsql volatile as $$
begin
  update app.developer_sessions s set ended_at = internal.now(), end_reason = 'logout'
   where s.id = developer_logout.sid and s.ended_at is null;
  if found then
    perform internal.changed('session:' || developer_logout.sid);
  end if;
  return internal.reply(200, '{"success": true}');
end $$;
comment on function api.developer_logout is
  'Ends one session; the others continue. Idempotent: a session that has ended or does not exist is 200 too.';

create or replace function api.developer_session_check(sid uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(
    (select json_build_object('is_live', true, 'roles', internal.organization_roles(s.developer_id))
       from app.developer_sessions s
      where s.id = developer_session_check.sid and s.ended_at is null and s.expires_at > internal.now()),
    '{"is_live": false, "roles": {}}'))
$$;
comment on function api.developer_session_check is
  'Whether a session is live, so that its access tokens still work, and the developer''s roles as {organization_id:
   role}.';

create or replace function api.developer_own_password(developer_id uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select json_build_object('mailbox', d.mailbox, 'password_hash', d.password_hash)
      from app.developers d where d.id = developer_own_password.developer_id))
$$;
comment on function api.developer_own_password is
  'For the server: the stored hash that a current password is checked against, or null when the account was deleted.
   Granted only to control_auth.';

create or replace function internal.developer_own_json() returns json
language sql stable security definer set search_path = '' as $$
  -- security definer: the owner may see whether a password is set, but only sign-in may read the hash
  select internal.developer_json(d) from app.developers d where d.id = internal.developer_id()
$$;
comment on function internal.developer_own_json is 'The caller''s own account, or null.';

create or replace function api.developer_me(token json) returns api.reply
language plpgsql stable as $$
declare
  me constant json := internal.developer_own_json();
begin
  if me is null then
    perform internal.fail(401, 'INVALID_DEVELOPER_TOKEN', 'This account does not exist any more.');
  end if;
  return internal.reply(200, internal.json_merge(me,
                                                 json_build_object('organizations', internal.organizations_of_caller(),
                                                                   'token', developer_me.token)));
end $$;
comment on function api.developer_me is
  'The current developer with the organizations [{id, name, role}], and the token of the request: {type, scopes,
   expires_at}. Refuses 401 INVALID_DEVELOPER_TOKEN.';

create or replace function internal.lock_own_account() returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  actor constant json := internal.actor();
begin
  perform from app.developers d where d.id = internal.developer_id() for no key update;
  -- checked under the lock: a session or token that ended during the wait, or that a server still has in its cache, may
  -- not add a credential
  if not exists (
    select from app.developer_sessions s
     where s.id = internal.session_id() and s.developer_id = internal.developer_id()
       and s.ended_at is null and s.expires_at > internal.now()
    union all
    select from app.developer_tokens t
     where actor ->> 'type' = 'pat' and t.id = internal.as_uuid(actor ->> 'id')
       and t.developer_id = internal.developer_id()
       and t.revoked_at is null)
  then
    perform internal.fail(401, 'INVALID_DEVELOPER_TOKEN', 'The developer token is missing, expired or invalid.');
  end if;
end $$;
comment on function internal.lock_own_account is
  'Called by every function that adds a credential: a password, a token, a key. Locks the caller''s account, as
   internal.account_reclaim requires too, and refuses 401 INVALID_DEVELOPER_TOKEN when the credential of the call has
   ended.';

create or replace function internal.change_own_password(checked_hash text, password_hash text) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.lock_own_account();
  update app.developers d
     set password_hash = change_own_password.password_hash, updated_at = internal.now()
   where d.id = internal.developer_id()
     -- the password may have changed while the current one was being checked
     and d.password_hash is not distinct from change_own_password.checked_hash;
  if not found then
    perform internal.fail(401, 'INVALID_CREDENTIALS', 'The current password is wrong.');
  end if;
  update app.developer_sessions s
     set ended_at = internal.now(), end_reason = 'password'
   where s.developer_id = internal.developer_id() and s.id is distinct
     from internal.session_id() and s.ended_at is null;
  perform internal.changed('developer:' || internal.developer_id());
end $$;
comment on function internal.change_own_password is
  'Sets the caller''s password if the hash that the server checked (null: none was set) is still the stored one, and
   ends all other sessions. Refuses 401 INVALID_CREDENTIALS, INVALID_DEVELOPER_TOKEN. Locks the account, then its
   sessions.';

create or replace function api.developer_patch(patch jsonb, token json, checked_hash text default null,
                                               password_hash text default null)
returns api.reply
language plpgsql volatile as $$
begin
  if developer_patch.patch ? 'name' then
    update app.developers d
       set name = developer_patch.patch ->> 'name', updated_at = internal.now()
     where d.id = internal.developer_id();
  end if;
  if developer_patch.password_hash is not null then
    perform internal.change_own_password(developer_patch.checked_hash, developer_patch.password_hash);
  end if;
  return api.developer_me(developer_patch.token);
end $$;
comment on function api.developer_patch is
  'Changes the fields that are present, and the password if its new hash is sent with the checked one: 200 as
   developer_me. Refuses 401 INVALID_CREDENTIALS, INVALID_DEVELOPER_TOKEN.';

create or replace function api.developer_session_list(page_limit int, page_offset bigint) returns api.reply
language sql stable as $$
  with live as (
    select s.id, s.created_at, s.last_used_at, s.ip, s.user_agent
      from app.developer_sessions s
     where s.developer_id = internal.developer_id() and s.ended_at is null and s.expires_at > internal.now()
  )
  select internal.reply_page(
    (select json_agg(json_build_object(
              'id', p.id, 'created_at', internal.iso(p.created_at), 'last_used_at', internal.iso(p.last_used_at),
                'ip', p.ip,
              'user_agent', p.user_agent, 'current', p.id = internal.session_id()) order by p.created_at desc,
              p.id desc)
       from (select l.* from live l
              order by l.created_at desc, l.id desc
              limit developer_session_list.page_limit offset developer_session_list.page_offset) p),
    (select count(*) from live), developer_session_list.page_offset, developer_session_list.page_limit)
$$;
comment on function api.developer_session_list is
  'The caller''s live sessions, newest first; last_used_at is the time of the sign-in or of the last refresh.';

create or replace function api.developer_session_end(session_id uuid) returns api.reply
language plpgsql volatile as $$
begin
  update app.developer_sessions s set ended_at = internal.now(), end_reason = 'ended'
   where s.id = developer_session_end.session_id and s.developer_id = internal.developer_id()
     and s.ended_at is null and s.expires_at > internal.now();
  perform internal.check_found(found, 'sign-in');
  perform internal.changed('session:' || developer_session_end.session_id);
  return internal.reply_deleted();
end $$;
comment on function api.developer_session_end is
  'Ends one live session of the caller. Refuses 404 NOT_FOUND, also for another developer''s session.';

create or replace function internal.audit_developer(action text, developer_id uuid, changes json) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- a caller who is signing in has no identity yet: the audit row names the account itself as the actor
  if internal.caller() = 'sign_in' then
    perform set_config('app.actor', (coalesce(internal.actor()::jsonb, '{}')
                                     || jsonb_build_object('type', 'developer', 'id',
                                                           audit_developer.developer_id))::text, true);
  end if;
  perform internal.audit(audit_developer.action, 'developers', audit_developer.developer_id::text,
                         audit_developer.changes,
                         scope => audit_developer.developer_id);
end $$;
comment on function internal.audit_developer is
  'Writes an audit row to the trail of an account; during a sign-in the actor is the account''s owner. Granted to
   nobody.';

create or replace function internal.tg_developers__audit() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  old_row constant jsonb := case when tg_op = 'UPDATE' then to_jsonb(old) else '{}' end;
  new_row constant jsonb := to_jsonb(new);
  changes json;
begin
  select json_object_agg(c.key, case when c.key = 'password_hash' then '["[redacted]", "[redacted]"]'::json
                                     else json_build_array(old_row -> c.key, c.value) end order by c.key)
    into changes
    from jsonb_each(new_row) as c
   where c.key not in ('created_at', 'updated_at', 'mailbox') and old_row -> c.key is distinct from c.value;
  if changes is not null then
    perform internal.audit_developer(case tg_op when 'INSERT' then 'developer.created' else 'developer.updated' end,
                                     new.id, changes);
  end if;
  return null;
end $$;
comment on function internal.tg_developers__audit is
  'Audits developer.created and developer.updated with the changed fields, without hashes.';
create or replace trigger tg_developers__audit
  after insert or update on app.developers
  for each row execute function internal.tg_developers__audit();

create or replace function internal.tg_developer_sessions__audit() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.audit_developer('developer.login', new.developer_id, '{}');
  return null;
end $$;
comment on function internal.tg_developer_sessions__audit is 'Audits developer.login for each sign-in.';
create or replace trigger tg_developer_sessions__audit
  after insert on app.developer_sessions
  for each row execute function internal.tg_developer_sessions__audit();

create or replace function internal.account_state(d app.developers) returns text
language sql stable as $$
  select case when exists (select from app.projects p
                            where p.developer_id = (account_state.d).id and p.deleted_at is null
                              and p.tier <> 'free') then 'paid'
              when (account_state.d).email_verified then 'verified_free'
              else 'sandbox' end
$$;
comment on function internal.account_state is
  'paid when the account has a paid project, else verified_free or sandbox, depending on whether the address is
   verified. A comped project does not count as paid. Granted to nobody.';

create or replace function internal.tg_developers__account_state() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  new.account_state := internal.account_state(new);
  return new;
end $$;
comment on function internal.tg_developers__account_state is 'Updates account_state when an address is verified.';
create or replace trigger tg_developers__account_state
  before update of email_verified on app.developers
  for each row execute function internal.tg_developers__account_state();

create or replace function internal.tg_projects__account_state() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  -- of a project whose creator has deleted their account, the heir; the former creator too, who may live on
  owner_ids constant uuid[] := case tg_op when 'DELETE' then array[old.developer_id]
                                    else array[old.developer_id, new.developer_id] end;
begin
  -- two projects of an account that change concurrently: the later transaction sees the change of the earlier one
  perform from app.developers d where d.id = any (owner_ids) order by d.id for no key update;
  update app.developers d
     set account_state = internal.account_state(d), updated_at = internal.now()
   where d.id = any (owner_ids) and d.account_state <> internal.account_state(d);
  return null;
end $$;
comment on function internal.tg_projects__account_state is
  'Updates account_state when a project changes its tier, is deleted, or gets another creator. Locks the accounts.';
create or replace trigger tg_projects__account_state
  after update of tier, deleted_at, developer_id on app.projects
  for each row when (old.tier <> new.tier or old.deleted_at is distinct from new.deleted_at
                     or old.developer_id is distinct from new.developer_id)
  execute function internal.tg_projects__account_state();
create or replace trigger tg_projects__account_state_gone
  after delete on app.projects
  for each row when (old.tier <> 'free' and old.deleted_at is null)
  execute function internal.tg_projects__account_state();

create or replace function internal.purge_accounts() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('worker', 'forgetting is done by the daily job');
  delete from app.developer_codes c where c.expires_at < internal.now() - interval '1 day';
  perform internal.purge_device_grants();
  perform internal.purge_github_starts();
  delete from app.developer_token_secrets s where s.ends_at < internal.now() - interval '1 day';
  delete from app.developer_tokens t where coalesce(t.revoked_at, t.expires_at) < internal.now() - interval '90 days';
  delete from app.operator_tokens t where t.expires_at < internal.now() - interval '90 days';
  delete from app.organization_invites i where coalesce(i.accepted_at, i.revoked_at,
                                                        i.expires_at) < internal.now() - interval '90 days';
end $$;
comment on function internal.purge_accounts is
  'Daily: deletes expired codes and token texts, and personal access tokens, operator tokens and invites into
   organizations that ended 90 days ago.';
