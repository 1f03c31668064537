-- The channel of each collection, and its rows as events. Whom a row is for stands in meta, so that a server decides
-- for each subscriber in memory, without a query.

create or replace function internal.channel__collection(item text, params jsonb, out name text, out scope json)
language plpgsql stable as $$
declare
  filter constant jsonb := nullif(channel__collection.params -> 'filter', 'null');
  definition jsonb;
  problem record;
  c app.collections;
  role_key text;
begin
  select k.* into c from app.collections k where k.name = channel__collection.item;
  perform internal.check_found(c.id is not null, 'collection', 'COLLECTION_NOT_FOUND');
  if not c.realtime then
    perform internal.fail(403, 'FORBIDDEN',
                          'Realtime is off for this collection: its developer switches it on with realtime.');
  end if;
  if filter is not null then
    problem := internal.filter_check(filter::json);
    if problem.reason is not null then
      perform internal.invalid(concat_ws('.', 'filter', nullif(problem.path, '')), problem.reason, 'INVALID_BODY');
    end if;
    definition := internal.collection_definition(c.name);
    perform internal.collection_filter_sql(definition, filter, '["filter"]', 't', true,
                                           '{"style": "array", "list": []}');
  end if;
  role_key := case when c.read_policy like 'role:%' then substr(c.read_policy, 6) end;
  -- the same question as internal.collection_condition puts into the policy
  scope := json_strip_nulls(case
    when c.read_policy in ('public', 'authenticated') then json_build_object('filter', filter)
    when role_key is not null and c.owner_scope = 'user' then json_build_object('filter', filter)
    when role_key is not null
    then json_build_object('filter', filter, 'groups', array(select internal.my_role_group_ids(role_key)))
    when c.read_policy = 'owner' and c.owner_scope = 'user' then json_build_object('filter', filter, 'is_owner', true)
    when c.read_policy = 'owner'
    then json_build_object('filter', filter, 'is_owner', true, 'groups', array(select internal.my_group_ids('viewer')))
    else json_build_object('filter', filter,
                           'groups', array(select internal.my_group_ids(coalesce(nullif(split_part(c.read_policy, ':',
                                        2), ''), 'viewer'))))
  end);
  if role_key is not null then
    if c.owner_scope = 'user' and not internal.has_role(role_key) then
      perform internal.channel_refused();
    end if;
    scope := internal.json_merge(scope, internal.role_until());
  end if;
  name := 'collection:' || c.name;
end $$;
comment on function internal.channel__collection is
  'collection:<name>, params {filter}: rows that the read policy shows the caller and that the filter means. scope:
   is_owner, only the caller''s own rows; groups, only rows of these. Refuses 404 COLLECTION_NOT_FOUND, 403 FORBIDDEN,
   400 INVALID_BODY, INVALID_COLUMN.';

create or replace function internal.tg_collection_rows__publish() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  target constant text := 'collection:' || tg_table_name;
  -- a row that is marked as deleted is gone for its readers
  was constant jsonb := case when tg_op <> 'INSERT' and to_jsonb(old) -> 'deleted_at' = 'null' then to_jsonb(old) end;
  now_is jsonb := case when tg_op <> 'DELETE' and to_jsonb(new) -> 'deleted_at' = 'null' then to_jsonb(new) end;
  known app.realtime_channels;
  shown json;
begin
  if internal.is_hidden_by_its_write() then
    -- moderation hides a row by its deletion
    perform set_config('app.hidden_row', coalesce(now_is, was) ->> 'id', true);
    return null;
  elsif now_is ->> 'id' = current_setting('app.hidden_row', true) then
    now_is := null;
    perform set_config('app.hidden_row', '', true);
  end if;
  select c.* into known from app.realtime_channels c where c.channel = target and c.subscribed_until > internal.now();
  if known.channel is null or was is null and now_is is null
     or not exists (select from app.collections c where c.name = tg_table_name and c.realtime) then
    return null;
  end if;
  if now_is is not null then
    execute format('select row_to_json("_row") from (select ($1).*) t cross join lateral (select %s) "_row"',
                   internal.collection_outputs_sql(internal.collection_definition(tg_table_name), 't', null, null))
       into shown using new;
  end if;
  perform internal.publish_many(
    array[target], case when was is null then 'insert' when now_is is null then 'delete' else 'update' end,
    case when now_is is null then json_build_object('id', was -> 'id') else json_build_object('row', shown) end,
    json_build_object(
      'now', case when now_is is not null then json_build_object('user_id', now_is -> 'user_id',
                                                                 'group_id', now_is -> 'group_id') end,
      'was', case when was is not null then json_build_object('user_id', was -> 'user_id',
                                                              'group_id', was -> 'group_id') end,
      'id', coalesce(now_is, was) -> 'id',
      'rows', case when known.keeps_rows then json_build_array(now_is, was) end));
  return null;
end $$;
comment on function internal.tg_collection_rows__publish is
  'insert and update {row}, delete {id}, to the channel of the collection. meta: the owners now and before; where a
   subscriber has a filter, the rows too.';

create or replace function internal.collection_publish_sql(collection text) returns text
language sql immutable parallel safe
return format('create or replace trigger collection_publish after insert or update or delete on collections.%I for '
              'each row '
              'when (%s) execute function internal.tg_collection_rows__publish()', collection_publish_sql.collection,
                internal.has_subscribers_sql());
comment on function internal.collection_publish_sql is 'The trigger that publishes rows of a collection.';

create or replace function internal.tg_collections__recheck() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.notify_servers(array['collection:' || old.name], '~check');
  return null;
end $$;
comment on function internal.tg_collections__recheck is
  'The policy of a collection has changed, or it is gone: its subscriptions are authorised again.';
create or replace trigger tg_collections__recheck after update of read_policy, realtime, name
  or delete on app.collections
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_subscribed')
                     > extract(epoch from clock_timestamp())) execute function internal.tg_collections__recheck();
