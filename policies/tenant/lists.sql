-- Only internal.counted reads this table.
alter table app.row_counters enable row level security;
alter table app.row_counts enable row level security;

grant execute on function internal.counted, internal.list_counted, internal.reads_every_row to app_admin;
grant execute on function internal.count_key to app_admin, app_server;
grant execute on function internal.purge__row_counts to app_worker;

grant execute on function internal.days_check, internal.days_reply to app_admin;
