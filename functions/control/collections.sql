-- Operations on a project's collections: asynchronous imports and index builds.
create or replace function api.collection_operation(project_id uuid, type text, input jsonb) returns api.reply
language plpgsql volatile security invoker as $$
begin
  return internal.reply(202, internal.collection_operation(collection_operation.project_id, collection_operation.type, collection_operation.input));
end $$;
comment on function api.collection_operation is 'Starts the build of an index, or an import: 202 with the operation to poll.';

create or replace function internal.collection_operation(project_id uuid, type text, input jsonb) returns json
language plpgsql volatile security definer set search_path = '' as $$
begin
  if collection_operation.type not in ('collections.index', 'collections.import') then
    raise exception 'collections have no operation %', collection_operation.type;
  end if;
  return json_build_object(
    'operation_id', internal.operation_start(
      collection_operation.project_id, collection_operation.type, replace(collection_operation.type, '.', '__'),
      -- the developer who requested it, for the audit trail
      collection_operation.input || jsonb_build_object('developer_id', internal.developer_id(), 'actor', internal.actor())),
    'status', 'queued');
end $$;
comment on function internal.collection_operation is 'Starts an operation on the caller''s own project. The job has the name of the type, for example collections__index.';
