-- Members: lists, changes of static segments, and the explanation of a user's membership.
select internal.row_declare('segment_user_json', null::app.users, '{id,email,external_id,display_name,avatar_url}');
comment on function internal.segment_user_json is 'A user as lists of members show them.';

create or replace function internal.segment_user_ids(segment_id uuid) returns setof uuid
language sql stable security definer set search_path = '' as $$
  select m.app_user_id
    from app.segment_members m
    join app.segments s on s.id = m.segment_id and s.is_active
   where m.segment_id = segment_user_ids.segment_id
$$;
comment on function internal.segment_user_ids is
  'The stored members of a segment, for lists: of a dynamic one those of the last evaluation.';

create or replace function internal.segment_member_json(m app.segment_members) returns json
language sql stable as $$
  select json_build_object('app_user_id', (segment_member_json.m).app_user_id,
                           'entered_at', internal.iso((segment_member_json.m).entered_at),
                           'app_users', (select internal.segment_user_json(u) from app.users u
                                          where u.id = (segment_member_json.m).app_user_id))
$$;
comment on function internal.segment_member_json is 'A member with its user.';

create or replace function api.segment_members(id_or_key text, page_offset int default 0, page_limit int default 50)
returns api.reply
language plpgsql volatile as $$
declare
  segment constant app.segments := internal.definition_find(null::app.segments, segment_members.id_or_key);
  rows_json json;
begin
  -- rows are passed over in the index: users and JSON are those of the page only
  select json_agg(internal.segment_member_json((p.segment_id, p.app_user_id,
                                                p.entered_at)::app.segment_members) order by p.entered_at desc,
                                                  p.app_user_id desc)
    into rows_json
    from (select m.segment_id, m.app_user_id, m.entered_at
            from app.segment_members m
           where m.segment_id = segment.id
           order by m.entered_at desc, m.app_user_id desc
           limit segment_members.page_limit offset segment_members.page_offset) p;
  return internal.reply_page(rows_json, internal.segment_size(segment.id), segment_members.page_offset,
                             segment_members.page_limit);
end $$;
comment on function api.segment_members is 'Members as they are stored, newest first. Refuses 404 NOT_FOUND.';

create or replace function internal.segment_change(segment_id uuid, app_user_ids uuid[], is_added boolean)
returns uuid[]
language plpgsql volatile security definer set search_path = '' as $$
declare
  segment app.segments;
  users uuid[];
  moved uuid[];
begin
  perform internal.check_caller('developer', 'static segments are changed by administrators');
  users := internal.lock_users(segment_change.app_user_ids);
  -- one change of a segment at a time, so that its count is right
  select s.* into segment from app.segments s where s.id = segment_change.segment_id for no key update;
  if not found then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such segment.');
  elsif segment.kind <> 'static' then
    perform internal.fail(400, 'SEGMENT_NOT_STATIC',
                          'The members of a dynamic segment follow from its rules: use a static segment.');
  end if;
  if segment_change.is_added then
    with come as (
      insert into app.segment_members as m (segment_id, app_user_id)
      select segment.id, u from unnest(users) u order by u
      on conflict do nothing
      returning m.app_user_id
    )
    select array_agg(c.app_user_id order by c.app_user_id) into moved from come c;
  else
    with gone as (
      delete from app.segment_members m
       where m.segment_id = segment.id and m.app_user_id = any (users)
      returning m.app_user_id
    )
    select array_agg(g.app_user_id order by g.app_user_id) into moved from gone g;
  end if;
  if moved is null then
    return '{}';
  end if;
  update app.segment_states t set last_evaluated_at = internal.now() where t.segment_id = segment.id;
  perform internal.segment_count(segment.id);
  perform internal.emit_many(moved, array_fill('svc.segment.' || case when segment_change.is_added then 'entered'
                                                                      else 'exited' end, array[cardinality(moved)]),
                             array_fill(internal.segment_event(segment.id), array[cardinality(moved)]));
  perform internal.audit('segments.' || case when segment_change.is_added then 'add_members' else 'remove_members' end,
                         'segments', segment.id::text,
                         json_build_object('members', case when segment_change.is_added then json_build_array(null,
                                        moved) else json_build_array(moved, null) end));
  return moved;
end $$;
comment on function internal.segment_change is
  'Puts users into a static segment, or takes them out; answers those who moved. Refuses 404 NOT_FOUND, 400
   SEGMENT_NOT_STATIC. Locks the users, then the segment. Emits svc.segment.entered or exited.';

create or replace function api.segment_members_add(id_or_key text, user_ids json) returns api.reply
language plpgsql volatile as $$
declare
  segment constant app.segments := internal.definition_find(null::app.segments, segment_members_add.id_or_key);
  wanted constant uuid[] := array(select internal.as_uuid(w)
                                    from json_array_elements_text(segment_members_add.user_ids) w);
  moved uuid[];
begin
  if cardinality(wanted) not between 1 and 1000 or array_position(wanted, null) is not null then
    perform internal.invalid('user_ids', 'must be 1 to 1000 ids');
  end if;
  moved := internal.segment_change(segment.id, wanted, true);
  return internal.reply(200, json_build_object(
    'added', cardinality(moved),
    'unknown', array(select w from unnest(wanted) w where not exists (select from app.users u where u.id = w)
                      order by w)));
end $$;
comment on function api.segment_members_add is
  'Puts up to 1000 users into a static segment: how many were not in it, and which ids are no users. Refuses 404
   NOT_FOUND, 400 VALIDATION_ERROR, SEGMENT_NOT_STATIC.';

create or replace function api.segment_member_remove(id_or_key text, user_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  segment constant app.segments := internal.definition_find(null::app.segments, segment_member_remove.id_or_key);
begin
  if cardinality(internal.segment_change(segment.id, array[segment_member_remove.user_id], false)) = 0 then
    perform internal.fail(404, 'NOT_FOUND', 'This user is not in the segment.');
  end if;
  return internal.reply_deleted();
end $$;
comment on function api.segment_member_remove is
  'Takes a user out of a static segment. Refuses 404 NOT_FOUND, 400 SEGMENT_NOT_STATIC.';

create or replace function internal.segment_explain(segment_id uuid, app_user_id uuid) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  segment app.segments;
  compiled record;
  leaf jsonb;
  matched boolean;
  actual jsonb;
  leaves json[] := '{}';
begin
  perform internal.check_caller('developer', 'explanations of segments are read by administrators');
  select s.* into segment from app.segments s where s.id = segment_explain.segment_id;
  if segment.kind = 'dynamic' then
    select c.condition, c.state into compiled from internal.segment_compile(segment.rules, segment.id) c;
    for leaf in select l from jsonb_array_elements(compiled.state -> 'leaves') l loop
      execute format('select coalesce(%s, false), %s from app.users u where u.id = $2',
                     internal.segment_condition(leaf ->> 'condition', compiled.state -> 'sets'),
                     internal.segment_condition(leaf ->> 'actual', compiled.state -> 'sets'))
         into matched, actual using internal.segment_bind(compiled.state -> 'values'), segment_explain.app_user_id;
      leaves := leaves || json_build_object('path', leaf ->> 'path', 'matched', matched, 'actual', actual);
    end loop;
  end if;
  return json_build_object('member', internal.segment_member(segment.id, segment_explain.app_user_id),
                           'leaves', to_json(leaves));
end $$;
comment on function internal.segment_explain is
  'Whether a user is in a segment now, and the result of each condition of its rules; a referenced segment counts as one
   condition.';

create or replace function api.segment_explain(id_or_key text, user_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  segment constant app.segments := internal.definition_find(null::app.segments, segment_explain.id_or_key);
begin
  perform internal.check_found(exists (select from app.users u where u.id = segment_explain.user_id), 'user');
  return internal.reply(200, internal.segment_explain(segment.id, segment_explain.user_id));
end $$;
comment on function api.segment_explain is 'Why a user is in a segment, or is not. Refuses 404 NOT_FOUND.';

create or replace function internal.segments_lock(id_or_keys text[]) returns void
language sql volatile security definer set search_path = '' as $$
  select from app.segments s
   where s.id in (select internal.as_uuid(w) from unnest(segments_lock.id_or_keys) w)
      or s.key = any (segments_lock.id_or_keys)
   order by s.id
     for no key update
$$;
comment on function internal.segments_lock is
  'Locks segments in the order of their ids, for callers that change several. Lock users first.';

create or replace function internal.segments_enqueue_refresh() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() = 'developer' and exists (select from app.segments s
                                                  where s.kind = 'dynamic' and s.is_active) then
    perform internal.enqueue('segments__refresh');
  end if;
end $$;
comment on function internal.segments_enqueue_refresh is
  'After an administrator changed many users: queues the evaluation of all users now, not only within five minutes.';

create or replace function api.user_segments(user_id uuid) returns api.reply
language plpgsql stable as $$
begin
  perform internal.check_found(exists (select from app.users u where u.id = user_segments.user_id), 'user');
  return internal.reply(200, coalesce((
    select json_agg(json_build_object('id', s.id, 'key', s.key, 'name', s.name, 'kind', s.kind,
                                      'entered_at', internal.iso(m.entered_at)) order by m.entered_at desc, s.id)
      from app.segment_members m
      join app.segments s on s.id = m.segment_id and s.is_active
     where m.app_user_id = user_segments.user_id), '[]'));
end $$;
comment on function api.user_segments is
  'Active segments of which a user is a stored member, at most 200, the newest first, by segment_members_of_user; of
   dynamic ones those of the last evaluation. Refuses 404 NOT_FOUND.';
