-- Triggers on the generated tables: rules for the rows of every collection, for every role that writes them.

create or replace function internal.collection_references(collection text)
returns table (col text, on_delete text, target text)
language sql stable security definer set search_path = '' as $$
  select k.name, k.on_delete, target.name
    from app.collection_columns k
    join app.collections c on c.id = k.collection_id and c.name = collection_references.collection
    join app.collections target on target.id = k.references_collection_id
   order by k.position
$$;
comment on function internal.collection_references is
  'The columns of a collection that refer to the collection target, in the order of the columns.';

create or replace function internal.collection_row_is_live(collection text, row_id uuid) returns boolean
language plpgsql volatile as $$
declare
  is_live boolean;
begin
  -- the lock waits for a transaction that deletes the row, and sees its outcome
  execute format('select exists (select from (select t.deleted_at from collections.%I t where t.id = $1 for key '
                 'share) as kept
                                  where kept.deleted_at is null)', collection_row_is_live.collection)
    into is_live using collection_row_is_live.row_id;
  return is_live;
end $$;
comment on function internal.collection_row_is_live is
  'Whether a row exists and is not deleted. Locks it against deletion until the transaction ends. Granted to nobody.';

create or replace function internal.tg_collection_rows__stamp() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  held record;
begin
  -- increases even within one instant: two versions of a row never have the same ETag, in the milliseconds that callers
  -- see and compare
  new.updated_at := greatest(internal.now(), old.updated_at + interval '1 millisecond');
  if old.deleted_at is not null and new.deleted_at is null then
    perform internal.moderation_restore_check('collection_row', new.id);
    -- rows that were deleted while this row was deleted did not check its references
    for held in select r.col, r.on_delete, r.target from internal.collection_references(tg_table_name) r loop
      continue when to_jsonb(new) ->> held.col is null or to_jsonb(new) ->> held.col = new.id::text;
      continue when internal.collection_row_is_live(held.target, (to_jsonb(new) ->> held.col)::uuid);
      if held.on_delete <> 'set_null' then
        perform internal.fail(409, 'CONFLICT', 'The row of ' || held.target
                              || ' that it refers to is deleted: restore that first.',
                              json_build_object('column', held.col, 'collection', held.target));
      end if;
      new := jsonb_populate_record(new, jsonb_build_object(held.col, null));
    end loop;
  end if;
  if new.deleted_at is not null and old.deleted_at is null then
    new.deleted_at := internal.now();
    if exists (select from app.collection_columns r
                 join app.collections c on c.id = r.references_collection_id
                where c.name = tg_table_name) then
      -- a concurrent insert of a row that refers to this one waits, or this waits for it
      execute format('select from collections.%I r where r.id = $1 for update', tg_table_name) using old.id;
    end if;
  end if;
  return new;
end $$;
comment on function internal.tg_collection_rows__stamp is
  'Before a row changes: sets updated_at, and the time of deleted_at. A row that others may refer to is locked as for a
   delete. A restored row must refer to live rows again: references to deleted rows become null if the column says
   set_null, otherwise refuses 409 CONFLICT.';

create or replace function internal.tg_collection_rows__deleted() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  r record;
  is_held boolean;
begin
  for r in
    select child.name as collection, k.name as col, k.on_delete
      from app.collection_columns k
      join app.collections c on c.id = k.references_collection_id and c.name = tg_table_name
      join app.collections child on child.id = k.collection_id
     order by k.on_delete desc, child.name, k.name
  loop
    if r.on_delete = 'restrict' then
      execute format('select exists (select from collections.%I r where r.%I = $1 and r.deleted_at is null)',
                     r.collection, r.col)
        into is_held using new.id;
      if is_held then
        perform internal.fail(409, 'CONFLICT', 'Rows of ' || r.collection || ' refer to this row.',
                              json_build_object('collection', r.collection, 'column', r.col));
      end if;
    elsif r.on_delete = 'cascade' then
      execute format('update collections.%I r set deleted_at = internal.now() where r.%I = $1 and r.deleted_at is null',
                     r.collection, r.col)
        using new.id;
    else
      execute format('update collections.%I r set %2$I = null where r.%2$I = $1 and r.deleted_at is null', r.collection,
                     r.col) using new.id;
    end if;
  end loop;
  return null;
end $$;
comment on function internal.tg_collection_rows__deleted is
  'After a row was soft-deleted: applies the on-delete action of each column to the live rows that refer to it. Refuses
   409 CONFLICT for restrict.';

create or replace function internal.collection_row_may_go(collection text, id uuid) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
declare
  r record;
  is_held boolean;
begin
  if internal.developer_id() is null then
    raise exception 'rows are deleted for good by administrators only';
  end if;
  -- this waits for a concurrent insert of a row that refers to this one
  execute format('select from collections.%I t where t.id = $1 for update',
                 collection_row_may_go.collection) using collection_row_may_go.id;
  for r in
    select child.name as collection, k.name as col
      from app.collection_columns k
      join app.collections c on c.id = k.references_collection_id and c.name = collection_row_may_go.collection
      join app.collections child on child.id = k.collection_id
     where k.on_delete = 'restrict'
     order by child.name, k.name
  loop
    execute format('select exists (select from collections.%I r where r.%I = $1 and r.deleted_at is null and (r.id <> '
                   '$1 or $2))', r.collection, r.col)
      into is_held using collection_row_may_go.id, r.collection <> collection_row_may_go.collection;
    if is_held then
      perform internal.fail(409, 'CONFLICT', 'Rows of ' || r.collection || ' refer to this row.',
                            json_build_object('collection', r.collection, 'column', r.col));
    end if;
  end loop;
  return true;
end $$;
comment on function internal.collection_row_may_go is
  'Before an administrator hard-deletes a row: true, or refuses 409 CONFLICT for restrict. Locks the row. The deletion
   of a user does not call this.';

create or replace function internal.collection_row_bytes(r json) returns bigint
language sql immutable parallel safe as $$
  select 1 + coalesce(sum(octet_length(to_json(f.key)::text) + octet_length(f.value::text) + 2), 1)
    from json_each(collection_row_bytes.r) as f (key, value)
   where json_typeof(f.value) <> 'null' and f.key not in ('id', 'user_id', 'group_id', 'created_at', 'updated_at',
                                                          'deleted_at')
$$;
comment on function internal.collection_row_bytes is
  'The size of a row: the bytes of the JSON object of its own columns, without null values. Server-managed columns do
   not count, so that no change of them alone can be refused.';

create or replace function internal.number_is_long(n numeric) returns boolean
language sql immutable parallel safe
return abs(number_is_long.n) >= 1e1000 or scale(number_is_long.n) > 1000;
comment on function internal.number_is_long is
  'Whether a number has more than 1,000 digits before or after its point, written out; also true of NaN and infinity.';

create or replace function internal.collection_value_excess(value jsonb) returns text
language sql immutable parallel safe as $$
  select case
    when exists (select from jsonb_path_query(collection_value_excess.value,
                                              'strict $.** ? (@.type() == "number")') as n (value)
                  where internal.number_is_long(n.value::numeric))
    then 'has a number of more than 1000 digits before or after its point, written out'
    when jsonb_path_exists(collection_value_excess.value,
                           'strict $.**{200} ? (@.type() == "object" || @.type() == "array")')
    then 'nests more than 200 deep'
  end
$$;
comment on function internal.collection_value_excess is
  'Which bound of JSON a stored value exceeds, to follow its column''s name in a message, or null: the bounds that
   bodies have (server/http/json.ts).';

create or replace function internal.collection_lists_bytes(collection text, r anyelement, out bytes bigint,
                                                           out long_column text)
language plpgsql stable as $$
declare
  col text;
  is_long boolean;
  held bigint;
begin
  bytes := 0;
  for col in
    select k.name from app.collection_columns k
      join app.collections c on c.id = k.collection_id and c.name = collection_lists_bytes.collection
     where k.type = 'numeric[]' order by k.position
  loop
    execute format('select bool_or(internal.number_is_long(n)) from unnest(($1).%I) as n',
                   col) into is_long using collection_lists_bytes.r;
    if is_long then
      long_column := col;
      return;
    end if;
    -- one number at a time: the text of the whole list could be a thousand times as long as the list
    execute format('select sum(octet_length(n::text) + 1) from unnest(($1).%I) as n',
                   col) into held using collection_lists_bytes.r;
    bytes := bytes + coalesce(held, 0);
  end loop;
end $$;
comment on function internal.collection_lists_bytes is
  'The size of a row''s lists of numbers, written out, without writing them out at once; or the first of these columns
   that has a number of more than 1,000 digits. Granted to nobody.';

create or replace function internal.collection_size_refusal(limit_bytes bigint, size bigint) returns void
language sql volatile
return internal.fail(400, 'INVALID_BODY', 'The row would have more than 1 MB.',
                     json_build_object('reason', 'a row has at most 1 MB', 'limit', collection_size_refusal.limit_bytes,
                                       'size', collection_size_refusal.size));
comment on function internal.collection_size_refusal is 'Refuses a row that is too long: 400 INVALID_BODY.';

create or replace function internal.tg_collection_rows__size() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  limit_bytes constant int := 1048576;
  managed constant text[] := array['id', 'user_id', 'group_id', 'created_at', 'updated_at', 'deleted_at'];
  -- numbers are not written out in it
  whole constant jsonb := to_jsonb(new) - managed;
  before jsonb;
  changed jsonb := whole;
  written text;
  size bigint;
  lists record;
  excess record;
begin
  if tg_op = 'UPDATE' then
    -- a row that exceeded a bound before the rule came may be deleted, change its owner and its other values
    before := to_jsonb(old) - managed;
    changed := (select jsonb_object_agg(f.key, f.value) from jsonb_each(whole) as f where f.value is distinct
                  from before -> f.key);
    if changed is null then
      return null;
    end if;
  end if;
  if tg_nargs > 0 then
    select l.bytes, l.long_column into lists from internal.collection_lists_bytes(tg_table_name, new) l;
    if changed ? lists.long_column then
      perform internal.collection_refuse_column(lists.long_column,
                                                'has a number of more than 1000 digits before or after its point, '
                                                'written out');
    end if;
    if lists.bytes > limit_bytes
       and (tg_op = 'INSERT' or lists.bytes > (select l.bytes
                                                 from internal.collection_lists_bytes(tg_table_name, old) l)) then
      perform internal.collection_size_refusal(limit_bytes, lists.bytes);
    end if;
  end if;
  written := changed::text;
  -- what no text without these has: a number of more than 1,000 digits, and nesting of more than 200 within the row
  if written ~ '[0-9]{250}' or octet_length(written) - octet_length(replace(replace(written, '[', ''), '{',
                                        '')) > 200 then
    for excess in
      select f.key, internal.collection_value_excess(f.value) as problem from jsonb_each(changed) as f
       where jsonb_typeof(f.value) in ('number', 'array', 'object')
    loop
      if excess.problem is not null then
        perform internal.collection_refuse_column(excess.key, excess.problem);
      end if;
    end loop;
  end if;
  -- one that was too large before may shrink
  if tg_op = 'UPDATE' and octet_length(written) <= coalesce(octet_length((
       -- a column without a value has no size
       select jsonb_object_agg(k.key, before -> k.key) from jsonb_object_keys(changed) as k (key)
        where before -> k.key <> 'null')::text), 0) then
    return null;
  end if;
  written := row_to_json(new)::text;
  -- the size with all columns is an upper bound
  if octet_length(written) <= limit_bytes then
    return null;
  end if;
  size := internal.collection_row_bytes(written::json);
  if size > limit_bytes and (tg_op = 'INSERT' or size > internal.collection_row_bytes(row_to_json(old))) then
    perform internal.collection_size_refusal(limit_bytes, size);
  end if;
  return null;
end $$;
comment on function internal.tg_collection_rows__size is
  'After any role wrote a row that may exceed a bound: its JSON has at most 1 MB, its numbers at most 1,000 digits
   before and after their point, its values nest at most 200 deep. Values that an update leaves as they were are not
   refused. Refuses 400 INVALID_BODY.';

create or replace function internal.collection_reference_refusal(col text, target text) returns void
language sql volatile
return internal.fail(400, 'INVALID_BODY', collection_reference_refusal.col || ': must be the id of a row of '
                     || collection_reference_refusal.target || '.',
                     json_build_object('column', collection_reference_refusal.col,
                                       'field', collection_reference_refusal.col,
                                       'reason', 'must be the id of a row of ' || collection_reference_refusal.target));
comment on function internal.collection_reference_refusal is
  'Refuses a reference to a row that does not exist, or is deleted: 400 INVALID_BODY.';

create or replace function internal.tg_collection_rows__references() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  r record;
  is_broken boolean;
begin
  for r in select f.col, f.target from internal.collection_references(tg_table_name) f loop
    -- the lock waits for a transaction that deletes the row, and sees its outcome
    execute format('select exists (select from inserted i where i.%1$I is not null
                      and not exists (select from (select t.deleted_at from collections.%2$I t
                                                    where t.id = i.%1$I for key share) as kept
                                       where kept.deleted_at is null))', r.col, r.target)
      into is_broken;
    if is_broken then
      perform internal.collection_reference_refusal(r.col, r.target);
    end if;
  end loop;
  return null;
end $$;
comment on function internal.tg_collection_rows__references is
  'After an insert: the rows referred to exist and are not deleted. Refuses 400 INVALID_BODY. Locks them against
   deletion.';

create or replace function internal.tg_collection_rows__reference_moved() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  r record;
  before constant jsonb := to_jsonb(old);
  after constant jsonb := to_jsonb(new);
begin
  for r in select f.col, f.target from internal.collection_references(tg_table_name) f loop
    continue when after ->> r.col is null or after ->> r.col = before ->> r.col;
    if not internal.collection_row_is_live(r.target, (after ->> r.col)::uuid) then
      perform internal.collection_reference_refusal(r.col, r.target);
    end if;
  end loop;
  return null;
end $$;
comment on function internal.tg_collection_rows__reference_moved is
  'As tg_collection_rows__references, for an update of a reference.';

create or replace function internal.tg_collection_rows__references_read() returns trigger
-- as the writer, whose policies decide; the statements of our own routes ask the same before they write
language plpgsql volatile set search_path = '' as $$
declare
  r record;
  is_hidden boolean;
begin
  for r in select f.col, f.target from internal.collection_references(tg_table_name) f loop
    execute format('select exists (select from inserted i where i.%1$I is not null
                      and not exists (select from collections.%2$I t where t.id = i.%1$I and t.deleted_at is null))',
                     r.col, r.target)
      into is_hidden;
    if is_hidden then
      perform internal.collection_reference_refusal(r.col, r.target);
    end if;
  end loop;
  return null;
end $$;
comment on function internal.tg_collection_rows__references_read is
  'After an insert by a user: they may read the rows referred to. Refuses 400 INVALID_BODY, as for rows that do not
   exist.';

create or replace function internal.tg_collection_rows__reference_read_moved() returns trigger
language plpgsql volatile set search_path = '' as $$
declare
  r record;
  is_there boolean;
  before constant jsonb := to_jsonb(old);
  after constant jsonb := to_jsonb(new);
begin
  for r in select f.col, f.target from internal.collection_references(tg_table_name) f loop
    continue when after ->> r.col is null or after ->> r.col = before ->> r.col;
    execute format('select exists (select from collections.%I t where t.id = $1 and t.deleted_at is null)', r.target)
      into is_there using (after ->> r.col)::uuid;
    if not is_there then
      perform internal.collection_reference_refusal(r.col, r.target);
    end if;
  end loop;
  return null;
end $$;
comment on function internal.tg_collection_rows__reference_read_moved is
  'As tg_collection_rows__references_read, for an update of a reference.';

create or replace function internal.collection_group_refusal() returns void
language sql volatile
return internal.fail(400, 'GROUP_NOT_PRIVATE', 'Only a private group may own rows: send the id of a private group.');
comment on function internal.collection_group_refusal is 'Refuses 400 GROUP_NOT_PRIVATE.';

create or replace function internal.tg_collection_rows__group_is_private() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- the lock waits for a transaction that makes the group public, and sees its outcome
  if exists (select from (select g.is_public from app.groups g
                           where g.id in (select i.group_id from inserted i) order by g.id for key share) as owning
              where owning.is_public) then
    perform internal.collection_group_refusal();
  end if;
  return null;
end $$;
comment on function internal.tg_collection_rows__group_is_private is
  'After an insert: the rows'' groups are private. Refuses 400 GROUP_NOT_PRIVATE.';

create or replace function internal.tg_collection_rows__group_moved() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if exists (select from (select g.is_public from app.groups g where g.id = new.group_id for key share) as owning
              where owning.is_public) then
    perform internal.collection_group_refusal();
  end if;
  return null;
end $$;
comment on function internal.tg_collection_rows__group_moved is
  'As tg_collection_rows__group_is_private, for a row that a DBA moves to another group.';

create or replace function internal.tg_groups__own_rows() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  collection text;
  owns boolean;
begin
  for collection in select c.name from app.collections c where c.owner_scope = 'group' order by c.name loop
    execute format('select exists (select from collections.%I r where r.group_id = $1)',
                   collection) into owns using new.id;
    if owns then
      perform internal.fail(409, 'GROUP_OWNS_ROWS', 'A group that owns rows stays private.',
                            json_build_object('collection', collection));
    end if;
  end loop;
  return null;
end $$;
comment on function internal.tg_groups__own_rows is
  'When a group becomes public: checks that it owns no rows. Refuses 409 GROUP_OWNS_ROWS.';

create or replace trigger tg_groups__own_rows
  after update of is_public on app.groups
  for each row when (new.is_public and not old.is_public)
  execute function internal.tg_groups__own_rows();
