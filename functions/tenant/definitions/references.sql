-- References between rows of one kind: the order in which they can be created.
create or replace function internal.reference_depths(edges jsonb) returns table (key text, depth int)
language plpgsql immutable as $$
declare
  keys constant text[] := array(select k.name from jsonb_object_keys(reference_depths.edges) k (name) order by k.name);
  -- by number: the others that a key still waits for, its depth, and where in referrers those begin that wait for it
  waits_for int[];
  depths int[] := array_fill(0, array[cardinality(keys)]);
  starts int[];
  referrers int[];
  ready int[];
  this int;
  other int;
begin
  with numbered as materialized (
    select k.name, k.n::int as n from unnest(keys) with ordinality k (name, n)
  ), pairs as materialized (
    select distinct f.n as referrer, t.n as referred
      from jsonb_each(reference_depths.edges) e
      join numbered f on f.name = e.key
     cross join lateral jsonb_array_elements_text(e.value) r (name)
      join numbered t on t.name = r.name
  )
  select array(select coalesce(w.count, 0) from numbered b left
                 join (select p.referrer, count(*)::int as count from pairs p group by 1) w on w.referrer = b.n
                   order by b.n),
         array(select coalesce(sum(w.count) over (order by b.n rows between unbounded preceding and 1 preceding),
                               0)::int + 1
                 from numbered b left join (select p.referred, count(*)::int as count from pairs p
                                             group by 1) w on w.referred = b.n order by b.n),
         array(select p.referrer from pairs p order by p.referred, p.referrer)
    into waits_for, starts, referrers;
  starts := starts || (cardinality(referrers) + 1);
  ready := array(select n.n from unnest(waits_for) with ordinality n (count, n) where n.count = 0 order by n.n);
  -- each key and each reference is looked at once
  for turn in 1 .. cardinality(keys) loop
    exit when turn > cardinality(ready);
    this := ready[turn];
    for at in starts[this] .. starts[this + 1] - 1 loop
      other := referrers[at];
      depths[other] := greatest(depths[other], depths[this] + 1);
      waits_for[other] := waits_for[other] - 1;
      if waits_for[other] = 0 then
        ready := ready || other;
      end if;
    end loop;
  end loop;
  return query select k.name, case when k.waits_for = 0 then k.depth end
    from unnest(keys, waits_for, depths) k (name, waits_for, depth);
end $$;
comment on function internal.reference_depths is
  'How many references one after the other lead from a key to the end, of {key: [keys it refers to]}; null for a key
   from which a circle is reached.';
