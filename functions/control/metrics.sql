-- What the servers export as metrics of the whole installation (docs/metrics.md): one call at each collection.
create or replace function internal.job_counts(most int) returns json
language plpgsql stable security definer set search_path = '' as $$
begin
  return (
    select json_build_object(
             'tasks', coalesce(json_agg(json_build_object('task', c.task, 'ready', c.ready, 'failed', c.failed,
                                                          'oldest_seconds', c.oldest_seconds)
                                        order by c.task), '[]'),
             'drains', (select coalesce(json_agg(d.project_id order by d.run_at), '[]')
                          from (select split_part(j.key, ':', 1) as project_id, min(j.run_at) as run_at
                                  from graphile_worker.jobs j
                                 where j.task_identifier = 'tenant__drain' and j.locked_at is null
                                   and j.run_at <= internal.now()
                                   and j.attempts < j.max_attempts
                                 group by 1
                                 order by 2
                                 limit job_counts.most) d))
      from (select j.task_identifier as task,
                   count(*) filter (where j.locked_at is null and j.run_at <= internal.now()
                                      and j.attempts < j.max_attempts) as ready,
                   count(*) filter (where j.attempts >= j.max_attempts) as failed,
                   coalesce(extract(epoch from internal.now() - min(j.run_at)
                              filter (where j.locked_at is null and j.run_at <= internal.now()
                                        and j.attempts < j.max_attempts)), 0)
                     as oldest_seconds
              from graphile_worker.jobs j
             group by 1) c);
end $$;
comment on function internal.job_counts is
  'The control queue: {tasks: [{task, ready, failed, oldest_seconds}], drains: [project_id]}, with at most that many
   projects whose drain waits, the one that has waited longest first. Definer rights, because graphile-worker''s tables
   are granted to nobody.';

create or replace function internal.postgres_counts() returns json
language sql stable as $$
  select json_build_object(
           'backends', sum(d.numbackends), 'connections', current_setting('max_connections')::int,
           'commits', sum(d.xact_commit), 'rollbacks', sum(d.xact_rollback), 'blocks_read', sum(d.blks_read),
           'blocks_hit', sum(d.blks_hit),
           'deadlocks', sum(d.deadlocks), 'temporary_bytes', sum(d.temp_bytes),
           'transaction_age', (select max(age(b.datfrozenxid)) from pg_catalog.pg_database b))
    from pg_catalog.pg_stat_database d
$$;
comment on function internal.postgres_counts is
  'Of the server of the control database, all its databases together: {backends, connections, commits, rollbacks,
   blocks_read, blocks_hit, deadlocks, temporary_bytes, transaction_age}; counts since the statistics were reset.';

create or replace function api.metrics(content_hash text, most int) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object(
    'queue', internal.job_counts(metrics.most),
    'postgres', internal.postgres_counts(),
    'projects', (select coalesce(json_object_agg(s.status, s.count), '{}')
                   from (select t.status, count(*) as count
                           from app.tenants t
                           join app.projects p on p.id = t.project_id and p.deleted_at is null
                          group by 1) s),
    'behind', (select json_build_object('older', count(*) filter (where t.content_hash <> metrics.content_hash
                                                                    and t.migration_status <> 'failed'),
                                        'failed', count(*) filter (where t.migration_status = 'failed'))
                 from app.tenants t
                 join app.projects p on p.id = t.project_id and p.deleted_at is null
                where t.status = 'ready')))
$$;
comment on function api.metrics is
  'The state of the installation, for metrics: {queue: internal.job_counts, postgres: internal.postgres_counts,
   projects: {status: count}, behind: {older, failed}}. content_hash is of the tenant program that the asking server
   runs.';
