-- Time-based changes of a balance: regeneration, and expiry of credits. Pure functions of stored rows and the clock; a
-- write books them first.
create or replace function internal.currency_regenerate(c app.currencies, state internal.currency_state,
                                                        until timestamptz)
returns internal.currency_state
language plpgsql immutable as $$
declare
  grown internal.currency_state := currency_regenerate.state;
  ticks bigint;
  gained bigint;
begin
  if (currency_regenerate.c).regen_amount is null or grown.balance >= (currency_regenerate.c).regen_cap then
    grown.regen_at := null;
    return grown;
  end if;
  ticks := greatest(floor(extract(epoch from currency_regenerate.until - grown.regen_at) / (
    currency_regenerate.c).regen_every_seconds), 0);
  if ticks > 0 then
    -- at most the ticks that reach the cap, so that the product cannot overflow
    gained := least(least(ticks, (currency_regenerate.c).regen_cap) * (currency_regenerate.c).regen_amount,
                    (currency_regenerate.c).regen_cap - grown.balance);
    grown.balance := grown.balance + gained;
    grown.regenerated := grown.regenerated + gained;
    grown.regen_at := case when grown.balance < (currency_regenerate.c).regen_cap
                           then grown.regen_at + make_interval(
                             secs => ticks * (currency_regenerate.c).regen_every_seconds) end;
  end if;
  return grown;
end $$;
comment on function internal.currency_regenerate is
  'Regenerates a balance below the cap up to a given time: whole ticks since regen_at, never above the cap. At the cap
   regeneration stops.';

create or replace function internal.currency_accrue(c app.currencies, balance bigint, balance_at timestamptz,
                                                    regen_at timestamptz, expiries timestamptz[], remainders bigint[],
                                                    until timestamptz)
returns internal.currency_state
language plpgsql immutable as $$
declare
  state internal.currency_state := row(currency_accrue.balance, 0, 0, null, false);
begin
  -- for a balance that was written before regeneration was enabled, it counts from the enabling
  if (currency_accrue.c).regen_amount is not null and state.balance < (currency_accrue.c).regen_cap then
    state.regen_at := greatest(coalesce(currency_accrue.regen_at, currency_accrue.balance_at),
                               (currency_accrue.c).regen_since);
  end if;
  for i in 1 .. coalesce(cardinality(currency_accrue.expiries), 0) loop
    exit when currency_accrue.expiries[i] > currency_accrue.until;
    state := internal.currency_regenerate(currency_accrue.c, state, currency_accrue.expiries[i]);
    state.balance := state.balance - currency_accrue.remainders[i];
    state.expired := state.expired + currency_accrue.remainders[i];
    -- an expiry that brings the balance below the cap starts the next regeneration
    if state.regen_at is null and (currency_accrue.c).regen_amount is not null
      and state.balance < (currency_accrue.c).regen_cap then
      state.regen_at := greatest(currency_accrue.expiries[i], (currency_accrue.c).regen_since);
    end if;
  end loop;
  return internal.currency_regenerate(currency_accrue.c, state, currency_accrue.until);
end $$;
comment on function internal.currency_accrue is
  'Applies time-based changes to a balance in their order: regeneration up to each expiry, the expiry, regeneration
   after it. The parallel lists of expiring credits are ordered by expiry, soonest first.';

create or replace function internal.currency_current(c app.currencies, app_user_id uuid) returns internal.currency_state
language plpgsql stable as $$
declare
  held app.currency_balances;
  state internal.currency_state;
  expiries timestamptz[];
  remainders bigint[];
begin
  select b.* into held
    from app.currency_balances b
   where b.app_user_id = currency_current.app_user_id and b.currency_code = (currency_current.c).code;
  if not found then
    -- never written: the initial grant, and its regeneration since both user and currency exist
    select greatest(u.created_at, (currency_current.c).created_at) into held.balance_at from app.users u
     where u.id = currency_current.app_user_id;
    state := internal.currency_accrue(currency_current.c, (currency_current.c).initial_grant, held.balance_at, null,
                                      null, null, internal.now());
    state.is_new := true;
    return state;
  end if;
  select array_agg(l.expires_at order by l.expires_at, l.id), array_agg(l.remaining order by l.expires_at, l.id)
    into expiries, remainders
    from app.currency_lots l
   where l.app_user_id = currency_current.app_user_id and l.currency_code = (currency_current.c).code
     and l.expires_at <= internal.now();
  return internal.currency_accrue(currency_current.c, held.balance, held.balance_at, held.regen_at, expiries,
                                  remainders, internal.now());
end $$;
comment on function internal.currency_current is
  'A user''s balance of a currency at the current time; writes nothing. A balance that was never written starts with the
   initial grant.';
