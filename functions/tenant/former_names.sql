-- Functions under the names that servers and workers of the former version call while both versions run during an upgrade. Remove with the next version.
create or replace function api.outbox_settle(id uuid, lease int, due_at timestamptz default null, error text default null,
                                             gave_up boolean default false)
returns api.reply
language sql volatile as $$
  select api.outbox_finish(outbox_settle.id, outbox_settle.lease, outbox_settle.due_at, outbox_settle.error, outbox_settle.gave_up)
$$;
comment on function api.outbox_settle is
  'As api.outbox_finish, for workers of the former version: without it a task that they have run would run again.';

create or replace function api.catalog_define(patch jsonb) returns api.reply
language sql volatile as $$
  select api.definition_create('catalog_item', catalog_define.patch)
$$;
comment on function api.catalog_define is 'As api.definition_create of catalog items, for servers of the former version.';

create or replace function api.catalog_update(id_or_key text, patch jsonb) returns api.reply
language sql volatile as $$
  select api.definition_update('catalog_item', catalog_update.id_or_key, catalog_update.patch)
$$;
comment on function api.catalog_update is 'As api.definition_update of catalog items, for servers of the former version.';

create or replace function api.catalog_items(category text default null, tag text default null, item_type text default null, search text default null,
                                             include_inactive boolean default false, page_offset int default 0, page_limit int default 50)
returns api.reply
language sql stable as $$
  select api.catalog_item_list(catalog_items.category, catalog_items.tag, catalog_items.item_type, catalog_items.search, catalog_items.include_inactive,
                               catalog_items.page_offset, catalog_items.page_limit)
$$;
comment on function api.catalog_items is 'As api.catalog_item_list, for servers of the former version.';

create or replace function api.config_set(key text, value json, value_type text default 'string', description text default null, conditions json default '[]')
returns api.reply
language sql volatile as $$
  select api.config_key_put(config_set.key, config_set.value, config_set.value_type, config_set.description, config_set.conditions)
$$;
comment on function api.config_set is 'As api.config_key_put, for servers of the former version.';

create or replace function api.config_list() returns api.reply
language sql stable as $$
  select api.config_key_list()
$$;
comment on function api.config_list is 'As api.config_key_list, for servers of the former version.';

create or replace function api.config_update(key text, patch json) returns api.reply
language sql volatile as $$
  select api.config_key_update(config_update.key, config_update.patch)
$$;
comment on function api.config_update is 'As api.config_key_update, for servers of the former version.';

create or replace function api.event_define(event_name text, description text default null, status text default 'active', schema json default null,
                                            sample_rate numeric default 1)
returns api.reply
language sql volatile as $$
  select api.event_definition_put(event_define.event_name, event_define.description, event_define.status, event_define.schema, event_define.sample_rate)
$$;
comment on function api.event_define is 'As api.event_definition_put, for servers of the former version.';

create or replace function api.onboarding_flows() returns api.reply
language sql stable as $$
  select api.onboarding_flow_list()
$$;
comment on function api.onboarding_flows is 'As api.onboarding_flow_list, for servers of the former version.';

create or replace function api.leaderboard_turn(leaderboard_id uuid, batch int) returns api.reply
language sql volatile as $$
  select api.leaderboard_rollover(leaderboard_turn.leaderboard_id, leaderboard_turn.batch)
$$;
comment on function api.leaderboard_turn is 'As api.leaderboard_rollover, for workers of the former version.';

create or replace function api.leaderboard_tell(run_id uuid, by uuid, passed json, displaced uuid default null, displaced_reason text default null)
returns api.reply
language sql volatile as $$
  select api.leaderboard_notify(leaderboard_tell.run_id, leaderboard_tell.by, leaderboard_tell.passed, leaderboard_tell.displaced,
                                leaderboard_tell.displaced_reason)
$$;
comment on function api.leaderboard_tell is 'As api.leaderboard_notify, for workers of the former version.';

create or replace function api.tenant_forget() returns api.reply
language sql volatile as $$
  select api.tenant_purge()
$$;
comment on function api.tenant_forget is 'As api.tenant_purge, for workers of the former version.';
