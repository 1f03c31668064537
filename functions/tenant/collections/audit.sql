-- Audit rows for changes of definitions.
create or replace trigger tg_collections__audit
  after insert or update or delete on app.collections
  for each row execute function internal.tg_audit('collections');
create or replace trigger tg_collection_columns__audit
  after insert or update or delete on app.collection_columns
  for each row execute function internal.tg_audit('collection_columns');
create or replace trigger tg_collection_indexes__audit
  after insert or update or delete on app.collection_indexes
  for each row execute function internal.tg_audit('collection_indexes');
