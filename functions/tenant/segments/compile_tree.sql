-- Whole trees of rules: leaves of compile.sql within and, or, not; references to other segments are inlined as their
-- rules.
--
-- A condition holds {0}, {1} .. for the values of sets; internal.segment_condition and internal.segment_query put the
-- two forms in their places. A segment that is named is compiled already, and its template (the condition with its
-- marks) is put in with its numbers moved on: so a chain of segments costs each of them once. state is the result of a
-- compilation so far: templates (whether templates are taken), circle (segments that lead back to themselves), values
-- (the leaves; internal.segment_bind makes parameter $1 of them), sets (members, missing), leaves (path, condition,
-- actual of the own tree), events, uses.
create or replace function internal.segment_compile_leaf(leaf jsonb, place text, stack uuid[], is_positive boolean,
                                                         inout state jsonb, out condition text)
language plpgsql volatile security definer set search_path = '' as $$
declare
  source constant text := segment_compile_leaf.leaf ->> 'source';
  parameter constant text := format('($1 -> %s)', jsonb_array_length(segment_compile_leaf.state -> 'values'));
  operand internal.segment_operand;
  value text;
begin
  if jsonb_array_length(segment_compile_leaf.state -> 'values') >= 500 then
    perform internal.invalid(segment_compile_leaf.place,
                             'is the 501st condition, together with those of the segments that are named');
  end if;
  state := jsonb_set(segment_compile_leaf.state, '{values}',
                     (segment_compile_leaf.state -> 'values') || jsonb_build_array(segment_compile_leaf.leaf));
  if source = 'segment' then
    select c.state, c.condition into state, condition
      from internal.segment_compile_segment(segment_compile_leaf.leaf, segment_compile_leaf.place, parameter,
                                            segment_compile_leaf.stack,
                                            segment_compile_leaf.is_positive, state) c;
    value := condition;
    operand := internal.segment_operand('boolean');
  elsif source ~ '^[a-z_]{1,40}$' and to_regprocedure('internal.segment_source__' || source
                                                      || '(jsonb,text,text)') is not null then
    execute format('select o.* from internal.%I($1, $2, $3) o', 'segment_source__' || source)
      into operand using segment_compile_leaf.leaf, segment_compile_leaf.place, parameter;
    if operand.members is not null then
      value := format('{%s}', jsonb_array_length(state -> 'sets'));
      state := jsonb_set(state, '{sets}', (state -> 'sets') || jsonb_build_array(jsonb_build_object('members',
                                        operand.members, 'missing', operand.missing)));
    else
      value := operand.expression;
    end if;
    condition := coalesce(replace(operand.condition, '{value}', value),
                          internal.segment_compare(segment_compile_leaf.leaf, segment_compile_leaf.place, parameter,
                                                   operand.kind, value));
  else
    perform internal.invalid(segment_compile_leaf.place || '.source', format('must be one of %s', (
      select string_agg(s.name, ', ' order by s.name)
        from (select 'segment' as name
              union all
              select substr(p.proname, 17) from pg_catalog.pg_proc p
               where p.pronamespace = 'internal'::regnamespace and p.proname like 'segment\_source\_\_%') s)));
  end if;
  if source = 'event' then
    state := jsonb_set(state, '{events}', (state -> 'events')
                       || jsonb_build_array(segment_compile_leaf.leaf -> 'event_name'));
  end if;
  if cardinality(segment_compile_leaf.stack) = 1 then
    state := jsonb_set(state, '{leaves}', (state -> 'leaves') || jsonb_build_array(jsonb_build_object(
      'path', segment_compile_leaf.place, 'condition', condition,
      'actual', format(case operand.kind when 'timestamptz' then 'to_jsonb(internal.iso(%s))' when 'jsonb' then '%s'
                            else 'to_jsonb(%s)' end, value))));
  end if;
  if segment_compile_leaf.is_positive then
    condition := coalesce(operand.positive, condition);
  end if;
end $$;
comment on function internal.segment_compile_leaf is
  'One leaf as a condition. Refuses 400 VALIDATION_ERROR: a source that is not there by its name, and what a source
   refuses. Granted to nobody.';

create or replace function internal.segment_compile_segment(leaf jsonb, place text, parameter text, stack uuid[],
                                                            is_positive boolean, inout state jsonb, out condition text)
language plpgsql volatile security definer set search_path = '' as $$
declare
  wanted constant uuid := internal.as_uuid(segment_compile_segment.leaf ->> 'segment_id');
  named app.segments;
  kept app.segment_states;
begin
  if not coalesce(segment_compile_segment.leaf ->> 'op' in ('in', 'not_in'), false) then
    perform internal.invalid(segment_compile_segment.place || '.op', 'must be in or not_in');
  end if;
  if wanted = any (segment_compile_segment.stack) or state -> 'circle' ? wanted::text then
    perform internal.fail(400, 'SEGMENT_CYCLE', 'A segment cannot be a part of itself, not through others either.',
                          json_build_object('field', segment_compile_segment.place || '.segment_id',
                                            'reason', 'leads back to the segment itself'));
  end if;
  select s.* into named from app.segments s where s.id = wanted;
  if not found then
    perform internal.invalid(segment_compile_segment.place || '.segment_id', 'must be a segment of the project');
  end if;
  if cardinality(segment_compile_segment.stack) = 1 then
    state := jsonb_set(segment_compile_segment.state, '{uses}',
                       (segment_compile_segment.state -> 'uses') || jsonb_build_array(wanted));
  end if;
  if named.kind = 'static' then
    condition := format('{%s}', jsonb_array_length(state -> 'sets'));
    state := jsonb_set(state, '{sets}', (state -> 'sets') || jsonb_build_array(jsonb_build_object('missing', 'false',
                                        'members', format(
      'select m.app_user_id, true as value from app.segment_members m where m.segment_id = (%s ->> '
      '''segment_id'')::uuid', segment_compile_segment.parameter))));
  elsif state -> 'templates' = 'true' and exists (select from app.segment_states t
                                                   where t.segment_id = wanted and t.template is not null) then
    select t.* into kept from app.segment_states t where t.segment_id = wanted;
    if jsonb_array_length(state -> 'values') + jsonb_array_length(kept.parameters) > 500 then
      perform internal.invalid(segment_compile_segment.place,
                               'is the 501st condition, together with those of the segments that are named');
    end if;
    condition := 'coalesce(' || internal.segment_moved(kept.template, jsonb_array_length(state -> 'values'),
                                                       jsonb_array_length(state -> 'sets')) || ', false)';
    state := state || jsonb_build_object(
      'sets', (state -> 'sets') || (
        select coalesce(jsonb_agg(k.value || jsonb_build_object('members',
                                                                internal.segment_moved(k.value ->> 'members',
                                                                  jsonb_array_length(state -> 'values'), 0))
                                                                    order by k.n), '[]')
          from jsonb_array_elements(kept.sets) with ordinality k (value, n)),
      'values', (state -> 'values') || kept.parameters, 'events', (state -> 'events') || to_jsonb(kept.event_names));
  else
    -- never null: false stands for unknown, under not_in as well
    select c.state, 'coalesce(' || c.condition || ', false)' into state, condition
      from internal.segment_compile_node(named.rules, segment_compile_segment.place,
                                         segment_compile_segment.stack || wanted, 1, 0, true, state) c;
  end if;
  condition := case when segment_compile_segment.leaf ->> 'op' = 'not_in' then 'not ' else '' end
            -- an inactive segment has no members; is_active is read when the condition runs, not when it is compiled
            || format('(exists (select from app.segments g where g.id = (%s ->> ''segment_id'')::uuid and '
                      'g.is_active) and %s)',
                      segment_compile_segment.parameter, condition);
end $$;
comment on function internal.segment_compile_segment is
  'A leaf that names another segment: the members of a static one, the rules of a dynamic one. Refuses 400
   SEGMENT_CYCLE, VALIDATION_ERROR. Granted to nobody.';

create or replace function internal.segment_compile_node(node jsonb, place text, stack uuid[], depth int, leaves int,
                                                         is_positive boolean, inout state jsonb, out condition text,
                                                         out leaf_count int)
language plpgsql volatile security definer set search_path = '' as $$
declare
  shape constant text := case when segment_compile_node.node ? 'and' then 'and'
                              when segment_compile_node.node ? 'or' then 'or'
                              when segment_compile_node.node ? 'not' then 'not'
                                when segment_compile_node.node ? 'source' then 'leaf' end;
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
      from internal.segment_compile_leaf(segment_compile_node.node, segment_compile_node.place,
                                         segment_compile_node.stack,
                                         segment_compile_node.is_positive, segment_compile_node.state) c;
    return;
  end if;
  if (select count(*) from jsonb_object_keys(segment_compile_node.node)) > 1 then
    perform internal.invalid(segment_compile_node.place, 'must have no key beside ' || shape);
  elsif segment_compile_node.depth > 8 then
    perform internal.invalid(segment_compile_node.place, 'nests too deeply, at most 8 levels are allowed');
  end if;
  parts := case when shape = 'not' then jsonb_build_array(segment_compile_node.node -> 'not')
                else segment_compile_node.node -> shape end;
  if jsonb_typeof(parts) <> 'array' then
    perform internal.invalid(segment_compile_node.place || '.' || shape, 'must be an array');
  end if;
  for i in 0 .. jsonb_array_length(parts) - 1 loop
    select c.state, c.condition, c.leaf_count into state, part, leaf_count
      from internal.segment_compile_node(parts -> i,
                                         segment_compile_node.place || '.' || shape || case when shape = 'not' then ''
                                           else '[' || i || ']' end,
                                         segment_compile_node.stack, segment_compile_node.depth + 1, leaf_count,
                                         segment_compile_node.is_positive and shape <> 'not', state) c;
    conditions := conditions || part;
  end loop;
  condition := case
    when shape = 'not' then '(not ' || conditions[1] || ')'
    -- the same as in filters: an empty `and` is true, an empty `or` is false
    when cardinality(conditions) = 0 then case shape when 'and' then 'true' else 'false' end
    else '(' || array_to_string(conditions, ' ' || shape || ' ') || ')' end;
end $$;
comment on function internal.segment_compile_node is
  'A node of a tree as a condition in three values. stack holds the segments on the way here, the first may be null;
   where is_positive, unknown may be false. Refuses 400 VALIDATION_ERROR: over 8 levels, over 50 leaves. Granted to
   nobody.';

create or replace function internal.segment_moved(template text, values_by int, sets_by int) returns text
language sql immutable as $$
  select string_agg(l.literal || case when m.number[1] is not null then format('($1 -> %s)',
                                        m.number[1]::int + segment_moved.values_by)
                                      when m.number[2] is not null then format('{%s}',
                                        m.number[2]::int + segment_moved.sets_by) else '' end, '' order by l.n)
    from regexp_split_to_table(segment_moved.template, '\(\$1 -> \d+\)|\{\d+\}') with ordinality l (literal, n)
    left join regexp_matches(segment_moved.template, '\(\$1 -> (\d+)\)|\{(\d+)\}', 'g') with ordinality m (number,
                                        n) on m.n = l.n
$$;
comment on function internal.segment_moved is
  'Compiled SQL whose parameters and sets begin at other numbers, where it becomes part of another condition.';

create or replace function internal.segment_filled(condition text, fills text[]) returns text
language sql immutable as $$
  select string_agg(l.literal || coalesce(segment_filled.fills[m.number[1]::int + 1], ''), '' order by l.n)
    from regexp_split_to_table(segment_filled.condition, '\{\d+\}') with ordinality l (literal, n)
    left join regexp_matches(segment_filled.condition, '\{(\d+)\}', 'g') with ordinality m (number, n) on m.n = l.n
$$;
comment on function internal.segment_filled is 'A condition with texts in the place of {0}, {1} ..';

create or replace function internal.segment_condition(condition text, sets jsonb) returns text
language sql immutable as $$
  select internal.segment_filled(segment_condition.condition, array(
    select case when s.value ->> 'missing' is null
                then format('(select s.value from (%s) s where s.app_user_id = u.id)', s.value ->> 'members')
                else format('coalesce((select s.value from (%s) s where s.app_user_id = u.id), %s)',
                            s.value ->> 'members', s.value ->> 'missing') end
      from jsonb_array_elements(segment_condition.sets) with ordinality s (value, n) order by s.n))
$$;
comment on function internal.segment_condition is
  'A compiled condition on one user u: each set is asked for this user only, which its indexes serve.';

create or replace function internal.segment_query(condition text, sets jsonb, is_ranged boolean) returns text
language sql immutable as $$
  select 'select u.id from app.users u' || coalesce((
           select string_agg(case when segment_query.is_ranged
                    then format(' left join (select s.* from (%1$s) s where s.app_user_id > $2 and s.app_user_id <= '
                                '$3) s%2$s on s%2$s.app_user_id = u.id', s.value ->> 'members', s.n - 1)
                    else format(' left join (%1$s) s%2$s on s%2$s.app_user_id = u.id', s.value ->> 'members',
                                s.n - 1) end, '' order by s.n)
             from jsonb_array_elements(segment_query.sets) with ordinality s (value, n)), '')
         || ' where ' || case when segment_query.is_ranged then 'u.id > $2 and u.id <= $3 and ' else '' end
         || internal.segment_filled(segment_query.condition, array(
              select case when s.value ->> 'missing' is null then format('s%s.value', s.n - 1)
                          else format('coalesce(s%s.value, %s)', s.n - 1, s.value ->> 'missing') end
                from jsonb_array_elements(segment_query.sets) with ordinality s (value, n) order by s.n))
$$;
comment on function internal.segment_query is
  'A compiled condition as a query of all users whom it holds, or of those with ids over $2 and up to $3: each set is
   computed once and joined.';

create or replace function internal.segment_compile(rules jsonb, segment_id uuid default null,
                                                    takes_templates boolean default true, circle uuid[] default '{}',
                                                    out condition text, out query text, out ranged text,
                                                    out template text, out state jsonb)
language plpgsql volatile security definer set search_path = '' as $$
declare
  made record;
begin
  select c.condition, c.state into made
    from internal.segment_compile_node(segment_compile.rules, 'rules', array[segment_compile.segment_id], 1, 0, true,
                                       jsonb_build_object('templates', segment_compile.takes_templates, 'circle',
                                                          segment_compile.circle)
                                       || '{"values": [], "sets": [], "leaves": [], "events": [], "uses": []}') c;
  template := made.condition;
  condition := 'coalesce(' || internal.segment_condition(made.condition, made.state -> 'sets') || ', false)';
  -- a WHERE clause treats unknown as false
  query := internal.segment_query(made.condition, made.state -> 'sets', false);
  ranged := internal.segment_query(made.condition, made.state -> 'sets', true);
  state := made.state;
end $$;
comment on function internal.segment_compile is
  'Rules as a condition on one user u, as a query of all users, and as one of a range of ids ($2, $3). $1 is
   internal.segment_bind of state -> values. The rules of segments that are named are taken as they were compiled, or
   with takes_templates false compiled again; a segment of the circle is refused. Refuses 400 VALIDATION_ERROR,
   SEGMENT_CYCLE. Granted to nobody.';

create or replace function internal.segments_compile(changed uuid[] default null, with_users boolean default true)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  todo uuid[];
  each record;
  compiled record;
  events text[];
  named uuid[];
  is_same boolean;
begin
  -- serialised, so that two concurrent changes that form a cycle together are detected
  perform internal.advisory_lock('segments');
  if segments_compile.changed is null then
    todo := array(select s.id from app.segments s);
  elsif not segments_compile.with_users then
    todo := segments_compile.changed;
  else
    -- the SQL of a segment contains the rules of those that it names
    with recursive meant (id) as (
      select c.id from unnest(segments_compile.changed) c (id)
       union
      select t.segment_id from meant m join app.segment_states t on m.id = any (t.uses)
    )
    select array_agg(m.id) into todo from meant m;
  end if;
  for each in
    select s.id, s.kind, s.rules, array_agg(s.id) filter (where d.depth is null) over () as circle
      from internal.reference_depths((
             select coalesce(jsonb_object_agg(s.id, (
                      select coalesce(jsonb_agg(distinct lower(r.value #>> '{}')), '[]')
                        from jsonb_path_query(s.rules, '$.** ? (@.source == "segment").segment_id') r (value))), '{}')
               from app.segments s where s.id = any (todo))) d
      join app.segments s on s.id = d.key::uuid
     -- those that are named first; a circle, and what leads to one, before them all, to be refused
     order by d.depth nulls first, s.id <> all (coalesce(segments_compile.changed, '{}')), s.id
  loop
    if each.kind = 'dynamic' then
      select c.condition, c.ranged, c.template, c.state into compiled
        from internal.segment_compile(each.rules, each.id, true, coalesce(each.circle, '{}')) c;
    else
      select 'false' as condition, null as ranged, null as template,
             '{"values": [], "sets": [], "events": [], "uses": []}'::jsonb as state into compiled;
    end if;
    events := array(select distinct e from jsonb_array_elements_text(compiled.state -> 'events') e order by e);
    named := array(select distinct e::uuid from jsonb_array_elements_text(compiled.state -> 'uses') e order by 1);
    -- only changed rows are written: "on conflict" would lock every state, and wait for the transaction that counts its
    -- members; and each statement that writes has the plans of events computed anew, also where it finds no row
    select (t.condition, t.query, t.template, t.sets, t.parameters, t.event_names, t.uses)
             is not distinct from (compiled.condition, compiled.ranged, compiled.template, compiled.state -> 'sets',
                                   compiled.state -> 'values', events, named)
      into is_same
      from app.segment_states t
     where t.segment_id = each.id;
    if is_same then
      continue;
    elsif is_same is null then
      insert into app.segment_states (segment_id, condition, query, template, sets, parameters, event_names, uses)
      values (each.id, compiled.condition, compiled.ranged, compiled.template, compiled.state -> 'sets',
              compiled.state -> 'values', events, named);
      continue;
    end if;
    -- a running refresh starts again
    update app.segment_states t
       set condition = compiled.condition, query = compiled.ranged, template = compiled.template,
         sets = compiled.state -> 'sets',
           parameters = compiled.state -> 'values', event_names = events, uses = named,
           cursor_id = case when (t.condition, t.query, t.parameters) is distinct from (compiled.condition,
                                        compiled.ranged, compiled.state -> 'values') then null else t.cursor_id end
     where t.segment_id = each.id;
  end loop;
end $$;
comment on function internal.segments_compile is
  'Compiles every segment, or those that have changed and, with_users, all that name them; writes those whose SQL
   changed. Refuses what segment_compile refuses. Serialises its callers. Granted to nobody.';

create or replace function internal.tg_segments__compile() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  is_later constant boolean := coalesce(current_setting('app.segments_later', true) in ('on', 'changed'), false);
begin
  -- nothing names a segment that is new. A plan of promotion changes many, and has those that name them compiled once,
  -- at its end
  perform internal.segments_compile(array[new.id], tg_op = 'UPDATE' and not is_later);
  if tg_op = 'UPDATE' and is_later then
    perform set_config('app.segments_later', 'changed', true);
  end if;
  if new.kind = 'dynamic' or exists (select from app.segments s where s.kind = 'dynamic') then
    perform internal.enqueue('segments__refresh');
  end if;
  return null;
end $$;
comment on function internal.tg_segments__compile is
  'Compiles a segment when it is written, and those that name it: an error in it, or in a segment that names it, refuses
   the change. Serialises its callers.';

create or replace trigger tg_segments__compile_of_insert after insert on app.segments
  for each row execute function internal.tg_segments__compile();
create or replace trigger tg_segments__compile_of_update after update of rules, is_active on app.segments
  for each row execute function internal.tg_segments__compile();

create or replace function internal.promotion_begin__segment() returns void
language sql volatile as $$
  select set_config('app.segments_later', 'on', true)
$$;
comment on function internal.promotion_begin__segment is
  'Before the segments of a plan: those that name one that changes are compiled at the end.';

create or replace function internal.promotion_end__segment() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'segments are compiled by administrators');
  if current_setting('app.segments_later', true) = 'changed' then
    perform internal.segments_compile();
  end if;
  perform set_config('app.segments_later', 'off', true);
end $$;
comment on function internal.promotion_end__segment is
  'After the segments of a plan: compiles all of them, where one has changed. Refuses as internal.segments_compile.';
