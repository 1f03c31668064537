-- The JSON of a row whose keys are columns of its table: a file of functions declares it, internal.row_declare compiles
-- it. The keys are listed one by one, so that a new column is shown only where somebody adds it. What is compiled is
-- one expression, which Postgres puts in the place of the call.
create or replace function internal.row_declare(name text, shape anyelement, keys text[]) returns void
language plpgsql volatile as $$
declare
  source constant regclass := (select y.typrelid from pg_catalog.pg_type y where y.oid = pg_typeof(row_declare.shape));
begin
  execute format('create or replace function internal.%I(r %s) returns json language sql stable as %L',
                 row_declare.name, source, (
    select format('select json_build_object(%s)', string_agg(
             format(case c.kind when 'timestamp with time zone' then '%L, internal.iso((%I.r).%I)'
                         else '%L, (%I.r).%I' end,
                    split_part(row_declare.keys[c.n], ':', 1), row_declare.name, c.name), ', ' order by c.n))
      from internal.list_columns(source, array(select split_part(k.key, ':', -1)
                                                 from unnest(row_declare.keys) with ordinality k (key, n)
                                                   order by k.n)) c));
end $$;
comment on function internal.row_declare is
  'For files of functions: compiles internal.<name>(row), the JSON object of a row of the table whose row type shape has
   (null::app.groups): the keys are columns, times as internal.iso shows them; asset_id:id shows a column under another
   name. A row with a key of another kind has a function that is written out. The caller''s rights hold; policy files
   grant what it makes. Granted to nobody.';
