-- How Postgres would answer a request for rows, for developers.

create or replace function internal.collection_scans(plan jsonb) returns jsonb
language sql immutable as $$
  select coalesce(jsonb_agg(jsonb_build_object('node', n.value -> 'Node Type', 'table', n.value -> 'Relation Name',
                                               'index', n.value -> 'Index Name',
                                               'rows', n.value -> 'Plan Rows')), '[]')
    from jsonb_path_query(collection_scans.plan,
                          'strict $.** ? (exists (@."Node Type") && (exists (@."Relation Name") || exists (@."Index '
                          'Name")))',
                          silent => true) as n (value)
$$;
comment on function internal.collection_scans is
  'What a plan in JSON reads: [{node, table, index, rows}]; table or index is null where the node has none, rows are the
   planner''s estimate.';

create or replace function api.collection_plan(name text, request json) returns api.reply
language plpgsql volatile as $$
declare
  d constant jsonb := internal.collection_definition(collection_plan.name);
  compiled constant jsonb := internal.collection_compile('find', collection_plan.name, collection_plan.request);
  vals constant text[] := internal.collection_values(compiled -> 'params', collection_plan.request);
  line text;
  lines text[] := '{}';
  plan json;
begin
  if current_setting('role') = 'app_user' and not exists (select from app.users u where u.id = internal.user_id()) then
    perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user.');
  end if;
  perform internal.collection_check_values(d, compiled, collection_plan.request);
  for line in execute 'explain ' || (compiled ->> 'text') using vals loop
    lines := lines || line;
  end loop;
  execute 'explain (format json) ' || (compiled ->> 'text') into plan using vals;
  return internal.reply(200, json_build_object('plan', to_json(lines), 'cost', plan -> 0 -> 'Plan' -> 'Total Cost',
                                               'scans', internal.collection_scans(plan::jsonb)));
end $$;
comment on function api.collection_plan is
  'EXPLAIN of a find, as the caller''s role would run it: {plan: lines, cost, scans}. Nothing is run. Refuses 404
   USER_NOT_FOUND, and as a find does.';
