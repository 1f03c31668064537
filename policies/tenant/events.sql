alter table app.engagement_events enable row level security;
alter table app.event_ids enable row level security;
alter table app.user_event_counters enable row level security;
alter table app.event_definitions enable row level security;
select internal.checks_declare('app.event_definitions');
alter table app.event_replays enable row level security;

create policy "users read their own events"
  on app.engagement_events for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "server keys read every event" on app.engagement_events for select to app_server using (true);
create policy "administrators read every event" on app.engagement_events for select to app_admin using (true);
create policy "workers forget old ids" on app.event_ids for delete to app_worker using (true);
create policy "workers find old ids" on app.event_ids for select to app_worker using (true);
create policy "users read their own counters"
  on app.user_event_counters for select to app_user
  using (app_user_id = (select internal.user_id()));
create policy "administrators read every counter" on app.user_event_counters for select to app_admin using (true);

create policy "administrators read definitions of events" on app.event_definitions for select to app_admin using (true);
create policy "administrators add definitions of events" on app.event_definitions for insert to app_admin
  with check (true);
create policy "administrators change definitions of events" on app.event_definitions for update to app_admin
  using (true) with check (true);
create policy "administrators delete definitions of events" on app.event_definitions for delete to app_admin
  using (true);

grant select on app.engagement_events to app_user, app_server, app_admin;
grant select on app.user_event_counters to app_user, app_admin;
grant select, delete on app.event_ids to app_worker;
grant execute on function api.events_post, internal.events_single, internal.events_batch, internal.ingest_event,
  internal.ingest_events, internal.event_source, internal.is_historical, internal.event_by_id, internal.event_json,
  internal.effects_json, internal.effects_noted, internal.effects_of, internal.event_answer,
  internal.collect_effects to app_user, app_server, app_admin;
grant execute on function api.events_post_together, internal.events_together to app_server;
grant execute on function api.events_maintain, internal.make_event_partition,
  internal.events_purge_replays to app_worker;

grant execute on function internal.as_time to app_user, app_admin;
grant execute on function internal.event_definition_json, internal.event_definition_find,
  internal.event_definition_before_write, internal.schema_problem, internal.event_full_json, internal.time_parameter,
  internal.events_newest, internal.event_caused, internal.event_caused__events,
  internal.event_caused__webhook_deliveries, internal.event_names, internal.estimated_rows, internal.property_paths,
  internal.event_name_json, internal.replay_targets, api.event_definition_put, api.events_list, api.event_get,
  api.event_names, api.events_daily, api.events_delete_check, api.events_replay_check to app_admin;
grant execute on function api.events_delete_step, api.events_count, api.events_replay_step, api.events_replay_total,
  api.events_replay_result to app_worker;

select internal.graphql_declare('app.engagement_events', hidden => '{transaction_id}');
select internal.graphql_declare('app.event_definitions');
select internal.graphql_declare('app.user_event_counters');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, exempt_reason,
   declared_in)
values
  ('app.engagement_events', 'app_user_id', 'engagement_events',
   array['id', 'app_user_id', 'event_name', 'properties', 'occurred_at', 'received_at', 'source', 'session_id',
         'is_historical',
         'clock_adjusted', 'schema_violation'],
   array['transaction_id'], 'events', 'move', 'delete', null, current_setting('trellis.file')),
  ('app.event_ids', 'app_user_id', 'event_ids', null, '{}', 'events', 'move', 'cascade',
   'ids of events that the events section holds', current_setting('trellis.file')),
  ('app.user_event_counters', 'app_user_id', 'event_counters',
   array['app_user_id', 'event_name', 'day', 'count'], '{}', 'events', 'add', 'delete', null,
   current_setting('trellis.file'));
-- the order that engagement_events_of_user serves
update internal.user_data d set export_order = array['occurred_at', 'id'] where d.table_name = 'app.engagement_events';
grant execute on function internal.purge__events to app_worker;

insert into internal.definitions (kind, table_name, singular, plural, key_column, found_by, order_by, is_descending,
                                  fixed_columns, max_count, create_order, declared_in)
values ('event_definition', 'app.event_definitions', 'definition', 'definitions of events', 'event_name', 'key',
        '{event_name}', false, '{event_name}', 1000, 10, current_setting('trellis.file'));
select internal.definition_declare('event_definition');

-- computed from definitions, and read by the dispatcher alone
alter table app.event_plans enable row level security;
