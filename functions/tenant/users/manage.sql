-- Administration of single users, and lists of users.

create or replace function internal.user_admin_json(u app.users) returns json
language sql stable as $$
  select internal.json_merge(internal.user_json(user_admin_json.u), json_build_object(
    'is_banned', (user_admin_json.u).is_banned, 'muted_until', internal.iso((user_admin_json.u).muted_until),
    'created_at', internal.iso((user_admin_json.u).created_at),
    'updated_at', internal.iso((user_admin_json.u).updated_at)))
$$;
comment on function internal.user_admin_json is
  'An end user as administrators see it: the fields that users see, and is_banned, muted_until, created_at,
   updated_at.';

create or replace function internal.user_found(user_id text) returns app.users
language plpgsql stable as $$
declare
  them app.users;
begin
  if internal.as_uuid(user_found.user_id) is null then
    perform internal.invalid('userId', 'must be a uuid', 'INVALID_USER_ID');
  end if;
  select u.* into them from app.users u where u.id = internal.as_uuid(user_found.user_id);
  perform internal.check_found(them.id is not null, 'user');
  return them;
end $$;
comment on function internal.user_found is 'The user under an id. Refuses 400 INVALID_USER_ID, 404 NOT_FOUND.';

create or replace function internal.users_created(user_ids uuid[], method text) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'users are created by administrators');
  insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source)
  select internal.new_id(), i.id, 'svc.user.created', jsonb_build_object('method', users_created.method),
         internal.now(), internal.now(), 'system'
    from unnest(users_created.user_ids) as i (id)
   order by i.id;
end $$;
comment on function internal.users_created is
  'Emits svc.user.created for the users that an administrator created, in one statement.';

create or replace function internal.already_exists(constraint_name text) returns json
language sql immutable as $$
  select json_build_object('field', case already_exists.constraint_name
    when 'users_email_unique' then 'email' when 'users_phone_unique' then 'phone'
      when 'users_external_id_unique' then 'external_id'
    when 'users_anonymous_id_unique' then 'anonymous_id' end)
$$;
comment on function internal.already_exists is
  'Details of 409 USER_ALREADY_EXISTS: the field whose value another user has.';

create or replace function api.user_create(patch json, password_hash text default null) returns api.reply
language plpgsql volatile as $$
declare
  fields jsonb;
  them app.users;
  violated text;
begin
  -- null counts as absent for a new user
  select coalesce(jsonb_object_agg(f.key, f.value), '{}') into fields
    from jsonb_each(user_create.patch::jsonb) f
   where f.key in ('external_id', 'anonymous_id', 'email', 'phone', 'display_name', 'avatar_url', 'properties',
                   'is_banned')
     and f.value <> 'null';
  fields := internal.user_fields(fields, 'INVALID_BODY');
  if not fields ?| array['external_id', 'anonymous_id', 'email', 'phone'] then
    fields := fields || jsonb_build_object('anonymous_id', internal.new_anonymous_id());
  end if;
  perform internal.check_properties_size(fields -> 'properties', 'INVALID_BODY');
  insert into app.users (external_id, anonymous_id, email, phone, display_name, avatar_url, properties, is_banned)
  values (fields ->> 'external_id', fields ->> 'anonymous_id', fields ->> 'email', fields ->> 'phone',
          coalesce(fields ->> 'display_name', internal.generated_name()), fields ->> 'avatar_url',
          coalesce(fields -> 'properties', '{}'), coalesce((fields ->> 'is_banned')::boolean, false))
  returning * into them;
  perform internal.users_created(array[them.id], 'administrator');
  perform internal.user_credentials(them.id, user_create.patch::jsonb, user_create.password_hash, 'INVALID_BODY');
  select u.* into them from app.users u where u.id = them.id;
  return internal.reply(201, internal.user_admin_json(them));
exception when unique_violation then
  get stacked diagnostics violated = constraint_name;
  perform internal.fail(409, 'USER_ALREADY_EXISTS',
                        'Another user has this ' || (internal.already_exists(violated) ->> 'field') || '.',
                        internal.already_exists(violated));
end $$;
comment on function api.user_create is
  'Creates a user, 201; with a generated anonymous id when no identity is given, and banned from the start where
   is_banned says so, which auth.admin alone sends. verify_email, verify_phone and the
   hash of a password set how the user signs in. Refuses 400 INVALID_BODY, 409 USER_ALREADY_EXISTS with details.field.';

create or replace function internal.new_anonymous_id() returns text
language sql volatile as $$
  select 'anon_' || translate(internal.new_id()::text || gen_random_uuid(), '-', '')
$$;
comment on function internal.new_anonymous_id is 'Generates an anonymous id that cannot be guessed.';

create or replace function internal.segment_members(segment_id uuid) returns uuid[]
language sql stable as $$
  select array(select internal.segment_user_ids(segment_members.segment_id))
$$;
comment on function internal.segment_members is 'The members of a segment; none when it is unknown.';

select internal.list_declare('users_page', null::app.users, 'user_admin_json', '{last_seen_at,id}', is_counted => true);

select internal.count_declare('segment_members', 'app.segment_members', key => 'segment_id');

create or replace function internal.users_of_segment(segment_id uuid, page_offset bigint, page_limit bigint)
returns api.reply
language plpgsql stable as $$
declare
  is_known constant boolean := exists (select from app.segments s
                                        where s.id = users_of_segment.segment_id and s.is_active);
  total bigint := 0;
  shown json;
begin
  if is_known then
    total := coalesce(internal.list_counted('segment_members', 'app.segment_members', users_of_segment.segment_id),
                      (select count(*) from app.segment_members m where m.segment_id = users_of_segment.segment_id));
  end if;
  if (users_of_segment.page_offset + users_of_segment.page_limit) * 20 < total then
    -- a large segment: users are read in the order of the list until enough of them are members
    with page as materialized (
      select n.id
        from app.users n
       where exists (select from app.segment_members m
                      where (m.segment_id, m.app_user_id) = (users_of_segment.segment_id, n.id) offset 0)
       order by n.last_seen_at desc, n.id desc
       limit users_of_segment.page_limit offset users_of_segment.page_offset
    )
    select json_agg(internal.user_admin_json(u) order by u.last_seen_at desc, u.id desc) into shown from page p
      join app.users u on u.id = p.id;
  elsif is_known then
    with page as materialized (
      select n.id
        from app.segment_members m
        join app.users n on n.id = m.app_user_id
       where m.segment_id = users_of_segment.segment_id
       order by n.last_seen_at desc, n.id desc
       limit users_of_segment.page_limit offset users_of_segment.page_offset
    )
    select json_agg(internal.user_admin_json(u) order by u.last_seen_at desc, u.id desc) into shown from page p
      join app.users u on u.id = p.id;
  end if;
  return internal.reply_page(shown, total, users_of_segment.page_offset, users_of_segment.page_limit);
end $$;
comment on function internal.users_of_segment is
  'A page of the stored members of a segment, newest-active first. Empty for an unknown or inactive segment.';

create or replace function internal.users_beginning(term text) returns table (id uuid, last_seen_at timestamptz)
language sql stable as $$
  -- bounds that an index can serve, even in a generic plan
  select n.id, n.last_seen_at
    from app.users n
   where n.email operator(pg_catalog.~>=~) lower(users_beginning.term)
     and n.email operator(pg_catalog.~<~) (lower(users_beginning.term) || chr(1114111))
  union
  select n.id, n.last_seen_at
    from app.users n
   where lower(n.external_id) operator(pg_catalog.~>=~) lower(users_beginning.term)
     and lower(n.external_id) operator(pg_catalog.~<~) (lower(users_beginning.term) || chr(1114111))
     and n.external_id is not null
  union
  select n.id, n.last_seen_at
    from app.users n
   where lower(n.display_name) operator(pg_catalog.~>=~) lower(users_beginning.term)
     and lower(n.display_name) operator(pg_catalog.~<~) (lower(users_beginning.term) || chr(1114111))
$$;
comment on function internal.users_beginning is
  'Users whose email, external_id or display_name begins with a text, ignoring case.';

create or replace function internal.users_containing(pattern text) returns table (id uuid, last_seen_at timestamptz)
language sql stable as $$
  select n.id, n.last_seen_at
    from app.users n
   -- addresses are stored in lower case; ilike would fold each of them again
   where n.email like lower(users_containing.pattern) or n.external_id ilike users_containing.pattern
      or n.display_name ilike users_containing.pattern
$$;
comment on function internal.users_containing is
  'Users whose email, external_id or display_name matches a pattern, ignoring case. No security definer and no settings,
   so that Postgres inlines it.';

create or replace function internal.users_containing_count(pattern text) returns bigint
-- of a generic plan, and under row-level security, Postgres would expect few matches of any pattern
language plpgsql stable security definer set search_path = '' set plan_cache_mode = 'force_custom_plan' as $$
begin
  perform internal.check_caller('developer', 'users are searched by administrators');
  -- texts that many users match are mostly parts of addresses: these are counted in their index alone
  return (select count(*) from app.users n where n.email like lower(users_containing_count.pattern))
       + (select count(*)
            from app.users n
           where (n.external_id ilike users_containing_count.pattern
                  or n.display_name ilike users_containing_count.pattern)
             and (n.email is null or n.email not like lower(users_containing_count.pattern)));
end $$;
comment on function internal.users_containing_count is
  'How many users internal.users_containing finds, for administrators.';

create or replace function internal.users_beginning_count(term text) returns bigint
language plpgsql stable security definer set search_path = '' set plan_cache_mode = 'force_custom_plan' as $$
declare
  first constant text := lower(users_beginning_count.term);
  behind constant text := first || chr(1114111);
begin
  perform internal.check_caller('developer', 'users are searched by administrators');
  return (
    select count(*)
      from app.users n
     where n.email operator(pg_catalog.~>=~) first and n.email operator(pg_catalog.~<~) behind
        or lower(n.external_id) operator(pg_catalog.~>=~) first and lower(n.external_id) operator(pg_catalog.~<~) behind
        or lower(n.display_name) operator(pg_catalog.~>=~) first
        and lower(n.display_name) operator(pg_catalog.~<~) behind);
end $$;
comment on function internal.users_beginning_count is
  'How many users internal.users_beginning finds, for administrators.';

create or replace function internal.users_lately_containing(pattern text, n bigint) returns uuid[]
language sql stable as $$
  select array(
    select u.id
      from (select n.* from app.users n order by n.last_seen_at desc, n.id desc limit 2000) u
     where u.email like lower(users_lately_containing.pattern) or u.external_id ilike users_lately_containing.pattern
        or u.display_name ilike users_lately_containing.pattern
     order by u.last_seen_at desc, u.id desc
     limit users_lately_containing.n)
$$;
comment on function internal.users_lately_containing is
  'The first n of internal.users_containing in the order of the list, among the 2,000 newest-active users. Of
   internal.users_beginning for a pattern without a % at its beginning.';

create or replace function internal.users_exactly(term text) returns uuid[]
language sql stable as $$
  -- in an address a + that is not encoded is a space
  select array(select u.id from app.users u where u.id = internal.as_uuid(users_exactly.term)
               union
               select u.id from app.users u where u.phone in (users_exactly.term, '+' || ltrim(users_exactly.term)))
$$;
comment on function internal.users_exactly is 'The users whose id or phone number, with or without its +, is a text.';

create or replace function internal.users_sorted(sort text, is_banned boolean, last_seen_since timestamptz, ids uuid[],
                                                 page_offset bigint, page_limit bigint) returns api.reply
language plpgsql stable as $$
declare
  -- literals, not parameters: only so a plan finds the condition of users_banned
  conditions constant text := concat_ws(' and ', 'true',
    case users_sorted.is_banned when true then 'u.is_banned' when false then 'not u.is_banned' end,
    case when users_sorted.last_seen_since is not null then 'u.last_seen_at >= $1' end,
    case when users_sorted.ids is not null then 'u.id = any ($2)' end);
  order_of constant text := case users_sorted.sort
    when 'created_at' then 'u.created_at, u.id'
    when '-created_at' then 'u.created_at desc, u.id desc'
    when 'last_seen_at' then 'u.last_seen_at, u.id'
    -- the order of the index users_named
    when 'display_name' then 'lower(u.display_name) using operator(pg_catalog.~<~), u.id'
    when '-display_name' then 'lower(u.display_name) using operator(pg_catalog.~>~), u.id desc'
    else 'u.last_seen_at desc, u.id desc' end;
  total bigint := case when conditions = 'true' then internal.list_counted('users_page', 'app.users') end;
  page uuid[];
  shown json;
begin
  if total is null then
    execute format('select count(*) from app.users u where %s', conditions) into total
      using users_sorted.last_seen_since, users_sorted.ids;
  end if;
  execute format('select array(select u.id from app.users u where %s order by %s limit $3 offset $4)',
                 conditions, order_of)
     into page
    using users_sorted.last_seen_since, users_sorted.ids, users_sorted.page_limit, users_sorted.page_offset;
  select json_agg(internal.user_admin_json(u) order by p.n) into shown
    from unnest(page) with ordinality p (id, n)
    join app.users u on u.id = p.id;
  return internal.reply_page(shown, total, users_sorted.page_offset, users_sorted.page_limit);
end $$;
comment on function internal.users_sorted is
  'A page of users in an order, filtered; ids are those of a search or a segment, or null. Each order is that of an
   index. Filters count the users whom they leave: by users_banned, by users_last_seen, or by all rows for those that
   are not banned.';

create or replace function api.users_list(page_limit bigint, page_offset bigint, search text default null,
                                          segment_id uuid default null, sort text default '-last_seen_at',
                                          is_banned boolean default null,
                                          last_seen_since timestamptz default null)
returns api.reply
language plpgsql stable as $$
declare
  term constant text := coalesce(users_list.search, '');
  -- trigrams cannot find one or two letters: the beginnings of the fields are searched
  is_short constant boolean := term ~ '^[A-Za-z0-9]{1,2}$';
  pattern constant text := case when is_short then '' else '%' end || regexp_replace(users_list.search, '([\\%_])',
                                        '\\\1', 'g') || '%';
  members uuid[];
  hits uuid[];
  exact uuid[];
  total bigint;
  shown json;
begin
  if users_list.sort <> '-last_seen_at' or users_list.is_banned is not null
     or users_list.last_seen_since is not null then
    if term <> '' then
      hits := internal.users_exactly(term) || case
        when is_short then array(select b.id from internal.users_beginning(term) b)
        else array(select c.id from internal.users_containing(pattern) c) end;
    end if;
    if users_list.segment_id is not null then
      members := internal.segment_members(users_list.segment_id);
      hits := case when term = '' then members
                   else array(select h from unnest(hits) h intersect select m from unnest(members) m) end;
    end if;
    return internal.users_sorted(users_list.sort, users_list.is_banned, users_list.last_seen_since, hits,
                                 users_list.page_offset, users_list.page_limit);
  end if;
  if term = '' and users_list.segment_id is null then
    return internal.users_page(users_list.page_offset, users_list.page_limit);
  elsif term = '' then
    return internal.users_of_segment(users_list.segment_id, users_list.page_offset, users_list.page_limit);
  end if;
  exact := internal.users_exactly(term);
  if exact = '{}' and users_list.segment_id is null and users_list.page_offset + users_list.page_limit <= 1000 then
    -- a common text is found among the newest-active users: then hundreds of thousands of matches need not be sorted
    hits := internal.users_lately_containing(pattern, users_list.page_offset + users_list.page_limit);
    if cardinality(hits) = users_list.page_offset + users_list.page_limit then
      total := case when is_short then internal.users_beginning_count(term)
                    else internal.users_containing_count(pattern) end;
    end if;
  end if;
  if total is null and is_short then
    hits := array(select b.id from internal.users_beginning(term) b order by b.last_seen_at desc, b.id desc);
  elsif total is null then
    hits := array(select c.id from internal.users_containing(pattern) c order by c.last_seen_at desc, c.id desc);
  end if;
  hits := exact || array(
    select h.id from unnest(hits) with ordinality h (id, n) where h.id <> all (exact) order by h.n);
  if users_list.segment_id is not null then
    members := internal.segment_members(users_list.segment_id);
    hits := array(select h.id from unnest(hits) with ordinality h (id, n) where h.id = any (members) order by h.n);
  end if;
  select json_agg(internal.user_admin_json(u) order by p.n) into shown
    from unnest(hits[users_list.page_offset + 1 : users_list.page_offset + users_list.page_limit]) with ordinality p (
      id, n)
    join app.users u on u.id = p.id;
  return internal.reply_page(shown, coalesce(total, cardinality(hits)), users_list.page_offset, users_list.page_limit);
end $$;
comment on function api.users_list is
  'Users, newest-active first, or in the order of sort. search finds a part of email, external_id or display_name,
   ignoring case, and treats % and _ literally; one or two of a-z and 0-9 match only the beginnings of these; an id or a
   phone number finds its user. The duration of a search grows with the number of matches.';

create or replace function internal.user_sections(user_id uuid) returns json
language plpgsql stable as $$
declare
  section record;
  part json;
  sections json := json_build_object('streaks', internal.user_streaks_json(user_sections.user_id));
  has_entitlements boolean := false;
begin
  for section in
    select p.proname, substr(p.proname, length('user_section__') + 1) as name
      from pg_catalog.pg_proc p
     where p.proname like 'user\_section\_\_%' and p.pronamespace = to_regnamespace('internal')
     order by p.proname
  loop
    execute format('select internal.%I($1)', section.proname) into part using user_sections.user_id;
    sections := internal.json_merge(sections, json_build_object(section.name, part));
    has_entitlements := has_entitlements or section.name = 'entitlements';
  end loop;
  return case when has_entitlements then sections else internal.json_merge(sections, '{"entitlements": []}') end;
end $$;
comment on function internal.user_sections is
  'The sections that areas add to an administrator''s view of a user: streaks, and the result of every function
   internal.user_section__<name>(uuid) returns json.';

create or replace function api.user_get(user_id text) returns api.reply
language plpgsql stable as $$
declare
  them constant app.users := internal.user_found(user_get.user_id);
begin
  return internal.reply(200, internal.json_merge(internal.user_admin_json(them), internal.user_sections(them.id)));
end $$;
comment on function api.user_get is
  'A user with streaks, entitlements and the sections of other areas. Refuses 400 INVALID_USER_ID, 404 NOT_FOUND.';

create or replace function internal.is_event_from_outside(e app.engagement_events) returns boolean
language sql stable as $$
  select (is_event_from_outside.e).source <> 'system'
$$;
comment on function internal.is_event_from_outside is
  'Whether a client sent an event, as opposed to one that Trellis emitted.';

select internal.list_declare('user_events_page', null::app.engagement_events, 'event_json', '{occurred_at,id}',
                             required => '{app_user_id}');
select internal.list_declare('user_sent_events_page', null::app.engagement_events, 'event_json', '{occurred_at,id}',
                             required => '{app_user_id}',
                             condition => 'is_event_from_outside');

create or replace function api.user_events(user_id text, include_system boolean, page_limit bigint, page_offset bigint)
returns api.reply
language plpgsql stable as $$
declare
  them constant app.users := internal.user_found(user_events.user_id);
begin
  if user_events.include_system then
    return internal.user_events_page(them.id, user_events.page_offset, user_events.page_limit);
  end if;
  return internal.user_sent_events_page(them.id, user_events.page_offset, user_events.page_limit);
end $$;
comment on function api.user_events is
  'A user''s events, most recent first; system events (svc.*) only with include_system. Refuses 400 INVALID_USER_ID, 404
   NOT_FOUND.';

create or replace function internal.users_set(user_ids uuid[], fields jsonb[]) returns void
language sql volatile as $$
  update app.users u
     set display_name = case when w.f ? 'display_name' then w.f ->> 'display_name' else u.display_name end,
         avatar_url = case when w.f ? 'avatar_url' then w.f ->> 'avatar_url' else u.avatar_url end,
         external_id = case when w.f ? 'external_id' then w.f ->> 'external_id' else u.external_id end,
         email = case when w.f ? 'email' then w.f ->> 'email' else u.email end,
         phone = case when w.f ? 'phone' then w.f ->> 'phone' else u.phone end,
         timezone = case when w.f ? 'timezone' then w.f ->> 'timezone' else u.timezone end,
         properties = case when w.f ? 'properties' then w.f -> 'properties' else u.properties end,
         is_banned = case when w.f ? 'is_banned' then (w.f ->> 'is_banned')::boolean else u.is_banned end,
         muted_until = case when w.f ? 'muted_until' then internal.as_time(w.f ->> 'muted_until') else u.muted_until end
    from unnest(users_set.user_ids, users_set.fields) as w (id, f)
   where u.id = w.id and w.f <> '{}'
$$;
comment on function internal.users_set is
  'Writes validated fields of users, for administrators; properties are replaced. Each user may occur once. Locks the
   rows.';

create or replace function internal.user_set(user_id uuid, fields jsonb) returns app.users
language plpgsql volatile as $$
declare
  them app.users;
begin
  perform internal.users_set(array[user_set.user_id], array[user_set.fields]);
  select u.* into them from app.users u where u.id = user_set.user_id;
  return them;
end $$;
comment on function internal.user_set is 'internal.users_set for one user; returns the user as written.';

create or replace function api.user_update(user_id uuid, patch json, password_hash text default null,
                                           merge_properties boolean default false)
returns api.reply
language plpgsql volatile as $$
declare
  fields jsonb;
  them app.users := internal.user_found(user_update.user_id::text);
  violated text;
begin
  select coalesce(jsonb_object_agg(f.key, f.value), '{}') into fields
    from jsonb_each(user_update.patch::jsonb) f
   where f.key in ('display_name', 'avatar_url', 'external_id', 'email', 'phone', 'timezone', 'properties', 'is_banned',
                   'muted_until');
  fields := internal.user_fields(fields, 'VALIDATION_ERROR');
  if fields <> '{}' then
    if user_update.merge_properties and fields ? 'properties' then
      -- read under the lock: another request may merge at the same time
      select u.* into them from app.users u where u.id = them.id for update;
      fields := fields || jsonb_build_object('properties', internal.merged_properties(them.properties,
                                                                                      fields -> 'properties'));
    end if;
    perform internal.check_properties_size(fields -> 'properties', 'VALIDATION_ERROR');
    them := internal.user_set(them.id, fields);
    perform internal.check_found(them.id is not null, 'user');
  end if;
  perform internal.user_credentials(them.id, user_update.patch::jsonb, user_update.password_hash, 'VALIDATION_ERROR');
  select u.* into them from app.users u where u.id = them.id;
  return internal.reply(200, internal.user_admin_json(them));
exception when unique_violation then
  get stacked diagnostics violated = constraint_name;
  perform internal.fail(409, 'USER_ALREADY_EXISTS',
                        'Another user has this ' || (internal.already_exists(violated) ->> 'field') || '.',
                        internal.already_exists(violated));
end $$;
comment on function api.user_update is
  'Changes the given fields of a user. properties are replaced, or merged at the top level; a changed email or phone
   becomes unverified unless verify_email or verify_phone says otherwise; a new password ends the user''s sessions,
   and a ban makes their tokens invalid. Refuses 400 VALIDATION_ERROR, 404 NOT_FOUND, 409 USER_ALREADY_EXISTS with
   details.field.';

create or replace function internal.user_session_start(user_id uuid, sid uuid, refresh_hash text, device jsonb)
returns app.users
language plpgsql volatile security definer set search_path = '' as $$
declare
  them app.users;
begin
  perform internal.check_caller('developer', 'sessions for testing are started by administrators');
  update app.users u set last_seen_at = internal.now() where u.id = user_session_start.user_id returning u.* into them;
  perform internal.check_found(them.id is not null, 'user');
  if them.is_banned then
    perform internal.fail(403, 'USER_BANNED', 'This user is banned.');
  end if;
  insert into app.user_sessions (id, app_user_id, refresh_hash, original_anonymous_id, is_test, expires_at, platform,
                                 app_version, ip_country)
  values (user_session_start.sid, them.id, user_session_start.refresh_hash, them.anonymous_id, true,
          internal.now() + interval '90 days',
          user_session_start.device ->> 'platform', user_session_start.device ->> 'app_version',
          user_session_start.device ->> 'ip_country');
  perform internal.emit(them.id, 'svc.user.signed_in', '{"method": "administrator"}');
  perform internal.audit('users.session', 'users', them.id::text);
  return them;
end $$;
comment on function internal.user_session_start is
  'A sign-in session for a developer''s tests, with the usual lifetime; it ends when the project leaves development.
   Refuses 403 USER_BANNED, 404 NOT_FOUND. Audited as users.session.';

create or replace function api.user_session(user_id uuid, environment text, sid uuid, refresh_hash text,
                                            device jsonb default null)
returns api.reply
language plpgsql volatile as $$
begin
  -- never for users of a project in production
  if user_session.environment is distinct from 'development' then
    perform internal.fail(403, 'FORBIDDEN', 'Test sessions exist only in projects with the environment development.');
  end if;
  return internal.reply(201, json_build_object('user', internal.user_json(internal.user_session_start(
    user_session.user_id, user_session.sid, user_session.refresh_hash, user_session.device)), 'is_new_user', false));
end $$;
comment on function api.user_session is
  '{user, is_new_user} of a test session, 201. environment is the project''s, which the server reads from control and
   passes. Refuses 403 FORBIDDEN outside development, USER_BANNED, 404 NOT_FOUND.';
