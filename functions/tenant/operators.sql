-- What operators see of a project's failed work, for scripts/admin: run as the owner of the database, granted to
-- nobody.
create or replace function internal.operator_failures(page_limit int) returns json
language sql stable as $$
  select json_build_object(
    'outbox', (select coalesce(json_agg(json_build_object('id', f.id, 'task', f.task, 'key', f.key,
                                                          'attempts', f.attempts, 'error', f.last_error,
                                                          'failed_at', internal.iso(f.failed_at))
                                                            order by f.failed_at desc, f.id), '[]')
                 from (select o.id, o.task, o.key, o.attempts, o.last_error, o.failed_at
                         from app.outbox o where o.failed_at is not null order by o.failed_at desc, o.id
                           limit operator_failures.page_limit) f),
    'deliveries', (select coalesce(json_agg(json_build_object(
                            'id', f.id, 'event', f.event_name, 'url', f.target_url, 'attempts', f.attempts,
                              'status', f.status,
                            'reason', f.failed_reason, 'error', f.error, 'status_code', f.status_code,
                            'settled_at', internal.iso(f.settled_at)) order by f.settled_at desc, f.id), '[]')
                     from (select d.id, d.event_name, w.target_url, d.attempts, d.status, d.failed_reason, d.settled_at,
                           a.error, a.status_code
                             from app.webhook_deliveries d
                             join app.webhooks w on w.id = d.webhook_id
                             left join app.webhook_attempts a on a.delivery_id = d.id and a.n = d.attempts
                            where d.status in ('dlq', 'failed')
                            order by d.settled_at desc, d.id
                            limit operator_failures.page_limit) f))
$$;
comment on function internal.operator_failures is
  'Work that was given up, newest first: {outbox: [{id, task, key, attempts, error, failed_at}], deliveries: [{id,
   event, url, attempts, status, reason, error, status_code, settled_at}]}. Granted to nobody.';

create or replace function internal.operator_retry(ids uuid[], page_limit int) returns json
language plpgsql volatile as $$
declare
  again uuid[];
  rows_again int;
  deliveries_again int;
begin
  -- null: all that failed
  update app.outbox o
     set failed_at = null, attempts = 0, due_at = internal.now(), locked_until = null
   where o.id in (select f.id from app.outbox f
                   where f.failed_at is not null and (operator_retry.ids is null
                                                      or f.id in (select unnest(operator_retry.ids)))
                   order by f.failed_at, f.id
                   limit operator_retry.page_limit
                     for update);
  get diagnostics rows_again = row_count;
  select array_agg(f.id) into again
    from (select d.id from app.webhook_deliveries d
            join app.webhooks w on w.id = d.webhook_id and w.status <> 'disabled'
           where d.status in ('dlq', 'failed') and (operator_retry.ids is null
                                                    or d.id in (select unnest(operator_retry.ids)))
           order by d.settled_at, d.id
           limit operator_retry.page_limit) f;
  select count(*) into deliveries_again from internal.webhook_requeue(again);
  return json_build_object('outbox', rows_again, 'deliveries', deliveries_again);
end $$;
comment on function internal.operator_retry is
  'Gives work that was given up new attempts at once, at most so many rows of each kind: these rows and deliveries, or
   all where ids is null; deliveries of a disabled subscription stay as they are. {outbox, deliveries} counts them.
   Locks the rows. Granted to nobody.';

create or replace function internal.tenant_arrived() returns void
language plpgsql volatile as $$
begin
  -- ids of transactions are of the server that gave them: nothing of the former one runs here, and every change waits
  -- to be folded
  update app.leaderboard_folds f set folded_to = '1';
  update app.leaderboard_runs r set fence = null where r.fence is not null;
  update app.league_runs r set fence = null where r.fence is not null;
  -- a worker of the former server may finish its task, and cannot say so any more
  update app.outbox o set locked_until = least(o.locked_until, internal.now() + interval '15 seconds')
    where o.locked_until is not null;
end $$;
comment on function internal.tenant_arrived is
  'After a move to another server, before the project is served there: what rows say of transactions of the former
   server is forgotten. Granted to nobody.';
