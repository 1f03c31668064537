-- Whole collections out, as batches that a stream asks for one after the other.

create or replace function api.collection_export(name text, after uuid default null, include_deleted boolean default false) returns api.reply
language plpgsql stable as $$
declare
  d constant jsonb := internal.collection_definition(collection_export.name);
  rows json;
  last uuid;
begin
  -- aliases that no column can have: a column's name would come before a table's
  execute format(
    'select coalesce(json_agg(p.line order by p.id), ''[]''), case when count(*) = 500 then (array_agg(p.id order by p.id desc))[1] end
       from (select "_t".id, (select row_to_json("_row")::text from (select %s) as "_row") as line
               from collections.%I as "_t"
              where ($1 is null or "_t".id > $1) and ($2 or "_t".deleted_at is null)
              order by "_t".id limit 500) p',
    internal.collection_outputs_sql(d, '"_t"', null, null), collection_export.name)
    into rows, last using collection_export.after, collection_export.include_deleted;
  return internal.reply(200, json_build_object('rows', rows, 'next_cursor', last, 'columns', d -> 'order'));
end $$;
comment on function api.collection_export is
  'The next 500 rows in the order of their ids, which is that of their making, as JSON texts; next_cursor is null after the last. columns are their
   names in order. Refuses 404 COLLECTION_NOT_FOUND.';
