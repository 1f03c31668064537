-- What flags publish, to the channel of remote config.

select internal.source_declare(null::app.flags,
  'flags.changed {keys}.',
  ops => 'insert or update or delete', publishes => $q$select 'config', 'flags.changed',
  json_build_object('keys', json_build_array(r.key))$q$);
