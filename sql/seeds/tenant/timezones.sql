insert into app.timezones (name)
select z.name
  from pg_catalog.pg_timezone_names z
 where z.name !~ '^(posix|right)/' and z.name not in ('localtime', 'posixrules', 'Factory')
on conflict do nothing;
