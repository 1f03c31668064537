-- The end of a project: from the moment of its deletion nothing reaches it, and its database goes in the background.
create or replace function internal.remove_project(project_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  key_hash text;
begin
  update app.projects p set deleted_at = internal.now()
   where p.id = remove_project.project_id and p.developer_id = internal.developer_id() and p.deleted_at is null;
  if not found then
    raise exception 'a project is removed by its owner, and once';
  end if;
  for key_hash in
    update app.api_keys k set is_active = false where k.project_id = remove_project.project_id returning k.key_hash
  loop
    perform internal.changed('key:' || key_hash);
  end loop;
  perform internal.changed('project:' || remove_project.project_id);
  perform internal.add_job('tenant__remove', json_build_object('project_id', remove_project.project_id),
                           'remove ' || remove_project.project_id);
end $$;
comment on function internal.remove_project is
  'Takes a project out of reach, its keys at once, and queues the removal of its database, in this transaction. Granted to nobody.';

create or replace function api.removal_begin(project_id uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select json_build_object('project_id', p.id, 'cluster_id', t.cluster_id, 'database_name', t.database_name)
      from app.projects p
      left join app.tenants t on t.project_id = p.id
     where p.id = removal_begin.project_id and p.deleted_at is not null))
$$;
comment on function api.removal_begin is 'What is left of a deleted project, or null when it is gone, or was never deleted.';

create or replace function api.removal_end(project_id uuid) returns api.reply
language plpgsql volatile as $$
begin
  -- the tenant first: while its row is there, the database may be
  delete from app.tenants t
   where t.project_id = removal_end.project_id
     and t.project_id in (select p.id from app.projects p where p.deleted_at is not null);
  delete from app.projects p where p.id = removal_end.project_id and p.deleted_at is not null;
  return internal.reply(200, to_json(found));
end $$;
comment on function api.removal_end is 'Forgets a deleted project whose database is gone, with its keys. false when there was nothing to forget.';

create or replace function api.removals_left() returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(p.id), '[]'))
    from app.projects p
   where p.deleted_at < internal.now() - interval '1 minute'
$$;
comment on function api.removals_left is 'Deleted projects that are not gone yet, for the sweep to queue again.';
