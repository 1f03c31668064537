-- Users whose connections are closed, or whose subscriptions change.

select internal.source_declare(null::app.users,
  'A user was banned or is gone: the connections are closed. Who hides other actions of feeds hears of others.',
  ops => 'delete', changes => '{is_banned,properties}',
  also => $q$if op = 'DELETE' or r.is_banned then perform internal.notify_servers(array['~' || r.id], '~session');
  elsif (r.properties -> 'feed_hidden_actions') is distinct
    from (was.properties -> 'feed_hidden_actions') then perform internal.recheck_users(array[r.id]); end if;$q$);
