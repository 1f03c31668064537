-- What GraphQL shows of a project's database: policy files declare the tables that the role app_dashboard reads, every
-- row, without the columns that are hidden. Tables that no file declares stay closed to it. Tables of collections get
-- theirs from internal.collection_policies_sql.
create or replace function internal.graphql_declare(shown regclass, hidden text[] default '{}',
                                                    plain text[] default '{}')
returns void
language plpgsql volatile as $$
declare
  suspect constant text := 'secret|password|token|hash|seal|digest|credential|private|signature|nonce|salt|verifier';
  problem text;
begin
  -- raises where there is no such column
  perform internal.list_columns(graphql_declare.shown, graphql_declare.hidden || graphql_declare.plain);
  problem := (
    select string_agg(a.attname, ', ' order by a.attnum)
      from pg_catalog.pg_attribute a
     where a.attrelid = graphql_declare.shown and a.attnum > 0 and not a.attisdropped
       and (a.attname ~ suspect or a.atttypid = 'bytea'::regtype)
       and a.attname <> all (graphql_declare.hidden || graphql_declare.plain));
  if problem is not null then
    raise exception 'internal.graphql_declare(''%''): % looks like a secret: name it in "hidden", or in "plain"',
      graphql_declare.shown, problem;
  end if;
  -- there is one where the declaration moved here from another file
  if exists (select from pg_catalog.pg_policy p
              where p.polrelid = graphql_declare.shown and p.polname = 'dashboards read every row') then
    execute format('drop policy "dashboards read every row" on %s', graphql_declare.shown);
  end if;
  execute format('create policy "dashboards read every row" on %s for select to app_dashboard using (true)',
                 graphql_declare.shown);
  -- by column only where one is hidden, so that a grant is one row of the catalog
  execute format('grant select%s on %s to app_dashboard', (
    select ' (' || string_agg(quote_ident(a.attname),
                              ', ' order by a.attnum) filter (where a.attname <> all (graphql_declare.hidden)) || ')'
      from pg_catalog.pg_attribute a
     where a.attrelid = graphql_declare.shown and a.attnum > 0 and not a.attisdropped
       and graphql_declare.hidden <> '{}'), graphql_declare.shown);
end $$;
comment on function internal.graphql_declare is
  'For policy files: GraphQL shows every row of a table, without the columns in hidden: secrets, what leads to one, and
   what only the machinery reads. plain are columns that are named like secrets, and are none. Raises for a column that
   is named like a secret and in neither. Granted to nobody.';
