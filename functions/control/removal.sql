-- Deletion of a project: access ends at once; background jobs remove its database and its files.
create or replace function internal.removal_refusal(project_id uuid) returns void
language plpgsql stable as $$
begin
  if exists (select from app.tenants t
              where t.project_id = removal_refusal.project_id and t.status = 'provisioning'
                and t.moved_at >= internal.now() - interval '5 minutes') then
    perform internal.fail(409, 'PROVISIONING_IN_PROGRESS',
                          'The database of this project is being created: delete the project when this has ended.',
                          null, '{"Retry-After": "5"}');
  end if;
  if internal.has_function_domains(removal_refusal.project_id) then
    perform internal.fail(409, 'FUNCTION_DOMAINS_ATTACHED',
                          'Functions of this project are served under a domain: detach the domain first.');
  end if;
end $$;
comment on function internal.removal_refusal is
  'Refuses 409 PROVISIONING_IN_PROGRESS (while provisioning runs and is not stalled), FUNCTION_DOMAINS_ATTACHED.';

create or replace function api.project_removable(project_id uuid) returns api.reply
language plpgsql stable as $$
declare
  project constant app.projects := internal.own_project(project_removable.project_id);
begin
  perform internal.removal_refusal(project.id);
  return internal.reply(200, json_build_object('id', project.id, 'tier', project.tier));
end $$;
comment on function api.project_removable is
  'Checks whether a project may be deleted, before the server cancels its subscription. Refuses 404 NOT_FOUND, 409
   PROVISIONING_IN_PROGRESS, FUNCTION_DOMAINS_ATTACHED.';

create or replace function api.project_delete(project_id uuid, locations json) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  key_hash text;
  purge_id uuid;
begin
  -- a concurrent transaction that attaches a domain or a database to the project has committed, or waits for this lock
  perform from app.projects p
    where p.id = project_delete.project_id and p.organization_id = any (internal.organization_ids('owner'))
      and p.deleted_at is null
      for update;
  perform internal.check_found(found, 'project');
  perform internal.removal_refusal(project_delete.project_id);
  update app.projects p set deleted_at = internal.now() where p.id = project_delete.project_id;
  for key_hash in
    update app.api_keys k set is_active = false
     where k.project_id = project_delete.project_id and k.is_active
    returning k.key_hash
  loop
    perform internal.changed('key:' || key_hash);
  end loop;
  perform internal.changed('project:' || project_delete.project_id);
  for purge_id in
    insert into app.file_purges (project_id, location)
    select project_delete.project_id, l from json_array_elements(project_delete.locations) as l
    returning id
  loop
    perform internal.add_job('files__purge', json_build_object('purge_id', purge_id), 'purge ' || purge_id,
                             -- two at a time, whatever the storage: nobody waits for them
                             'purges ' || (hashtext(purge_id::text) & 1));
  end loop;
  perform internal.add_job('tenant__remove', json_build_object('project_id', project_delete.project_id),
                           'remove ' || project_delete.project_id);
  return internal.reply(200, json_build_object('deleted', true,
                                               'file_purge', json_build_object(
                                                 'locations', json_array_length(project_delete.locations))));
end $$;
comment on function api.project_delete is
  'Marks a project of the caller as deleted, deactivates its keys, and queues the removal of its database and its files,
   in this transaction; locations are where its files are stored. The server adds the end of the subscription to the
   response. Refuses 404 NOT_FOUND, 409 PROVISIONING_IN_PROGRESS, FUNCTION_DOMAINS_ATTACHED. Locks the project.';

create or replace function api.removal_begin(project_id uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select json_build_object('project_id', p.id, 'cluster_id', t.cluster_id, 'database_name', t.database_name)
      from app.projects p
      left join app.tenants t on t.project_id = p.id
     where p.id = removal_begin.project_id and p.deleted_at is not null))
$$;
comment on function api.removal_begin is
  'What remains of a deleted project, or null when it is removed completely or was never deleted.';

create or replace function api.removal_end(project_id uuid) returns api.reply
language plpgsql volatile as $$
begin
  -- the tenant's row is deleted first: while it exists, the database may exist
  delete from app.tenants t
   where t.project_id = removal_end.project_id
     and t.project_id in (select p.id from app.projects p where p.deleted_at is not null);
  delete from app.projects p where p.id = removal_end.project_id and p.deleted_at is not null;
  return internal.reply(200, to_json(found));
end $$;
comment on function api.removal_end is
  'Deletes the rows of a deleted project whose database has been dropped, with its keys. false when there was nothing to
   delete.';

create or replace function api.removals_left() returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(p.id), '[]'))
    from app.projects p
   where p.deleted_at < internal.now() - interval '1 minute'
$$;
comment on function api.removals_left is
  'Deleted projects whose removal is not complete, for the sweep to queue again.';

create or replace function api.file_purge_begin(purge_id uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select json_build_object('project_id', f.project_id, 'location', f.location)
      from app.file_purges f
     where f.id = file_purge_begin.purge_id and f.due_at <= internal.now()
       and not exists (select from app.projects p where p.id = f.project_id and p.deleted_at is null)))
$$;
comment on function api.file_purge_begin is
  'The location to purge, or null when the purge is not due or is complete. Never a location of a project that is not
   deleted.';

create or replace function api.file_purge_end(purge_id uuid, error text default null) returns api.reply
language plpgsql volatile as $$
declare
  purge app.file_purges;
begin
  select f.* into purge from app.file_purges f where f.id = file_purge_end.purge_id for update;
  -- another worker has purged the location concurrently and finished first: its scheduled second check is still due
  if purge.id is null or purge.due_at > internal.now() then
    return internal.reply(200, to_json(internal.iso(purge.due_at)));
  end if;
  if file_purge_end.error is null and purge.purged_at is not null then
    delete from app.file_purges f where f.id = purge.id;
    return internal.reply(200, 'null');
  end if;
  update app.file_purges f
     set attempts = case when file_purge_end.error is null then 0 else f.attempts + 1 end,
         purged_at = case when file_purge_end.error is null then internal.now() else f.purged_at end,
         error = file_purge_end.error,
         -- back-off: one, two, four minutes and so on, at most six hours; a purged location is checked once more,
         -- because an upload may have been in progress
         due_at = internal.now() + case when file_purge_end.error is null then interval '6 hours'
                                        else least(interval '6 hours',
                                                   interval '1 minute' * 2 ^ least(f.attempts, 20)) end
   where f.id = purge.id
  returning f.* into purge;
  return internal.reply(200, to_json(internal.iso(purge.due_at)));
end $$;
comment on function api.file_purge_end is
  'Records that a location was purged, or the error. Returns when it is due again; null after the second check, six
   hours later. Locks the row.';

create or replace function api.file_purges_due() returns api.reply
language sql stable as $$
  select internal.reply(200, coalesce(json_agg(f.id order by f.due_at), '[]'))
    from (select d.id, d.due_at from app.file_purges d where d.due_at <= internal.now() order by d.due_at limit 1000) f
$$;
comment on function api.file_purges_due is
  'Locations that are due, for the sweep to queue: their due time is stored in the row, not in a job.';
