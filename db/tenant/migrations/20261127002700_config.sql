-- migrate:up
create table app.config_keys (
  id          uuid primary key default internal.new_id(),
  key         text not null constraint config_keys_key_form check (key ~ '^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}$'),
  value       jsonb not null,
  value_type  text not null default 'string' constraint config_keys_value_type_known
    check (value_type in ('string', 'number', 'boolean', 'json')),
  description text constraint config_keys_description_at_most_2000 check (char_length(description) <= 2000),
  conditions  jsonb not null default '[]' constraint config_keys_conditions_is_list
    check (jsonb_typeof(conditions) = 'array'),
  version     int not null default 1,
  created_at  timestamptz not null default internal.now(),
  updated_at  timestamptz not null default internal.now(),
  constraint config_keys_key_unique unique (key)
);

create table app.config_versions (
  is_only      boolean primary key default true constraint config_versions_one_row check (is_only),
  version_hash text not null,
  changed_at   timestamptz not null default internal.now()
);
comment on table app.config_versions is
  'The hash of the project''s configuration: one row, new at every change of a key.';
insert into app.config_versions (version_hash) values ('0');

-- migrate:down
drop table app.config_versions;
drop table app.config_keys;
