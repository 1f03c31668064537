-- Retention: expired rows are deleted once a day, a few thousand in a transaction, so that no lock and no snapshot is
-- held for long however many there are. No function depends on the deletion: a day late is never wrong.
create or replace function internal.purge_rows(source regclass, condition text, most int) returns bigint
language plpgsql volatile as $$
declare
  deleted bigint;
begin
  execute format('delete from %1$s t where t.ctid = any (array(select t.ctid from %1$s t where %2$s limit $1))',
                 purge_rows.source, purge_rows.condition)
    using purge_rows.most;
  get diagnostics deleted = row_count;
  return deleted;
end $$;
comment on function internal.purge_rows is
  'Deletes so many rows t of a table for which a condition holds, SQL of the function that calls this, and answers how
   many. Not for partitioned tables. For definer functions, whose own SQL the condition is: granted to nobody.';

create or replace function internal.purge__requests(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  select greatest(internal.purge_rows('app.idempotency_keys', 't.created_at < internal.now() - interval ''24 hours''',
                                      purge__requests.most),
                  internal.purge_rows('app.rate_limits', 't.started_at < internal.now() - interval ''2 days''',
                                      purge__requests.most))
$$;
comment on function internal.purge__requests is
  'Daily: stored responses of Idempotency-Keys after 24 hours, and windows of rate limits after two days.';

create or replace function internal.purges() returns setof text
language sql stable as $$
  select p.proname::text
    from pg_catalog.pg_proc p
   where p.pronamespace = 'internal'::regnamespace and p.proname like 'purge\_\_%'
   order by p.proname
$$;
comment on function internal.purges is
  'The functions internal.purge__<area>(most int) returns bigint of all areas, in the order in which they run.';

create or replace function api.tenant_purge_step(purge text default null, batch int default 5000) returns api.reply
language plpgsql volatile as $$
declare
  current constant text := (select p from internal.purges() p where p >= coalesce(tenant_purge_step.purge, '')
                             order by p limit 1);
  deleted bigint := 0;
begin
  if current is not null then
    execute format('select internal.%I($1)', current) into deleted using tenant_purge_step.batch;
  end if;
  return internal.reply(200, json_build_object(
    'purge', current, 'deleted', deleted,
    'next', case when deleted >= tenant_purge_step.batch then current
                 else (select p from internal.purges() p where p > current order by p limit 1) end));
end $$;
comment on function api.tenant_purge_step is
  'For the daily maintenance: one step of an area''s purge, {purge, deleted, next}. next names the purge of the step to
   come, this one again while it deletes as many as it may, null after the last. Safe to be broken off and begun
   again.';

create or replace function api.tenant_purge() returns api.reply
language plpgsql volatile as $$
declare
  purge text;
begin
  for purge in select p from internal.purges() p loop
    execute format('select internal.%I(null)', purge);
  end loop;
  return internal.reply(200, 'true');
end $$;
comment on function api.tenant_purge is
  'Deletes expired rows of every area at once, for the server of the former version: it runs each function
   internal.purge__<area>(most int), without a limit.';
