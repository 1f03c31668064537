-- Audit rows for changes of definitions.
select internal.audit_declare('app.collections', 'collections');
select internal.audit_declare('app.collection_columns', 'collection_columns');
select internal.audit_declare('app.collection_indexes', 'collection_indexes');
