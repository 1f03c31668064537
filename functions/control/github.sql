-- Sign-in with GitHub: OAuth's authorization code grant with PKCE. The server exchanges the code; the database decides
-- whose account it is.
create or replace function api.github_start(state_hash text, redirect_uri text) returns api.reply
language plpgsql volatile as $$
begin
  insert into app.github_starts (state_hash, redirect_uri, expires_at)
  values (github_start.state_hash, github_start.redirect_uri, internal.now() + interval '10 minutes');
  return internal.reply(200, '{}');
end $$;
comment on function api.github_start is 'Remembers a sign-in that begins, for ten minutes.';

create or replace function api.github_state_take(state_hash text) returns api.reply
language plpgsql volatile as $$
declare
  target text;
  until timestamptz;
begin
  delete from app.github_starts s where s.state_hash = github_state_take.state_hash returning s.redirect_uri,
    s.expires_at into target, until;
  return internal.reply(200, case when until > internal.now() then json_build_object('redirect_uri', target) end);
end $$;
comment on function api.github_state_take is
  'Ends a sign-in that began: {redirect_uri}, once; null for a state that is unknown, used or expired.';

create or replace function api.github_sign_in(sid uuid, refresh_hash text, provider_id text, email text,
                                              signup_mode text, request_access json, name text default null,
                                              invite_hash text default null, ip text default null,
                                              user_agent text default null)
returns api.reply
language plpgsql volatile as $$
declare
  them app.developers;
  is_new boolean := false;
begin
  select d.* into them
    from app.developer_identities i
    join app.developers d on d.id = i.developer_id
   where i.provider = 'github' and i.provider_id = github_sign_in.provider_id
     for no key update of d;
  if them.id is null then
    perform internal.account_lock_for_proof(d.id)
       from app.developers d where d.mailbox = internal.email_mailbox(github_sign_in.email) and not d.email_verified;
    select d.* into them from app.developers d
     where d.mailbox = internal.email_mailbox(github_sign_in.email) for no key update;
    if them.id is null then
      them := internal.developer_make(github_sign_in.email, null, github_sign_in.name, github_sign_in.signup_mode,
                                      github_sign_in.request_access,
                                      github_sign_in.invite_hash);
      is_new := true;
    elsif them.email <> internal.email_normal(github_sign_in.email) then
      -- another alias of the mailbox: GitHub has verified that one, not the address of the account
      perform internal.fail(409, 'EMAIL_EXISTS',
                            'An account with this mailbox exists under another address: sign in to it.',
                              '{"field": "email"}');
    elsif not them.email_verified then
      perform internal.account_prove(them, null, github_sign_in.ip);
    end if;
    insert into app.developer_identities (provider, provider_id, developer_id)
      values ('github', github_sign_in.provider_id, them.id)
    -- two returns from GitHub at once: the later one has waited for the account
    on conflict on constraint developer_identities_pkey do nothing;
    update app.developers d
       set email_verified = true, updated_at = internal.now(),
           oauth_providers = case when 'github' = any (d.oauth_providers) then d.oauth_providers
                                  else d.oauth_providers || 'github'::text end
     where d.id = them.id
    returning d.* into them;
  end if;
  return internal.developer_session(them, case when is_new then 201 else 200 end, github_sign_in.sid,
                                    github_sign_in.refresh_hash, github_sign_in.ip,
                                    github_sign_in.user_agent);
end $$;
comment on function api.github_sign_in is
  'Signs in the developer of a GitHub account: 200 {developer}. Without one, the developer whose address is the primary
   one that GitHub has verified; where that is the first proof of the address, the account is taken back as by a code.
   Without one, a new account: 201. Refuses as api.developer_signup, and 409 EMAIL_EXISTS for another alias of an
   account''s mailbox. Locks the organizations of an unproved account, then the account.';

create or replace function internal.purge_github_starts() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.github_starts s where s.expires_at < internal.now() - interval '1 day';
end $$;
comment on function internal.purge_github_starts is
  'Daily, with the accounts: deletes sign-ins that were never finished. Granted to nobody.';
