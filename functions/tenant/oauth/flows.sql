-- A sign-in by redirect: begun, answered by the provider, exchanged by the app. No account is touched before the
-- exchange, in which the app proves by its code verifier (RFC 7636) that it began the flow.
create or replace function api.oauth_offer(provider text) returns api.reply
language plpgsql stable as $$
declare
  offered app.oauth_providers;
begin
  select p.* into offered from app.oauth_providers p where p.name = oauth_offer.provider;
  if offered.id is null then
    perform internal.fail(400, 'PROVIDER_UNKNOWN', 'The project has no such provider.',
                          json_build_object('field', 'provider', 'reason', 'is not known'));
  elsif not offered.is_active then
    perform internal.fail(400, 'PROVIDER_DISABLED', 'This provider is switched off.');
  end if;
  return internal.reply(200, json_build_object('provider', internal.oauth_provider_json(offered, null),
                                               'redirects', internal.oauth_redirect_list()));
end $$;
comment on function api.oauth_offer is
  'A provider, without its secret, and the allowed redirect addresses: {provider, redirects}. Refuses 400
   PROVIDER_UNKNOWN, PROVIDER_DISABLED.';

create or replace function api.oauth_offered() returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(p.name order by p.name), '[]'))
    from app.oauth_providers p
   where p.is_active
$$;
comment on function api.oauth_offered is 'The names of the active providers.';

create or replace function api.oauth_flow_begin(provider text, state_hash text, challenge text, challenge_method text,
                                                redirect_to text)
returns api.reply
language sql volatile as $$
  insert into app.oauth_flows (provider, state_hash, challenge, challenge_method, redirect_to, expires_at, app_user_id,
                               session_id)
  values (oauth_flow_begin.provider, oauth_flow_begin.state_hash, oauth_flow_begin.challenge,
          oauth_flow_begin.challenge_method, oauth_flow_begin.redirect_to, internal.now() + interval '10 minutes',
          internal.user_id(), case when internal.user_id() is not null then internal.session_id() end)
  returning internal.reply(201, 'true')
$$;
comment on function api.oauth_flow_begin is
  'Stores a flow for ten minutes; of a session it links the identity to the user of the session.';

create or replace function api.oauth_flow_take(state_hash text) returns api.reply
language plpgsql volatile as $$
declare
  flow app.oauth_flows;
  is_first boolean := true;
  at_provider app.oauth_providers;
begin
  update app.oauth_flows f
     set taken_at = internal.now()
   where f.state_hash = oauth_flow_take.state_hash and f.taken_at is null
  returning f.* into flow;
  if flow.id is null then
    is_first := false;
    select f.* into flow from app.oauth_flows f where f.state_hash = oauth_flow_take.state_hash;
  end if;
  if flow.id is null then
    return internal.reply(200, 'null');
  end if;
  select p.* into at_provider from app.oauth_providers p where p.name = flow.provider and p.is_active;
  return internal.reply(200, json_build_object(
    'id', flow.id, 'redirect_to', flow.redirect_to, 'is_first', is_first,
    'is_expired', flow.expires_at <= internal.now(),
    'provider', case when at_provider.id is not null then internal.oauth_provider_json(at_provider, null) end,
    'secret_sealed', case when is_first then at_provider.secret_sealed end));
end $$;
comment on function api.oauth_flow_take is
  'Takes the flow of a state, once: {id, redirect_to, is_first, is_expired, provider, secret_sealed}; null when there is
   none. The provider is null when it was switched off or deleted meanwhile. Locks the flow.';

create or replace function api.oauth_flow_identify(flow_id uuid, code_hash text, provider_id text,
                                                   email text default null, display_name text default null)
returns api.reply
language sql volatile as $$
  update app.oauth_flows f
     set code_hash = oauth_flow_identify.code_hash, provider_id = oauth_flow_identify.provider_id,
         email = oauth_flow_identify.email, display_name = oauth_flow_identify.display_name,
         expires_at = internal.now() + interval '5 minutes'
   where f.id = oauth_flow_identify.flow_id and f.taken_at is not null and f.code_hash is null;
  select internal.reply(200, 'true')
$$;
comment on function api.oauth_flow_identify is
  'Stores the identity that the provider asserts, and the hash of the code that the app exchanges within five minutes.';

create or replace function internal.oauth_linked(flow app.oauth_flows) returns boolean
language plpgsql volatile as $$
declare
  me app.users;
begin
  select u.* into me from app.users u where u.id = (oauth_linked.flow).app_user_id for update;
  -- whoever ended the session has also ended what it began: a sign-out, a new password, an account taken over
  if me.id is null or me.is_banned or not exists (
       select from app.user_sessions s
        where s.id = (oauth_linked.flow).session_id and s.app_user_id = me.id and s.ended_at is null
          and s.expires_at > internal.now()) then
    return false;
  end if;
  perform internal.identity_link(me, (oauth_linked.flow).provider, (oauth_linked.flow).provider_id,
                                 (oauth_linked.flow).email);
  return true;
end $$;
comment on function internal.oauth_linked is
  'Links the identity of a flow to the user whose session began it; false when that session has ended. Refuses 409
   IDENTITY_IN_USE. Locks the user; the identity must be locked.';

create or replace function api.oauth_exchange(code_hash text, verifier text, verifier_s256 text, sid uuid,
                                              refresh_hash text, device jsonb default null)
returns api.reply
language plpgsql volatile as $$
declare
  flow app.oauth_flows;
  proved text;
begin
  select f.* into flow from app.oauth_flows f where f.code_hash = oauth_exchange.code_hash;
  if flow.id is not null then
    -- in the order that internal.lock_address states
    proved := internal.proved_email(flow.email);
    perform internal.lock_identity(flow.provider, flow.provider_id);
    if proved is not null then
      perform internal.lock_address('email', proved);
    end if;
    -- spent by the first attempt, also by one that is refused below: these refusals are returned
    delete from app.oauth_flows f where f.id = flow.id returning f.* into flow;
  end if;
  if flow.id is null then
    return internal.refuse(404, 'FLOW_NOT_FOUND', 'No sign-in has this code, or it was exchanged: begin again.');
  elsif flow.expires_at <= internal.now() then
    return internal.refuse(422, 'FLOW_EXPIRED', 'This code was valid for five minutes: begin again.');
  elsif flow.challenge <> (case flow.challenge_method when 's256' then oauth_exchange.verifier_s256
                                                      else oauth_exchange.verifier end) then
    return internal.refuse(400, 'CODE_VERIFIER_INVALID',
                           'The code verifier is not that of this sign-in, whose code is now spent: begin again.');
  elsif not exists (select from app.oauth_providers p where p.name = flow.provider and p.is_active) then
    return internal.refuse(400, 'PROVIDER_DISABLED', 'This provider is switched off.');
  elsif flow.app_user_id is not null and not internal.oauth_linked(flow) then
    return internal.refuse(401, 'UNAUTHORIZED', 'The session that began this has ended: sign in, and begin again.');
  end if;
  return api.auth_social(oauth_exchange.sid, oauth_exchange.refresh_hash, flow.provider, flow.provider_id, flow.email,
                         flow.display_name, oauth_exchange.device);
end $$;
comment on function api.oauth_exchange is
  'Signs in with the identity that a code stands for, once; one that a session began is linked to the user of the
   session before. Refuses 401 UNAUTHORIZED, 409 IDENTITY_IN_USE, 404 FLOW_NOT_FOUND, 422 FLOW_EXPIRED, 400
   CODE_VERIFIER_INVALID, PROVIDER_DISABLED, and as api.auth_social. Locks identity, address, flow, user.';

create or replace function internal.purge__oauth(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  select internal.purge_rows('app.oauth_flows', 't.expires_at < internal.now() - interval ''1 day''', purge__oauth.most)
$$;
comment on function internal.purge__oauth is 'Daily: flows a day after they expired.';
