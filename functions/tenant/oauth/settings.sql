-- Providers of a sign-in by redirect, and where it may return to.
select internal.audit_declare('app.oauth_providers', 'oauth_providers', 'secret_sealed');
select internal.audit_declare('app.oauth_redirects', 'oauth_redirects');

create or replace function internal.oauth_provider_json(p app.oauth_providers, callback_url text)
returns json
language sql stable as $$
  select json_build_object(
    'name', (oauth_provider_json.p).name, 'issuer', (oauth_provider_json.p).issuer,
    'client_id', (oauth_provider_json.p).client_id, 'has_secret', (oauth_provider_json.p).secret_sealed is not null,
    'team_id', (oauth_provider_json.p).team_id, 'signing_key_id', (oauth_provider_json.p).signing_key_id,
    'scopes', (oauth_provider_json.p).scopes, 'is_active', (oauth_provider_json.p).is_active,
    'callback_url', oauth_provider_json.callback_url,
    'created_at', internal.iso((oauth_provider_json.p).created_at),
    'updated_at', internal.iso((oauth_provider_json.p).updated_at))
$$;
comment on function internal.oauth_provider_json is
  'A provider as responses show it, without its secret. callback_url: what the provider must know as the redirect URI.';

create or replace function api.oauth_provider_list(callback_url text) returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(
           internal.oauth_provider_json(p, oauth_provider_list.callback_url) order by p.name), '[]'))
    from app.oauth_providers p
$$;
comment on function api.oauth_provider_list is 'The providers of the project by name, at most 20.';

create or replace function internal.oauth_has_users(provider text) returns boolean
language sql stable as $$
  select exists (select from app.user_identities i where i.provider = oauth_has_users.provider)
$$;
comment on function internal.oauth_has_users is 'Whether an identity of this provider is linked to a user.';

create or replace function internal.oauth_check_issuer(provider app.oauth_providers, issuer text) returns void
language plpgsql volatile as $$
begin
  -- the id of a user is unique at its issuer alone: another one could assert the ids of the users that there are
  if (oauth_check_issuer.provider).issuer is distinct from oauth_check_issuer.issuer
     and internal.oauth_has_users((oauth_check_issuer.provider).name) then
    perform internal.fail(409, 'PROVIDER_HAS_USERS',
                          'Users sign in with this provider: switch it off, and give the other issuer another name.');
  end if;
end $$;
comment on function internal.oauth_check_issuer is
  'Refuses 409 PROVIDER_HAS_USERS when the issuer would change under users who sign in by it.';

create or replace function internal.oauth_flows_end(provider text) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'sign-ins under way are ended by administrators');
  delete from app.oauth_flows f where f.provider = oauth_flows_end.provider;
end $$;
comment on function internal.oauth_flows_end is
  'Ends the sign-ins under way at a provider, which hold ids of its issuer. One that is being exchanged comes before,
   and internal.oauth_check_issuer sees its user, or is refused.';

create or replace function api.oauth_provider_put(name text, client_id text, scopes json, is_active boolean,
                                                  callback_url text, issuer text default null,
                                                  secret_sealed text default null,
                                                  key_id text default null, team_id text default null,
                                                  signing_key_id text default null,
                                                  keeps_secret boolean default true)
returns api.reply
language plpgsql volatile as $$
declare
  former app.oauth_providers;
  stored app.oauth_providers;
begin
  perform internal.advisory_lock('oauth');
  select p.* into former from app.oauth_providers p where p.name = oauth_provider_put.name;
  if former.id is null then
    perform internal.check_limit((select count(*) from app.oauth_providers), 20, 'A project has at most 20 providers.');
    -- of a provider that was deleted while it had no users; or identities that came by an ID token
    former.name := oauth_provider_put.name;
  end if;
  if former.issuer is distinct from oauth_provider_put.issuer then
    perform internal.oauth_flows_end(former.name);
  end if;
  perform internal.oauth_check_issuer(former, oauth_provider_put.issuer);
  -- a secret is sent to the issuer that it was entered for, and Apple's key to nobody: an administrator may not read
  -- either, and so not have it sent elsewhere
  if not oauth_provider_put.keeps_secret or former.issuer is distinct from oauth_provider_put.issuer
     or (former.team_id is null) <> (oauth_provider_put.team_id is null) then
    former.secret_sealed := null;
    former.key_id := null;
  end if;
  insert into app.oauth_providers as p (name, issuer, client_id, secret_sealed, key_id, team_id, signing_key_id, scopes,
                                        is_active)
  values (oauth_provider_put.name, oauth_provider_put.issuer, oauth_provider_put.client_id,
          oauth_provider_put.secret_sealed, oauth_provider_put.key_id, oauth_provider_put.team_id,
          oauth_provider_put.signing_key_id,
          array(select json_array_elements_text(oauth_provider_put.scopes)), oauth_provider_put.is_active)
  on conflict on constraint oauth_providers_name_unique do update
     set issuer = excluded.issuer, client_id = excluded.client_id,
         secret_sealed = coalesce(excluded.secret_sealed, former.secret_sealed),
         key_id = coalesce(excluded.key_id, former.key_id),
         team_id = excluded.team_id, signing_key_id = excluded.signing_key_id, scopes = excluded.scopes,
         is_active = excluded.is_active, updated_at = internal.now()
  returning p.* into stored;
  return internal.reply(case when former.id is null then 201 else 200 end,
                        internal.oauth_provider_json(stored, oauth_provider_put.callback_url));
end $$;
comment on function api.oauth_provider_put is
  'Sets a provider: 201, or 200 when it replaces one, whose secret stays where none is given and
   keeps_secret is true. Another issuer ends the sign-ins under way and forgets the secret, as does a team_id that comes
   or goes. Refuses 400 VALIDATION_ERROR, 409 LIMIT_REACHED, PROVIDER_HAS_USERS. Serialises its callers.';

create or replace function api.oauth_provider_delete(name text) returns api.reply
language plpgsql volatile as $$
declare
  doomed app.oauth_providers;
begin
  perform internal.advisory_lock('oauth');
  select p.* into doomed from app.oauth_providers p where p.name = oauth_provider_delete.name;
  perform internal.check_found(doomed.id is not null, 'provider');
  perform internal.oauth_flows_end(doomed.name);
  perform internal.oauth_check_issuer(doomed, null);
  delete from app.oauth_providers p where p.id = doomed.id;
  return internal.reply_deleted();
end $$;
comment on function api.oauth_provider_delete is
  'Forgets a provider, its secret and the sign-ins under way; users keep their identities. Refuses 404 NOT_FOUND, 409
   PROVIDER_HAS_USERS where the name alone does not say the issuer. Serialises its callers.';

create or replace function api.oauth_provider_sealed(name text) returns api.reply
language plpgsql stable as $$
declare
  stored app.oauth_providers;
begin
  select p.* into stored from app.oauth_providers p where p.name = oauth_provider_sealed.name;
  perform internal.check_found(stored.id is not null, 'provider');
  return internal.reply(200, json_build_object('provider', internal.oauth_provider_json(stored, null),
                                               'secret_sealed', stored.secret_sealed,
                                               'redirects', (select count(*) from app.oauth_redirects)));
end $$;
comment on function api.oauth_provider_sealed is
  'For the server, which tests a provider: {provider, secret_sealed, redirects}. Refuses 404 NOT_FOUND.';

create or replace function internal.oauth_redirect_list() returns json
language sql stable as $$
  select coalesce(json_agg(r.address order by r.position), '[]') from app.oauth_redirects r
$$;
comment on function internal.oauth_redirect_list is 'The allowed redirect addresses in their order.';

create or replace function api.oauth_redirects(callback_url text) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('addresses', internal.oauth_redirect_list(),
                                               'callback_url', oauth_redirects.callback_url))
$$;
comment on function api.oauth_redirects is
  'Where a sign-in by redirect may return to, the default first, and where providers send the browser.';

create or replace function api.oauth_redirects_put(addresses json, callback_url text) returns api.reply
language plpgsql volatile as $$
declare
  wanted constant text[] := array(select json_array_elements_text(oauth_redirects_put.addresses));
begin
  perform internal.advisory_lock('oauth');
  delete from app.oauth_redirects r where r.address <> all (wanted);
  insert into app.oauth_redirects as r (address, position)
  select a.address, a.n
    from unnest(wanted) with ordinality as a (address, n)
  on conflict on constraint oauth_redirects_address_unique do update
     set position = excluded.position
   where r.position <> excluded.position;
  return api.oauth_redirects(oauth_redirects_put.callback_url);
end $$;
comment on function api.oauth_redirects_put is 'Replaces the allowed redirect addresses. Serialises its callers.';
