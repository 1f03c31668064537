-- The log of changes: triggers write it without a place, and places are given after the commit by one session at a
-- time, as realtime and the audit trail number theirs. So the order of places is that of commits, and a reader that
-- keeps the last place it saw passes over nothing.

create or replace function internal.tg_collection_rows__sync() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  collection constant uuid := tg_argv[0];
  is_of_group constant boolean := tg_argv[1] = 'group';
  client constant bigint := nullif(current_setting('app.sync_origin', true), '');
  audiences uuid[];
begin
  -- shows others since when this transaction holds back what it writes: nobody waits for it
  perform pg_advisory_xact_lock_shared(73054423, floor(extract(epoch from internal.now()))::int - 1700000000);
  -- a statement is planned when it is reached: the columns of the other scope need not be there
  if tg_op = 'INSERT' and is_of_group then
    insert into app.sync_pending_changes (collection_id, row_id, audience, author, was_live, is_live, origin, at)
    select collection, n.id, n.group_id, n.user_id, false, true, client, internal.now()
      from inserted n where n.deleted_at is null;
  elsif tg_op = 'INSERT' then
    insert into app.sync_pending_changes (collection_id, row_id, audience, was_live, is_live, origin, at)
    select collection, n.id, n.user_id, false, true, client, internal.now()
      from inserted n where n.deleted_at is null;
  elsif tg_op = 'DELETE' and is_of_group then
    insert into app.sync_pending_changes (collection_id, row_id, audience, author, was_live, is_live, origin, at)
    select collection, o.id, o.group_id, o.user_id, true, false, client, internal.now()
      from replaced o where o.deleted_at is null;
  elsif tg_op = 'DELETE' then
    insert into app.sync_pending_changes (collection_id, row_id, audience, was_live, is_live, origin, at)
    select collection, o.id, o.user_id, true, false, client, internal.now()
      from replaced o where o.deleted_at is null;
  elsif is_of_group then
    insert into app.sync_pending_changes (collection_id, row_id, audience, author, was_live, is_live, origin, at)
    select collection, n.id, e.audience, e.author, e.was_live, e.is_live, client, internal.now()
      from replaced o
      join inserted n on n.id = o.id
     cross join lateral (select (o.group_id, o.user_id) is not distinct from (n.group_id, n.user_id) as is_same) s
     cross join lateral (values
       (o.group_id, o.user_id, o.deleted_at is null, n.deleted_at is null and s.is_same),
       (n.group_id, n.user_id, false, n.deleted_at is null and not s.is_same)
     ) as e (audience, author, was_live, is_live)
     where e.was_live or e.is_live;
  else
    insert into app.sync_pending_changes (collection_id, row_id, audience, was_live, is_live, origin, at)
    select collection, n.id, e.audience, e.was_live, e.is_live, client, internal.now()
      from replaced o
      join inserted n on n.id = o.id
     cross join lateral (values
       (o.user_id, o.deleted_at is null, n.deleted_at is null and o.user_id is not distinct from n.user_id),
       (n.user_id, false, n.deleted_at is null and o.user_id is distinct from n.user_id)
     ) as e (audience, was_live, is_live)
     where e.was_live or e.is_live;
  end if;
  if internal.has_subscribers() then
    if tg_op <> 'DELETE' and is_of_group then
      audiences := array(select distinct n.group_id from inserted n);
    elsif tg_op <> 'DELETE' then
      audiences := array(select distinct n.user_id from inserted n);
    end if;
    if tg_op <> 'INSERT' and is_of_group then
      audiences := audiences || array(select distinct o.group_id from replaced o);
    elsif tg_op <> 'INSERT' then
      audiences := audiences || array(select distinct o.user_id from replaced o);
    end if;
    if cardinality(audiences) > 0 then
      perform internal.sync_poke_rows(collection, audiences);
    end if;
  end if;
  return null;
end $$;
comment on function internal.tg_collection_rows__sync is
  'After a statement wrote rows of a synced collection, whoever wrote them: an entry for each row that was there before
   or is there now, two where it went to another owner. Arguments: the id of the collection and its owner_scope. Waits
   for nobody.';

create or replace function internal.collection_sync_sql(c app.collections) returns setof text
language sql stable as $$
  select case when (collection_sync_sql.c).sync
    then format('create or replace trigger %s on collections.%I referencing %s for each statement execute function '
                'internal.tg_collection_rows__sync(%L, %L)',
                t.name || ' ' || t.event, (collection_sync_sql.c).name, t.tables, (collection_sync_sql.c).id,
                (collection_sync_sql.c).owner_scope)
    else format('drop trigger if exists %I on collections.%I', t.name, (collection_sync_sql.c).name) end
    from (values ('collection_sync_in', 'after insert', 'new table as inserted'),
                 ('collection_sync_changed', 'after update', 'old table as replaced new table as inserted'),
                 ('collection_sync_out', 'after delete', 'old table as replaced')) as t (name, event, tables)
  union all
  -- a row that a client makes offline has its id already; no route but the push takes it
  select format(case when (collection_sync_sql.c).sync then 'grant insert (id) on collections.%I to app_user'
                     else 'revoke insert (id) on collections.%I from app_user' end, (collection_sync_sql.c).name)
$$;
comment on function internal.collection_sync_sql is
  'The statements that make the triggers of the log and the grant for pushed ids, or drop them where sync is off.';

create or replace function internal.tg_collections__sync() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if tg_op = 'DELETE' then
    update app.sync_collections k set dropped_at = internal.now() where k.collection_id = old.id;
    return null;
  end if;
  insert into app.sync_collections as k (collection_id, name) values (new.id, new.name)
  on conflict on constraint sync_collections_pkey do update set epoch = k.epoch + 1;
  return null;
end $$;
comment on function internal.tg_collections__sync is
  'Sync was switched on: a new epoch, whose rows come whole. A collection is dropped: its name is known for a month.';
create or replace trigger tg_collections__sync_in after insert on app.collections
  for each row when (new.sync) execute function internal.tg_collections__sync();
create or replace trigger tg_collections__sync_on after update of sync on app.collections
  for each row when (new.sync and not old.sync) execute function internal.tg_collections__sync();
create or replace trigger tg_collections__sync_out after delete on app.collections
  for each row execute function internal.tg_collections__sync();

create or replace function internal.sync_is_open() returns boolean
language sql volatile security definer set search_path = '' as $$
  select exists (
    select from pg_catalog.pg_locks l
     where l.locktype = 'advisory' and l.classid = 73054423
       and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database()))
$$;
comment on function internal.sync_is_open is
  'Whether a transaction that has written to the log is open, by its lock. Granted to nobody.';

create or replace function internal.sync_is_pending() returns boolean
language sql volatile security definer set search_path = ''
-- by the index, from where rows may be that are not dead
return exists (select from app.sync_pending_changes p where p.id > (select s.pending_after from app.sync_positions s)
                order by p.id limit 1);
comment on function internal.sync_is_pending is 'Whether changes that are committed have no place yet.';

create or replace function api.sync_number(needs_place boolean default false) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  most constant int := 5000;
  given bigint;
  last_id bigint;
  is_open boolean;
  numbered int := 0;
begin
  if internal.user_id() is null then
    raise exception 'places are given when a user asks for changes';
  end if;
  if sync_number.needs_place or internal.sync_is_pending() then
    -- waits for the session that numbers now; the next statement sees what that session left. Until the commit, so that
    -- places are in the order of commits
    perform internal.advisory_lock('sync');
    select s.place + 1 into given from app.sync_positions s;
    -- who writes takes the lock of internal.tg_collection_rows__sync before an id, and has it until the commit: where
    -- nobody has it, all ids so far are those of changes that the next statement sees, or that were undone
    last_id := pg_catalog.pg_sequence_last_value('app.sync_pending_changes_id_seq');
    is_open := internal.sync_is_open();
    with taken as (
      -- whatever is visible: a change that commits later gets a later place, whenever its transaction began
      delete from app.sync_pending_changes p
       where p.id in (select w.id from app.sync_pending_changes w
                       where w.id > (select s.pending_after from app.sync_positions s) order by w.id limit most)
      returning p.*
    )
    insert into app.sync_changes (place, id, collection_id, row_id, audience, author, was_live, is_live, origin, at)
    select given, t.id, t.collection_id, t.row_id, t.audience, t.author, t.was_live, t.is_live, t.origin, t.at
      from taken t
     order by t.id;
    get diagnostics numbered = row_count;
    if numbered > 0 or sync_number.needs_place then
      update app.sync_positions s
         set place = given,
             pending_after = greatest(s.pending_after, case when not is_open and not internal.sync_is_pending()
                                                            then last_id end);
      insert into app.sync_times (place, at)
      select given, internal.now()
       where not exists (select from (select t.at from app.sync_times t order by t.place desc limit 1) l
                          where l.at > internal.now() - interval '1 minute' and l.at <= internal.now());
    end if;
  end if;
  return internal.reply(200, json_build_object('is_over', numbered < most, 'hint',
                                               (select (s.place * 10000)::text from app.sync_positions s)));
end $$;
comment on function api.sync_number is
  'For the server, in a transaction of its own before a pull and after a push: gives the next place to at most 5000
   committed changes, or with needs_place to none as well. is_over is false while there may be more; a pull that ends
   with a checkpoint of at least hint has all of them. One session at a time numbers in a database.';

create or replace function api.sync_hint() returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  caller constant uuid := internal.user_id();
  waiting bigint;
  place bigint;
begin
  -- whoever gives places now may have begun before the push was committed, and passes it over
  if caller is not null and internal.try_advisory_lock('sync') then
    -- in one statement: what was pushed has no place, or the last one or one before
    select s.place, (select count(*) from (select from app.sync_pending_changes p where p.id > s.pending_after
                                             order by p.id limit 2001) p)
      into place, waiting from app.sync_positions s;
  end if;
  return internal.reply(200, json_build_object('hint', case
    when waiting <= 2000 then ((place + (waiting > 0)::int) * 10000)::text end));
end $$;
comment on function api.sync_hint is
  'For the server, after a push was committed: a pull that ends with a checkpoint of at least hint has what was pushed,
   as the next session that gives places takes all that has none. Null where a session gives places now or looks
   for a hint, or so many wait that it could need two.';

create or replace function internal.purge__sync(most int default 5000) returns bigint
language plpgsql volatile security definer set search_path = '' as $$
declare
  old constant timestamptz := internal.now() - interval '31 days';
  lowest constant bigint := (select max(t.place) from app.sync_times t where t.at < old);
  deleted bigint;
begin
  -- where a copy of the database has its numbers from an earlier time: nothing is passed over for ever
  update app.sync_positions s set pending_after = 0
   where s.pending_after > coalesce(pg_catalog.pg_sequence_last_value('app.sync_pending_changes_id_seq'), 0);
  if lowest is not null then
    update app.sync_positions s set floor = lowest where s.floor < lowest;
    delete from app.sync_times t where t.place < lowest;
    deleted := internal.purge_rows('app.sync_changes', format('t.place <= %s', lowest), purge__sync.most);
  end if;
  deleted := greatest(deleted, internal.purge_rows('app.sync_steps', 't.at < internal.now() - interval ''31 days''',
                                                   purge__sync.most));
  deleted := greatest(deleted, internal.purge_rows('app.sync_checkpoints',
                                                   't.used_at < internal.now() - interval ''31 days''',
                                                   purge__sync.most));
  deleted := greatest(deleted, internal.purge_rows('app.sync_collections',
                                                   't.dropped_at < internal.now() - interval ''31 days''',
                                                   purge__sync.most));
  -- a view that another one followed a month ago
  deleted := greatest(deleted, internal.purge_rows('app.sync_views',
    'exists (select from app.sync_views n where n.checkpoint_id = t.checkpoint_id and n.since > t.since '
    'and n.at < internal.now() - interval ''31 days'')', purge__sync.most));
  return greatest(deleted, internal.purge_rows('app.sync_mutations', 't.at < internal.now() - interval ''30 days''',
                                               purge__sync.most));
end $$;
comment on function internal.purge__sync is
  'Daily: the log and checkpoints after 31 days, results of mutations after 30. A checkpoint of a place that is below
   the floor afterwards is refused.';
