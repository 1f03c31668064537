-- Merge of two users. internal.user_data.on_merge declares what happens to each table: 'move' and 'union by source'
-- move rows, except those that would violate a unique constraint; 'keep survivor', 'end' and 'with <table>' leave the
-- rows to the deletion; any other word is implemented by the table's area, in a function
-- internal.merge__<section>(survivor uuid, other uuid) returns int.
create or replace function internal.merge_rows(table_name text, user_column text, survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  place record;
  moved int := 0;
begin
  begin
    execute format('update %s set %I = $1 where %I = $2', merge_rows.table_name::regclass, merge_rows.user_column,
                   merge_rows.user_column)
      using merge_rows.survivor, merge_rows.other;
    get diagnostics moved = row_count;
    return moved;
  exception when unique_violation or exclusion_violation or check_violation then
    null;
  end;
  -- one row at a time: the survivor's rows stay, and the other user's rows are added where no unique constraint forbids
  -- it
  for place in
    execute format('select r.tableoid, r.ctid from %s r where r.%I = $1', merge_rows.table_name::regclass,
                   merge_rows.user_column)
      using merge_rows.other
  loop
    begin
      execute format('update %s r set %I = $1 where r.tableoid = $2 and r.ctid = $3', merge_rows.table_name::regclass,
                     merge_rows.user_column)
        using merge_rows.survivor, place.tableoid, place.ctid;
      moved := moved + 1;
    exception when unique_violation or exclusion_violation or check_violation then
      null;
    end;
  end loop;
  return moved;
end $$;
comment on function internal.merge_rows is
  'Moves the rows of one user to another, except those that would violate a unique constraint. Returns how many. Granted
   to nobody.';

create or replace function internal.users_merge(survivor uuid, other uuid) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  data internal.user_data;
  moved int;
  merged jsonb := '{}';
  handled text[] := '{}';
begin
  if internal.caller() <> 'user' or internal.user_id() <> users_merge.survivor then
    raise exception 'users are merged by the survivor''s own session, not by %', internal.caller();
  end if;
  if internal.has_identity(users_merge.other) then
    raise exception 'whoever can sign in is not merged';
  end if;
  for data in
    select d.* from internal.user_data d where d.table_name <> 'app.users' order by d.table_name, d.user_column
  loop
    -- a table that refers to users in two columns is registered twice, and merged once
    continue when data.section = any (handled);
    if to_regprocedure(format('internal.%I(uuid,uuid)', 'merge__' || data.section)) is not null then
      handled := handled || data.section;
      execute format('select internal.%I($1, $2)', 'merge__' || data.section) into moved using users_merge.survivor,
        users_merge.other;
    elsif data.on_merge in ('move', 'union by source') then
      moved := internal.merge_rows(data.table_name, data.user_column, users_merge.survivor, users_merge.other);
    elsif data.on_merge in ('keep survivor', 'end') or data.on_merge like 'with %' then
      continue;
    else
      raise exception 'nobody says how % is merged: % needs internal.merge__%', data.table_name, data.on_merge,
        data.section;
    end if;
    if moved > 0 then
      merged := merged || jsonb_build_object(data.section, coalesce((merged ->> data.section)::int, 0) + moved);
    end if;
  end loop;
  perform internal.emit(users_merge.survivor, 'svc.user.merged',
                        jsonb_build_object('from_user_id', users_merge.other, 'merged', merged));
  perform internal.user_delete(users_merge.other);
  return merged;
end $$;
comment on function internal.users_merge is
  'Moves one user''s rows to another, as the registry of user data declares, and deletes the first. Returns how many
   rows of each section moved. Emits svc.user.merged.';

create or replace function internal.merge__event_counters(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  moved int;
begin
  insert into app.user_event_counters as counter (app_user_id, event_name, day, count)
  select merge__event_counters.survivor, c.event_name, c.day, c.count
    from app.user_event_counters c
   where c.app_user_id = merge__event_counters.other
   order by c.event_name, c.day
  on conflict (app_user_id, event_name, day) do update set count = counter.count + excluded.count;
  get diagnostics moved = row_count;
  return moved;
end $$;
comment on function internal.merge__event_counters is 'Adds one user''s counters to another''s. Granted to nobody.';

create or replace function internal.merge__streaks(survivor uuid, other uuid) returns int
language sql volatile security definer set search_path = '' as $$
  select internal.streaks_merge(merge__streaks.survivor, merge__streaks.other)
$$;
comment on function internal.merge__streaks is 'Keeps the longer of each pair of streaks. Granted to nobody.';

create or replace function api.auth_merge(from_user_id uuid, from_sid uuid) returns api.reply
language plpgsql volatile as $$
declare
  me app.users;
  merged json;
begin
  if auth_merge.from_user_id = internal.user_id() then
    perform internal.fail(409, 'MERGE_NOT_ALLOWED', 'A user cannot be merged into themselves: name two users.');
  end if;
  perform from app.users u where u.id in (internal.user_id(), auth_merge.from_user_id) order by u.id for update;
  me := internal.session_owner();
  -- also when the token has no session: then both are null
  if not exists (select from app.user_sessions s
                   join app.users u on u.id = s.app_user_id
                  where s.id = auth_merge.from_sid and u.id = auth_merge.from_user_id and not u.is_banned
                    and s.ended_at is null and s.expires_at > internal.now()) then
    perform internal.fail(401, 'INVALID_TOKEN',
                          'The session of from_session_token has ended: use a token of a live session.');
  end if;
  if internal.has_identity(auth_merge.from_user_id) then
    perform internal.fail(409, 'MERGE_NOT_ALLOWED',
                          'Only a user without email, phone, password or linked provider can be merged.');
  end if;
  perform internal.push_tokens_hand_over(auth_merge.from_sid);
  merged := internal.users_merge(me.id, auth_merge.from_user_id);
  return internal.reply(200, (select json_build_object('user', internal.user_json(u), 'merged', merged) from app.users u
                               where u.id = me.id));
end $$;
comment on function api.auth_merge is
  'Merges a purely anonymous user into the caller: {user, merged: {section: count}}. Refuses 401 INVALID_TOKEN,
   UNAUTHORIZED, 409 MERGE_NOT_ALLOWED. Locks both users, in the order of their ids.';
