-- Named limits: fixed windows in a logged table, so they hold across processes, restarts and crashes.
create or replace function internal.limits_wait(limits json) returns int
language sql stable as $$
  select greatest(ceil(extract(epoch from max(r.started_at + make_interval(secs => l.seconds)) - internal.now())),
                  1)::int
    from json_to_recordset(limits_wait.limits) as l (key text, max int, seconds int)
    join app.rate_limits r on r.key = l.key
   where r.count >= l.max and r.started_at + make_interval(secs => l.seconds) > internal.now()
  having count(*) > 0
$$;
comment on function internal.limits_wait is
  'The seconds until none of [{key, max, seconds}] is exhausted, or null when none is.';

create or replace function internal.take_limits(limits json) returns int
language plpgsql volatile as $$
declare
  wait int := internal.limits_wait(take_limits.limits);
begin
  -- a refused attempt writes nothing, so that a flood of requests with invented addresses creates no rows
  if wait is not null then
    return wait;
  end if;
  insert into app.rate_limits (key, started_at, count)
  select l.key, internal.now(), 0
    from json_to_recordset(take_limits.limits) as l (key text)
   order by l.key
  on conflict (key) do nothing;

  -- a fixed lock order: two callers that share two limits cannot deadlock
  perform from app.rate_limits r
    where r.key in (select l.key from json_to_recordset(take_limits.limits) as l (key text))
    order by r.key
      for update;

  wait := internal.limits_wait(take_limits.limits);
  if wait is not null then
    return wait;
  end if;

  update app.rate_limits r
     set started_at = case when r.count = 0 or r.started_at + make_interval(secs => l.seconds) <= internal.now()
                           then internal.now() else r.started_at end,
         count = case when r.started_at + make_interval(secs => l.seconds) <= internal.now() then 1 else r.count + 1 end
    from json_to_recordset(take_limits.limits) as l (key text, seconds int)
   where r.key = l.key;
  return null;
end $$;
comment on function internal.take_limits is
  'Counts one attempt against each of [{key, max, seconds}]; if one is exhausted, counts none and returns the seconds to
   wait. A window begins at its first counted attempt; a refused attempt is not counted. Locks the rows in key order.';

create or replace function internal.rate_refusal(key text, max int, seconds int, message text) returns api.reply
language plpgsql volatile as $$
declare
  wait constant int := internal.take_limits(json_build_array(json_build_object(
    'key', rate_refusal.key, 'max', rate_refusal.max, 'seconds', rate_refusal.seconds)));
begin
  if wait is null then
    return null;
  end if;
  return internal.refuse(429, 'RATE_LIMITED', rate_refusal.message, json_build_object('retry_after_seconds', wait),
                         json_build_object('Retry-After', wait::text));
end $$;
comment on function internal.rate_refusal is
  'Counts one attempt of a key and returns null, or the reply 429 RATE_LIMITED {retry_after_seconds} with Retry-After
   once `max` were counted in `seconds`. For commands that return their refusals, so that refused attempts stay counted
   (codes must not be found by guessing). Granted to nobody.';

create or replace function internal.check_rate(key text, max int, seconds int, message text) returns void
language plpgsql volatile as $$
declare
  wait constant int := internal.take_limits(json_build_array(json_build_object(
    'key', check_rate.key, 'max', check_rate.max, 'seconds', check_rate.seconds)));
begin
  if wait is not null then
    perform internal.fail(429, 'RATE_LIMITED', check_rate.message, json_build_object('retry_after_seconds', wait),
                          json_build_object('Retry-After', wait::text));
  end if;
end $$;
comment on function internal.check_rate is
  'As internal.rate_refusal, but raises: an attempt that is refused for another reason later is not counted, as it is
   rolled back. Granted to nobody.';

create or replace function api.rate_limit_take(limits json) returns api.reply
language sql volatile as $$
  select internal.reply(200, json_build_object('wait', internal.take_limits(rate_limit_take.limits)))
$$;
comment on function api.rate_limit_take is
  'Counts one attempt of each limit in a separate statement: in the request''s transaction a refusal would undo the
   count.';

create or replace function api.rate_limit_give_back(keys json) returns api.reply
language plpgsql volatile as $$
begin
  update app.rate_limits r
     set count = greatest(r.count - 1, 0)
   where r.key in (select k from json_array_elements_text(rate_limit_give_back.keys) as k);
  return internal.reply(200, 'true');
end $$;
comment on function api.rate_limit_give_back is
  'Returns one attempt of each key: for limits on failures, which count an attempt before its check succeeds.';
