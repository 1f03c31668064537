-- Evaluation of dynamic segments: of one user on demand, of all every five minutes, and of a user at once after an
-- event that a rule depends on.
create or replace function internal.segments_holding(segment_ids uuid[], app_user_id uuid) returns uuid[]
language plpgsql volatile security definer set search_path = '' as $$
declare
  segment record;
  is_in boolean;
  holding uuid[];
begin
  holding := array(select m.segment_id
                     from app.segment_members m
                     join app.segments s on s.id = m.segment_id and s.is_active and s.kind = 'static'
                    where m.app_user_id = segments_holding.app_user_id
                      and m.segment_id = any (segments_holding.segment_ids));
  for segment in
    select t.segment_id, t.condition, t.parameters
      from app.segment_states t
      join app.segments s on s.id = t.segment_id and s.is_active and s.kind = 'dynamic'
     where t.segment_id = any (segments_holding.segment_ids)
  loop
    execute 'select exists (select from app.users u where u.id = $2 and ' || segment.condition || ')'
       into is_in using internal.segment_bind(segment.parameters), segments_holding.app_user_id;
    if is_in then
      holding := holding || segment.segment_id;
    end if;
  end loop;
  return array(select h from unnest(holding) h order by h);
end $$;
comment on function internal.segments_holding is
  'Those of these segments that a user is in now, sorted. Granted to nobody.';

create or replace function internal.segment_update_members(segment_id uuid, app_user_ids uuid[], out entered uuid[],
                                                           out exited uuid[])
language plpgsql volatile security definer set search_path = '' as $$
declare
  state app.segment_states;
  inside uuid[];
begin
  select t.* into state
    from app.segment_states t
    join app.segments s on s.id = t.segment_id and s.is_active and s.kind = 'dynamic'
   where t.segment_id = segment_update_members.segment_id
     for key share of s;
  if not found then
    return;
  end if;
  execute 'select array_agg(u.id order by u.id) from app.users u where u.id = any ($2) and ' || state.condition
     into inside using internal.segment_bind(state.parameters), segment_update_members.app_user_ids;
  with gone as (
    delete from app.segment_members m
     where m.segment_id = segment_update_members.segment_id
       and m.app_user_id = any (segment_update_members.app_user_ids)
       -- a hashed subquery: of an array the generic plan would compare each element
       and m.app_user_id not in (select i from unnest(inside) i)
    returning m.app_user_id
  )
  select array_agg(g.app_user_id order by g.app_user_id) into exited from gone g;
  with come as (
    insert into app.segment_members as m (segment_id, app_user_id)
    select segment_update_members.segment_id, i from unnest(inside) i order by i
    on conflict do nothing
    returning m.app_user_id
  )
  select array_agg(c.app_user_id order by c.app_user_id) into entered from come c;
end $$;
comment on function internal.segment_update_members is
  'Updates the stored membership of these users in a dynamic segment to its present rules; returns who entered and
   exited. The users must be locked. Granted to nobody.';

create or replace function internal.segment_event(segment_id uuid) returns jsonb
language sql stable security definer set search_path = '' as $$
  select jsonb_build_object('segment_id', s.id, 'key', s.key, 'name', s.name) from app.segments s
   where s.id = segment_event.segment_id
$$;
comment on function internal.segment_event is 'The properties of svc.segment.entered and exited. Granted to nobody.';

create or replace function internal.segments_update_members(segment_ids uuid[], app_user_ids uuid[]) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  segment_id uuid;
  moved record;
  entered int;
  exited int;
  users uuid[] := '{}';
  names text[] := '{}';
  properties jsonb[] := '{}';
begin
  foreach segment_id in array segments_update_members.segment_ids loop
    select s.entered, s.exited into moved from internal.segment_update_members(segment_id,
                                        segments_update_members.app_user_ids) s;
    entered := coalesce(cardinality(moved.entered), 0);
    exited := coalesce(cardinality(moved.exited), 0);
    if entered + exited > 0 then
      users := users || coalesce(moved.entered, '{}') || coalesce(moved.exited, '{}');
      names := names || array_fill('svc.segment.entered'::text,
                                   array[entered]) || array_fill('svc.segment.exited'::text, array[exited]);
      properties := properties || array_fill(internal.segment_event(segment_id), array[entered + exited]);
    end if;
  end loop;
  -- in one run of the hooks
  if cardinality(users) > 0 then
    perform internal.emit_many(users, names, properties);
  end if;
  return cardinality(users);
end $$;
comment on function internal.segments_update_members is
  'Calls segment_update_members for several segments and emits an event for each user who entered or exited. Returns how
   many did. The users must be locked. Granted to nobody.';

create or replace function internal.on_events__80_segments(events app.engagement_events[]) returns void
language plpgsql volatile set plan_cache_mode = 'auto' as $$
declare
  watching uuid[];
begin
  if not internal.event_hooks_may_run() then
    return;
  end if;
  watching := array(
    select t.segment_id
      from app.segment_states t
      join app.segments s on s.id = t.segment_id and s.is_active
     where t.event_names && array(select distinct i.event_name from unnest(on_events__80_segments.events) i)
     order by t.segment_id);
  if cardinality(watching) > 0 then
    perform internal.segments_update_members(watching, array(
      select distinct i.app_user_id
        from unnest(on_events__80_segments.events) i
       where exists (select from app.segment_states t
                      where t.segment_id = any (watching) and i.event_name = any (t.event_names))
       order by i.app_user_id));
  end if;
end $$;
comment on function internal.on_events__80_segments is
  'Evaluates the users of an event at once in the segments whose rules depend on it, after all other effects of the
   event.';

create or replace function internal.event_plan__segments() returns table (event_name text, plan uuid[])
language sql stable as $$
  select w.event_name, array_agg(distinct t.segment_id)
    from app.segment_states t
    join app.segments s on s.id = t.segment_id and s.is_active
   cross join lateral unnest(t.event_names) as w (event_name)
   group by 1
$$;
comment on function internal.event_plan__segments is
  'The active segments whose rules ask for an event. Granted to nobody.';

create or replace trigger tg_segments__event_plans
  after delete or update of is_active on app.segments
  for each statement execute function internal.tg_event_plans();

create or replace trigger tg_segment_states__event_plans
  after insert or delete or update of event_names on app.segment_states
  for each statement execute function internal.tg_event_plans();

create or replace function internal.tg_users__segments() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.segment_members m where m.app_user_id = old.id;
  return null;
end $$;
comment on function internal.tg_users__segments is
  'Takes a user who is deleted out of all segments. A foreign key would do the same, but would also check the user for
   each member.';

create or replace trigger tg_users__segments
  after delete on app.users
  for each row execute function internal.tg_users__segments();

create or replace function internal.tg_segments__members() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.segment_members m where m.segment_id = old.id;
  return null;
end $$;
comment on function internal.tg_segments__members is
  'Deletes the members with their segment. A foreign key would do the same, but would also check the segment for each
   member.';

create or replace trigger tg_segments__members
  after delete on app.segments
  for each row execute function internal.tg_segments__members();

create or replace function internal.segment_differing(state app.segment_states, after_id uuid, last_id uuid, most int)
returns uuid[]
language plpgsql volatile security definer set search_path = ''
-- sets are hashed or merged: a nested loop over a set that the planner believes to be small would take hours. A step
-- reads its range of users by indexes, not whole tables, and uses one core
set enable_nestloop = off set random_page_cost = 1.1 set max_parallel_workers_per_gather = 0 set jit = off as $$
declare
  differing uuid[];
begin
  -- in the order of a scan over users, so that merges of indexes end with the last one wanted
  execute 'with inside as (' || (segment_differing.state).query || ')
           select array(select o.id
                          from app.users o
                          left join inside i on i.id = o.id
                          left join app.segment_members m on m.segment_id = $4 and m.app_user_id = o.id
                                                          and m.app_user_id > $2 and m.app_user_id <= $3
                         where o.id > $2 and o.id <= $3 and (i.id is null) <> (m.app_user_id is null)
                         order by o.id
                         limit $5)'
     into differing
    using internal.segment_bind((segment_differing.state).parameters), segment_differing.after_id,
      segment_differing.last_id,
          (segment_differing.state).segment_id, segment_differing.most;
  return differing;
end $$;
comment on function internal.segment_differing is
  'The first users in a range of ids whose stored membership is not what a segment''s rules say. Locks nothing. Granted
   to nobody.';

create or replace function internal.segment_size(segment_id uuid) returns bigint
language sql stable security definer set search_path = '' as $$
  select coalesce(internal.counted('segment_members', segment_size.segment_id),
                  (select count(*) from app.segment_members m where m.segment_id = segment_size.segment_id))
$$;
comment on function internal.segment_size is 'How many members a segment has, by the counter of its members.';

create or replace function internal.segment_count(segment_id uuid) returns void
language sql volatile security definer set search_path = '' as $$
  insert into app.segment_counts as c (segment_id, day, member_count)
  values (segment_count.segment_id, (internal.now() at time zone 'UTC')::date,
          internal.segment_size(segment_count.segment_id))
  on conflict on constraint segment_counts_pkey do update set member_count = excluded.member_count
   where c.member_count <> excluded.member_count
$$;
comment on function internal.segment_count is 'Notes how many members a segment has today. Granted to nobody.';

create or replace function api.segments_due() returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(s.id order by s.id), '[]')) from app.segments s
   where s.is_active and s.kind = 'dynamic'
$$;
comment on function api.segments_due is 'For the worker: the segments that are evaluated.';

create or replace function api.segments_refresh(segment_id uuid, batch int, scanned int default 20000) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  segment app.segments;
  state app.segment_states;
  after_id uuid;
  last_id uuid;
  is_last boolean;
  differing uuid[];
  moved int := 0;
  evaluated int := segments_refresh.scanned;
begin
  perform internal.check_caller('worker', 'segments are refreshed by workers');
  select s.* into segment from app.segments s
   where s.id = segments_refresh.segment_id and s.is_active and s.kind = 'dynamic';
  if found and exists (select from app.segment_states t where t.segment_id = segment.id and t.query is null) then
    -- written before rules were compiled to queries
    perform internal.segments_compile();
  end if;
  select t.* into state from app.segment_states t where t.segment_id = segment.id;
  if not found then
    -- switched off or deleted meanwhile
    return internal.reply(200, json_build_object('moved', 0, 'is_over', true, 'is_resumed', false));
  end if;
  after_id := coalesce(state.cursor_id, '00000000-0000-0000-0000-000000000000');
  select u.id into last_id from app.users u where u.id > after_id order by u.id offset segments_refresh.scanned - 1
   limit 1;
  is_last := last_id is null;
  last_id := coalesce(last_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff');
  differing := internal.segment_differing(state, after_id, last_id, segments_refresh.batch + 1);
  if cardinality(differing) > segments_refresh.batch then
    differing := differing[1:segments_refresh.batch];
    last_id := differing[segments_refresh.batch];
    is_last := false;
    evaluated := (select count(*) from app.users u where u.id > after_id and u.id <= last_id);
  end if;
  if cardinality(differing) > 0 then
    -- evaluated once more under their locks: what changed meanwhile is seen, and changes from now on wait
    moved := internal.segments_update_members(array[segment.id], internal.lock_users(differing));
  end if;
  perform from app.segments s where s.id = segment.id for key share;
  if not found then
    return internal.reply(200, json_build_object('moved', 0, 'is_over', true, 'is_resumed', false));
  end if;
  -- a segment whose rules changed meanwhile begins again
  update app.segment_states t
     set cursor_id = case when not is_last then last_id end,
         last_evaluated_at = case when is_last then internal.now() else t.last_evaluated_at end
   where t.segment_id = segment.id and t.cursor_id is not distinct from state.cursor_id
     and (t.query, t.parameters) = (state.query, state.parameters);
  if found and is_last then
    perform internal.segment_count(segment.id);
  end if;
  return internal.reply(200, json_build_object('moved', moved, 'is_over', found and is_last,
                                               'is_resumed', state.cursor_id is not null, 'evaluated', evaluated));
end $$;
comment on function api.segments_refresh is
  'For the worker: one step of the evaluation of a segment for all users, {moved, is_over, is_resumed, evaluated}: the
   next scanned ones in the order of their ids, of whom at most batch stored memberships are corrected. moved is how
   many were, evaluated among how many users at most, absent where the segment is gone; is_resumed: an earlier step had
   come before it, a killed worker goes on where the last step ended. Locks the corrected users.';
