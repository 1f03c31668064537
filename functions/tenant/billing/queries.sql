create or replace function internal.usage_by_day(first date, last date)
returns table (meter text, day date, amount numeric)
language sql stable security definer set search_path = '' as $$
  with closed as materialized (
    select c.closed_until from app.usage_closings c
  -- it is read for each meter and day: events of days that are open are counted once
  ), counted as materialized (
    select u.meter, u.day, sum(u.amount) as amount
      from app.usage_days u
     -- users count from the beginning of a month
     where u.day between date_trunc('month', usage_by_day.first::timestamp)::date and usage_by_day.last
     group by 1, 2
    union all
    select 'events', r.day, r.events
      from closed c
     cross join lateral internal.events_received(greatest(usage_by_day.first, c.closed_until + 1),
                                                 least(usage_by_day.last, internal.utc_day(internal.now()))) r
    union all
    -- of days that are not closed the bytes are those of now
    select 'storage_bytes', d::date, internal.stored_bytes()
      from closed c
     cross join lateral generate_series(greatest(usage_by_day.first, c.closed_until + 1)::timestamp,
                                        least(usage_by_day.last, internal.utc_day(internal.now()))::timestamp,
                                        interval '1 day') d
  )
  select m.meter, d::date, coalesce(s.amount, 0)
    from unnest('{mau,events,storage_bytes,push_sent,emails_sent,ai_spend_usd,function_ms}'::text[]) m (meter)
   cross join generate_series(usage_by_day.first::timestamp, usage_by_day.last::timestamp, interval '1 day') d
    left join lateral (
      select sum(c.amount) as amount
        from counted c
       where c.meter = m.meter
         and c.day between case m.meter when 'mau' then date_trunc('month', d)::date
                                else d::date end and d::date) s on true
$$;
comment on function internal.usage_by_day is
  'The meters of each day from first to last. mau is how many users were seen from the beginning of the month to the
   day; storage_bytes what was stored at its end, or now.';

create or replace function internal.usage_value(meter text, amount numeric) returns json
language sql immutable parallel safe
-- money as it is, without the zeros that a product of decimals ends in; all else are whole numbers
return case when usage_value.meter = 'ai_spend_usd' then to_json(trim_scale(usage_value.amount))
            else to_json(usage_value.amount::bigint) end;
comment on function internal.usage_value is 'An amount of a meter as JSON.';

create or replace function api.usage_series(first date, last date) returns api.reply
language sql stable as $$
  select internal.reply(200, json_object_agg(m.meter, m.amounts))
    from (select u.meter, json_agg(internal.usage_value(u.meter, u.amount) order by u.day) as amounts
            from internal.usage_by_day(usage_series.first, usage_series.last) u
           group by u.meter) m
$$;
comment on function api.usage_series is
  'The amounts of each day from first to last, {meter: [amount]}; the server adds the meters that the control database
   has.';

create or replace function api.usage_month(is_free boolean) returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object(
           'spend_ceiling_usd', internal.spend_ceiling(),
           'media_storage', json_build_object('used', internal.registered_bytes(),
                                              'limit', case when usage_month.is_free then internal.media_budget() end),
           'meters', (select json_object_agg(m.meter, internal.usage_value(m.meter, m.used))
                        from (select u.meter,
                                     case when u.meter in ('mau', 'storage_bytes')
                                            then (array_agg(u.amount order by u.day desc))[1]
                                              else sum(u.amount) end as used
                                from internal.usage_by_day(date_trunc('month', p.today)::date, p.today::date) u
                               group by u.meter) m)))
    from (select internal.now() at time zone 'UTC' as today) p
$$;
comment on function api.usage_month is
  'What was used in this calendar month (UTC): {spend_ceiling_usd, media_storage {used, limit}, meters {meter: amount}}.
   Of users those of the month, of stored bytes those of now.';

create or replace function internal.registered_bytes() returns bigint
language sql stable security definer set search_path = '' as $$
  select coalesce(sum(t.registered_bytes), 0)::bigint from app.media_totals t
$$;
comment on function internal.registered_bytes is
  'The bytes that the budget of a free project counts: of pending files too.';
