-- Plans of promotion: what a hash means until it is applied, and the operations that record what was applied.
create or replace function internal.promotion_remember(project_id uuid, plan_hash text, target_project_id uuid,
                                                       options jsonb)
returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform from app.projects p
    where p.id in (promotion_remember.project_id, promotion_remember.target_project_id)
      and p.organization_id = any (internal.organization_ids('developer')) and p.deleted_at is null
    order by p.id
      for key share;
  if not found then
    raise exception 'plans are made in the caller''s own projects only';
  end if;
  insert into app.promotion_plans as k (project_id, plan_hash, target_project_id, options)
  values (promotion_remember.project_id, promotion_remember.plan_hash, promotion_remember.target_project_id,
          promotion_remember.options)
  on conflict on constraint promotion_plans_one_per_hash do update
     set planned_at = internal.now(), options = excluded.options, target_project_id = excluded.target_project_id;
  delete from app.promotion_plans k
   where k.project_id = promotion_remember.project_id
     and (k.planned_at < internal.now() - interval '1 day'
          or k.id not in (select n.id from app.promotion_plans n where n.project_id = promotion_remember.project_id
                           order by n.planned_at desc, n.id desc limit 100));
end $$;
comment on function internal.promotion_remember is
  'Stores what a plan''s hash means, and deletes old plans of the project.';

create or replace function api.promotion_planned(project_id uuid, plan_hash text, target_project_id uuid, options jsonb)
returns api.reply
language plpgsql volatile as $$
declare
  project constant app.projects := internal.own_project(promotion_planned.project_id);
  target constant app.projects := internal.own_project(promotion_planned.target_project_id);
begin
  perform internal.promotion_remember(project.id, promotion_planned.plan_hash, target.id, promotion_planned.options);
  return internal.reply(200, 'true');
end $$;
comment on function api.promotion_planned is
  'Remembers a plan: its target and its options {kinds, keys, prune}. Refuses 404 NOT_FOUND.';

create or replace function api.promotion_find(project_id uuid, plan_hash text) returns api.reply
language plpgsql stable as $$
declare
  project constant app.projects := internal.own_project(promotion_find.project_id);
  planned app.promotion_plans;
begin
  select k.* into planned
    from app.promotion_plans k
   where k.project_id = project.id and k.plan_hash = promotion_find.plan_hash
     and k.planned_at >= internal.now() - interval '1 day';
  if not found then
    perform internal.fail(409, 'PLAN_CHANGED', 'This project has no such plan, or it is older than a day. Plan again.');
  end if;
  return internal.reply(200, json_build_object('target_project_id', planned.target_project_id,
                                               'options', planned.options));
end $$;
comment on function api.promotion_find is
  'What a hash means: {target_project_id, options}. Refuses 404 NOT_FOUND, 409 PLAN_CHANGED.';

create or replace function internal.promotion_record(project_id uuid, type text, plan_hash text, target_project_id uuid,
                                                     ops int)
returns app.operations
language plpgsql volatile security definer set search_path = '' as $$
declare
  is_waiting constant boolean := promotion_record.ops is null;
  operation app.operations;
begin
  perform from app.projects p
    where p.id = promotion_record.project_id and p.organization_id = any (internal.organization_ids('developer'))
      and p.deleted_at is null
      for no key update;
  if not found then
    raise exception 'operations are recorded in the caller''s own projects only';
  end if;
  -- the operation that waits for this confirmation goes on
  update app.operations o
     set status = case when is_waiting then o.status else 'succeeded' end, confirm_required = is_waiting,
       updated_at = internal.now(),
         done = promotion_record.ops, total = promotion_record.ops,
         result = case when not is_waiting then json_build_object('ops', promotion_record.ops) end
   where o.project_id = promotion_record.project_id and o.type = promotion_record.type
     and o.plan_hash = promotion_record.plan_hash and o.status = 'waiting'
  returning o.* into operation;
  if not found then
    insert into app.operations (project_id, type, status, done, total, confirm_required, plan_hash, input, result)
    values (promotion_record.project_id, promotion_record.type,
            case when is_waiting then 'waiting' else 'succeeded' end, promotion_record.ops,
            promotion_record.ops, is_waiting, promotion_record.plan_hash,
            jsonb_build_object('target_project_id', promotion_record.target_project_id),
            case when not is_waiting then json_build_object('ops', promotion_record.ops) end)
    returning * into operation;
  end if;
  perform internal.audit(promotion_record.type, 'operations', operation.id::text, json_build_object(
    'plan_hash', json_build_array(null, promotion_record.plan_hash),
      'target_project_id', json_build_array(null, promotion_record.target_project_id),
    'status', json_build_array(null, operation.status)), 202, promotion_record.project_id);
  return operation;
end $$;
comment on function internal.promotion_record is
  'Records what was applied as an operation that has succeeded, or, with ops null, one that waits for its confirmation.
   Locks the project. Audited.';

create or replace function api.promotion_record(project_id uuid, type text, plan_hash text, target_project_id uuid,
                                                ops int default null)
returns api.reply
language plpgsql volatile as $$
declare
  project constant app.projects := internal.own_project(promotion_record.project_id);
  operation app.operations;
begin
  operation := internal.promotion_record(project.id, promotion_record.type, promotion_record.plan_hash,
                                         promotion_record.target_project_id, promotion_record.ops);
  return internal.reply(202, json_build_object('operation_id', operation.id, 'status', operation.status,
                                               'plan_hash', operation.plan_hash,
                                               'confirm_required', operation.confirm_required));
end $$;
comment on function api.promotion_record is
  'The operation of an apply or an import, 202 {operation_id, status, plan_hash, confirm_required}; ops null means that
   it waits. Refuses 404 NOT_FOUND.';
