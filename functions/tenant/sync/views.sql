-- What decides which rows a user is shown, kept with a checkpoint in place of ids: {<collection id>: access}, where
-- access is {e: epoch, k: kind, r: rank in groups, g: ids of groups where a role applies}. kind is none, mine, all,
-- groups or own (the user's rows in groups). The table has it packed: a uuid and a short text each. In memory s is the
-- set of groups that r or g mean.

create or replace function internal.sync_access(c app.collections) returns jsonb
language sql stable security definer set search_path = '' as $$
  select jsonb_strip_nulls(jsonb_build_object(
    'e', (select k.epoch from app.sync_collections k where k.collection_id = (sync_access.c).id),
    'k', case
      when (sync_access.c).read_policy = 'public' then 'all'
      when (sync_access.c).owner_scope = 'group' and (sync_access.c).read_policy = 'owner' then 'own'
      when (sync_access.c).owner_scope = 'group' then 'groups'
      when (sync_access.c).read_policy = 'owner' then 'mine'
      when internal.has_role(substr((sync_access.c).read_policy, 6)) then 'all'
      else 'none' end,
    'r', case when (sync_access.c).owner_scope = 'group' and (sync_access.c).read_policy not like 'role:%'
              and (sync_access.c).read_policy <> 'public'
              then coalesce(internal.group_rank(nullif(split_part((sync_access.c).read_policy, ':', 2), '')), 1) end,
    'g', case when (sync_access.c).owner_scope = 'group' and (sync_access.c).read_policy like 'role:%'
              then (select coalesce(jsonb_agg(i order by i), '[]')
                      from internal.my_role_group_ids(substr((sync_access.c).read_policy, 6)) i) end))
$$;
comment on function internal.sync_access is
  'What the read policy of a collection means for the caller now, as internal.collection_condition has it. Granted to
   nobody.';

create or replace function internal.sync_packed(access jsonb, out collection_ids uuid[], out accesses text[])
language sql immutable as $$
  select coalesce(array_agg(a.key::uuid order by a.key), '{}'),
         coalesce(array_agg(concat_ws(' ', a.value ->> 'e', a.value ->> 'k', coalesce(a.value ->> 'r', '-'),
           case when a.value ? 'g' then coalesce((select string_agg(i, ',')
                                                    from jsonb_array_elements_text(a.value -> 'g') i), '') end)
           order by a.key), '{}')
    from jsonb_each(sync_packed.access) as a (key, value)
$$;
comment on function internal.sync_packed is
  'Accesses as app.sync_views keeps them: epoch, kind, rank or -, and where a role decides, groups. Granted to nobody.';

create or replace function internal.sync_unpacked(collection_ids uuid[], accesses text[]) returns jsonb
language sql immutable as $$
  select case when sync_unpacked.collection_ids is not null then coalesce(jsonb_object_agg(
           u.id, jsonb_strip_nulls(jsonb_build_object(
             'e', u.parts[1]::int, 'k', u.parts[2], 'r', nullif(u.parts[3], '-')::int,
             'g', to_jsonb(string_to_array(u.parts[4], ','))))), '{}') end
    from (select a.id, string_to_array(a.access, ' ') as parts
            from unnest(sync_unpacked.collection_ids, sync_unpacked.accesses) as a (id, access)) u
$$;
comment on function internal.sync_unpacked is 'What internal.sync_packed has packed. Granted to nobody.';

create or replace function internal.sync_view_now(collection_ids uuid[], out access jsonb, out group_ids uuid[],
                                                  out ranks smallint[])
language plpgsql stable security definer set search_path = '' as $$
begin
  select coalesce(jsonb_object_agg(c.id, internal.sync_access(c)), '{}') into access
    from app.collections c where c.id = any (sync_view_now.collection_ids);
  group_ids := '{}';
  ranks := '{}';
  if jsonb_path_exists(access, '$.*.r') then
    select coalesce(array_agg(m.group_id order by m.group_id), '{}'),
           coalesce(array_agg(internal.group_rank(m.role)::smallint order by m.group_id), '{}')
      into group_ids, ranks
      from app.group_members m where m.app_user_id = internal.user_id();
  end if;
end $$;
comment on function internal.sync_view_now is
  'What decides now, for the caller and some collections, as app.sync_views keeps it. Granted to nobody.';

create or replace function internal.sync_view_whole(access jsonb, group_ids uuid[], ranks smallint[]) returns jsonb
language sql immutable as $$
  select coalesce(jsonb_object_agg(a.key, case
    when a.value -> 'g' is not null then a.value || jsonb_build_object('s', a.value -> 'g')
    when a.value -> 'r' is not null then a.value || jsonb_build_object('s', (
      select coalesce(jsonb_agg(m.id order by m.id), '[]')
        from unnest(sync_view_whole.group_ids, sync_view_whole.ranks) as m (id, rank)
       where m.rank >= (a.value ->> 'r')::int))
    else a.value end), '{}')
    from jsonb_each(sync_view_whole.access) as a (key, value)
$$;
comment on function internal.sync_view_whole is 'A view with the set of groups of each collection. Granted to nobody.';

create or replace function internal.sync_condition(access jsonb, owner text, author text, caller text) returns text
language sql immutable as $$
  select case sync_condition.access ->> 'k'
    when 'all' then 'true'
    when 'mine' then format('%s = %s', sync_condition.owner, sync_condition.caller)
    when 'groups' then format('%s = any (%L::uuid[])', sync_condition.owner, s.ids)
    when 'own' then format('(%s = any (%L::uuid[]) and %s = %s)', sync_condition.owner, s.ids, sync_condition.author,
                           sync_condition.caller)
    else 'false' end
    from (select '{' || coalesce(string_agg(i, ','), '') || '}' as ids
            from jsonb_array_elements_text(sync_condition.access -> 's') i) s
$$;
comment on function internal.sync_condition is
  'The condition of an access on a row or an entry of the log. owner is the column of the user in a collection of users
   and of the group in one of groups, author that of the user in a group, caller the id of the user, as SQL; false for
   none. Granted to nobody.';

create or replace function internal.sync_same(a jsonb, b jsonb) returns boolean
language sql immutable
return (sync_same.a -> 'e', sync_same.a -> 'k', sync_same.a -> 's')
  is not distinct from (sync_same.b -> 'e', sync_same.b -> 'k', sync_same.b -> 's');
comment on function internal.sync_same is 'Whether two accesses show the same rows. Granted to nobody.';

create or replace function internal.sync_loses(held jsonb, shown jsonb) returns boolean
language sql immutable as $$
  select exists (
    select from jsonb_each(sync_loses.held) as h (key, access)
      join jsonb_each(sync_loses.shown) as s (key, access) on s.key = h.key
     where s.access ->> 'k' <> 'all'
       and (h.access ->> 'k' <> s.access ->> 'k' and h.access ->> 'k' <> 'none'
            or exists (select jsonb_array_elements_text(h.access -> 's')
                       except select jsonb_array_elements_text(s.access -> 's'))))
$$;
comment on function internal.sync_loses is
  'Whether a view lacks rows that another one, with its sets of groups, shows. Granted to nobody.';

create or replace function internal.sync_loses_now(pull jsonb) returns boolean
language sql stable security definer set search_path = '' as $$
  select internal.sync_loses(sync_loses_now.pull -> 'is', internal.sync_view_whole(n.access, n.group_ids, n.ranks))
    from internal.sync_view_now(array(select jsonb_array_elements_text(sync_loses_now.pull -> 'asked')::uuid)) n
$$;
comment on function internal.sync_loses_now is
  'Whether the caller is shown fewer rows now than when a pull began: its pages would lack them, though its view has
   them, and no later pull would bring them once they are shown again.';
