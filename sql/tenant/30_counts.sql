-- Counted rows: how many rows a table has, or how many of them each value of one column, without reading them. A change
-- of the table adds to a counter in the same transaction, so in every snapshot the counters are as many as the rows. A
-- counter is a few rows, slots, whose sum it is: a writer adds to a slot that nobody holds, or makes one, so writers
-- never wait for each other, and there are about as many slots as writers at once.
create or replace function internal.slots_declare(name text, source regclass, keys text[], sums text[]) returns void
language plpgsql volatile as $$
declare
  columns constant text[] := slots_declare.keys || slots_declare.sums;
  arguments constant text := (select string_agg(format('%I %s', c.name, c.kind), ', ' order by c.n)
                                from internal.list_columns(slots_declare.source, columns) c);
begin
  execute format('create or replace function internal.%I(%s) returns void language plpgsql volatile security definer '
                 'set search_path = %L as %L',
                 slots_declare.name, arguments, '', format($body$
begin
  -- under another isolation level a slot that changed meanwhile would be an error
  if current_setting('transaction_isolation') = 'read committed' then
    update %1$s c
       set %2$s
     where c.slot = (select f.slot from %1$s f where %3$s limit 1 for no key update skip locked);
    if found then
      return;
    end if;
  end if;
  insert into %1$s (%4$s) values (%5$s);
end$body$, slots_declare.source,
           (select string_agg(format('%1$I = c.%1$I + %2$I.%1$I', c.name, slots_declare.name), ', ' order by c.n)
              from unnest(slots_declare.sums) with ordinality c (name, n)),
           (select coalesce(string_agg(format('f.%1$I = %2$I.%1$I', c.name, slots_declare.name), ' and ' order by c.n),
                            'true')
              from unnest(slots_declare.keys) with ordinality c (name, n)),
           (select string_agg(format('%I', c.name), ', ' order by c.n)
              from unnest(columns) with ordinality c (name, n)),
           (select string_agg(format('%I.%I', slots_declare.name, c.name), ', ' order by c.n)
              from unnest(columns) with ordinality c (name, n))));
  execute format('comment on function internal.%I(%s) is %L', slots_declare.name, arguments,
                 format('Adds to sums of %s, in a slot that nobody holds, or makes one. Waits for nobody. Made by '
                        'internal.slots_declare. Granted to nobody.',
                        slots_declare.source));
end $$;
comment on function internal.slots_declare is
  'For files of functions: compiles internal.<name>(keys.., sums..), which adds to columns of a table of slots. What it
   holds for its keys is the sum of their slots, so writers never wait for each other. Granted to nobody.';

create or replace function internal.counted(name text, key uuid default '00000000-0000-0000-0000-000000000000')
returns bigint
language plpgsql stable security definer set search_path = '' as $$
begin
  return (select coalesce((select sum(c.n) from app.row_counts c where (c.name, c.key) = (counted.name, counted.key)),
                          0)::bigint
            from app.row_counters r
           where r.name = counted.name);
end $$;
comment on function internal.counted is
  'What a counter says, in the snapshot of who asks; null when the rows were never counted, which the loader does. It
   knows no policies.';

create or replace function internal.reads_every_row(source regclass) returns boolean
language sql stable as $$
  select not row_security_active(reads_every_row.source)
         or (exists (select from pg_catalog.pg_policy p
                      where p.polrelid = reads_every_row.source and p.polpermissive and p.polcmd in ('r', '*')
                        and (p.polroles = '{0}' or current_user::regrole::oid = any (p.polroles))
                        and pg_catalog.pg_get_expr(p.polqual, p.polrelid) = 'true')
             and not exists (select from pg_catalog.pg_policy p
                              where p.polrelid = reads_every_row.source and not p.polpermissive
                                and p.polcmd in ('r', '*')))
$$;
comment on function internal.reads_every_row is
  'Whether policies show all rows of a table to the current role: then a counter is what the role would count.';

create or replace function internal.list_counted(name text, source regclass,
                                                 key uuid default '00000000-0000-0000-0000-000000000000')
returns bigint
language sql stable as $$
  select case when internal.reads_every_row(list_counted.source) then internal.counted(list_counted.name,
                                        list_counted.key) end
$$;
comment on function internal.list_counted is
  'How many rows the current role sees, by a counter; null where they must be counted one by one.';

create or replace function internal.count_key(value text) returns uuid
language sql immutable parallel safe
return md5(count_key.value)::uuid;
comment on function internal.count_key is
  'The key of the counter of a text value, for counters by a column of type text.';

create or replace function internal.count_declare(name text, source regclass, key text default null,
                                                  condition text default null, condition_reads text[] default '{}')
returns void
language plpgsql volatile as $$
declare
  nobody constant text := '''00000000-0000-0000-0000-000000000000''::uuid';
  keyed constant text := case when count_declare.key is null then nobody
                              when (select k.kind from internal.list_columns(count_declare.source,
                                        array[count_declare.key]) k) = 'uuid' then format('%%1$s.%I', count_declare.key)
                              else format('internal.count_key(%%1$s.%I)', count_declare.key) end;
  rows_of constant text := format(
    'select %s as key, count(*) as n from %%s r where %s group by 1', format(keyed, 'r'),
    concat_ws(' and ', 'true', case when count_declare.key is not null then format('r.%I is not null',
                                        count_declare.key) end,
              case when count_declare.condition is not null then format('internal.%I(r)',
                                                                        count_declare.condition) end));
  one_of constant text := format(
    'select %s, 1 where %s', keyed,
    concat_ws(' and ', 'true', case when count_declare.key is not null then format('%%1$s.%I is not null',
                                        count_declare.key) end,
              case when count_declare.condition is not null then format('internal.%I(%%1$s)',
                                                                        count_declare.condition) end));
  watched constant text := (select string_agg(format('%I', c), ', ' order by c)
                              from unnest(count_declare.condition_reads || array[count_declare.key]) c
                                where c is not null);
  counting constant text := 'tg_count__' || count_declare.name;
begin
  if (count_declare.condition is null) <> (count_declare.condition_reads = '{}') then
    raise exception 'a condition comes with the columns that it reads';
  end if;
  execute format($make$
    create or replace function internal.%1$I()
    returns trigger language plpgsql volatile security definer set search_path = '' as %2$L$make$,
    counting,
    format($body$
begin
  if tg_op = 'INSERT' then
    perform internal.count_change(%1$L, c.key, c.n) from (%2$s) c;
  elsif tg_op = 'DELETE' then
    perform internal.count_change(%1$L, c.key, -c.n) from (%3$s) c;
  elsif tg_op = 'UPDATE' then
    perform internal.count_change(%1$L, c.key, c.n) from (%4$s) c (key, n);
    perform internal.count_change(%1$L, c.key, -c.n) from (%5$s) c (key, n);
  else
    delete from app.row_counts c where c.name = %1$L;
  end if;
  return null;
end$body$, count_declare.name, format(rows_of, 'new_rows'), format(rows_of, 'old_rows'), format(one_of, 'new'),
  format(one_of, 'old')));
  execute format('comment on function internal.%I() is %L', counting,
                 format('Keeps the counter %s of %s. Made by internal.count_declare.', count_declare.name, source));
  execute format('create or replace function internal.%I() returns table (key uuid, n bigint) language sql stable as '
                 '%L',
                 'count_now__' || count_declare.name, format(rows_of, source));
  execute format('comment on function internal.%I() is %L', 'count_now__' || count_declare.name,
                 format('Counts what the counter %s of %s holds. Made by internal.count_declare. Granted to nobody.',
                        count_declare.name, source));
  execute format('create or replace trigger %I after insert on %s referencing new table as new_rows for each '
                 'statement execute function internal.%I()',
                 counting || '_of_insert', source, counting);
  execute format('create or replace trigger %I after delete on %s referencing old table as old_rows for each '
                 'statement execute function internal.%I()',
                 counting || '_of_delete', source, counting);
  execute format('create or replace trigger %I after truncate on %s for each statement execute function internal.%I()',
                 counting || '_of_truncate', source, counting);
  if watched is not null then
    execute format('create or replace trigger %1$I after update of %2$s on %3$s for each row when (%4$s) execute '
                   'function internal.%5$I()',
                   counting || '_of_update', watched, source,
                   (select string_agg(format('old.%1$I is distinct from new.%1$I', c), ' or ' order by c)
                      from unnest(count_declare.condition_reads || array[count_declare.key]) c where c is not null),
                   counting);
  end if;
end $$;
comment on function internal.count_declare is
  'For files of functions: keeps a counter of the rows of a table, by triggers, for internal.counted(name[, key]). key
   is a column of type uuid or text: then there is a counter for each of its values, which internal.count_key makes a
   key of if they are text. condition is internal.<condition>(row) for the rows that count, an immutable question about
   the columns condition_reads. What is there already is counted when the loader has applied the file. A declaration
   that changes takes a new name. Granted to nobody.';

-- the declaration of former versions: with two, a call would name neither
drop function if exists internal.counters_begin(text[]);

create or replace function internal.counters_begin() returns void
language plpgsql volatile as $$
declare
  counter record;
begin
  for counter in
    select substr(p.proname, length('count_now__') + 1) as name, t.tgrelid::regclass as source
      from pg_catalog.pg_proc p
      join pg_catalog.pg_trigger t on t.tgname = 'tg_count__' || substr(p.proname,
                                                                        length('count_now__') + 1) || '_of_insert'
     where p.pronamespace = 'internal'::regnamespace and p.proname like 'count\_now\_\_%'
       and not exists (select from app.row_counters r where r.name = substr(p.proname, length('count_now__') + 1))
     order by 1
  loop
    -- from here on the triggers count, and nobody is half way
    execute format('lock table %s in share row exclusive mode', counter.source);
    delete from app.row_counts c where c.name = counter.name;
    execute format('insert into app.row_counts (name, key, n) select $1, c.key, c.n from internal.%I() c',
                   'count_now__' || counter.name) using counter.name;
    insert into app.row_counters (name) values (counter.name);
  end loop;
  -- what is not counted any more would be wrong when it is declared again
  delete from app.row_counters r where to_regproc(format('internal.%I', 'count_now__' || r.name)) is null;
  delete from app.row_counts c where not exists (select from app.row_counters r where r.name = c.name);
end $$;
comment on function internal.counters_begin is
  'Counts the rows of each declared counter that was never counted, and forgets those that are declared no more. Locks
   their tables against writers. For the loader, after each change of functions; and for who has loaded rows with
   triggers switched off, after deleting the names of their counters from app.row_counters. Granted to nobody.';

create or replace function internal.purge__row_counts(most int default 5000) returns bigint
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- slots that nobody holds become one: their sum stays what it is, in every snapshot
  with free as materialized (
    select c.slot, c.name, c.key, c.n from app.row_counts c for update skip locked
  ), crowded as (
    select f.name, f.key, sum(f.n)::bigint as n, array_agg(f.slot) as slots from free f group by f.name, f.key
    having count(*) > 1 or sum(f.n) = 0
  ), gone as (
    delete from app.row_counts c using crowded w where c.slot = any (w.slots)
  )
  insert into app.row_counts (name, key, n) select w.name, w.key, w.n from crowded w where w.n <> 0;
  return 0;
end $$;
comment on function internal.purge__row_counts is
  'Daily: makes one slot of the slots of a counter, and forgets counters that are at zero. Part of api.tenant_purge.
   Waits for nobody.';
