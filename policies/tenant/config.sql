alter table app.config_keys enable row level security;
select internal.checks_declare('app.config_keys', 'INVALID_INPUT');
alter table app.config_versions enable row level security;

create policy "apps read the configuration" on app.config_keys for select to app_anon using (true);
create policy "users read the configuration" on app.config_keys for select to app_user using (true);
create policy "administrators read the configuration" on app.config_keys for select to app_admin using (true);
create policy "administrators add keys" on app.config_keys for insert to app_admin with check (true);
create policy "administrators change keys" on app.config_keys for update to app_admin using (true) with check (true);
create policy "administrators delete keys" on app.config_keys for delete to app_admin using (true);

grant select on app.config_keys to app_anon, app_user, app_admin;
grant update (version) on app.config_keys to app_admin;

grant execute on function internal.fnv1a32, internal.bucket, internal.config_coerced, internal.config_value,
  internal.etag_matches, internal.config_tag, api.config_values to app_anon, app_user;
grant execute on function internal.config_conditions, internal.config_key_json, internal.config_storable,
  internal.config_size_check, api.config_key_put, api.config_key_list, api.config_key_update to app_admin;

select internal.graphql_declare('app.config_keys');

insert into internal.definitions (kind, table_name, singular, plural, key_column, found_by, invalid_code, order_by,
                                  is_descending, fixed_columns, state_columns, create_order, promoted_as, refs,
                                    declared_in)
values ('config_key', 'app.config_keys', 'key', 'keys', 'key', 'key', 'INVALID_INPUT', '{key}', false, '{key}',
        '{version}', 50, 'config',
   '[{"path": "$.conditions[*].segment_id", "kind": "segment", "by": "id"}]', current_setting('trellis.file'));
select internal.definition_declare('config_key');
