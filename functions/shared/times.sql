-- Times as callers write them.
create or replace function internal.as_time(value text) returns timestamptz
language sql stable parallel safe
return case
  -- the form bounds every field but the day, which its month bounds; so the cast at the end cannot fail
  when as_time.value ~ '^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])([T '
                       ']([01]\d|2[0-3]):[0-5]\d(:([0-5]\d|60)(\.\d{1,9})?)?([Zz]|[+-](0\d|1[0-5]):?[0-5]\d)?)?$'
   and as_time.value !~ '^0000'
  then case
    when substr(as_time.value, 9, 2) <= '28'
      or substr(as_time.value, 9, 2)::int
         <= extract(day from (substr(as_time.value, 1, 8) || '01')::date + interval '1 month' - interval '1 day')
    -- a time without a zone is UTC, whatever the session's zone
    then (case when length(as_time.value) = 10 then as_time.value || 'T00:00Z'
               when as_time.value ~ '([Zz]|[+-]\d\d:?\d\d)$' and length(as_time.value) > 16 then as_time.value
               else as_time.value || 'Z' end)::timestamptz
  end
end;
comment on function internal.as_time is
  'The time that a text spells in ISO 8601, UTC when it names no zone; null for anything else.';

create or replace function internal.time_parameter(name text, value text) returns timestamptz
language plpgsql stable as $$
declare
  at constant timestamptz := internal.as_time(time_parameter.value);
begin
  if time_parameter.value is not null and at is null then
    perform internal.invalid(time_parameter.name, 'must be an ISO 8601 time', 'INVALID_INPUT');
  end if;
  return at;
end $$;
comment on function internal.time_parameter is 'A time of the query string. Refuses 400 INVALID_INPUT.';
