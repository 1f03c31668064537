-- Sessions that end close their connections.

select internal.source_declare(null::app.user_sessions,
  'A session has ended: its connections are closed.',
  changes => '{ended_at}',
  also => $q$if was.ended_at is null then perform internal.notify_servers(array['~' || r.app_user_id],
                                                                          '~session'); end if;$q$);
