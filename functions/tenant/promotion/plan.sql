-- The differences of a document of definitions, that of another project or of a repository, and the definitions of this
-- project.
create or replace function internal.promotion_diff(was jsonb, wanted jsonb) returns jsonb
language sql immutable as $$
  select coalesce(jsonb_object_agg(coalesce(t.key, s.key), jsonb_build_array(t.value, s.value)), '{}')
    from jsonb_each(promotion_diff.was) t
    full join jsonb_each(promotion_diff.wanted) s on s.key = t.key
   where s.value is distinct from t.value
$$;
comment on function internal.promotion_diff is '{field: [value here, value wanted]} of the fields that differ.';

create or replace function internal.promotion_differences(document jsonb, kinds text[], keys jsonb, is_pruning boolean)
returns table (op text, kind text, key text, diff jsonb, wanted jsonb, was jsonb, code text, reason text)
-- lists of a document have no statistics: a nested loop over them would be quadratic
language sql stable set enable_nestloop = off as $$
  with here as materialized (
    select h.kind, h.key, h.configuration, h.code, h.reason
      from internal.promotion_definitions(promotion_differences.kinds) h
  ), there as materialized (
    select k.key as kind, r.key, r.value as configuration
      from jsonb_each(promotion_differences.document -> 'definitions') k, jsonb_each(k.value) r
  ), left_out as materialized (
    select distinct l.value ->> 'kind' as kind, l.value ->> 'key' as key
      from jsonb_array_elements(coalesce(promotion_differences.document -> 'left_out', '[]')) l
  )
  select case when h.configuration is null then 'create' when t.configuration is null then 'delete' else 'update' end,
         coalesce(t.kind, h.kind), coalesce(t.key, h.key), internal.promotion_diff(coalesce(h.configuration, '{}'),
           -- a field that the document does not name stays as it is
           case when t.configuration is null then '{}' when h.configuration is null then t.configuration
                else m.configuration end),
         t.configuration, h.configuration, h.code, h.reason
    from (select distinct on (h.kind, h.key) h.* from here h) h
    full join there t on t.kind = h.kind and t.key = h.key
    left join left_out l on l.kind = h.kind and l.key = h.key
    left join internal.composed_definitions c on c.promoted_as = coalesce(t.kind, h.kind)
   cross join lateral (select case when c.kind is null then h.configuration || t.configuration
                                   else internal.promotion_merged(c.kind, h.configuration,
                                                                  t.configuration) end as configuration) m
   where case when t.key is null then promotion_differences.is_pruning and l.key is null and c.is_additive is not true
              else h.key is null or h.configuration is distinct from m.configuration end
     and (promotion_differences.kinds is null or coalesce(t.kind, h.kind) = any (promotion_differences.kinds))
     and (not coalesce(promotion_differences.keys ? coalesce(t.kind, h.kind), false)
          or promotion_differences.keys -> coalesce(t.kind, h.kind) ? coalesce(t.key, h.key))
$$;
comment on function internal.promotion_differences is
  'The rows that differ, in no order: op, and the row as the document has it and as it is here. Deletions only when
   pruning. Refuses 400 INVALID_BODY.';

create or replace function internal.promotion_compared(document jsonb, kinds text[], keys jsonb, is_pruning boolean)
returns table (op text, kind text, key text, diff jsonb, wanted jsonb, was jsonb, code text, reason text)
-- lists of a document have no statistics: a nested loop over them would be quadratic
language sql stable set enable_nestloop = off as $$
  with differences as materialized (
    select c.op, c.kind, c.key, c.diff, c.wanted, c.was, c.code, c.reason
      from internal.promotion_differences(promotion_compared.document, promotion_compared.kinds,
                                          promotion_compared.keys, promotion_compared.is_pruning) c
  ), declared as materialized (
    select d.kind, internal.promoted_as(d) as name, d.singular, d.plural, d.fixed_columns, d.max_count, d.create_order,
           internal.promotion_references(d) as paths
      from internal.definitions d
     where d.kept_back is null
     union all
    select c.kind, c.promoted_as, c.singular, c.plural, c.fixed_columns, c.max_count, c.create_order, c.refs
      from internal.composed_definitions c
  ), taken as materialized (
    select distinct d.name, i.value as key from declared d, jsonb_each_text(internal.promotion_names(d.kind)) i
  ), counted as (
    select d.name, d.max_count < (select count(*) from taken t where t.name = d.name) + count(*) as is_full
      from differences c
      join declared d on d.name = c.kind
     where c.op = 'create'
     group by d.name, d.max_count
  ), referred as materialized (
    select distinct c.op, c.kind, c.key, o.name as other_kind, o.singular, v.value #>> '{}' as other
      from differences c
      join declared d on d.name = c.kind
     cross join lateral jsonb_array_elements(d.paths) p
      join declared o on o.kind = p.value ->> 'kind'
     cross join lateral jsonb_path_query(case c.op when 'delete' then c.was else c.wanted end,
                                         (p.value ->> 'path')::jsonpath) v (value)
     -- a row that refers to itself waits for no other
     where v.value <> 'null' and not (o.name = c.kind and v.value #>> '{}' = c.key)
  ), missing as (
    select r.kind, r.key, min(r.singular) as singular, min(r.other) as other
      from referred r
      left join taken t on t.name = r.other_kind and t.key = r.other
      left join differences m on m.op = 'create' and m.kind = r.other_kind and m.key = r.other
      left join differences g on g.op = 'delete' and g.kind = r.other_kind and g.key = r.other
     where r.op <> 'delete' and (t.key is null or g.key is not null) and m.key is null
     group by r.kind, r.key
  ), deep as (
    select e.kind, e.is_deletion, x.key, x.depth
      from (select c.kind, c.op = 'delete' as is_deletion, jsonb_object_agg(c.key, coalesce(r.others, '[]')) as edges
              from differences c
              left join (select r.op, r.kind, r.key, jsonb_agg(r.other) as others from referred r
                          where r.other_kind = r.kind group by r.op, r.kind, r.key) r
                on r.op = c.op and r.kind = c.kind and r.key = c.key
             where exists (select from referred r where r.other_kind = r.kind and r.kind = c.kind)
             group by c.kind, c.op = 'delete') e
     cross join lateral internal.reference_depths(e.edges) x
  ), judged as (
    select c.op, c.kind, c.key, c.diff, c.wanted, c.was, d.create_order, coalesce(p.depth, 0) as depth,
           case
             -- this side's name is ambiguous: the change could mean either row
             when c.code = 'AMBIGUOUS_NAME' then array[c.code, c.reason]
             when c.op = 'update' and c.diff ?| d.fixed_columns
               then array['FIELD_FIXED', format('The target has this %s, and its %s cannot change.', d.singular,
                                                (select min(f.name) from unnest(d.fixed_columns) f (name)
                                                  where c.diff ? f.name))]
             when m.key is not null then array['REFERENCE_MISSING',
                                               format('The target has no %s %s, and this plan creates none.',
                                                      m.singular, m.other)]
             when p.key is not null and p.depth is null then array['REFERENCE_CYCLE',
                                                                   format('Its references to other %s form a circle.',
                                                                          d.plural)]
             when c.op = 'create' and n.is_full then array['LIMIT_REACHED',
                                                           format('A project has at most %s %s.', d.max_count,
                                                                  d.plural)]
             when z.kind is not null then internal.promotion_refusal(z.kind, c.op, c.wanted, c.was) end as problem
      from differences c
      join declared d on d.name = c.kind
      left join missing m on m.kind = c.kind and m.key = c.key
      left join deep p on p.kind = c.kind and p.key = c.key and p.is_deletion = (c.op = 'delete')
      left join counted n on n.name = c.kind
      left join internal.composed_definitions z on z.promoted_as = c.kind
  ), blocked as (
    select l.value, l.n
      from jsonb_array_elements(coalesce(promotion_compared.document -> 'left_out', '[]')) with ordinality l (value, n)
     where (promotion_compared.kinds is null or l.value ->> 'kind' = any (promotion_compared.kinds))
       and (not coalesce(promotion_compared.keys ? (l.value ->> 'kind'), false)
            or promotion_compared.keys -> (l.value ->> 'kind') ? (l.value ->> 'key'))
  )
  select o.op, o.kind, o.key, o.diff, o.wanted, o.was, o.code, o.reason
    from (select j.op, j.kind, j.key, j.diff, j.wanted, j.was, j.problem[1] as code, j.problem[2] as reason,
                 -- what others refer to is created first and deleted last
                 row_number() over (order by j.op = 'delete',
                                    case when j.op = 'delete' then -j.create_order else j.create_order end,
                                      j.kind collate "C",
                                             case when j.op = 'delete' then -j.depth else j.depth end,
                                             j.key collate "C") as n
            from judged j
           union all
          select 'create', b.value ->> 'kind', b.value ->> 'key', '{}', null, null, b.value ->> 'code',
                 b.value ->> 'reason', 1000000000 + b.n from blocked b) o
   order by o.n
$$;
comment on function internal.promotion_compared is
  'What must change here to equal the document, in the order of its execution, and what is blocked, with a code:
   AMBIGUOUS_NAME, FIELD_FIXED, REFERENCE_MISSING, REFERENCE_CYCLE, LIMIT_REACHED, or one of a composed kind. Deletions
   only when pruning. Refuses 400 INVALID_BODY.';

create or replace function internal.promotion_document_check(document jsonb) returns void
language plpgsql stable as $$
declare
  most constant int := 100;
  problems json;
  first record;
begin
  with kinds as (
    select k.key as kind, k.value as rows, d, c.fields, internal.promotion_parts(c.kind) as parts, d.kind is not null
        or c.kind is not null as is_known
      from jsonb_each(promotion_document_check.document -> 'definitions') k
      left join internal.definitions d on d.kept_back is null and internal.promoted_as(d) = k.key
      left join internal.composed_definitions c on c.promoted_as = k.key
  ), found as (
    select k.kind, null as key, null as field, 'is not a kind that is copied' as reason
      from kinds k
     where not k.is_known
     union all
    select k.kind, r.key, f.key as field,
           case when o.fields ? f.key then 'has a value of the wrong type'
                else 'is not a field of this kind' end as reason
      from kinds k
     cross join lateral (select coalesce(k.fields, jsonb_object_agg(s.name, s.types order by s.is_column)) as fields
                           from (select s.name, case
                                          when t.typcategory = 'B' then '{boolean}'::text[]
                                          when t.oid = 'numeric'::regtype then '{number,string}'
                                          when t.typcategory = 'N' then '{number}'
                                          when t.typcategory = 'A' then '{array}'
                                          when t.oid in ('json'::regtype,
                                                         'jsonb'::regtype) then '{boolean,number,string,array,object}'
                                          else '{string}' end as types, true as is_column
                                   from internal.definition_columns(k.d) s
                                   join pg_catalog.pg_attribute a on a.attrelid = to_regclass((k.d).table_name)
                                     and a.attname = s.name
                                   join pg_catalog.pg_type t on t.oid = a.atttypid
                                  where s.is_settable and s.name <> internal.promotion_key_column(k.d)
                                 union all
                                 -- parts of the copied form that are rows of other tables
                                 select distinct (internal.promotion_steps(p.value ->> 'path'))[1], '{array}'::text[],
                                        false
                                   from jsonb_array_elements(internal.promotion_references(k.d)) p
                                  where p.value ->> 'path' ~ '^\$\.[a-z_]+\[\*\]\.') s) o
     cross join lateral jsonb_each(k.rows) r
     cross join lateral jsonb_each(r.value) f
     where k.is_known and (not o.fields ? f.key
                           or jsonb_typeof(f.value) <> 'null' and not o.fields -> f.key ? jsonb_typeof(f.value))
     union all
    -- what is left out of a row would differ from the document for ever
    select k.kind, r.key, format('%s.%s.%s', p.key, e.n - 1, f.key), 'is not a field of this kind'
      from kinds k
     cross join lateral jsonb_each(k.parts) p
     cross join lateral jsonb_each(k.rows) r
     cross join lateral jsonb_array_elements(case when jsonb_typeof(r.value -> p.key) = 'array' then r.value -> p.key
                                                  else '[]' end) with ordinality e (value, n)
     cross join lateral jsonb_object_keys(case when jsonb_typeof(e.value) = 'object' then e.value else '{}' end) f (key)
     where not p.value ? f.key
  ), named as (
    select left(f.kind, 63) as kind, left(f.key, 100) as key, left(f.field, 100) as field, f.reason,
           row_number() over (order by f.key is not null, f.kind collate "C", f.key collate "C",
                              f.field collate "C") as n
      from found f
  )
  select json_agg(json_build_object('kind', n.kind, 'key', n.key, 'field', n.field, 'reason', n.reason) order by n.n)
    into problems
    from named n
   where n.n <= most;
  if problems is null then
    return;
  end if;
  select case when p.key is null then 'document.definitions'
              else format('document.definitions.%s.%s.%s', p.kind, p.key, p.field) end as field,
         case when p.key is null then p.kind || ' ' else '' end || p.reason as reason
    into first
    from json_to_record(problems -> 0) p (kind text, key text, field text, reason text);
  perform internal.fail(400, 'INVALID_BODY', first.field || ': ' || first.reason,
                        json_build_object('field', first.field, 'reason', first.reason, 'problems', problems));
end $$;
comment on function internal.promotion_document_check is
  'Whether a document has only kinds that are copied, with fields that they have, of the types of their columns: values
   are checked by the functions of the kinds, when it is applied. Refuses 400 INVALID_BODY, with the first problem as
   its field and reason, and the first hundred as problems.';

create or replace function internal.promotion_selection_check(kinds text[], keys jsonb) returns void
language plpgsql stable as $$
declare
  unknown text;
begin
  select k.name into unknown
    from jsonb_object_keys(promotion_selection_check.keys) k (name)
   where not exists (select from internal.definitions d where d.kept_back is null and internal.promoted_as(d) = k.name)
     and not exists (select from internal.composed_definitions c where c.promoted_as = k.name)
   order by k.name collate "C"
   limit 1;
  if found then
    -- a kind that is ignored would not be limited: with prune all of its rows would be deleted
    perform internal.invalid('keys', format('%s is not a kind that is copied', left(unknown, 63)), 'INVALID_BODY');
  end if;
  select k.name into unknown
    from jsonb_object_keys(promotion_selection_check.keys) k (name)
   where k.name <> all (promotion_selection_check.kinds)
   order by k.name collate "C"
   limit 1;
  if found then
    perform internal.invalid('keys.' || unknown, 'is not among kinds', 'INVALID_BODY');
  end if;
end $$;
comment on function internal.promotion_selection_check is
  'Refuses 400 INVALID_BODY for keys of a kind that is not copied, or not among the kinds that are named.';

create or replace function internal.promotion_hash(source_project_id uuid, ops jsonb, blocked jsonb) returns text
language sql stable
return encode(sha256(convert_to(concat_ws(' ', promotion_hash.source_project_id, internal.project_id(),
                                          promotion_hash.ops, promotion_hash.blocked), 'UTF8')), 'hex');
comment on function internal.promotion_hash is 'The hash of a plan: of both projects and of all that it would change.';

create or replace function internal.promotion_rehearse(todo jsonb) returns jsonb
language plpgsql volatile as $$
declare
  outcome jsonb;
  is_refused boolean;
begin
  -- all at once, as an apply does it; where something is refused, each op on its own, to know all that is
  for turn in 1 .. 2 loop
    outcome := '[]';
    is_refused := false;
    begin
      perform internal.promotion_lock(promotion_rehearse.todo);
      if turn = 1 then
        outcome := internal.promotion_run(promotion_rehearse.todo, true);
      else
        -- undone with the rest: nobody reads these plans
        perform internal.promotion_plans_hold();
        for n in 0 .. jsonb_array_length(promotion_rehearse.todo) - 1 loop
          if n = 0 or promotion_rehearse.todo -> n -> 'kind' <> promotion_rehearse.todo -> (n - 1) -> 'kind' then
            perform internal.promotion_hook('begin', promotion_rehearse.todo -> n ->> 'kind');
          end if;
          outcome := outcome || internal.promotion_try(
            promotion_rehearse.todo -> n, promotion_rehearse.todo -> n -> 'kind' is distinct
              from promotion_rehearse.todo -> (n + 1) -> 'kind');
        end loop;
      end if;
      raise exception using errcode = 'TR003', message = 'a rehearsal';
    exception
      when sqlstate 'TR003' then
        -- undone, with its rows of the audit trail, its queued work and its notices to other servers
        null;
      when sqlstate 'TR000' or integrity_constraint_violation or data_exception or program_limit_exceeded then
        is_refused := true;
    end;
    exit when not is_refused;
  end loop;
  return outcome;
end $$;
comment on function internal.promotion_rehearse is
  'What applying the ops would do, [{code, reason, is_same}] in their order: they are executed by the functions that an
   apply calls, and undone. A refusal has code and reason; is_same says that an update leaves its row as it is, because
   the fields that a document leaves out have their defaults.';

create or replace function internal.promotion_plan(source_project_id uuid, document jsonb, kinds jsonb, keys jsonb,
                                                   prune boolean, is_rehearsed boolean, out plan json, out todo jsonb)
language plpgsql volatile as $$
declare
  named constant text[] := internal.promotion_kinds_named(promotion_plan.kinds);
  ops jsonb;
  blocked jsonb;
  rehearsed jsonb;
  refused jsonb;
  hash text;
begin
  perform internal.promotion_selection_check(named, promotion_plan.keys);
  select coalesce(jsonb_agg(jsonb_build_object('op', c.op, 'kind', c.kind, 'key', c.key, 'diff',
                                               c.diff) order by c.n) filter (where c.code is null), '[]'),
         coalesce(jsonb_agg(jsonb_build_object('kind', c.kind, 'key', c.key, 'code', c.code, 'reason',
                                               c.reason) order by c.n)
                    filter (where c.code is not null), '[]'),
         coalesce(jsonb_agg(jsonb_build_object('op', c.op, 'kind', c.kind, 'key', c.key, 'wanted', c.wanted, 'was',
                                               case when z.kind is not null then c.was end, 'fields',
                                               (select jsonb_agg(f) from jsonb_object_keys(c.diff) f))
                                                 order by c.n) filter (where c.code is null), '[]')
    into ops, blocked, promotion_plan.todo
    from internal.promotion_compared(promotion_plan.document, named, promotion_plan.keys, promotion_plan.prune)
         with ordinality c (op, kind, key, diff, wanted, was, code, reason, n)
    left join internal.composed_definitions z on z.promoted_as = c.kind;
  hash := internal.promotion_hash(promotion_plan.source_project_id, ops, blocked);
  if promotion_plan.is_rehearsed and promotion_plan.todo <> '[]' then
    rehearsed := internal.promotion_rehearse(promotion_plan.todo);
    select jsonb_agg(jsonb_build_object('kind', o.value ->> 'kind', 'key', o.value ->> 'key', 'code', r.value -> 'code',
                                        'reason', r.value -> 'reason') order by o.n)
             filter (where r.value ->> 'code' is not null),
           coalesce(jsonb_agg(o.value order by o.n) filter (where r.value ->> 'code' is null
                                                              and r.value ->> 'is_same' is distinct from 'true'), '[]')
      into refused, ops
      from jsonb_array_elements(ops) with ordinality o (value, n)
      left join jsonb_array_elements(rehearsed) with ordinality r (value, n) on r.n = o.n;
    -- a plan that an apply executes has the hash that the apply computes, without a rehearsal of its own
    if refused is not null then
      blocked := blocked || refused;
      hash := internal.promotion_hash(promotion_plan.source_project_id, ops, blocked);
    end if;
  end if;
  promotion_plan.plan := json_build_object('plan_hash', hash, 'clean', ops = '[]' and blocked = '[]', 'ops', ops,
                                           'blocked', blocked);
end $$;
comment on function internal.promotion_plan is
  'The plan as responses show it, and what applying it does: [{op, kind, key, wanted, was, fields}]. With is_rehearsed,
   blocked has what an apply would be refused, and ops are without updates that change nothing. Refuses 400
   INVALID_BODY.';

create or replace function api.promotion_plan(source_project_id uuid, document text, kinds jsonb default null,
                                              keys jsonb default '{}', prune boolean default false)
returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.promotion_fitting(p.plan))
    from internal.promotion_plan(promotion_plan.source_project_id, promotion_plan.document::jsonb -> 'data',
                                 promotion_plan.kinds, promotion_plan.keys,
                                 promotion_plan.prune, true) p
$$;
comment on function api.promotion_plan is
  'The plan that makes this project equal to the export of another one, whose envelope is document: {plan_hash, clean,
   ops[{op, kind, key, diff {field: [here, there]}}], blocked[{kind, key, code, reason}]}. Applying is tried and undone,
   so that blocked has what it would be refused. Refuses 400 INVALID_BODY, 409 LIMIT_REACHED (8 MB).';
