-- Cursors of lists: one codec. A cursor is base64url of JSON, [version, order, key, ...]: the keys of the last row that
-- was shown, in the order that the list declares. A cursor is not signed: its keys only say where a page begins, and
-- row-level security decides what the page shows. server/http/cursors.ts writes and reads the same form for lists that
-- TypeScript merges.
create or replace function internal.cursor_write(order_by text, variadic keys text[]) returns text
language sql stable parallel safe
return translate(encode(convert_to(
         (jsonb_build_array(1, cursor_write.order_by) || to_jsonb(cursor_write.keys))::text, 'UTF8'), 'base64'),
           e'+/=\n', '-_');
comment on function internal.cursor_write is
  'A cursor of version 1 that stands behind a row: the names of the columns that the list is ordered by,
   "created_at,id", and the row''s keys as texts, times by internal.cursor_time.';

create or replace function internal.cursor_time(at timestamptz) returns text
language sql stable parallel safe
return (extract(epoch from cursor_time.at) * 1000000)::bigint::text;
comment on function internal.cursor_time is
  'A time as a key of a cursor: microseconds since 1970, all that Postgres keeps, or rows of one millisecond would come
   twice or never.';

create or replace function internal.cursor_moment(key text) returns timestamptz
language sql stable parallel safe
return timestamptz '1970-01-01Z' + cursor_moment.key::bigint * interval '1 microsecond';
comment on function internal.cursor_moment is 'The time that a key of internal.cursor_time holds.';

create or replace function internal.base64url_text(word text) returns text
language plpgsql stable as $$
begin
  return convert_from(decode(rpad(translate(base64url_text.word, '-_', '+/'), (length(base64url_text.word) + 3) / 4 * 4,
                                  '='), 'base64'), 'UTF8');
exception when data_exception then
  return null;
end $$;
comment on function internal.base64url_text is 'The UTF-8 text that base64url spells, or null.';

create or replace function internal.is_cursor_key(key text, kind text) returns boolean
language sql immutable parallel safe
return coalesce(case is_cursor_key.kind
  when 'uuid' then internal.as_uuid(is_cursor_key.key) is not null
  -- from 1199 before Christ to 33658: what Postgres can add to 1970
  when 'timestamptz' then is_cursor_key.key ~ '^(-\d{1,17}|\d{1,18})$'
  when 'int8' then is_cursor_key.key ~ '^-?\d{1,18}$'
  else false
end, false);
comment on function internal.is_cursor_key is
  'Whether a text is a key of a cursor for a column of this type; false for types that no list is ordered by.';

create or replace function internal.cursor_read(cursor text, order_by text, kinds text[]) returns text[]
language plpgsql stable as $$
declare
  content jsonb;
  keys text[];
begin
  if cursor_read.cursor is null then
    return null;
  end if;
  if length(cursor_read.cursor) <= 200 then
    begin
      content := internal.base64url_text(cursor_read.cursor);
    exception when data_exception or program_limit_exceeded then
      null;
    end;
    if content -> 0 = '1' and content -> 1 = to_jsonb(cursor_read.order_by) then
      keys := array(select k.value from jsonb_array_elements_text(content) with ordinality k (value, n) where k.n > 2
                     order by k.n);
    end if;
  end if;
  if cardinality(keys) is distinct from cardinality(cursor_read.kinds)
     or exists (select from unnest(keys, cursor_read.kinds) k (key, kind)
                 where not internal.is_cursor_key(k.key, k.kind)) then
    perform internal.invalid('cursor', 'must be a next_cursor of this list', 'INVALID_INPUT');
  end if;
  return keys;
end $$;
comment on function internal.cursor_read is
  'The keys that internal.cursor_write wrote for a list of this order; kinds are the types of its columns: uuid,
   timestamptz or int8. Null for null. Refuses 400 INVALID_INPUT for any other text, one of more than 200 characters,
   one of another order, and keys of another type.';
