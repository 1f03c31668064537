-- The spend ceiling: the most that the calls of providers may cost in a calendar month (UTC). It is checked before a
-- call, with what the calls under way have reserved. Projects without one take no lock.
create or replace function internal.spend_month() returns numeric
language sql stable security definer set search_path = '' as $$
  select coalesce(sum(u.amount), 0)
    from app.usage_days u
   where u.meter = 'ai_spend_usd' and u.day >= date_trunc('month', internal.now() at time zone 'UTC')::date
$$;
comment on function internal.spend_month is 'What the project has spent this month, in USD.';

create or replace function internal.spend_ceiling() returns numeric
language sql stable security definer set search_path = '' as $$
  select (internal.setting('spend_ceiling_usd') #>> '{}')::numeric
$$;
comment on function internal.spend_ceiling is 'The spend ceiling in USD, or null.';

create or replace function internal.spend_held() returns numeric
language sql stable security definer set search_path = '' as $$
  select coalesce(sum(i.reserved_usd), 0)
    from app.ai_invocations i
   where i.status = 'running'
     -- one that was abandoned, and is not released yet, is owed in its month
     and (i.expires_at > internal.now() or i.created_at >= date_trunc('month', internal.now(), 'UTC'))
$$;
comment on function internal.spend_held is
  'What the calls under way have reserved, in USD, and those of this month whose end nobody has recorded.';

create or replace function internal.spend_refuse() returns void
language plpgsql stable as $$
begin
  perform internal.fail(402, 'SPEND_CEILING_REACHED',
                        'The project has reached its spend ceiling of this month: its developer may raise it.');
end $$;
comment on function internal.spend_refuse is 'Refuses 402 SPEND_CEILING_REACHED. Without figures: apps see it too.';

create or replace function internal.spend_check(is_comped boolean, wanted numeric default 0) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  used record;
begin
  if coalesce(spend_check.is_comped, false) or internal.spend_ceiling() is null then
    return;
  end if;
  -- calls under a ceiling are admitted one after the other: each sees what those before it have reserved
  perform internal.advisory_lock('spend ceiling');
  -- in one statement: a call that is finished meanwhile is in one of the sums; the ceiling may have changed meanwhile
  select internal.spend_month() as spend, internal.spend_held() as held, internal.spend_ceiling() as ceiling into used;
  if used.spend >= used.ceiling or used.spend + used.held + spend_check.wanted > used.ceiling then
    perform internal.spend_refuse();
  end if;
end $$;
comment on function internal.spend_check is
  'Refuses 402 SPEND_CEILING_REACHED when the ceiling is reached, or would be by a call that costs up to so much; never
   in a comped project. Where there is a ceiling, holds its lock to the end of the transaction, in which the caller
   reserves.';

create or replace function api.spend_ceiling_put(amount_usd numeric default null) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  was constant numeric := internal.spend_ceiling();
begin
  perform internal.check_caller('developer', 'the spend ceiling is set by administrators');
  if was is distinct from spend_ceiling_put.amount_usd then
    perform internal.set_setting('spend_ceiling_usd', coalesce(to_jsonb(spend_ceiling_put.amount_usd), 'null'));
    perform internal.audit('billing.update', 'billing', null,
                           json_build_object('spend_ceiling_usd', json_build_array(was, spend_ceiling_put.amount_usd)));
  end if;
  return internal.reply(200, json_build_object('spend_ceiling_usd', spend_ceiling_put.amount_usd));
end $$;
comment on function api.spend_ceiling_put is
  'Sets the spend ceiling, or takes it away with null, and records it in the audit trail: 200 {spend_ceiling_usd}. Calls
   that were admitted before go on.';
