-- A pull that finds nothing new, which most pulls are. It is answered without a view, and writes nothing but the count
-- of its limit: what the client was told still holds for as long as nothing of the log and nothing that decides has
-- changed. Once a minute a pull goes the whole way, which keeps its time and takes the checkpoint on.

create or replace function internal.sync_present(collections json, out asked uuid[], out stamp bigint,
                                                 out is_of_groups boolean, out everybodys uuid[], out changes text,
                                                 out schema text)
returns record
language plpgsql stable security definer set search_path = '' as $$
declare
  names text[];
  roles text;
begin
  if sync_present.collections is not null then
    names := array(select distinct n from json_array_elements_text(sync_present.collections) n);
  end if;
  select coalesce(array_agg(c.id), '{}'),
         coalesce(bool_or(c.owner_scope = 'group' and c.read_policy <> 'public'), false),
         -- never null, as that of a client in the middle of a pull is
         coalesce(hashtextextended(string_agg(concat_ws(' ', c.id, c.epoch, c.read_policy), ','), 0), 0),
         array_agg(c.id) filter (where c.read_policy = 'public'),
         string_agg(c.id::text, ',') filter (where c.read_policy like 'role:%'),
         '{' || string_agg('"' || c.name || '": {"created": [], "updated": [], "deleted": []}', ', ') || '}',
         '{' || string_agg('"' || c.name || '": ' || c.schema_version, ', ') || '}'
    into asked, is_of_groups, stamp, everybodys, roles, changes, schema
    from (select o.id, o.name, o.owner_scope, o.read_policy, o.schema_version, k.epoch
            from app.collections o
            join app.sync_collections k on k.collection_id = o.id
           where o.sync and (names is null or o.name = any (names))
           order by o.name) c;
  if cardinality(asked) < cardinality(names) then
    perform internal.check_found(false, 'collection', 'COLLECTION_NOT_FOUND');
  end if;
  if roles is not null then
    select stamp # hashtextextended(string_agg(concat_ws(' ', c.id, r.has_role, r.group_ids), ',' order by c.id), 2),
           everybodys || array_agg(c.id) filter (where r.has_role)
      into stamp, everybodys
      from app.collections c
     cross join lateral (
       select case when c.owner_scope <> 'group' then internal.has_role(substr(c.read_policy, 6)) end as has_role,
              case when c.owner_scope = 'group'
                   then (select array_agg(i order by i)
                           from internal.my_role_group_ids(substr(c.read_policy, 6)) i) end as group_ids) r
     where c.id = any (string_to_array(roles, ',')::uuid[]);
  end if;
end $$;
comment on function internal.sync_present is
  'Synced collections by their names, all for null: their ids (asked), a stamp that changes with whatever decides which
   rows of them the caller is shown, but for groups and ranks, whether those decide too (is_of_groups), those of which
   the caller is shown every row (everybodys), and an answer of no changes. Refuses 404 COLLECTION_NOT_FOUND. Granted to
   nobody.';

create or replace function internal.sync_idle(client_id uuid, checkpoint text, collections json, is_numbered boolean)
returns api.reply
language plpgsql volatile security definer set search_path = '' set enable_seqscan = off
  set plan_cache_mode = 'force_generic_plan' as $$
declare
  caller constant uuid := internal.user_id();
  now constant timestamptz := internal.now();
  limited constant text := 'sync pull ' || caller;
  k record;
  present record;
  base bigint;
  owners uuid[];
  ranks bigint := 0;
begin
  -- with one snapshot: what was written has a place that is over the last one, or none yet
  select c.checkpoint, c.stamp, s.place,
         exists (select from app.sync_pending_changes w where w.id > s.pending_after order by w.id limit 1)
           as is_pending
    into k
    from app.sync_checkpoints c
   cross join app.sync_positions s
   where c.app_user_id = caller and c.client_id = sync_idle.client_id
     and c.checkpoint = sync_idle.checkpoint::bigint and c.stamp is not null
     and c.last_pull_at > now - interval '1 minute' and c.last_pull_at <= now
     -- who has pushed is told a checkpoint that has it
     and (c.last_push_at is null or c.last_push_at < c.last_pull_at);
  if not sync_idle.is_numbered and coalesce(k.is_pending, internal.sync_is_pending()) then
    return row(0, '{"needs_place": false}', null)::api.reply;
  end if;
  if k.stamp is null then
    return null;
  end if;
  present := internal.sync_present(sync_idle.collections);
  if present.is_of_groups then
    select array_agg(m.group_id), coalesce(bit_xor(hashtextextended(m.group_id || m.role, 1)), 0) into owners, ranks
      from app.group_members m where m.app_user_id = caller;
  end if;
  if present.stamp # ranks <> k.stamp then
    return null;
  end if;
  base := k.checkpoint / 10000;
  -- one look into the log for the caller, who has no rank, and for each group. All that is new of them is read: a
  -- search that ends with the first would be planned as one of what all users have written
  if k.place > base
     and ((select bool_or(e.collection_id = any (present.asked)) from app.sync_changes e
            where e.audience = any (owners || caller) and e.place > base)
          or present.everybodys is not null
             and exists (select from app.sync_changes e
                          where e.collection_id = any (present.everybodys) and e.place > base)) then
    return null;
  end if;
  update app.rate_limits r
     set started_at = case when r.started_at + interval '1 second' > now then r.started_at else now end,
         count = case when r.started_at + interval '1 second' > now then r.count + 1 else 1 end
   where r.key = limited and not (r.count >= 10 and r.started_at + interval '1 second' > now);
  if not found then
    insert into app.rate_limits (key, started_at, count) values (limited, now, 1) on conflict (key) do nothing;
    if not found then
      return null;
    end if;
  end if;
  -- nothing is lost with the count of a limit
  set local synchronous_commit = off;
  return row(200, format('{"data": {"changes": %s, "checkpoint": "%s", "has_more": false, "server_time": "%s", '
                         '"schema": %s}}', coalesce(present.changes, '{}'), k.checkpoint, internal.iso(now),
                         coalesce(present.schema, '{}')), null)::api.reply;
end $$;
comment on function internal.sync_idle is
  'The answer to a pull of the caller''s client from its last checkpoint that brings nothing, counted by the limit; null
   where a pull goes the whole way: something is new or was decided anew, the client has pushed, its last whole pull was
   a minute ago, or the limit refuses. Status 0: places are to be given first. Refuses 404 COLLECTION_NOT_FOUND. Locks
   the limit.';
