-- What remote config publishes, and its channel, which flags use too.

create or replace function internal.channel__config(item text, params jsonb, out name text, out scope json)
language plpgsql stable as $$
begin
  if channel__config.item is not null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such channel.');
  end if;
  name := 'config';
  scope := '{}';
end $$;
comment on function internal.channel__config is 'config: changes of remote config and of flags, for everybody.';

select internal.source_declare(null::app.config_versions,
  'config.changed {version_hash}.',
  ops => 'insert or update', publishes => $q$select 'config', 'config.changed',
  json_build_object('version_hash', r.version_hash)$q$);
