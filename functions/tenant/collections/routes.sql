-- The functions behind the developers' routes.

select internal.list_declare('collections_page', null::app.collections, 'collection_json', '{created_at,id}');

create or replace function api.collections_list(page_limit int default 50, page_offset int default 0) returns api.reply
language sql stable as $$
  select internal.collections_page(collections_list.page_offset, collections_list.page_limit)
$$;
comment on function api.collections_list is 'A page of the project''s collections, newest first.';

create or replace function api.collection_get(name text) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.collection_json(internal.collection_find(collection_get.name)))
$$;
comment on function api.collection_get is 'A collection''s definition. Refuses 404 COLLECTION_NOT_FOUND.';

create or replace function api.collection_column_get(name text, "column" text) returns api.reply
language plpgsql stable as $$
declare
  c constant app.collections := internal.collection_find(collection_column_get.name);
  k app.collection_columns;
begin
  select o.* into k from app.collection_columns o
   where o.collection_id = c.id and o.name = collection_column_get."column";
  perform internal.check_found(k.id is not null, 'column');
  return internal.reply(200, internal.collection_column_json(k));
end $$;
comment on function api.collection_column_get is 'A column''s definition. Refuses 404 COLLECTION_NOT_FOUND, NOT_FOUND.';

create or replace function api.collection_create(definition json, dry_run boolean default false) returns api.reply
language sql volatile as $$
  select internal.reply(case when collection_create.dry_run then 200 else 201 end,
                        internal.collection_create(collection_create.definition, collection_create.dry_run))
$$;
comment on function api.collection_create is
  'Creates a collection, or with dry_run returns the plan. Refuses as internal.collection_create.';

create or replace function api.collection_update(name text, patch json, dry_run boolean default false) returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.collection_update(collection_update.name, collection_update.patch,
                                                        collection_update.dry_run))
$$;
comment on function api.collection_update is 'Changes a collection. Refuses as internal.collection_update.';

create or replace function api.collection_column_add(name text, definition json, dry_run boolean default false)
returns api.reply
language sql volatile as $$
  select internal.reply(case when collection_column_add.dry_run then 200 else 201 end,
                        internal.collection_column_add(collection_column_add.name, collection_column_add.definition,
                                                       collection_column_add.dry_run))
$$;
comment on function api.collection_column_add is 'Adds a column. Refuses as internal.collection_column_add.';

create or replace function api.collection_index_add(name text, definition json, dry_run boolean default false)
returns api.reply
language sql volatile as $$
  select internal.collection_index_add(collection_index_add.name, collection_index_add.definition,
                                       collection_index_add.dry_run)
$$;
comment on function api.collection_index_add is
  'Adds an index. Refuses as internal.collection_index_add, which also says when a job must build it.';

create or replace function api.collection_index_begin(name text, definition json, operation_id uuid) returns api.reply
language sql volatile as $$
  select internal.collection_index_add(collection_index_begin.name, collection_index_begin.definition, false,
                                       collection_index_begin.operation_id)
$$;
comment on function api.collection_index_begin is
  'For the worker, before it builds an index: registers the index as not ready under the operation''s id, and returns
   the id, its name in the database and the statements.';
