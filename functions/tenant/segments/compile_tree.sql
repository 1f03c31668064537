-- Whole trees of rules: leaves of compile.sql within and, or, not; references to other segments are inlined as their rules.
--
-- state is the result of a compilation so far: values (the leaves, parameter $1), leaves (path, condition, actual of the own tree), events, uses.
create or replace function internal.segment_compile_leaf(leaf jsonb, place text, stack uuid[], inout state jsonb, out condition text)
language plpgsql volatile security definer set search_path = '' as $$
declare
  source constant text := segment_compile_leaf.leaf ->> 'source';
  parameter constant text := format('($1 -> %s)', jsonb_array_length(segment_compile_leaf.state -> 'values'));
  actual text;
begin
  if jsonb_array_length(segment_compile_leaf.state -> 'values') >= 500 then
    perform internal.invalid(segment_compile_leaf.place, 'is the 501st condition, together with those of the segments that are named');
  end if;
  state := jsonb_set(segment_compile_leaf.state, '{values}', (segment_compile_leaf.state -> 'values') || jsonb_build_array(segment_compile_leaf.leaf));
  if source = 'segment' then
    select c.state, c.condition into state, condition
      from internal.segment_compile_segment(segment_compile_leaf.leaf, segment_compile_leaf.place, parameter, segment_compile_leaf.stack, state) c;
    actual := format('to_jsonb(%s)', condition);
  elsif source ~ '^[a-z_]{1,40}$' and to_regprocedure('internal.segment_source__' || source || '(jsonb,text,text)') is not null then
    execute format('select c.condition, c.actual from internal.%I($1, $2, $3) c', 'segment_source__' || source)
      into condition, actual using segment_compile_leaf.leaf, segment_compile_leaf.place, parameter;
  else
    perform internal.invalid(segment_compile_leaf.place || '.source', format('must be one of %s', (
      select string_agg(s.name, ', ' order by s.name)
        from (select 'segment' as name
              union all
              select substr(p.proname, 17) from pg_catalog.pg_proc p
               where p.pronamespace = 'internal'::regnamespace and p.proname like 'segment\_source\_\_%') s)));
  end if;
  if source = 'event' then
    state := jsonb_set(state, '{events}', (state -> 'events') || jsonb_build_array(segment_compile_leaf.leaf -> 'event_name'));
  end if;
  if cardinality(segment_compile_leaf.stack) = 1 then
    state := jsonb_set(state, '{leaves}', (state -> 'leaves') || jsonb_build_array(jsonb_build_object(
      'path', segment_compile_leaf.place, 'condition', condition, 'actual', actual)));
  end if;
end $$;
comment on function internal.segment_compile_leaf is
  'One leaf as a condition. Refuses 400 VALIDATION_ERROR: a source that is not there by its name, and what a source refuses. Granted to nobody.';

create or replace function internal.segment_compile_segment(leaf jsonb, place text, parameter text, stack uuid[], inout state jsonb, out condition text)
language plpgsql volatile security definer set search_path = '' as $$
declare
  wanted constant uuid := internal.as_uuid(segment_compile_segment.leaf ->> 'segment_id');
  named app.segments;
begin
  if not coalesce(segment_compile_segment.leaf ->> 'op' in ('in', 'not_in'), false) then
    perform internal.invalid(segment_compile_segment.place || '.op', 'must be in or not_in');
  end if;
  if wanted = any (segment_compile_segment.stack) then
    perform internal.fail(400, 'SEGMENT_CYCLE', 'A segment cannot be a part of itself, not through others either.',
                          json_build_object('field', segment_compile_segment.place || '.segment_id', 'reason', 'leads back to the segment itself'));
  end if;
  select s.* into named from app.segments s where s.id = wanted;
  if not found then
    perform internal.invalid(segment_compile_segment.place || '.segment_id', 'must be a segment of the project');
  end if;
  if cardinality(segment_compile_segment.stack) = 1 then
    state := jsonb_set(segment_compile_segment.state, '{uses}', (segment_compile_segment.state -> 'uses') || jsonb_build_array(wanted));
  end if;
  if named.kind = 'static' then
    condition := format('exists (select from app.segment_members m where m.segment_id = (%s ->> ''segment_id'')::uuid and m.app_user_id = u.id)',
                        segment_compile_segment.parameter);
  else
    select c.state, 'coalesce(' || c.condition || ', false)' into state, condition
      from internal.segment_compile_node(named.rules, segment_compile_segment.place, segment_compile_segment.stack || wanted, 1, 0, state) c;
  end if;
  condition := case when segment_compile_segment.leaf ->> 'op' = 'not_in' then 'not ' else '' end
            -- nobody is in a segment that is switched off; which one that is, is asked when the condition is
            || format('(exists (select from app.segments g where g.id = (%s ->> ''segment_id'')::uuid and g.is_active) and %s)',
                      segment_compile_segment.parameter, condition);
end $$;
comment on function internal.segment_compile_segment is
  'A leaf that names another segment: the members of a static one, the rules of a dynamic one. Refuses 400 SEGMENT_CYCLE, VALIDATION_ERROR. Granted to nobody.';

create or replace function internal.segment_compile_node(node jsonb, place text, stack uuid[], depth int, leaves int, inout state jsonb,
                                                         out condition text, out leaf_count int)
language plpgsql volatile security definer set search_path = '' as $$
declare
  shape constant text := case when segment_compile_node.node ? 'and' then 'and' when segment_compile_node.node ? 'or' then 'or'
                              when segment_compile_node.node ? 'not' then 'not' when segment_compile_node.node ? 'source' then 'leaf' end;
  parts jsonb;
  part text;
  conditions text[] := '{}';
begin
  leaf_count := segment_compile_node.leaves;
  if coalesce(jsonb_typeof(segment_compile_node.node), '') <> 'object' or shape is null then
    perform internal.invalid(segment_compile_node.place, 'must be {source, ...}, {and: [..]}, {or: [..]} or {not: ..}');
  end if;
  if shape = 'leaf' then
    leaf_count := leaf_count + 1;
    if leaf_count > 50 then
      perform internal.invalid(segment_compile_node.place, 'is the 51st condition, at most 50 are allowed');
    end if;
    select c.state, c.condition into state, condition
      from internal.segment_compile_leaf(segment_compile_node.node, segment_compile_node.place, segment_compile_node.stack, segment_compile_node.state) c;
    return;
  end if;
  if (select count(*) from jsonb_object_keys(segment_compile_node.node)) > 1 then
    perform internal.invalid(segment_compile_node.place, 'must have no key beside ' || shape);
  elsif segment_compile_node.depth > 8 then
    perform internal.invalid(segment_compile_node.place, 'nests too deeply, at most 8 levels are allowed');
  end if;
  parts := case when shape = 'not' then jsonb_build_array(segment_compile_node.node -> 'not') else segment_compile_node.node -> shape end;
  if jsonb_typeof(parts) <> 'array' then
    perform internal.invalid(segment_compile_node.place || '.' || shape, 'must be an array');
  end if;
  for i in 0 .. jsonb_array_length(parts) - 1 loop
    select c.state, c.condition, c.leaf_count into state, part, leaf_count
      from internal.segment_compile_node(parts -> i, segment_compile_node.place || '.' || shape || case when shape = 'not' then '' else '[' || i || ']' end,
                                         segment_compile_node.stack, segment_compile_node.depth + 1, leaf_count, state) c;
    conditions := conditions || part;
  end loop;
  condition := case
    when shape = 'not' then '(not ' || conditions[1] || ')'
    -- as in filters: an empty and is true, an empty or is false
    when cardinality(conditions) = 0 then case shape when 'and' then 'true' else 'false' end
    else '(' || array_to_string(conditions, ' ' || shape || ' ') || ')' end;
end $$;
comment on function internal.segment_compile_node is
  'A node of a tree as a condition in three values. stack holds the segments on the way here, the first may be null. Refuses 400 VALIDATION_ERROR:
   over 8 levels, over 50 leaves. Granted to nobody.';

create or replace function internal.segment_compile(rules jsonb, segment_id uuid default null, out condition text, out state jsonb)
language plpgsql volatile security definer set search_path = '' as $$
begin
  select c.state, 'coalesce(' || c.condition || ', false)' into state, condition
    from internal.segment_compile_node(segment_compile.rules, 'rules', array[segment_compile.segment_id], 1, 0,
                                       '{"values": [], "leaves": [], "events": [], "uses": []}') c;
end $$;
comment on function internal.segment_compile is
  'Rules as one condition on u and its parameter, state -> values. Refuses 400 VALIDATION_ERROR, SEGMENT_CYCLE. Granted to nobody.';

create or replace function internal.tg_segments__compile() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  each app.segments;
  compiled record;
  events text[];
  named uuid[];
begin
  -- one at a time: two that would make a circle together must see each other. What names a segment changes with it, so all are looked at
  perform internal.advisory_lock('segments');
  for each in select s.* from app.segments s order by s.id loop
    if each.kind = 'dynamic' then
      select c.condition, c.state into compiled from internal.segment_compile(each.rules, each.id) c;
    else
      select 'false' as condition, '{"values": [], "events": [], "uses": []}'::jsonb as state into compiled;
    end if;
    events := array(select distinct e from jsonb_array_elements_text(compiled.state -> 'events') e order by e);
    named := array(select distinct e::uuid from jsonb_array_elements_text(compiled.state -> 'uses') e order by 1);
    -- only changed rows are written: "on conflict" would lock every state, and wait for the transaction that counts its members; and each
    -- statement that writes has the plans of events computed anew, also where it finds no row
    if exists (select from app.segment_states t
                where t.segment_id = each.id
                  and (t.condition, t.parameters, t.event_names, t.uses)
                      is not distinct from (compiled.condition, compiled.state -> 'values', events, named)) then
      continue;
    end if;
    update app.segment_states t
       set condition = compiled.condition, parameters = compiled.state -> 'values', event_names = events, uses = named
     where t.segment_id = each.id;
    if not found then
      insert into app.segment_states (segment_id, condition, parameters, event_names, uses)
      values (each.id, compiled.condition, compiled.state -> 'values', events, named);
    end if;
  end loop;
  if exists (select from app.segments s where s.kind = 'dynamic') then
    perform internal.enqueue('segments__refresh');
  end if;
  return null;
end $$;
comment on function internal.tg_segments__compile is
  'Compiles every segment again when one is written: an error in it, or in a segment that names it, refuses the change. Serialises its callers.';

create or replace trigger tg_segments__compile_of_insert after insert on app.segments
  for each statement execute function internal.tg_segments__compile();
create or replace trigger tg_segments__compile_of_update after update of rules, is_active on app.segments
  for each statement execute function internal.tg_segments__compile();
