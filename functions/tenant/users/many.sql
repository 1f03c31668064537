-- Many users at once: bulk-update judges each item by itself, cohorts are made in one statement.

create or replace function internal.naming_part(item jsonb, field text) returns text
language sql immutable parallel safe as $$
  select case when jsonb_typeof(naming_part.item -> naming_part.field) = 'string' then naming_part.item ->> naming_part.field end
$$;
comment on function internal.naming_part is 'What an item names a user by, or null: the number 5 is not the external id "5".';

create or replace function internal.user_named(item jsonb) returns uuid
language sql stable as $$
  select u.id from app.users u where u.id = internal.as_uuid(internal.naming_part(user_named.item, 'user_id'))
  union all
  select u.id from app.users u where u.external_id = internal.naming_part(user_named.item, 'external_id')
  union all
  select u.id from app.users u where u.anonymous_id = internal.naming_part(user_named.item, 'anonymous_id')
$$;
comment on function internal.user_named is 'The user whom an item names by user_id, external_id or anonymous_id, or null.';

create or replace function internal.bulk_item(item jsonb) returns uuid
language plpgsql volatile as $$
declare
  i constant jsonb := bulk_item.item;
  fields jsonb := '{}';
  them app.users;
begin
  if jsonb_typeof(i) <> 'object' then
    perform internal.fail(400, 'INVALID_BODY', 'An item must be an object.');
  end if;
  -- null is as good as absent; what is there and no string names nobody, and must not be passed over
  if (select array_agg(jsonb_typeof(i -> n)) from unnest(array['user_id', 'external_id', 'anonymous_id']) n
       where jsonb_typeof(i -> n) <> 'null') is distinct from array['string'] then
    perform internal.invalid('user_id', 'name the user by one of user_id, external_id and anonymous_id', 'INVALID_BODY');
  end if;
  if jsonb_typeof(coalesce(i -> 'properties', '{}')) <> 'object' then
    perform internal.invalid('properties', 'must be an object', 'INVALID_BODY');
  end if;
  if jsonb_typeof(coalesce(i -> 'set', '{}')) <> 'object' then
    perform internal.invalid('set', 'must be an object', 'INVALID_BODY');
  end if;
  if jsonb_typeof(coalesce(i -> 'unset_properties', '[]')) <> 'array'
     or jsonb_path_exists(coalesce(i -> 'unset_properties', '[]'), '$[*] ? (@.type() <> "string")') then
    perform internal.invalid('unset_properties', 'must be a list of strings', 'INVALID_BODY');
  end if;
  select u.* into them from app.users u where u.id = internal.user_named(i) for no key update;
  if them.id is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such user.');
  end if;
  select coalesce(jsonb_object_agg(f.key, f.value), '{}') into fields
    from jsonb_each(coalesce(i -> 'set', '{}')) f
   where f.key in ('display_name', 'avatar_url', 'external_id', 'email', 'phone', 'timezone');
  fields := internal.user_fields(fields, 'INVALID_BODY');
  if i ?| array['properties', 'unset_properties'] then
    fields := fields || jsonb_build_object('properties',
      internal.merged_properties(them.properties, coalesce(i -> 'properties', '{}'))
        - array(select jsonb_array_elements_text(coalesce(i -> 'unset_properties', '[]'))));
    perform internal.check_properties_size(fields -> 'properties', 'INVALID_BODY');
  end if;
  if fields <> '{}' then
    perform internal.user_set(them.id, fields);
  end if;
  return them.id;
end $$;
comment on function internal.bulk_item is
  'One item of a bulk update; answers whose it was. Refuses 400 INVALID_BODY, 404 NOT_FOUND, and what the unique rules of users refuse. Locks the user.';

create or replace function internal.bulk_segments(item jsonb, field text) returns uuid[]
language plpgsql volatile as $$
declare
  names constant jsonb := coalesce(nullif(bulk_segments.item -> bulk_segments.field, 'null'), '[]');
  name text;
  segment app.segments;
  segments uuid[] := '{}';
begin
  if jsonb_typeof(names) <> 'array' or jsonb_path_exists(names, '$[*] ? (@.type() <> "string")') then
    perform internal.invalid(bulk_segments.field, 'must be a list of ids or keys of segments', 'INVALID_BODY');
  end if;
  for name in select jsonb_array_elements_text(names) loop
    segment := internal.segment_find(name);
    if segment.kind <> 'static' then
      perform internal.fail(400, 'SEGMENT_NOT_STATIC', 'The members of a dynamic segment follow from its rules.');
    end if;
    segments := segments || segment.id;
  end loop;
  return segments;
end $$;
comment on function internal.bulk_segments is
  'The static segments that an item names in a field, by id or key. Refuses 400 INVALID_BODY, SEGMENT_NOT_STATIC, 404 NOT_FOUND.';

create or replace function api.users_bulk_update(updates json) returns api.reply
language plpgsql volatile as $$
declare
  items constant jsonb := users_bulk_update.updates::jsonb;
  item jsonb;
  n int;
  results json[] := '{}';
  updated int := 0;
  whose uuid;
  said text;
  refusal text;
  violated text;
  joins uuid[];
  leaves uuid[];
  moves jsonb := '[]';
  segment record;
begin
  if jsonb_array_length(items) > 1000 then
    perform internal.fail(400, 'BATCH_TOO_LARGE', 'A bulk update holds at most 1000 users.',
                          '{"field": "updates", "reason": "must have 1 to 1000 items"}');
  end if;
  -- one at a time: the trail lets only one write anyway, and two that want each other's addresses would wait in a circle
  perform pg_advisory_xact_lock(hashtextextended('users bulk update', 0));
  -- all in one order, as whoever locks several users
  perform u.id
     from app.users u
    where u.id in (select internal.as_uuid(internal.naming_part(e, 'user_id')) from jsonb_array_elements(items) e)
       or u.external_id in (select internal.naming_part(e, 'external_id') from jsonb_array_elements(items) e)
       or u.anonymous_id in (select internal.naming_part(e, 'anonymous_id') from jsonb_array_elements(items) e)
    order by u.id
      for no key update;
  -- then segments: they stay until the end, as the items were judged
  perform internal.segments_lock(array(
    select w.name #>> '{}'
      from jsonb_array_elements(items) e
     cross join lateral (select jsonb_path_query(e.value, '$.add_segments[*]') as name
                         union all
                         select jsonb_path_query(e.value, '$.remove_segments[*]')) w));

  for item, n in select e.item, e.n - 1 from jsonb_array_elements(items) with ordinality as e (item, n) loop
    whose := case when jsonb_typeof(item) = 'object' then internal.user_named(item) end;
    begin
      perform internal.bulk_item(item);
      joins := internal.bulk_segments(item, 'add_segments');
      leaves := internal.bulk_segments(item, 'remove_segments');
      updated := updated + 1;
      moves := moves || coalesce((select jsonb_agg(jsonb_build_array(s.id, whose, s.is_added))
                                    from (select unnest(joins) as id, true as is_added union all select unnest(leaves), false) s), '[]');
      results := results || json_build_object('index', n, 'user_id', whose, 'status', 'updated');
    exception
      when sqlstate 'TR000' then
        get stacked diagnostics said = message_text, refusal = pg_exception_detail;
        results := results || json_build_object('index', n, 'user_id', whose, 'status', 'failed',
                                                'code', refusal::json ->> 'code', 'message', said);
      when unique_violation then
        get stacked diagnostics violated = constraint_name;
        results := results || json_build_object('index', n, 'user_id', whose, 'status', 'failed', 'code', 'USER_ALREADY_EXISTS',
          'message', 'Another user has this ' || (internal.already_exists(violated) ->> 'field') || '.');
      when data_exception then
        results := results || json_build_object('index', n, 'user_id', whose, 'status', 'failed', 'code', 'INVALID_BODY',
                                                'message', 'A value cannot be stored.');
    end;
  end loop;
  -- the last word on a user and a segment holds; each segment moves once
  for segment in
    select m.id, m.is_added, array_agg(m.whose) as users
      from (select distinct on (e.value ->> 0, e.value ->> 1) (e.value ->> 0)::uuid as id, (e.value ->> 1)::uuid as whose, (e.value ->> 2)::boolean as is_added
              from jsonb_array_elements(moves) with ordinality as e (value, n)
             order by e.value ->> 0, e.value ->> 1, e.n desc) m
     group by m.id, m.is_added
     order by m.id, m.is_added
  loop
    perform internal.segment_change(segment.id, segment.users, segment.is_added);
  end loop;
  perform internal.segments_touched();
  perform internal.audit_act('users.bulk_update', 'users', null,
                             json_build_object('updated', json_build_array(null, updated), 'failed', json_build_array(null, cardinality(results) - updated)), 200);
  return internal.reply(200, json_build_object('updated', updated, 'failed', cardinality(results) - updated, 'results', to_json(results)));
end $$;
comment on function api.users_bulk_update is
  'Updates up to 1000 users: {updated, failed, results}. Each item is a savepoint of its own: what is wrong with one is said under it, and stops no other.
   Refuses 400 BATCH_TOO_LARGE. Runs one at a time. Locks the users in the order of their ids, then the segments in that of theirs. Supplement B4.';

create or replace function internal.with_index(value jsonb, index int) returns jsonb
language plpgsql immutable parallel safe as $$
begin
  return case jsonb_typeof(with_index.value)
    when 'string' then to_jsonb(replace(with_index.value #>> '{}', '{{index}}', with_index.index::text))
    when 'object' then (select coalesce(jsonb_object_agg(e.key, internal.with_index(e.value, with_index.index)), '{}') from jsonb_each(with_index.value) e)
    when 'array' then (select coalesce(jsonb_agg(internal.with_index(e.value, with_index.index) order by e.n), '[]')
                         from jsonb_array_elements(with_index.value) with ordinality as e (value, n))
    else with_index.value
  end;
end $$;
comment on function internal.with_index is 'A value with {{index}} replaced in all of its strings; keys stay as they are.';

create or replace function api.users_cohort(
  count int, properties json default null, segment_ids json default null, label text default null,
  idempotency_key text default null, body_hash text default null)
returns api.reply
language plpgsql volatile as $$
declare
  route constant text := 'POST users/cohort';
  shared constant jsonb := coalesce(users_cohort.properties::jsonb, '{}')
    || case when users_cohort.label is null then '{}' else jsonb_build_object('_cohort', users_cohort.label) end;
  stored api.reply;
  answer api.reply;
  shown json;
  ids uuid[];
  segment app.segments;
begin
  perform internal.check_properties_size(shared, 'INVALID_BODY');
  stored := internal.idempotency_begin(route, users_cohort.idempotency_key, users_cohort.body_hash);
  if stored is not null then
    return stored;
  end if;
  with made as (
    insert into app.users (anonymous_id, display_name, properties)
    select internal.new_anonymous_id(), internal.generated_name(),
           case when shared::text like '%{{index}}%' then internal.with_index(shared, n) else shared end
      from generate_series(0, users_cohort.count - 1) as n
    returning id, anonymous_id, display_name
  )
  select json_build_object(
           'count', count(*), 'user_ids', json_agg(m.id order by m.id),
           'users', json_agg(json_build_object('id', m.id, 'anonymous_id', m.anonymous_id, 'display_name', m.display_name) order by m.id)),
         array_agg(m.id)
    into shown, ids
    from made m;
  perform internal.users_created(ids, 'cohort');
  perform internal.segments_lock(array(select json_array_elements_text(users_cohort.segment_ids)));
  for segment in
    select s.*
      from app.segments s
     where s.id in (select internal.as_uuid(w) from json_array_elements_text(users_cohort.segment_ids) w)
     order by s.id
  loop
    perform internal.segment_change(segment.id, ids, true);
  end loop;
  if exists (select from json_array_elements_text(users_cohort.segment_ids) w
              where not exists (select from app.segments s where s.id = internal.as_uuid(w))) then
    perform internal.invalid('segment_ids', 'must be segments of the project', 'INVALID_BODY');
  end if;
  perform internal.segments_touched();
  answer := internal.reply(201, shown);
  perform internal.idempotency_end(route, users_cohort.idempotency_key, answer);
  return answer;
end $$;
comment on function api.users_cohort is
  'Makes 1 to 1000 anonymous users that share properties, in which {{index}} counts from 0; label stands in properties._cohort. 201 {count, user_ids, users}.
   Refuses 400 INVALID_BODY, SEGMENT_NOT_STATIC, 409 IDEMPOTENCY_CONFLICT. Supplement B4.';
