-- Clients: their state, forgetting one, and what administrators see of them.

create or replace function internal.sync_status_begin(client_id uuid) returns jsonb
language plpgsql stable security definer set search_path = '' as $$
declare
  k app.sync_checkpoints;
  held record;
  asked uuid[];
begin
  select c.* into k from app.sync_checkpoints c
   where c.app_user_id = internal.user_id() and c.client_id = sync_status_begin.client_id;
  perform internal.check_found(k.id is not null, 'client');
  asked := (internal.sync_present(null)).asked;
  held := internal.sync_view_at(k.id, k.checkpoint);
  if held.access is not null and not internal.sync_is_anew(held.access, asked) then
    asked := array(select a from unnest(asked) a where held.access ? a::text);
  end if;
  return internal.sync_context(k, k.checkpoint, asked, false) || jsonb_build_object(
    'checkpoint', k.checkpoint::text, 'last_pull_at', internal.iso(k.last_pull_at),
    'last_push_at', internal.iso(k.last_push_at));
end $$;
comment on function internal.sync_status_begin is
  'What a pull of the caller''s client would read now, of the collections of its last one, and its times. Refuses 404
   NOT_FOUND.';

create or replace function api.sync_status(client_id uuid, is_numbered boolean default false) returns api.reply
language plpgsql volatile as $$
declare
  pull jsonb;
begin
  if not sync_status.is_numbered and internal.sync_is_pending() then
    return row(0, '{"needs_place": false}', null)::api.reply;
  end if;
  pull := internal.sync_status_begin(sync_status.client_id);
  return internal.reply(200, json_build_object(
    'checkpoint', pull -> 'checkpoint', 'last_pull_at', pull -> 'last_pull_at', 'last_push_at', pull -> 'last_push_at',
    'pending_changes', least(cardinality((internal.sync_collect(pull, 1000)).items), 1000)));
end $$;
comment on function api.sync_status is
  'The state of the caller''s client; pending_changes is how many entries a pull would bring, at most 1000. Status 0,
   for the server: places are to be given first. Refuses 404 NOT_FOUND.';

create or replace function api.sync_reset(client_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  caller constant uuid := internal.user_id();
begin
  -- ids of mutations are remembered: a push that comes late is not applied twice
  delete from app.sync_checkpoints c where c.app_user_id = caller and c.client_id = sync_reset.client_id;
  return internal.reply(200, json_build_object('client_id', sync_reset.client_id, 'reset', true));
end $$;
comment on function api.sync_reset is
  'Forgets a client of the caller, whether it is known or not: its next pull begins from nothing.';

create or replace function internal.sync_client_json(c app.sync_checkpoints) returns json
language sql stable as $$
  select json_build_object(
    'user_id', (sync_client_json.c).app_user_id, 'client_id', (sync_client_json.c).client_id,
    'checkpoint', (sync_client_json.c).checkpoint::text,
    'last_pull_at', internal.iso((sync_client_json.c).last_pull_at),
    'last_push_at', internal.iso((sync_client_json.c).last_push_at),
    'created_at', internal.iso((sync_client_json.c).created_at))
$$;
comment on function internal.sync_client_json is 'A client as administrators see it.';

select internal.list_declare('sync_clients_page', null::app.sync_checkpoints, 'sync_client_json', '{used_at,id}',
                             filters => '{app_user_id}');

create or replace function api.sync_clients(user_id uuid default null, page_offset int default 0,
                                            page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.sync_clients_page(sync_clients.user_id, sync_clients.page_offset, sync_clients.page_limit)
$$;
comment on function api.sync_clients is 'Clients of all users or of one, last used first.';

create or replace function api.sync_stats() returns api.reply
language plpgsql stable security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'statistics of sync are asked by developers');
  return internal.reply(200, json_build_object(
    'change_log_rows', (select count(*) from app.sync_changes) + (select count(*) from app.sync_pending_changes),
    'oldest', internal.iso(least((select min(c.at) from app.sync_changes c),
                                  (select min(p.at) from app.sync_pending_changes p))),
    'lag_seconds', internal.sync_lag(),
    'rejected_24h', (select coalesce(json_object_agg(r.code, r.n order by r.n desc, r.code), '{}')
                       from (select m.code, count(*) as n from app.sync_mutations m
                              where m.status = 'rejected' and m.at > internal.now() - interval '24 hours'
                              group by m.code) r)));
end $$;
comment on function api.sync_stats is 'The log of changes and the rejections of a day.';

create or replace function internal.sync_lag() returns bigint
language sql volatile security definer set search_path = '' as $$
  select greatest(coalesce(floor(extract(epoch from internal.now())) - 1700000000 - min(l.objid::bigint), 0), 0)::bigint
    from pg_catalog.pg_locks l
   where l.locktype = 'advisory' and l.classid = 73054423
     and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
$$;
comment on function internal.sync_lag is
  'For how many seconds the oldest open transaction that has written to the log has been running, by the locks of
   internal.tg_collection_rows__sync; 0 when there is none. Granted to nobody.';
