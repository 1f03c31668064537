-- Many users at once: bulk-update validates each item separately, cohorts are created in one statement.

create or replace function internal.naming_part(item jsonb, field text) returns text
language sql immutable parallel safe as $$
  select case when jsonb_typeof(naming_part.item -> naming_part.field) = 'string'
                then naming_part.item ->> naming_part.field end
$$;
comment on function internal.naming_part is
  'A string field by which an item identifies a user, or null: the number 5 is not the external id "5".';

create or replace function internal.user_named(item jsonb) returns uuid
language sql stable as $$
  select u.id from app.users u where u.id = internal.as_uuid(internal.naming_part(user_named.item, 'user_id'))
  union all
  select u.id from app.users u where u.external_id = internal.naming_part(user_named.item, 'external_id')
  union all
  select u.id from app.users u where u.anonymous_id = internal.naming_part(user_named.item, 'anonymous_id')
$$;
comment on function internal.user_named is
  'The user whom an item identifies by user_id, external_id or anonymous_id, or null.';

create or replace function internal.users_named(items jsonb) returns table (n int, item jsonb, whose uuid)
language sql stable as $$
  -- three joins: with "or" in one join, Postgres scans all users
  select e.n::int, e.item, coalesce(i.id, x.id, a.id)
    from jsonb_array_elements(users_named.items) with ordinality as e (item, n)
    left join app.users i on i.id = internal.as_uuid(internal.naming_part(e.item, 'user_id'))
    left join app.users x on x.external_id = internal.naming_part(e.item, 'external_id')
    left join app.users a on a.anonymous_id = internal.naming_part(e.item, 'anonymous_id')
$$;
comment on function internal.users_named is
  'The items of a bulk update, numbered from 1, with the user whom each identifies, or null.';

create or replace function internal.bulk_contested(items jsonb) returns uuid[]
language sql stable as $$
  with wanted as (
    select d.whose, f.key as field,
           case f.key when 'email' then internal.email_normal(f.value #>> '{}') else f.value #>> '{}' end as value
      from internal.users_named(bulk_contested.items) d
     cross join lateral jsonb_each(case when jsonb_typeof(d.item -> 'set') = 'object' then d.item -> 'set'
                                        else '{}' end) f
     where f.key in ('external_id', 'email', 'phone') and jsonb_typeof(f.value) = 'string' and d.whose is not null
  ), held as (
    select w.*, coalesce(x.id, e.id, p.id) as holder
      from wanted w
      left join app.users x on w.field = 'external_id' and x.external_id = w.value
      left join app.users e on w.field = 'email' and e.email = w.value
      left join app.users p on w.field = 'phone' and p.phone = w.value
  ), contested as (
    select h.field, h.value, max(h.holder::text)::uuid as holder
      from held h
     group by h.field, h.value
    having count(distinct h.whose) > 1 or bool_or(h.holder <> h.whose)
  )
  select array(select h.whose from held h join contested c on (c.field, c.value) = (h.field, h.value)
               union
               select c.holder from contested c where c.holder is not null)
$$;
comment on function internal.bulk_contested is
  'Users whose items in a bulk update conflict on a unique value: another user has it, or two items set it. The result
   of these items depends on their order.';

create or replace function internal.bulk_fields(item jsonb, whose uuid, properties jsonb) returns jsonb
language plpgsql volatile as $$
declare
  i constant jsonb := bulk_fields.item;
  fields jsonb := '{}';
  merged jsonb;
begin
  if jsonb_typeof(i) <> 'object' then
    perform internal.fail(400, 'INVALID_BODY', 'An item must be an object.');
  end if;
  -- null counts as absent; a value that is not a string identifies nobody, and must not be ignored
  if array_remove(array_remove(array[jsonb_typeof(i -> 'user_id'), jsonb_typeof(i -> 'external_id'),
                                     jsonb_typeof(i -> 'anonymous_id')], null),
                  'null') is distinct from array['string'] then
    perform internal.invalid('user_id', 'name the user by one of user_id, external_id and anonymous_id',
                             'INVALID_BODY');
  end if;
  if jsonb_typeof(coalesce(i -> 'properties', '{}')) <> 'object' then
    perform internal.invalid('properties', 'must be an object', 'INVALID_BODY');
  end if;
  if jsonb_typeof(coalesce(i -> 'set', '{}')) <> 'object' then
    perform internal.invalid('set', 'must be an object', 'INVALID_BODY');
  end if;
  if i ? 'unset_properties'
     and (jsonb_typeof(i -> 'unset_properties') <> 'array'
          or jsonb_path_exists(i -> 'unset_properties', '$[*] ? (@.type() <> "string")')) then
    perform internal.invalid('unset_properties', 'must be a list of strings', 'INVALID_BODY');
  end if;
  if bulk_fields.whose is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such user.');
  end if;
  if i ? 'set' then
    select coalesce(jsonb_object_agg(f.key, f.value), '{}') into fields
      from jsonb_each(i -> 'set') f
     where f.key in ('display_name', 'avatar_url', 'external_id', 'email', 'phone', 'timezone');
    fields := internal.user_fields(fields, 'INVALID_BODY');
  end if;
  if i ?| array['properties', 'unset_properties'] then
    -- expressions without a query are evaluated without the executor, in a fifth of the time for each of a thousand
    -- items
    if jsonb_path_exists(coalesce(i -> 'properties', '{}'), '$.* ? (@ == null)') then
      merged := internal.merged_properties(bulk_fields.properties, i -> 'properties');
    else
      merged := bulk_fields.properties || coalesce(i -> 'properties', '{}');
    end if;
    if i ? 'unset_properties' then
      merged := merged - array(select jsonb_array_elements_text(i -> 'unset_properties'));
    end if;
    perform internal.check_properties_size(merged, 'INVALID_BODY');
    fields := fields || jsonb_build_object('properties', merged);
  end if;
  return fields;
end $$;
comment on function internal.bulk_fields is
  'The fields that one item of a bulk update sets on its user, who has these properties. Refuses 400 INVALID_BODY, 404
   NOT_FOUND. Writes nothing.';

create or replace function internal.bulk_segments(item jsonb, field text) returns uuid[]
language plpgsql volatile as $$
declare
  names constant jsonb := coalesce(nullif(bulk_segments.item -> bulk_segments.field, 'null'), '[]');
  named record;
  segments uuid[] := '{}';
begin
  if jsonb_typeof(names) <> 'array' or jsonb_path_exists(names, '$[*] ? (@.type() <> "string")') then
    perform internal.invalid(bulk_segments.field, 'must be a list of ids or keys of segments', 'INVALID_BODY');
  end if;
  -- the limit on segments of a project
  if jsonb_array_length(names) > 200 then
    perform internal.invalid(bulk_segments.field, 'must have at most 200 elements', 'INVALID_BODY');
  end if;
  for named in
    select coalesce(i.id, k.id) as id, coalesce(i.kind, k.kind) as kind
      from (select t.name, min(t.n) as n from jsonb_array_elements_text(names) with ordinality as t (name, n)
             group by t.name) w
      left join app.segments i on i.id = internal.as_uuid(w.name)
      left join app.segments k on k.key = w.name and internal.as_uuid(w.name) is null
     order by w.n
  loop
    if named.id is null then
      perform internal.fail(404, 'NOT_FOUND', 'There is no such segment.');
    elsif named.kind <> 'static' then
      perform internal.fail(400, 'SEGMENT_NOT_STATIC',
                            'The members of a dynamic segment follow from its rules: name a static segment.');
    end if;
    segments := segments || named.id;
  end loop;
  return segments;
end $$;
comment on function internal.bulk_segments is
  'The static segments that a field of an item names, by id or key. Refuses 400 INVALID_BODY, SEGMENT_NOT_STATIC, 404
   NOT_FOUND.';

create or replace function internal.bulk_apply(items jsonb, is_careful boolean, out results json[], out updated int,
                                               out moved_segments uuid[], out moved_users uuid[],
                                               out moved_in boolean[])
language plpgsql volatile as $$
declare
  contested constant uuid[] := case when not bulk_apply.is_careful and jsonb_path_exists(bulk_apply.items, '$[*].set')
                                    then internal.bulk_contested(bulk_apply.items) else '{}' end;
  each record;
  whose uuid;
  properties jsonb;
  fields jsonb;
  joins uuid[];
  leaves uuid[];
  said text;
  refusal text;
  violated text;
  -- the users whose items are folded, and the fields that are written to each at the end
  users uuid[] := '{}';
  writes jsonb[] := '{}';
begin
  results := array_fill(null::json, array[jsonb_array_length(bulk_apply.items)]);
  updated := 0;
  moved_segments := '{}';
  moved_users := '{}';
  moved_in := '{}';
  for each in
    select d.n, d.item, d.whose, u.properties, bulk_apply.is_careful or d.whose = any (contested) as is_written_at_once
      from internal.users_named(bulk_apply.items) d
      left join app.users u on u.id = d.whose
     -- items of one user are adjacent; items that depend on other users' items keep the order of the request
     order by case when bulk_apply.is_careful or d.whose = any (contested) then null else d.whose end nulls first, d.n
  loop
    begin
      if each.is_written_at_once then
        whose := case when jsonb_typeof(each.item) = 'object' then internal.user_named(each.item) end;
        select u.properties into properties from app.users u where u.id = whose for no key update;
        whose := case when found then whose end;
      elsif each.whose is distinct from users[cardinality(users)] or each.whose is null then
        whose := each.whose;
        properties := each.properties;
        if whose is not null then
          users := users || whose;
          writes := writes || jsonb '{}';
        end if;
      end if;
      fields := internal.bulk_fields(each.item, whose, properties);
      joins := '{}';
      leaves := '{}';
      if each.item ?| array['add_segments', 'remove_segments'] then
        joins := internal.bulk_segments(each.item, 'add_segments');
        leaves := internal.bulk_segments(each.item, 'remove_segments');
      end if;
      if fields <> '{}' then
        if each.is_written_at_once then
          perform internal.users_set(array[whose], array[fields]);
        else
          writes[cardinality(writes)] := writes[cardinality(writes)] || fields;
          properties := coalesce(fields -> 'properties', properties);
        end if;
      end if;
      updated := updated + 1;
      if cardinality(joins) + cardinality(leaves) > 0 then
        moved_segments := moved_segments || joins || leaves;
        moved_users := moved_users || array_fill(whose, array[cardinality(joins) + cardinality(leaves)]);
        moved_in := moved_in || array_fill(true, array[cardinality(joins)]) || array_fill(false,
                                        array[cardinality(leaves)]);
      end if;
      results[each.n] := json_build_object('index', each.n - 1, 'user_id', whose, 'status', 'updated');
    exception
      when sqlstate 'TR000' then
        get stacked diagnostics said = message_text, refusal = pg_exception_detail;
        results[each.n] := json_build_object('index', each.n - 1, 'user_id', whose, 'status', 'failed',
                                             'code', refusal::json ->> 'code', 'message', said);
      when unique_violation then
        get stacked diagnostics violated = constraint_name;
        results[each.n] := json_build_object('index', each.n - 1, 'user_id', whose, 'status', 'failed',
                                             'code', 'USER_ALREADY_EXISTS',
          'message', 'Another user has this ' || (internal.already_exists(violated) ->> 'field') || '.');
      when data_exception then
        results[each.n] := json_build_object('index', each.n - 1, 'user_id', whose, 'status', 'failed',
                                             'code', 'INVALID_BODY',
                                             'message', 'A value cannot be stored.');
    end;
  end loop;
  perform internal.users_set(users, writes);
end $$;
comment on function internal.bulk_apply is
  'Applies the items of a bulk update. The items of one user are folded into one write, and all writes are one
   statement; items that depend on the order of others (with is_careful all) are written separately, each in a
   savepoint. Returns the results, and the users who join (moved_in) or leave a segment, as sent. Raises
   unique_violation when a concurrent transaction took a value. The users must be locked.';

create or replace function api.users_bulk_update(updates json) returns api.reply
language plpgsql volatile as $$
declare
  items constant jsonb := users_bulk_update.updates::jsonb;
  sets_unique boolean;
  -- if items set external ids and others identify users by them, the order of the items matters
  is_careful boolean;
  applied record;
  failed int;
  segment record;
begin
  if jsonb_array_length(items) > 1000 then
    perform internal.fail(400, 'BATCH_TOO_LARGE', 'A bulk update has at most 1000 users.',
                          '{"field": "updates", "reason": "must have 1 to 1000 items"}');
  end if;
  select bool_or(e -> 'set' ?| array['external_id', 'email', 'phone']),
         bool_or(e -> 'set' ? 'external_id') and bool_or(e ? 'external_id')
    into sets_unique, is_careful
    from jsonb_array_elements(items) e
   where jsonb_typeof(e) = 'object';
  if sets_unique then
    -- serialised: two updates that exchange addresses would deadlock
    perform internal.advisory_lock('users bulk update');
  end if;
  -- in the lock order of users; the users that the items identify are read again under the locks
  perform u.id from app.users u where u.id = any (array(select d.whose from internal.users_named(items) d))
    order by u.id for no key update;
  -- then segments: locked, so that they stay as they were validated
  perform internal.segments_lock(array(
    select distinct w.name #>> '{}'
      from jsonb_array_elements(items) e
     cross join lateral (values (e.value -> 'add_segments'), (e.value -> 'remove_segments')) l (names)
     cross join lateral jsonb_array_elements(case when jsonb_typeof(l.names) = 'array' then l.names
                                                  else '[]' end) w (name)));
  begin
    select a.* into applied from internal.bulk_apply(items, coalesce(is_careful, false)) a;
  exception when unique_violation or data_exception then
    select a.* into applied from internal.bulk_apply(items, true) a;
  end;
  failed := cardinality(applied.results) - applied.updated;
  -- the last change of a user and a segment applies; each segment is written once
  for segment in
    select m.id, m.is_added, array_agg(m.whose) as users
      from (select distinct on (e.id, e.whose) e.id, e.whose, e.is_added
              from unnest(applied.moved_segments, applied.moved_users, applied.moved_in) with ordinality as e (id,
                                        whose, is_added, n)
             order by e.id, e.whose, e.n desc) m
     group by m.id, m.is_added
     order by m.id, m.is_added
  loop
    perform internal.segment_change(segment.id, segment.users, segment.is_added);
  end loop;
  perform internal.segments_enqueue_refresh();
  perform internal.audit_act('users.bulk_update', 'users', null,
                             json_build_object('updated', json_build_array(null, applied.updated),
                                               'failed', json_build_array(null, failed)), 200);
  return internal.reply(200, json_build_object('updated', applied.updated, 'failed', failed,
                                               'results', to_json(applied.results)));
end $$;
comment on function api.users_bulk_update is
  'Updates up to 1000 users: {updated, failed, results}. Items are independent: the error of an item is reported in its
   result, and does not stop the others. Refuses 400 BATCH_TOO_LARGE. Locks the users in the order of their ids, then
   the segments in theirs; updates that set email, phone or external_id are serialised.';

create or replace function internal.with_index(value jsonb, index int) returns jsonb
language plpgsql immutable parallel safe as $$
begin
  return case jsonb_typeof(with_index.value)
    when 'string' then to_jsonb(replace(with_index.value #>> '{}', '{{index}}', with_index.index::text))
    when 'object' then (select coalesce(jsonb_object_agg(e.key, internal.with_index(e.value, with_index.index)), '{}')
                          from jsonb_each(with_index.value) e)
    when 'array' then (select coalesce(jsonb_agg(internal.with_index(e.value, with_index.index) order by e.n), '[]')
                         from jsonb_array_elements(with_index.value) with ordinality as e (value, n))
    else with_index.value
  end;
end $$;
comment on function internal.with_index is
  'A value with {{index}} replaced in all of its strings; keys stay as they are.';

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
           'users', json_agg(json_build_object('id', m.id, 'anonymous_id', m.anonymous_id,
                                               'display_name', m.display_name) order by m.id)),
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
  perform internal.segments_enqueue_refresh();
  answer := internal.reply(201, shown);
  perform internal.idempotency_end(route, users_cohort.idempotency_key, answer);
  return answer;
end $$;
comment on function api.users_cohort is
  'Creates 1 to 1000 anonymous users that share properties, in which {{index}} counts from 0; label is stored in
   properties._cohort. 201 {count, user_ids, users}. Refuses 400 INVALID_BODY, SEGMENT_NOT_STATIC, 409
   IDEMPOTENCY_CONFLICT.';
