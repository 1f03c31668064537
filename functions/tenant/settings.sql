create or replace function internal.setting(key text) returns jsonb
language sql stable security definer set search_path = '' as $$
  select s.value from app.settings s where s.key = setting.key
$$;
comment on function internal.setting is 'A setting of the project, or null when it is not set.';

create or replace function internal.set_setting(key text, value jsonb) returns void
language sql volatile security definer set search_path = '' as $$
  insert into app.settings as s (key, value) values (set_setting.key, set_setting.value)
  on conflict (key) do update set value = excluded.value, updated_at = internal.now()
$$;
comment on function internal.set_setting is 'Stores a setting of the project. Granted to nobody: areas call it.';
