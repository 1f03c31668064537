-- The fold: computes the chain of a user's stored periods. It reads neither the clock nor tables, and
-- processes periods in their own order, so that late events give the same chain as timely ones.

create or replace function internal.paused_periods(definition app.streak_definitions, pauses app.streak_pauses[])
returns int[]
language plpgsql stable as $$
declare
  d constant app.streak_definitions := paused_periods.definition;
begin
  if paused_periods.pauses is null then
    return null;
  end if;
  -- most days of a period must be paused: all of a day, four of a week, half a month
  return (
    select array_agg(covered.number)
      from (select internal.period_number(d.period, d.week_starts_on, day::date) as number, count(*) as days
              from unnest(paused_periods.pauses) p
             cross join generate_series(p.starts_on, p.ends_on, interval '1 day') as day
             group by 1) as covered
     where covered.days * 2 >= internal.period_date(d.period, d.week_starts_on, covered.number + 1)
                             - internal.period_date(d.period, d.week_starts_on, covered.number));
end $$;
comment on function internal.paused_periods is
  'Numbers of the periods that pauses cover: those of whose days at least half are paused. Null when none is.';

create or replace function internal.streak_extent(
  definition app.streak_definitions, zone text, last_period int, freezes int, paused int[], grants app.streak_freezes[],
  until int, out covered_through int, out freezes_left int, out frozen int[])
language plpgsql stable as $$
declare
  d constant app.streak_definitions := streak_extent.definition;
  gift_at int[];  gift_amount int[];  gift_max int[];
  next_gift int := 1;
  p int := streak_extent.last_period;
begin
  if streak_extent.grants is not null then
    select array_agg(internal.period_number(d.period, d.week_starts_on, g.applies_from) order by g.applies_from,
                     g.granted_at, g.id),
           array_agg(g.amount order by g.applies_from, g.granted_at, g.id),
           array_agg(g.freezes_max order by g.applies_from, g.granted_at, g.id)
      into gift_at, gift_amount, gift_max
      from unnest(streak_extent.grants) g
     where internal.period_number(d.period, d.week_starts_on, g.applies_from) > streak_extent.last_period;
  end if;

  covered_through := streak_extent.last_period;
  freezes_left := streak_extent.freezes;
  frozen := '{}';
  while p < streak_extent.until loop
    p := p + 1;
    while gift_at[next_gift] <= p loop
      freezes_left := greatest(freezes_left, least(freezes_left + gift_amount[next_gift], gift_max[next_gift]));
      next_gift := next_gift + 1;
    end loop;
    if p = any (streak_extent.paused) or internal.date_is_skipped(d.period, streak_extent.zone, p) then
      null;
    elsif freezes_left > 0 then
      freezes_left := freezes_left - 1;
      frozen := frozen || p;
    else
      exit;
    end if;
    covered_through := p;
  end loop;
  -- freezes given for a future period are available already
  while next_gift <= cardinality(gift_at) loop
    freezes_left := greatest(freezes_left, least(freezes_left + gift_amount[next_gift], gift_max[next_gift]));
    next_gift := next_gift + 1;
  end loop;
end $$;
comment on function internal.streak_extent is
  'How far pauses and freezes alone continue a chain after its last qualified period, at most until the given period:
   the last period covered, the freezes left then, and the periods that used one.';

create or replace function internal.streak_fold(
  definition app.streak_definitions, zone text, freezes_initial int, periods app.streak_periods[],
  pauses app.streak_pauses[], grants app.streak_freezes[],
  out chain internal.streak_chain, out numbers int[], out sources text[], out fed_at int[], out taken int[])
language plpgsql stable as $$
declare
  d constant app.streak_definitions := streak_fold.definition;
  paused constant int[] := coalesce(internal.paused_periods(d, streak_fold.pauses), '{}');
  counts int[];  open_1 int[];  open_2 int[];  open_3 int[];
  needed int[];  earn_every int[];  freezes_max int[];  given text[];
  gift_at int[];  gift_amount int[];  gift_max int[];
  next_gift int := 1;
  i int := 1;             -- the first row not before p
  p int;                  -- the current period
  freezes int := streak_fold.freezes_initial;
  is_alive boolean := false;
  ended int;              -- where the chain before ended
  source text;
  missing int;
  found int;
  kept int := 0;          -- how many of numbers and sources lie at or before the newest qualified period
begin
  select array_agg(internal.period_number(d.period, d.week_starts_on, r.starts_on) order by r.starts_on),
         array_agg(r.count order by r.starts_on), array_agg(r.open_1 order by r.starts_on),
         array_agg(r.open_2 order by r.starts_on), array_agg(r.open_3 order by r.starts_on),
         array_agg(r.needed order by r.starts_on), array_agg(r.earn_every order by r.starts_on),
         array_agg(r.freezes_max order by r.starts_on), array_agg(0),
         array_agg(case when r.source in ('manual', 'restore') then r.source end order by r.starts_on)
    into fed_at, counts, open_1, open_2, open_3, needed, earn_every, freezes_max, taken, given
    from unnest(streak_fold.periods) r
   where r.count > 0 or r.source in ('manual', 'restore');
  select array_agg(internal.period_number(d.period, d.week_starts_on, g.applies_from) order by g.applies_from,
                   g.granted_at, g.id),
         array_agg(g.amount order by g.applies_from, g.granted_at, g.id),
         array_agg(g.freezes_max order by g.applies_from, g.granted_at, g.id)
    into gift_at, gift_amount, gift_max
    from unnest(streak_fold.grants) g;

  chain.current_count := 0;
  chain.longest_count := 0;
  chain.freezes := freezes;
  numbers := '{}';
  sources := '{}';
  p := fed_at[1];
  while i <= cardinality(fed_at) loop
    while gift_at[next_gift] <= p loop
      freezes := greatest(freezes, least(freezes + gift_amount[next_gift], gift_max[next_gift]));
      next_gift := next_gift + 1;
    end loop;

    source := null;
    missing := needed[i];
    if fed_at[i] = p then
      missing := missing - counts[i] + taken[i];
      source := case when given[i] is not null then given[i] when missing <= 0 then 'event' end;
    end if;

    if source is null and is_alive then
      if p = any (paused) then
        source := 'pause';
      elsif internal.date_is_skipped(d.period, streak_fold.zone, p) then
        source := 'none';
      else
        -- grace: events that arrived while p was still open qualify it if they suffice; the earliest are used first
        found := 0;
        for j in i + (fed_at[i] = p)::int .. least(cardinality(fed_at), i + 3) loop
          exit when fed_at[j] > p + 3;
          found := found + greatest(0, case fed_at[j] - p when 1 then open_1[j] when 2 then open_2[j]
                                            else open_3[j] end - taken[j]);
        end loop;
        if found >= missing then
          source := 'event';
          for j in i + (fed_at[i] = p)::int .. least(cardinality(fed_at), i + 3) loop
            exit when missing = 0 or fed_at[j] > p + 3;
            found := least(missing, greatest(0, case fed_at[j] - p when 1 then open_1[j] when 2 then open_2[j]
                                                     else open_3[j] end - taken[j]));
            taken[j] := taken[j] + found;
            missing := missing - found;
          end loop;
        elsif freezes > 0 then
          source := 'freeze';
          freezes := freezes - 1;
        else
          is_alive := false;
          ended := p - 1;
        end if;
      end if;
    end if;

    if source in ('event', 'freeze', 'pause', 'manual', 'restore') then
      numbers := array_append(numbers, p);
      sources := array_append(sources, source);
    end if;
    if source in ('event', 'manual', 'restore') then
      if not is_alive then
        if chain.last_period is not null then
          chain.lapsed_count := chain.current_count;
          chain.lapsed_through := ended;
        end if;
        is_alive := true;
        chain.started_on := p;
        chain.current_count := 0;
      end if;
      chain.current_count := chain.current_count + 1;
      chain.longest_count := greatest(chain.longest_count, chain.current_count);
      if earn_every[i] > 0 and chain.current_count % earn_every[i] = 0 then
        freezes := greatest(freezes, least(freezes + 1, freezes_max[i]));
      end if;
      chain.last_period := p;
      chain.freezes := freezes;
      kept := cardinality(numbers);
    end if;

    if fed_at[i] = p then
      i := i + 1;
    end if;
    p := case when is_alive then p + 1 else fed_at[i] end;
  end loop;

  -- periods after the newest qualified one depend on the clock, which the fold does not read
  numbers := numbers[1:kept];
  sources := sources[1:kept];
  if chain.last_period is not null then
    chain.covered_through := (internal.streak_extent(d, streak_fold.zone, chain.last_period, chain.freezes, paused,
                                                     streak_fold.grants,
                                                     chain.last_period + 2000)).covered_through;
  end if;
end $$;
comment on function internal.streak_fold is
  'The chain of the stored periods, the source that covers each period (numbers, sources), and how many events of each
   counted period were used for earlier periods (fed_at, taken). Processes periods from the oldest: a period qualifies
   by enough events of its own; otherwise, while a chain is alive, it is covered by a pause, by events that arrived
   before its deadline, or by a freeze; otherwise the chain ends. A chain counts its qualified periods. Every n-th of
   them earns a freeze; freezes outlive the chain.';
