-- Segments: definitions, previews and history.
comment on constraint segments_key_unique on app.segments is '409 CONFLICT key: A segment with this key exists.';
comment on constraint segments_rules_when_dynamic on app.segments is
  '400 VALIDATION_ERROR rules: are required of a dynamic segment, and must be left out of a static one.';

create or replace function internal.segment_json(s app.segments) returns json
language sql stable as $$
  select json_build_object(
    'id', (segment_json.s).id, 'key', (segment_json.s).key, 'name', (segment_json.s).name,
      'description', (segment_json.s).description,
    'kind', (segment_json.s).kind, 'rules', (segment_json.s).rules,
    'member_count', internal.segment_size((segment_json.s).id),
    'last_evaluated_at', internal.iso(t.last_evaluated_at), 'is_active', (segment_json.s).is_active,
    'created_at', internal.iso((segment_json.s).created_at), 'updated_at', internal.iso((segment_json.s).updated_at))
    from (select) nothing
    left join app.segment_states t on t.segment_id = (segment_json.s).id
$$;
comment on function internal.segment_json is 'A segment as every answer shows it.';

create or replace function internal.segment_rules(rules json) returns jsonb
language plpgsql volatile as $$
begin
  if json_typeof(segment_rules.rules) is null or json_typeof(segment_rules.rules) = 'null' then
    return null;
  elsif not internal.is_storable_json(segment_rules.rules) then
    perform internal.invalid('rules', 'holds a character or a number that cannot be stored, or nests too deeply');
  elsif internal.json_size(segment_rules.rules::text) > 65536 then
    perform internal.invalid('rules', 'must have at most 64 KB');
  end if;
  return segment_rules.rules::jsonb;
end $$;
comment on function internal.segment_rules is
  'Rules as they are stored, not yet compiled. Refuses 400 VALIDATION_ERROR.';

create or replace function api.segment_create(key text, name text, kind text default 'dynamic',
                                              description text default null, rules json default null,
                                              is_active boolean default true)
returns api.reply
language plpgsql volatile as $$
declare
  made app.segments;
begin
  -- the lock of the compilation, taken before the count, so that two at once cannot pass the limit together
  perform internal.advisory_lock('segments');
  perform internal.definition_limit_check(null::app.segments);
  insert into app.segments as s (key, name, kind, description, rules, is_active)
  values (segment_create.key, segment_create.name, segment_create.kind, segment_create.description,
          internal.segment_rules(segment_create.rules), segment_create.is_active)
  returning s.* into made;
  return internal.reply(201, internal.segment_json(made));
end $$;
comment on function api.segment_create is
  'A new segment, 201. Refuses 400 VALIDATION_ERROR, 409 CONFLICT (the key is taken), LIMIT_REACHED (200).';

create or replace function api.segment_update(id_or_key text, patch json) returns api.reply
language plpgsql volatile as $$
declare
  segment app.segments := internal.definition_find(null::app.segments, segment_update.id_or_key);
  field text;
begin
  select p.key into field
    from json_each_text(segment_update.patch) p
   where p.key in ('name', 'is_active') and p.value is null;
  if found then
    perform internal.invalid(field, 'must not be null');
  end if;
  perform internal.advisory_lock('segments');
  if segment_update.patch -> 'rules' is not null or segment_update.patch -> 'is_active' is not null then
    update app.segments s
       set rules = case when segment_update.patch -> 'rules' is null then s.rules
                        else internal.segment_rules(segment_update.patch -> 'rules') end,
           is_active = coalesce((segment_update.patch ->> 'is_active')::boolean, s.is_active),
           updated_at = internal.now()
     where s.id = segment.id;
  end if;
  update app.segments s
     set name = coalesce(segment_update.patch ->> 'name', s.name),
         description = case when segment_update.patch -> 'description' is null then s.description
                            else segment_update.patch ->> 'description' end,
         updated_at = internal.now()
   where s.id = segment.id
     and (segment_update.patch -> 'name' is not null or segment_update.patch -> 'description' is not null);
  return api.definition_get('segment', segment.id::text);
end $$;
comment on function api.segment_update is
  'Changes name, description, rules, is_active. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR, SEGMENT_CYCLE. Changes of
   segments come one after the other.';

create or replace function internal.segment_used_by(segment_id uuid) returns text[]
language plpgsql volatile security definer set search_path = '' as $$
declare
  area text;
  places text[];
  found_places text[] := '{}';
begin
  for area in
    select p.proname from pg_catalog.pg_proc p
     where p.pronamespace = 'internal'::regnamespace and p.proname like 'segment\_used\_\_%'
     order by p.proname
  loop
    execute format('select internal.%I($1)', area) into places using segment_used_by.segment_id;
    found_places := found_places || places;
  end loop;
  return found_places;
end $$;
comment on function internal.segment_used_by is
  'What names a segment, as "<area> <key>": what each area answers in internal.segment_used__<area>(segment_id uuid)
   returns text[].';

create or replace function internal.segment_used__segments(segment_id uuid) returns text[]
language sql stable security definer set search_path = '' as $$
  select array(select 'segment ' || s.key
                 from app.segment_states t join app.segments s on s.id = t.segment_id
                where segment_used__segments.segment_id = any (t.uses)
                order by s.key)
$$;
comment on function internal.segment_used__segments is 'The segments whose rules name a segment.';

create or replace function internal.segment_before_delete(doomed app.segments) returns void
language plpgsql volatile as $$
declare
  used_by text[];
begin
  perform internal.advisory_lock('segments');
  -- a transaction that is storing this id holds the row until it ends
  perform from app.segments s where s.id = (segment_before_delete.doomed).id for update;
  used_by := internal.segment_used_by((segment_before_delete.doomed).id);
  if cardinality(used_by) > 0 then
    perform internal.fail(409, 'SEGMENT_IN_USE',
                          'A segment that others name cannot be deleted: details.used_by lists them.',
                          json_build_object('used_by', used_by));
  end if;
end $$;
comment on function internal.segment_before_delete is
  'Permits the deletion of a segment only if nothing refers to it. Refuses 409 SEGMENT_IN_USE {used_by}. Locks it.';

create or replace function internal.plan_of(query text, parameters jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' set enable_nestloop = off set jit = off as $$
declare
  plan json;
begin
  execute 'explain (format json) ' || plan_of.query into plan using plan_of.parameters;
  return jsonb_build_object('cost', plan -> 0 -> 'Plan' -> 'Total Cost', 'rows', plan -> 0 -> 'Plan' -> 'Plan Rows');
end $$;
comment on function internal.plan_of is
  'The planner''s estimates for a query with one parameter: {cost, rows}. Granted to nobody.';

create or replace function internal.segment_preview_exact(query text, parameters jsonb, out users bigint,
                                                          out ids uuid[])
language plpgsql volatile security definer set search_path = '' set enable_nestloop = off set jit = off as $$
begin
  execute 'with found as materialized (' || segment_preview_exact.query || ')
           select (select count(*) from found), array(select f.id from found f order by f.id limit 10)'
     into users, ids using segment_preview_exact.parameters;
end $$;
comment on function internal.segment_preview_exact is
  'The number of users who match rules, and the first ten. Granted to nobody.';

create or replace function internal.segment_preview_estimate(condition text, parameters jsonb, population bigint,
                                                             out users bigint, out margin bigint, out ids uuid[])
language plpgsql volatile security definer set search_path = '' set jit = off as $$
declare
  rounds constant int := 20;
  patience constant interval := interval '300 milliseconds';
  began constant timestamptz := clock_timestamp();
  sample record;
  are_in boolean[];
  all_pages int[] := '{}';
  all_are_in boolean[] := '{}';
begin
  ids := '{}';
  for n in 1 .. rounds loop
    select s.ids, s.pages into sample from internal.users_sampled(segment_preview_estimate.population, n) s;
    execute 'select array(select ' || segment_preview_estimate.condition
      || ' from app.users u where u.id = any ($2) order by u.id)'
       into are_in using segment_preview_estimate.parameters, sample.ids;
    all_pages := all_pages || sample.pages;
    all_are_in := all_are_in || are_in;
    ids := array(select unnest(ids)
                 union
                 select w.id from unnest(sample.ids, are_in) as w (id, is_in) where w.is_in
                 order by 1 limit 10);
    exit when clock_timestamp() > began + patience;
  end loop;
  users := round(segment_preview_estimate.population * coalesce((select avg(i::int) from unnest(all_are_in) i), 0));
  margin := internal.sample_margin(segment_preview_estimate.population, all_pages, all_are_in);
end $$;
comment on function internal.segment_preview_estimate is
  'About how many users rules hold, from a sample: users plus or minus margin in 95 of 100 samples; ids are ten of the
   sample. New rounds of 1,000 users begin for 0.3 seconds, at most 20. Granted to nobody.';

create or replace function internal.segment_preview(rules jsonb) returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  -- what takes some tenths of a second, in the units of the planner
  affordable constant numeric := 10000;
  compiled record;
  parameters jsonb;
  plan jsonb;
  found record;
  is_estimate boolean;
begin
  perform internal.check_caller('developer', 'segments are previewed by administrators');
  select c.condition, c.query, c.state into compiled from internal.segment_compile(segment_preview.rules) c;
  parameters := internal.segment_bind(compiled.state -> 'values');
  begin
    plan := internal.plan_of(compiled.query, parameters);
    is_estimate := (plan ->> 'cost')::numeric > affordable;
    if is_estimate then
      select e.users, e.margin, e.ids into found
        from internal.segment_preview_estimate(compiled.condition, parameters, internal.users_estimate()) e;
    else
      select e.users, 0::bigint as margin, e.ids into found
        from internal.segment_preview_exact(compiled.query, parameters) e;
    end if;
  exception when query_canceled then
    perform internal.fail(400, 'SEGMENT_TOO_EXPENSIVE',
                          'These rules take longer than a preview may: narrow them, or ask for less of the past.');
  end;
  return json_build_object(
    'count', found.users, 'is_estimate', is_estimate, 'margin', found.margin,
    'sample', coalesce((select json_agg(internal.segment_user_json(u) order by u.id) from app.users u
                         where u.id = any (found.ids)), '[]'),
    'sql', compiled.query,
    'explain', plan);
end $$;
comment on function internal.segment_preview is
  'The users who match rules: count, exact where the planner estimates a low cost, otherwise an estimate with its margin
   (count plus or minus margin, in 95 of 100 samples); ten of them; the SQL with its parameter as $1; and the planner''s
   estimates. Refuses 400 VALIDATION_ERROR, SEGMENT_TOO_EXPENSIVE.';

create or replace function api.segment_preview(rules json) returns api.reply
language plpgsql volatile as $$
begin
  if json_typeof(segment_preview.rules) is distinct from 'object' then
    perform internal.invalid('rules', 'must be an object');
  end if;
  return internal.reply(200, internal.segment_preview(internal.segment_rules(segment_preview.rules)));
end $$;
comment on function api.segment_preview is 'A dry run. Refuses 400 VALIDATION_ERROR, SEGMENT_TOO_EXPENSIVE.';

create or replace function api.segment_refresh(id_or_key text) returns api.reply
language plpgsql volatile as $$
declare
  segment constant app.segments := internal.definition_find(null::app.segments, segment_refresh.id_or_key);
begin
  perform internal.segment_refresh_now(segment.id);
  return internal.reply(202, json_build_object('segment_id', segment.id, 'status', 'queued'));
end $$;
comment on function api.segment_refresh is 'Queues an evaluation: 202. Refuses 404 NOT_FOUND.';

create or replace function internal.segment_refresh_now(segment_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'an evaluation is asked for by administrators');
  perform internal.enqueue('segments__refresh');
  perform internal.audit('segments.refresh', 'segments', segment_refresh_now.segment_id::text, '{}', 202);
end $$;
comment on function internal.segment_refresh_now is
  'Queues the evaluation of the project''s segments, for an administrator.';

create or replace function api.segment_history(id_or_key text, days int default 30) returns api.reply
language plpgsql volatile as $$
declare
  segment constant app.segments := internal.definition_find(null::app.segments, segment_history.id_or_key);
begin
  return internal.reply(200, (
    select coalesce(json_agg(json_build_object('day', c.day, 'member_count', c.member_count) order by c.day), '[]')
      from app.segment_counts c
     where c.segment_id = segment.id and c.day > (internal.now() at time zone 'UTC')::date - segment_history.days));
end $$;
comment on function api.segment_history is
  'Members by UTC day, oldest first: the last count of each day that had one. Refuses 404 NOT_FOUND.';

select internal.audit_declare('app.segments', 'segments');
