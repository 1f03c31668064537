-- Operations on a project's collections: asynchronous imports and index builds.
create or replace function api.collection_operation(project_id uuid, type text, input jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  -- the developer who requested it, for the audit trail
  asked constant jsonb := jsonb_build_object('developer_id', internal.developer_id(), 'actor', internal.actor());
begin
  if collection_operation.type not in ('collections.index', 'collections.import') then
    raise exception 'collections have no operation %', collection_operation.type;
  end if;
  -- refuses projects of other developers
  return internal.reply(202, json_build_object(
    'operation_id', internal.operation_start(collection_operation.project_id, collection_operation.type,
                                             replace(collection_operation.type, '.', '__'),
                                             collection_operation.input || asked),
    'status', 'queued'));
end $$;
comment on function api.collection_operation is
  'Starts the build of an index, or an import, on a project of the caller: 202 with the operation to poll. The job has
   the name of the type, for example collections__index.';
