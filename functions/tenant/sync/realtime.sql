-- The channel sync: a poke says that a pull would bring something. Whom it is for stands in meta, {to: {users, groups,
-- roles}}, so that a change is one event however many listen; without it, it is for everybody.

create or replace function internal.channel__sync(item text, params jsonb, out name text, out scope json)
language plpgsql stable as $$
begin
  if channel__sync.item is not null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such channel.');
  end if;
  name := 'sync';
  scope := internal.json_merge(
    json_build_object('groups', array(select g from internal.my_group_ids() g order by g),
                      'roles', array(select distinct r.key from internal.my_roles() r order by r.key)),
    internal.role_until());
end $$;
comment on function internal.channel__sync is
  'sync: pokes for the caller. scope: the groups and the roles of the caller.';

create or replace function internal.sync_poke(recipients json) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  mark constant text := md5(coalesce(sync_poke.recipients::text, '')) || ' ';
  marks constant text := coalesce(current_setting('app.sync_poked', true), '');
begin
  -- a transaction tells the same once
  if strpos(marks, mark) > 0
     or not exists (select from app.realtime_channels c where c.channel = 'sync'
                      and c.subscribed_until > internal.now()) then
    return;
  end if;
  if char_length(marks) < 10000 then
    perform set_config('app.sync_poked', marks || mark, true);
  end if;
  insert into app.realtime_publications (channel, event, payload, meta)
  values ('sync', 'poke', '{}', case when sync_poke.recipients is not null
                                     then json_build_object('to', sync_poke.recipients)::text end);
  perform internal.realtime_wake();
end $$;
comment on function internal.sync_poke is
  'Pokes {users, groups, roles}, null is everybody, once a transaction and where somebody listens. Granted to nobody.';

create or replace function internal.sync_poke_rows(collection_id uuid, audiences uuid[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  c app.collections;
  owners constant uuid[] := array(select distinct a from unnest(sync_poke_rows.audiences) a where a is not null
                                   order by a limit 501);
begin
  select k.* into c from app.collections k where k.id = sync_poke_rows.collection_id;
  perform internal.sync_poke(case
    when c.read_policy = 'public' or cardinality(owners) > 500 then null
    when c.owner_scope = 'group' then json_build_object('groups', owners)
    when c.read_policy = 'owner' then json_build_object('users', owners)
    else json_build_object('users', owners, 'roles', array[substr(c.read_policy, 6)]) end);
end $$;
comment on function internal.sync_poke_rows is
  'Pokes who may have lost, gained or seen a change of rows of these owners. Granted to nobody.';

create or replace function internal.tg_access__sync() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.sync_poke(json_build_object('users', array[case when tg_op = 'DELETE' then old.app_user_id
                                                                   else new.app_user_id end]));
  return null;
end $$;
comment on function internal.tg_access__sync is
  'A user gains or loses a group, a rank or a role: a poke for that user.';
create or replace trigger tg_group_members__sync after insert or delete or update of role on app.group_members
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_subscribed')
                     > extract(epoch from clock_timestamp())) execute function internal.tg_access__sync();
create or replace trigger tg_role_assignments__sync after insert or update or delete on app.role_assignments
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_subscribed')
                     > extract(epoch from clock_timestamp())) execute function internal.tg_access__sync();

create or replace function internal.tg_policies__sync() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.sync_poke(null);
  return null;
end $$;
comment on function internal.tg_policies__sync is
  'What decides has changed for many: a read policy, sync, a collection that is new or gone, a default role.';
create or replace trigger tg_collections__sync_poke after update of read_policy, sync on app.collections
  for each row when ((new.sync or old.sync) and (new.read_policy, new.sync) <> (old.read_policy, old.sync)
                     and pg_catalog.pg_sequence_last_value('app.realtime_subscribed')
                       > extract(epoch from clock_timestamp())) execute function internal.tg_policies__sync();
create or replace trigger tg_roles__sync_poke after update of is_default, key on app.roles
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_subscribed')
                     > extract(epoch from clock_timestamp())) execute function internal.tg_policies__sync();
create or replace trigger tg_roles__sync_made after insert or delete on app.roles
  for each row when (pg_catalog.pg_sequence_last_value('app.realtime_subscribed')
                     > extract(epoch from clock_timestamp())) execute function internal.tg_policies__sync();
