-- The differences of the document of another project and the definitions of this one.
create or replace function internal.promotion_diff(was jsonb, wanted jsonb) returns jsonb
language sql immutable as $$
  select coalesce(jsonb_object_agg(coalesce(t.key, s.key), jsonb_build_array(t.value, s.value)), '{}')
    from jsonb_each(promotion_diff.was) t
    full join jsonb_each(promotion_diff.wanted) s on s.key = t.key
   where s.value is distinct from t.value
$$;
comment on function internal.promotion_diff is '{field: [value here, value wanted]} of the fields that differ.';

create or replace function internal.promotion_compared(document jsonb, kinds text[], keys jsonb, is_pruning boolean)
returns table (op text, kind text, key text, diff jsonb, code text, reason text)
language plpgsql stable as $$
#variable_conflict use_column
declare
  left_out constant jsonb := promotion_compared.document -> 'left_out';
begin
  return query
  with here as materialized (
    select h.kind, h.key, h.configuration, h.code, h.reason from internal.promotion_definitions(promotion_compared.kinds) h
  ), there as materialized (
    select k.key as kind, r.key, r.value as configuration
      from jsonb_each(promotion_compared.document -> 'definitions') k, jsonb_each(k.value) r
  ), declared as (
    select d.*, internal.promotion_references(d) as paths from internal.promotion_kinds(promotion_compared.kinds) d
  ), chosen as (
    select coalesce(t.kind, h.kind) as kind, coalesce(t.key, h.key) as key, h.configuration as was, t.configuration as wanted, h.code, h.reason
      from (select distinct on (h.kind, h.key) h.* from here h) h
      full join there t on t.kind = h.kind and t.key = h.key
     where (t.key is not null or promotion_compared.is_pruning)
       and (t.key is not null or not exists (select from jsonb_array_elements(left_out) l where (l.value ->> 'kind', l.value ->> 'key') = (h.kind, h.key)))
       and t.configuration is distinct from h.configuration
  ), compared as (
    select case when c.was is null then 'create' when c.wanted is null then 'delete' else 'update' end as op,
           d as declared, d.create_order, d.paths, c.kind, c.key, c.wanted, internal.promotion_diff(coalesce(c.was, '{}'), coalesce(c.wanted, '{}')) as diff,
           c.was is not null and c.wanted is not null as is_kept, c.code, c.reason
      from chosen c
      join declared d on d.kind = c.kind
     where not coalesce(promotion_compared.keys ? c.kind, false) or promotion_compared.keys -> c.kind ? c.key
  ), judged as (
    select c.op, c.kind, c.key, c.diff, c.create_order,
           coalesce(
             -- this side's name is ambiguous: the change could mean either row
             case when c.code = 'AMBIGUOUS_NAME' then array[c.code, c.reason] end,
             (select array['FIELD_FIXED', format('The target has this %s, and its %s cannot change.', (c.declared).singular, min(f.name))]
                from unnest((c.declared).fixed_columns) f (name)
               where c.is_kept and c.diff ? f.name
              having count(*) > 0),
             (select array['REFERENCE_MISSING', format('The target has no %s %s, and this plan creates none.', min(o.singular), min(v.value #>> '{}'))]
                from jsonb_array_elements(c.paths) p
                join internal.definitions o on o.kind = p.value ->> 'kind'
               cross join lateral jsonb_path_query(c.wanted, (p.value ->> 'path')::jsonpath) v (value)
               where v.value <> 'null'
                 and not exists (select from here h where (h.kind, h.key) = (o.kind, v.value #>> '{}'))
                 and not (exists (select from there t where (t.kind, t.key) = (o.kind, v.value #>> '{}'))
                          and (not coalesce(promotion_compared.keys ? o.kind, false) or promotion_compared.keys -> o.kind ? (v.value #>> '{}')))
              having count(*) > 0),
             case when c.op = 'create' and (c.declared).max_count < (select count(*) from here h where h.kind = c.kind)
                         + sum(case c.op when 'create' then 1 when 'delete' then -1 else 0 end) over (partition by c.kind)
                  then array['LIMIT_REACHED', format('A project has at most %s %s.', (c.declared).max_count, (c.declared).plural)] end) as problem
      from compared c
  )
  select j.op, j.kind, j.key, j.diff, j.problem[1], j.problem[2]
    from judged j
   -- what others refer to is created first and deleted last
   order by j.op = 'delete', case when j.op = 'delete' then -j.create_order else j.create_order end, j.kind collate "C", j.key collate "C";
  return query
  select 'create', l.value ->> 'kind', l.value ->> 'key', '{}'::jsonb, l.value ->> 'code', l.value ->> 'reason'
    from jsonb_array_elements(left_out) with ordinality l (value, n)
   where not coalesce(promotion_compared.keys ? (l.value ->> 'kind'), false) or promotion_compared.keys -> (l.value ->> 'kind') ? (l.value ->> 'key')
   order by l.n;
end $$;
comment on function internal.promotion_compared is
  'What must change here to equal the document, and what is blocked, with a code: AMBIGUOUS_NAME, FIELD_FIXED, REFERENCE_MISSING, LIMIT_REACHED.
   Deletions only when pruning. Refuses 400 INVALID_BODY.';

create or replace function api.promotion_plan(source_project_id uuid, document text, kinds jsonb default null, keys jsonb default '{}', prune boolean default false)
returns api.reply
language plpgsql stable as $$
declare
  ops json;
  blocked json;
begin
  select coalesce(json_agg(json_build_object('op', c.op, 'kind', c.kind, 'key', c.key, 'diff', c.diff) order by c.n) filter (where c.code is null), '[]'),
         coalesce(json_agg(json_build_object('kind', c.kind, 'key', c.key, 'code', c.code, 'reason', c.reason) order by c.n)
                    filter (where c.code is not null), '[]')
    into ops, blocked
    from internal.promotion_compared(promotion_plan.document::jsonb -> 'data', internal.promotion_kinds_named(promotion_plan.kinds), promotion_plan.keys, promotion_plan.prune)
         with ordinality c (op, kind, key, diff, code, reason, n);
  return internal.reply(200, internal.promotion_fitting(json_build_object(
    'plan_hash', encode(sha256(convert_to(concat_ws(' ', promotion_plan.source_project_id, internal.project_id(), ops, blocked), 'UTF8')), 'hex'),
    'clean', json_array_length(ops) + json_array_length(blocked) = 0, 'ops', ops, 'blocked', blocked)));
end $$;
comment on function api.promotion_plan is
  'The plan that makes this project equal to the export of another one, whose envelope is document: {plan_hash, clean, ops[{op, kind, key, diff {field:
   [here, there]}}], blocked[{kind, key, code, reason}]}. Reads only. Refuses 400 INVALID_BODY, 409 LIMIT_REACHED (8 MB). Supplement A8.';
