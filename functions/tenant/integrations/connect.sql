create or replace function internal.integration_json(i app.integrations, root_url text) returns json
language sql stable as $$
  select json_build_object(
    'id', (integration_json.i).id, 'provider', (integration_json.i).provider,
      'is_active', (integration_json.i).is_active,
    'has_credentials', true,
    -- three providers send webhooks to this server; the others are only called
    'webhook_url', case when (integration_json.i).provider in ('revenuecat', 'superwall', 'smtp')
                        then integration_json.root_url || '/webhooks/'
                             || case (integration_json.i).provider when 'smtp' then 'email'
                                     else (integration_json.i).provider end
                             || '?project_id=' || internal.project_id() end,
    'created_at', internal.iso((integration_json.i).created_at),
    'updated_at', internal.iso((integration_json.i).updated_at))
$$;
comment on function internal.integration_json is 'An integration as responses show it, without its config.';

create or replace function api.integration_put(provider text, config_sealed text, key_id text, root_url text)
returns api.reply
language plpgsql volatile as $$
declare
  stored app.integrations;
  integration_id uuid;
  is_new boolean;
begin
  insert into app.integrations as i (provider, config_sealed, key_id)
  values (integration_put.provider, integration_put.config_sealed, integration_put.key_id)
  on conflict on constraint integrations_one_per_provider do update
     set config_sealed = excluded.config_sealed, key_id = excluded.key_id, updated_at = internal.now()
  returning i.id, i.xmax = 0 into integration_id, is_new;
  select i.* into stored from app.integrations i where i.id = integration_id;
  return internal.reply(case when is_new then 201 else 200 end,
                        internal.integration_json(stored, integration_put.root_url));
end $$;
comment on function api.integration_put is 'Connects a provider: 201, or 200 when it replaces the whole config.';

select internal.audit_declare('app.integrations', 'integrations', 'config_sealed');

create or replace function api.integration_list(root_url text) returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(internal.integration_json(i,
                                                                         integration_list.root_url)
                                                                           order by i.provider), '[]'))
    from app.integrations i
$$;
comment on function api.integration_list is
  'Connected providers, without their configs; webhook_url for those that send webhooks.';

create or replace function internal.integration_found(provider text) returns app.integrations
language plpgsql stable as $$
declare
  found_one app.integrations;
begin
  select i.* into found_one from app.integrations i where i.provider = integration_found.provider;
  if not found then
    perform internal.fail(404, 'NOT_CONFIGURED', 'This provider is not connected.');
  end if;
  return found_one;
end $$;
comment on function internal.integration_found is 'A connected provider. Refuses 404 NOT_CONFIGURED.';

create or replace function api.integration_get(provider text, root_url text) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.integration_json(internal.integration_found(integration_get.provider),
                                                       integration_get.root_url))
$$;
comment on function api.integration_get is 'A connected provider, without its config. Refuses 404 NOT_CONFIGURED.';

create or replace function api.integration_update(provider text, patch jsonb, root_url text) returns api.reply
language plpgsql volatile as $$
declare
  stored app.integrations := internal.integration_found(integration_update.provider);
begin
  update app.integrations i
     set is_active = (integration_update.patch ->> 'is_active')::boolean, updated_at = internal.now()
   where i.id = stored.id and i.is_active is distinct
     from coalesce((integration_update.patch ->> 'is_active')::boolean, i.is_active);
  return api.integration_get(integration_update.provider, integration_update.root_url);
end $$;
comment on function api.integration_update is 'Switches a provider on or off. Refuses 404 NOT_CONFIGURED.';

create or replace function api.integration_delete(provider text) returns api.reply
language plpgsql volatile as $$
declare
  doomed constant app.integrations := internal.integration_found(integration_delete.provider);
begin
  delete from app.integrations i where i.id = doomed.id;
  return internal.reply_deleted();
end $$;
comment on function api.integration_delete is
  'Disconnects a provider and forgets its credentials. Refuses 404 NOT_CONFIGURED.';

create or replace function api.integration_sealed(provider text) returns api.reply
language sql stable as $$
  select internal.reply(200,
                        json_build_object('config_sealed', (
                          internal.integration_found(integration_sealed.provider)).config_sealed))
$$;
comment on function api.integration_sealed is
  'For the server, which tests the credentials of a provider: its sealed config. Refuses 404 NOT_CONFIGURED.';
