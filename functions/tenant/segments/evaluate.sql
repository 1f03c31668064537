-- Evaluation of dynamic segments: of one user on demand, of all every five minutes, and of a user at once after an event that a rule depends on.
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
                    where m.app_user_id = segments_holding.app_user_id and m.segment_id = any (segments_holding.segment_ids));
  for segment in
    select t.segment_id, t.condition, t.parameters
      from app.segment_states t
      join app.segments s on s.id = t.segment_id and s.is_active and s.kind = 'dynamic'
     where t.segment_id = any (segments_holding.segment_ids)
  loop
    execute 'select exists (select from app.users u where u.id = $2 and ' || segment.condition || ')'
       into is_in using segment.parameters, segments_holding.app_user_id;
    if is_in then
      holding := holding || segment.segment_id;
    end if;
  end loop;
  return array(select h from unnest(holding) h order by h);
end $$;
comment on function internal.segments_holding is 'Those of these segments that a user is in now, sorted. Granted to nobody.';

create or replace function internal.segment_update_members(segment_id uuid, app_user_ids uuid[], out entered uuid[], out exited uuid[])
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
     into inside using state.parameters, segment_update_members.app_user_ids;
  with gone as (
    delete from app.segment_members m
     where m.segment_id = segment_update_members.segment_id and m.app_user_id = any (segment_update_members.app_user_ids)
       and not m.app_user_id = any (coalesce(inside, '{}'))
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
  'Makes the stored members of a dynamic segment, among these users, those who are in it now; answers who came and went. The users must be locked.
   Granted to nobody.';

create or replace function internal.segments_notify(segment_ids uuid[], app_user_ids uuid[], verbs text[]) returns void
language sql volatile security definer set search_path = '' as $$
  select internal.emit_many(array_agg(t.app_user_id order by t.n), array_agg('svc.segment.' || t.verb order by t.n),
                            array_agg(jsonb_build_object('segment_id', s.id, 'key', s.key, 'name', s.name) order by t.n))
    from unnest(segments_notify.segment_ids, segments_notify.app_user_ids, segments_notify.verbs) with ordinality as t (segment_id, app_user_id, verb, n)
    join app.segments s on s.id = t.segment_id
$$;
comment on function internal.segments_notify is 'svc.segment.entered and exited, all in one run of the hooks. The users must be locked. Granted to nobody.';

create or replace function internal.segments_update_members(segment_ids uuid[], app_user_ids uuid[]) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  segment_id uuid;
  moved record;
  segments uuid[] := '{}';
  users uuid[] := '{}';
  verbs text[] := '{}';
begin
  foreach segment_id in array segments_update_members.segment_ids loop
    select s.entered, s.exited into moved from internal.segment_update_members(segment_id, segments_update_members.app_user_ids) s;
    users := users || coalesce(moved.entered, '{}') || coalesce(moved.exited, '{}');
    segments := segments || array_fill(segment_id, array[coalesce(cardinality(moved.entered), 0) + coalesce(cardinality(moved.exited), 0)]);
    verbs := verbs || array_fill('entered'::text, array[coalesce(cardinality(moved.entered), 0)])
                   || array_fill('exited'::text, array[coalesce(cardinality(moved.exited), 0)]);
  end loop;
  if cardinality(users) > 0 then
    perform internal.segments_notify(segments, users, verbs);
  end if;
  return cardinality(users);
end $$;
comment on function internal.segments_update_members is 'segment_update_members for several segments, telling who entered and exited. Answers how many did. The users must be locked. Granted to nobody.';

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
       where exists (select from app.segment_states t where t.segment_id = any (watching) and i.event_name = any (t.event_names))
       order by i.app_user_id));
  end if;
end $$;
comment on function internal.on_events__80_segments is
  'Evaluates the users of an event at once in the segments whose rules depend on it, after all other effects of the event.';

create or replace function internal.event_plan__segments() returns table (event_name text, plan uuid[])
language sql stable as $$
  select w.event_name, array_agg(distinct t.segment_id)
    from app.segment_states t
    join app.segments s on s.id = t.segment_id and s.is_active
   cross join lateral unnest(t.event_names) as w (event_name)
   group by 1
$$;
comment on function internal.event_plan__segments is 'The active segments whose rules ask for an event. Granted to nobody.';

create or replace trigger tg_segments__event_plans
  after delete or update of is_active on app.segments
  for each statement execute function internal.tg_event_plans();

create or replace trigger tg_segment_states__event_plans
  after insert or delete or update of event_names on app.segment_states
  for each statement execute function internal.tg_event_plans();

create or replace function internal.segments_refresh(segment_id uuid, batch int) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  segment app.segments;
  state app.segment_states;
  differing uuid[];
  members bigint;
begin
  if internal.caller() <> 'worker' then
    raise exception 'segments are refreshed by workers, not by %', internal.caller();
  end if;
  select s.* into segment from app.segments s where s.id = segments_refresh.segment_id and s.is_active and s.kind = 'dynamic';
  if not found then
    return 0;
  end if;
  select t.* into state from app.segment_states t where t.segment_id = segment.id;
  if not found then
    -- deleted meanwhile
    return 0;
  end if;
  execute 'select array(select u.id from app.users u
                          left join app.segment_members m on m.segment_id = $2 and m.app_user_id = u.id
                         where ' || state.condition || ' <> (m.app_user_id is not null) order by u.id limit $3)'
     into differing using state.parameters, segment.id, segments_refresh.batch;
  if cardinality(differing) > 0 then
    differing := internal.lock_users(differing);
    perform internal.segments_update_members(array[segment.id], differing);
  end if;
  if coalesce(cardinality(differing), 0) < segments_refresh.batch then
    perform from app.segments s where s.id = segment.id for key share;
    if not found then
      -- deleted meanwhile
      return 0;
    end if;
    select count(*) into members from app.segment_members m where m.segment_id = segment.id;
    update app.segment_states t set member_count = members, last_evaluated_at = internal.now() where t.segment_id = segment.id;
    perform internal.segment_count(segment.id, members);
  end if;
  return coalesce(cardinality(differing), 0);
end $$;
comment on function internal.segments_refresh is
  'Evaluates all users, and corrects at most batch stored memberships; returns how many were wrong. Counts the members when that was all. Locks those users.';

create or replace function internal.segment_count(segment_id uuid, members bigint) returns void
language sql volatile security definer set search_path = '' as $$
  insert into app.segment_counts as c (segment_id, day, member_count)
  values (segment_count.segment_id, (internal.now() at time zone 'UTC')::date, segment_count.members)
  on conflict on constraint segment_counts_pkey do update set member_count = excluded.member_count
   where c.member_count <> excluded.member_count
$$;
comment on function internal.segment_count is 'Notes how many members a segment has today. Granted to nobody.';

create or replace function api.segments_due() returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(s.id order by s.id), '[]')) from app.segments s where s.is_active and s.kind = 'dynamic'
$$;
comment on function api.segments_due is 'For the worker: the segments that are evaluated.';

create or replace function api.segments_refresh(segment_id uuid, batch int) returns api.reply
language sql volatile as $$
  select internal.reply(200, to_json(internal.segments_refresh(segments_refresh.segment_id, segments_refresh.batch)))
$$;
comment on function api.segments_refresh is 'For the worker: moves at most batch users; less than that many were moved when a segment is up to date.';
