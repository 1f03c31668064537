-- Pulls. One goes from the place of its checkpoint to the last place there was when its first page was asked for, in
-- three phases, each in an order of its own: (1) ids of rows that what decides has taken away, (2) what the log says
-- has changed, (3) rows that what decides has given. A row that the log names is in the second phase only. Rows are
-- read under the policies of the caller; what was shown follows from the log and from what decided then.

create or replace function internal.sync_differs(pull jsonb) returns setof uuid
language sql immutable as $$
  select i.key::uuid
    from jsonb_object_keys(sync_differs.pull -> 'is') as i (key)
   where not internal.sync_same(sync_differs.pull -> 'is' -> i.key, sync_differs.pull -> 'was' -> i.key)
   order by i.key::uuid
$$;
comment on function internal.sync_differs is
  'The collections of which other rows are shown than were. Granted to nobody.';

create or replace function internal.sync_was(pull jsonb, collection_id text) returns jsonb
language sql immutable as $$
  select w.access from (values (sync_was.pull -> 'was' -> sync_was.collection_id)) as w (access)
   where w.access -> 'e' = sync_was.pull -> 'is' -> sync_was.collection_id -> 'e'
$$;
comment on function internal.sync_was is
  'How a collection was shown; null where a client that had it holds nothing of it, because sync was off. Granted to
   nobody.';

create or replace function internal.sync_log_sql(pull jsonb, source text) returns text
language sql stable as $$
  -- what is read of the log, one part for each index that serves it
  with accesses as (
    select a.key, x.access, c.owner_scope
      from jsonb_object_keys(sync_log_sql.pull -> 'is') as a (key)
      join app.collections c on c.id = a.key::uuid
     cross join lateral (values (sync_log_sql.pull -> 'is' -> a.key),
                                (internal.sync_was(sync_log_sql.pull, a.key))) as x (access)
     where x.access is not null
  ), parts as (
    select format('select e.* from %s e where e.collection_id = any (%L::uuid[])', sync_log_sql.source,
                  array_agg(distinct a.key)) as part
      from accesses a where a.access ->> 'k' = 'all' having count(*) > 0
    union all
    select format('select e.* from %s e where e.audience = any (%L::uuid[]) and e.collection_id = any (%L::uuid[])',
                  sync_log_sql.source,
                  array(select internal.user_id()::text
                        union
                        select jsonb_array_elements_text(b.access -> 's') from accesses b
                         where b.access ->> 'k' in ('groups', 'own')),
                  array_agg(distinct a.key))
      from accesses a
     where a.access ->> 'k' in ('mine', 'groups', 'own')
       and not exists (select from accesses b where b.key = a.key and b.access ->> 'k' = 'all')
    having count(*) > 0
  )
  select coalesce(string_agg('(' || p.part || ' %1$s)', ' union all '),
                  format('(select e.* from %s e where false %%1$s)', sync_log_sql.source))
    from parts p
$$;
comment on function internal.sync_log_sql is
  'A query of the entries of the log that may concern a pull, with %1$s where a condition on e goes. Granted to
   nobody.';

create or replace function internal.sync_changed(pull jsonb, after_id bigint, most bigint,
                                                 out collection_id uuid, out row_id uuid, out last_id bigint,
                                                 out is_held boolean, out is_shown boolean)
returns setof record
language plpgsql stable security definer set search_path = '' set enable_seqscan = off set enable_nestloop = off
  set jit = off as $$
declare
  caller constant uuid := internal.user_id();
  base constant bigint := sync_changed.pull ->> 'base';
  target constant bigint := sync_changed.pull ->> 'target';
  client constant bigint := sync_changed.pull ->> 'client';
  missed constant uuid[] := array(select jsonb_array_elements_text(sync_changed.pull -> 'was_missed')::uuid);
  everybodys uuid[];
  others uuid[];
  owners uuid[];
begin
  if base is null or base >= target then
    return;
  end if;
  -- one part for each index of the log; what is shown to all needs no other
  select coalesce(array_agg(i.key::uuid) filter (where a.is_all), '{}'),
         coalesce(array_agg(i.key::uuid) filter (where not a.is_all), '{}')
    into everybodys, others
    from jsonb_each(sync_changed.pull -> 'is') as i (key, value)
   cross join lateral (
     select i.value ->> 'k' = 'all'
            or coalesce(internal.sync_was(sync_changed.pull, i.key) ->> 'k' = 'all', false) as is_all) a;
  owners := array(
    select caller
    union
    select jsonb_array_elements_text(a.access -> 's')::uuid
      from jsonb_each(sync_changed.pull -> 'is') as i (key, value)
     cross join lateral (values (i.value), (internal.sync_was(sync_changed.pull, i.key))) as a (access)
     where a.access ->> 'k' in ('groups', 'own'));
  return query
    with accesses as materialized (
      select i.key::uuid as collection_id, i.value ->> 'k' as is_kind, w.was ->> 'k' as was_kind,
             array(select jsonb_array_elements_text(i.value -> 's')::uuid) as is_groups,
             array(select jsonb_array_elements_text(w.was -> 's')::uuid) as was_groups
        from jsonb_each(sync_changed.pull -> 'is') as i (key, value)
       cross join lateral (values (internal.sync_was(sync_changed.pull, i.key))) as w (was)
    ), entries as (
      select e.* from app.sync_changes e
       where e.collection_id = any (everybodys) and e.place > base and e.place <= target
      union all
      select e.* from app.sync_changes e
       where e.audience = any (owners) and e.collection_id = any (others) and e.place > base and e.place <= target
      union all
      -- what the client has pushed into a group that its user joined and left in between
      select e.* from app.sync_changes e
       where e.origin = client and e.audience <> all (owners) and e.collection_id = any (others)
         and e.place > base and e.place <= target
    ), judged as (
      select e.*,
             case a.was_kind when 'all' then true
                             when 'mine' then e.audience = caller
                             when 'groups' then e.audience = any (a.was_groups)
                             when 'own' then e.audience = any (a.was_groups) and e.author = caller
                             else false end as was_shown,
             case a.is_kind when 'all' then true
                            when 'mine' then e.audience = caller
                            when 'groups' then e.audience = any (a.is_groups)
                            when 'own' then e.audience = any (a.is_groups) and e.author = caller
                            else false end as is_shown
        from entries e
        join accesses a on a.collection_id = e.collection_id
    ), grouped as (
      -- an id with a bit beside it: sums of a hash, where arrays in an order would sort the whole log for each page
      select d.collection_id, d.row_id, max(d.id) as last_id,
             -- the first entry since then of a row as it was shown says whether it was there
             coalesce(min(d.id * 2 + d.was_live::int) filter (where d.was_shown) & 1, 0) = 1 as was_shown,
             coalesce(bool_or(d.is_live and d.origin = client), false) as is_own,
             -- what came and went is never read
             coalesce(max(d.id * 2 + coalesce(d.is_live and d.is_shown, false)::int) & 1, 0) = 1 as is_shown
        from judged d
       group by d.collection_id, d.row_id
    )
    select g.collection_id, g.row_id, g.last_id, h.is_held, g.is_shown
      from grouped g
     cross join lateral (select g.was_shown and g.row_id <> all (missed) or g.is_own as is_held) h
     where g.last_id > sync_changed.after_id and (h.is_held or g.is_shown)
     order by g.last_id
     limit sync_changed.most;
end $$;
comment on function internal.sync_changed is
  'Rows that have changed between the places of a pull and that the client holds or is shown, in the order of their last
   change. It holds those that were shown, but for those that the last pull missed, and those that it pushed itself;
   is_shown are those that were there at the last place and are shown.';

create or replace function internal.sync_lost(pull jsonb, collection_id uuid, after_id uuid, most bigint)
returns setof uuid
language plpgsql stable security definer set search_path = '' as $$
declare
  key constant text := sync_lost.collection_id::text;
  caller constant text := quote_literal(internal.user_id());
  was constant jsonb := internal.sync_was(sync_lost.pull, key);
  shown constant jsonb := sync_lost.pull -> 'is' -> key;
  c app.collections;
begin
  if was is null or sync_lost.pull -> 'base' = 'null' then
    return;
  end if;
  select k.* into c from app.collections k where k.id = sync_lost.collection_id;
  return query execute format(
    'with later as (select distinct on (e.row_id) e.row_id, e.was_live, (%1$s) and not (%2$s) as is_lost from ('
    '(select e.* from (%3$s) e) union all (select $1, e.* from (%4$s) e)) e order by e.row_id, e.id) '
    'select l.id from (select t.id from collections.%5$I t where (%6$s) and (%7$s) is not true '
    'and t.deleted_at is null and t.id > $2 '
    'and not exists (select from later n where n.row_id = t.id and not n.was_live) union '
    'select n.row_id from later n where n.was_live and n.is_lost and n.row_id > $2) l '
    'where l.id <> all ($3) order by l.id limit $4',
    internal.sync_condition(was, 'e.audience', 'e.author', caller),
    internal.sync_condition(shown, 'e.audience', 'e.author', caller),
    format(internal.sync_log_sql(sync_lost.pull, 'app.sync_changes'),
           format('and e.place > $1 and e.collection_id = %L', key)),
    format(internal.sync_log_sql(sync_lost.pull, 'app.sync_pending_changes'), format('and e.collection_id = %L', key)),
    c.name,
    internal.sync_condition(was, case c.owner_scope when 'group' then 't.group_id' else 't.user_id' end, 't.user_id',
                            caller),
    internal.sync_condition(shown, case c.owner_scope when 'group' then 't.group_id' else 't.user_id' end, 't.user_id',
                            caller))
    using (sync_lost.pull ->> 'target')::bigint, coalesce(sync_lost.after_id, '00000000-0000-0000-0000-000000000000'),
          array(select d.row_id from internal.sync_changed(sync_lost.pull, 0, null) d
                 where d.collection_id = sync_lost.collection_id), sync_lost.most;
end $$;
comment on function internal.sync_lost is
  'Ids of rows of a collection that were shown at the base of a pull and are not any more, by what decides, as there
   were at its target, without those that the log names.';

create or replace function internal.sync_shown(pull jsonb, c app.collections) returns text
language sql stable security definer set search_path = '' as $$
  select internal.sync_condition(sync_shown.pull -> 'is' -> (sync_shown.c).id::text,
                                 case (sync_shown.c).owner_scope when 'group' then 't.group_id' else 't.user_id' end,
                                 't.user_id', quote_literal(internal.user_id()))
$$;
comment on function internal.sync_shown is
  'The condition under which a pull shows a row of t: by what decided when it began. What the caller has been given
   since is the next pull''s, which would take it for rows that the client lacks.';

create or replace function internal.sync_set_aside(pull jsonb, c app.collections, out aside uuid[], out missed uuid[])
returns record
language plpgsql stable security definer set search_path = '' as $$
declare
  key constant text := (sync_set_aside.c).id::text;
  caller constant text := quote_literal(internal.user_id());
  -- where the listing goes on: what was sent before is held
  after constant jsonb := case when sync_set_aside.pull -> 'after' @> jsonb_build_object('phase', 3, 'collection', key)
                               then sync_set_aside.pull -> 'after' end;
begin
  execute format(
    'with later as materialized (select distinct on (e.row_id) e.row_id, e.was_live, (%1$s) and (%2$s) is not true '
    'as is_listed from ((select e.* from (%3$s) e) union all (select $2, e.* from (%4$s) e)) e '
    'order by e.row_id, e.id), aside as (select d.row_id from internal.sync_changed($1, 0, null) d '
    'where d.collection_id = %5$L union select l.row_id from later l where not l.was_live) '
    'select array(select a.row_id from aside a), array(select l.row_id from later l '
    'where l.was_live and l.is_listed except select a.row_id from aside a)',
    internal.sync_condition(sync_set_aside.pull -> 'is' -> key, 'e.audience', 'e.author', caller),
    internal.sync_condition(internal.sync_was(sync_set_aside.pull, key), 'e.audience', 'e.author', caller),
    format(internal.sync_log_sql(sync_set_aside.pull, 'app.sync_changes'),
           format('and e.place > $2 and e.collection_id = %L', key)),
    format(internal.sync_log_sql(sync_set_aside.pull, 'app.sync_pending_changes'),
           format('and e.collection_id = %L', key)), key)
    into aside, missed using sync_set_aside.pull, (sync_set_aside.pull ->> 'target')::bigint;
  if missed = '{}' then
    return;
  end if;
  execute format(
    'select array(select i from unnest($1) i where not exists (select from collections.%1$I t where t.id = i '
    'and t.deleted_at is null and (%2$s)) and (%3$s))', (sync_set_aside.c).name,
    internal.sync_shown(sync_set_aside.pull, sync_set_aside.c),
    case when after is null then 'true'
         when after ? 'group'
         then format('exists (select from collections.%I t where t.id = i '
                     'and (t.group_id, t.created_at, t.id) > (%L, $2, $3))', (sync_set_aside.c).name, after ->> 'group')
         else format('exists (select from collections.%I t where t.id = i '
                     'and (t.created_at, t.id) > ($2, $3))', (sync_set_aside.c).name) end)
    into missed using missed, (after ->> 'at')::timestamptz, (after ->> 'id')::uuid;
end $$;
comment on function internal.sync_set_aside is
  'aside: rows of a collection that the listing of a pull leaves out: the log names them, or they came after its target
   and are the next pull''s. missed: those that were there at the target, for the listing to bring, and have gone before
   it came to them. One that was deleted for good between two pages of the listing is not among them: nothing says any
   more where it stood.';

create or replace function internal.sync_pushed(pull jsonb) returns uuid[]
language sql stable security definer set search_path = '' as $$
  select array(
    select e.row_id from app.sync_changes e
     where e.origin = (sync_pushed.pull ->> 'client')::bigint and e.place > (sync_pushed.pull ->> 'target')::bigint
       and e.is_live
    union
    select p.row_id from app.sync_pending_changes p
     where p.origin = (sync_pushed.pull ->> 'client')::bigint and p.is_live)
$$;
comment on function internal.sync_pushed is
  'Rows that the client of a pull has pushed between its pages, and so holds.';

create or replace function internal.sync_outputs(collection text) returns text
language plpgsql stable security definer set search_path = '' as $$
declare
  kept text;
begin
  select k.outputs into kept
    from app.collections c
    join app.sync_collections k on k.collection_id = c.id and k.outputs_version = c.schema_version
   where c.name = sync_outputs.collection;
  return coalesce(kept, internal.collection_outputs_sql(internal.collection_definition(sync_outputs.collection), 't',
                                                        null, null));
end $$;
comment on function internal.sync_outputs is
  'The select list of a row of t as a fetch shows it. Refuses 404 COLLECTION_NOT_FOUND.';

create or replace function internal.sync_keep_outputs(collection_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  stale record;
  definition jsonb;
begin
  for stale in
    select c.id, c.name
      from app.collections c
      join app.sync_collections k on k.collection_id = c.id and k.outputs_version is distinct from c.schema_version
     where c.id = any (sync_keep_outputs.collection_ids)
     order by c.id
       -- another pull that has the row now keeps the same
       for no key update of k skip locked
  loop
    definition := internal.collection_definition(stale.name);
    update app.sync_collections k
       set outputs = internal.collection_outputs_sql(definition, 't', null, null),
           outputs_version = (definition ->> 'version')::bigint
     where k.collection_id = stale.id;
  end loop;
end $$;
comment on function internal.sync_keep_outputs is
  'Keeps the select lists of collections for the pulls that follow, once for each version of their schema.';

create or replace function internal.sync_rows(collection text, conditions text, ids uuid[], after_at timestamptz,
                                              after_id uuid, most bigint, out id uuid, out created_at timestamptz,
                                              out shown json)
returns setof record
language plpgsql stable as $$
begin
  return query execute format(
    'select t.id, t.created_at, row_to_json("_row") from collections.%I t cross join lateral (select %s) "_row" '
    'where t.deleted_at is null and (%s)%s', sync_rows.collection,
    internal.sync_outputs(sync_rows.collection), sync_rows.conditions,
    case when sync_rows.most is null then ' and t.id = any ($1)'
         else ' and t.id <> all ($1) and (t.created_at, t.id) > ($2, $3) order by t.created_at, t.id limit $4' end)
    using sync_rows.ids, coalesce(sync_rows.after_at, '-infinity'),
          coalesce(sync_rows.after_id, '00000000-0000-0000-0000-000000000000'), sync_rows.most;
end $$;
comment on function internal.sync_rows is
  'Rows of a collection under the caller''s policies, as a fetch shows them: those of ids, or with most those that are
   none of them, after a time and an id.';

create or replace function internal.sync_segments(pull jsonb, collection_id uuid, out name text, out group_id uuid,
                                                  out conditions text)
returns setof record
language plpgsql stable security definer set search_path = '' as $$
declare
  key constant text := sync_segments.collection_id::text;
  caller constant text := quote_literal(internal.user_id());
  shown constant jsonb := sync_segments.pull -> 'is' -> key;
  was constant jsonb := case when sync_segments.pull -> 'base' <> 'null'
                             then internal.sync_was(sync_segments.pull, key) end;
  c app.collections;
  owner text;
begin
  select k.* into c from app.collections k where k.id = sync_segments.collection_id;
  name := c.name;
  owner := case c.owner_scope when 'group' then 't.group_id' else 't.user_id' end;
  conditions := case when was is null then 'true'
                     else format('(%s) is not true', internal.sync_condition(was, owner, 't.user_id', caller)) end;
  if shown ->> 'k' in ('groups', 'own') then
    return query
      select sync_segments.name, s.id,
             format('t.group_id = %L and %s and %s', s.id,
                    case when shown ->> 'k' = 'own' then 't.user_id = ' || caller else 'true' end,
                    sync_segments.conditions)
        from (select jsonb_array_elements_text(shown -> 's')::uuid as id) s
       where not (was ->> 'k' is not distinct from shown ->> 'k' and was -> 's' ? s.id::text)
       order by s.id;
  elsif shown ->> 'k' <> 'none' then
    conditions := internal.sync_condition(shown, owner, 't.user_id', caller) || ' and ' || conditions;
    return next;
  end if;
end $$;
comment on function internal.sync_segments is
  'The parts of a collection that are shown and were not, each of which an index orders: one a group, or one of all.';

create or replace function internal.sync_chunk(bytes bigint, rows int) returns int
language sql immutable
return greatest(10, least(500, 2000000 / greatest(sync_chunk.bytes / greatest(sync_chunk.rows, 1), 1)))::int;
comment on function internal.sync_chunk is 'How many rows of this length are 2 MB, from 10 to 500.';

create or replace function internal.sync_first_chunk(collection_ids uuid[]) returns int
language sql stable as $$
  select coalesce(min(case when r.reltuples > 0 then least(100, internal.sync_chunk(
           (r.relpages + coalesce(t.relpages, 0))::bigint * 8192, least(r.reltuples, 2000000000)::int))
           else 20 end), 20)
    from app.collections c
    join pg_catalog.pg_class r on r.oid = to_regclass(format('collections.%I', c.name))
    left join pg_catalog.pg_class t on t.oid = r.reltoastrelid
   where c.id = any (sync_first_chunk.collection_ids)
$$;
comment on function internal.sync_first_chunk is
  'How many rows of these collections are read first, by how long rows were when they were analyzed: at most 100, and 20
   where that is not known.';

-- stable: all of it is read with one snapshot, so that a row that is committed meanwhile is set aside or not there
create or replace function internal.sync_collect(pull jsonb, most int, out items internal.sync_item[],
                                                 out missed uuid[])
returns record
language plpgsql stable as $$
declare
  after constant jsonb := sync_collect.pull -> 'after';
  phase constant int := after ->> 'phase';
  after_collection constant uuid := after ->> 'collection';
  wanted constant int := sync_collect.most + 1;
  -- rows that are read at once: few, until it is known how long they are
  chunk int := 20;
  asked int;
  got internal.sync_item[];
  went uuid[];
  bytes bigint := 0;
  last_id bigint;
  changed record;
  collections uuid[];
  row_ids uuid[];
  n int;
  read int;
  place uuid;
  part record;
  aside uuid[];
  from_at timestamptz;
  from_id uuid;
begin
  items := '{}';
  missed := '{}';
  if phase = 1 and sync_collect.pull -> 'base' <> 'null' then
    for place in select d from internal.sync_differs(sync_collect.pull) d
                  where after_collection is null or d >= after_collection loop
      items := items || array(
        select row(place, 'deleted', l, null, 1, null, null, null)::internal.sync_item
          from internal.sync_lost(sync_collect.pull, place,
                                  case when place = after_collection then (after ->> 'id')::uuid end,
                                  wanted - cardinality(items)) l);
      if cardinality(items) >= wanted then
        return;
      end if;
    end loop;
  end if;

  if phase <= 2 then
    last_id := case when phase = 2 then (after ->> 'last_id')::bigint else 0 end;
    loop
      -- the log is read once for a page, or a thousand rows that may have gone; rows are read as they are by then,
      -- but for those that came back after the target: the next pull creates them
      select coalesce(array_agg(d.collection_id order by d.last_id), '{}') as collections,
             array_agg(d.row_id order by d.last_id) as row_ids, array_agg(d.last_id order by d.last_id) as last_ids,
             array_agg(d.is_held order by d.last_id) as are_held,
             array_agg(d.is_shown order by d.last_id) as are_shown
        into changed
        from internal.sync_changed(sync_collect.pull, last_id, greatest(wanted, 1000)) d;
      if last_id = 0 and cardinality(changed.collections) > chunk then
        chunk := internal.sync_first_chunk(changed.collections);
      end if;
      n := 0;
      asked := least(chunk, wanted - cardinality(items));
      while n < cardinality(changed.collections) loop
        collections := changed.collections[n + 1:n + asked];
        row_ids := changed.row_ids[n + 1:n + asked];
        with shown as materialized (
          select g.collection_id, r.id, r.shown
            -- no condition for an index: that of ids is the one
            from (select u.collection_id, c.name, format('(%s) is true', internal.sync_shown(sync_collect.pull, c))
                           as conditions,
                         array_agg(u.row_id) as ids
                    from unnest(collections, row_ids) as u (collection_id, row_id)
                    join app.collections c on c.id = u.collection_id
                   group by u.collection_id, c.id) g
           cross join lateral internal.sync_rows(g.name, g.conditions, g.ids, null, null, null) r
        )
        select array_agg(row(u.collection_id,
                             case when s.id is null then 'deleted' when u.is_held then 'updated' else 'created' end,
                             u.row_id, s.shown, 2, u.last_id, null, null)::internal.sync_item order by u.last_id)
                 filter (where s.id is not null or u.is_held),
               bytes + coalesce(sum(octet_length(s.shown::text)), 0),
               array_agg(u.row_id) filter (where s.id is null and u.is_shown)
          into got, bytes, went
          from unnest(collections, row_ids, changed.last_ids[n + 1:n + asked], changed.are_held[n + 1:n + asked],
                      changed.are_shown[n + 1:n + asked])
               as u (collection_id, row_id, last_id, is_held, is_shown)
          left join shown s on s.collection_id = u.collection_id and s.id = u.row_id and u.is_shown;
        items := items || got;
        missed := missed || went;
        if cardinality(items) >= wanted or bytes > internal.page_bytes() then
          return;
        end if;
        n := n + asked;
        chunk := internal.sync_chunk(bytes, greatest(cardinality(items), 1));
        -- more than are wanted where none of these was there
        asked := least(chunk, greatest(wanted - cardinality(items), case when got is null then asked * 2 end));
      end loop;
      exit when cardinality(changed.collections) < greatest(wanted, 1000);
      last_id := changed.last_ids[cardinality(changed.last_ids)];
    end loop;
  end if;

  for place in select d from internal.sync_differs(sync_collect.pull) d
                where phase < 3 or d >= after_collection loop
    aside := null;
    for part in select s.* from internal.sync_segments(sync_collect.pull, place) s
                 where phase < 3 or place <> after_collection or s.group_id is null
                    or s.group_id >= (after ->> 'group')::uuid loop
      if aside is null then
        select a.aside, sync_collect.missed || a.missed into aside, missed
          from app.collections c
         cross join lateral internal.sync_set_aside(sync_collect.pull, c) a
         where c.id = place;
      end if;
      from_at := null;
      from_id := null;
      if phase = 3 and place = after_collection and part.group_id is not distinct from (after ->> 'group')::uuid then
        from_at := (after ->> 'at')::timestamptz;
        from_id := (after ->> 'id')::uuid;
      end if;
      loop
        asked := least(chunk, wanted - cardinality(items));
        select array_agg(row(place, 'created', r.id, r.shown, 3, null, part.group_id, r.created_at)::internal.sync_item
                         order by r.created_at, r.id), count(*), bytes + coalesce(sum(octet_length(r.shown::text)), 0)
          into got, read, bytes
          from internal.sync_rows(part.name, part.conditions, aside, from_at, from_id, asked) r;
        exit when read = 0;
        items := items || got;
        if cardinality(items) >= wanted or bytes > internal.page_bytes() then
          return;
        end if;
        exit when read < asked;
        chunk := internal.sync_chunk(bytes, cardinality(items));
        from_at := got[read].created_at;
        from_id := got[read].id;
      end loop;
    end loop;
  end loop;
end $$;
comment on function internal.sync_collect is
  'The entries of a page, in their order, and one more where there is one; of more than 8 MB the part that was read.
   missed are rows that were there at the target of the pull, and have gone before they could be sent.';

create or replace function internal.sync_after(i internal.sync_item) returns jsonb
language sql stable
return jsonb_strip_nulls(jsonb_build_object(
  'phase', (sync_after.i).phase, 'collection', (sync_after.i).collection_id, 'id', (sync_after.i).id,
  'last_id', (sync_after.i).last_id, 'group', (sync_after.i).group_id, 'at', (sync_after.i).created_at));
comment on function internal.sync_after is 'Where a pull goes on after an entry.';

create or replace function api.sync_pull(client_id uuid, checkpoint text default null, collections json default null,
                                         page_limit int default 1000, is_numbered boolean default false)
returns api.reply
language plpgsql volatile as $$
declare
  pull jsonb;
  items internal.sync_item[];
  missed uuid[];
  pushed uuid[] := '{}';
  loses boolean;
  n int;
  has_more boolean;
  number text;
  answer api.reply;
begin
  if sync_pull.checkpoint !~ '^[1-9][0-9]{0,14}$' then
    perform internal.fail(400, 'INVALID_CHECKPOINT', 'A checkpoint is one that a pull has answered, or null.',
                          '{"field": "checkpoint", "reason": "must be one that a pull has answered, or null"}');
  end if;
  answer := internal.sync_idle(sync_pull.client_id, sync_pull.checkpoint, sync_pull.collections,
                               sync_pull.is_numbered);
  if answer.status is not null then
    return answer;
  end if;
  loop
    pull := internal.sync_pull_begin(sync_pull.client_id, sync_pull.checkpoint, sync_pull.collections);
    -- groups and roles are those of the snapshot that the rows are read with; a policy may be a newer one than it has,
    -- and stays from then on, because its change waits for who reads the table
    select c.items, c.missed, internal.sync_loses_now(pull) into items, missed, loses
      from internal.sync_collect(pull, sync_pull.page_limit) c;
    loses := loses or internal.sync_loses_now(pull);
    -- what decides has changed since it was read: a first page is read again, a later one is refused
    exit when not loses;
  end loop;
  if pull -> 'after' <> '{"phase": 1}' then
    pushed := internal.sync_pushed(pull);
  end if;
  -- a page that is cut for its bytes ends before its last entry
  has_more := cardinality(items) > sync_pull.page_limit
    or cardinality(items) > 1
       and coalesce((select sum(octet_length(i.shown::text)) from unnest(items) i), 0) > internal.page_bytes();
  n := least(cardinality(items) - has_more::int, sync_pull.page_limit);
  missed := array(select jsonb_array_elements_text(pull -> 'missed')::uuid union select unnest(missed)
                  -- one that came back in time
                  except select i.id from unnest(items[:n]) i where i.list <> 'deleted');
  number := internal.sync_pull_end(pull, case when has_more then internal.sync_after(items[n]) end, n, missed);
  if number is null then
    return row(0, '{"needs_place": true}', null)::api.reply;
  end if;
  if n > 0 then
    perform internal.sync_keep_outputs(array(select distinct i.collection_id from unnest(items) i));
  end if;
  return internal.reply(200, (
    select json_build_object(
      'changes', coalesce(json_object_agg(c.name, json_build_object(
        'created', coalesce(l.created, '[]'), 'updated', coalesce(l.updated, '[]'),
        'deleted', coalesce(l.deleted, '[]')) order by c.name), '{}'),
      'checkpoint', number, 'has_more', has_more, 'server_time', internal.iso(internal.now()),
      'schema', coalesce(json_object_agg(c.name, c.schema_version order by c.name), '{}'))
      from app.collections c
      left join (select i.collection_id as id,
                        json_agg(i.shown order by i.n) filter (where i.list = 'created' and not p.is_own) as created,
                        json_agg(i.shown order by i.n) filter (where i.list = 'updated'
                                                                  or i.list = 'created' and p.is_own) as updated,
                        json_agg(i.id order by i.n) filter (where i.list = 'deleted') as deleted
                   from unnest(items[:n]) with ordinality as i (collection_id, list, id, shown, phase, last_id,
                                                                group_id, created_at, n)
                  cross join lateral (select i.id = any (pushed) as is_own) p
                  group by 1) l on l.id = c.id
     where c.id in (select jsonb_array_elements_text(pull -> 'asked')::uuid)));
end $$;
comment on function api.sync_pull is
  'What has changed for the caller''s client since a checkpoint, as the caller''s policies show it. Status 0, for the
   server: places are to be given first. Refuses 400 INVALID_CHECKPOINT, and as internal.sync_pull_begin. Locks the
   client.';
