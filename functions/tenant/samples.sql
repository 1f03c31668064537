-- Estimates over all users from a sample, for previews that must answer in time at any size.

create or replace function internal.users_estimate() returns bigint
language plpgsql volatile as $$
declare
  plan json;
begin
  execute 'explain (format json) select from app.users' into plan;
  return greatest((plan -> 0 -> 'Plan' ->> 'Plan Rows')::numeric, 1)::bigint;
end $$;
comment on function internal.users_estimate is
  'About how many users there are, by the pages of their table: nothing is read.';

create or replace function internal.users_sampled(population bigint, round int, size int default 1000, out ids uuid[],
                                                  out pages int[])
language plpgsql volatile as $$
begin
  execute format('select array_agg(u.id order by u.id), array_agg((u.ctid::text::point)[0]::int order by u.id)
                    from app.users u tablesample system (%s) repeatable (%s)',
                 least(100, 100.0 * users_sampled.size / greatest(users_sampled.population, 1)), users_sampled.round)
     into ids, pages;
  ids := coalesce(ids, '{}');
  pages := coalesce(pages, '{}');
end $$;
comment on function internal.users_sampled is
  'About size of so many users, with the pages that they are on: all users of pages chosen at random, the same for the
   same round.';

create or replace function internal.planned_rows(statement text) returns bigint
language plpgsql volatile as $$
declare
  plan json;
begin
  execute 'explain (format json) ' || planned_rows.statement into plan;
  return (plan -> 0 -> 'Plan' ->> 'Plan Rows')::numeric::bigint;
end $$;
comment on function internal.planned_rows is
  'How many rows the planner expects of a statement, which is not run. The statement is executed with the rights of the
   role: values in it must be quoted.';

create or replace function internal.users_afforded(population bigint, reads bigint, affordable bigint) returns int
language sql immutable as $$
  select greatest(200,
                  least(10000, users_afforded.population::numeric * users_afforded.affordable / greatest(
                    users_afforded.reads, 1)))::int
$$;
comment on function internal.users_afforded is
  'How many users a sample may have so that about affordable rows are read, when all of the population have so many
   reads: 200 to 10,000.';

create or replace function internal.sample_margin(population bigint, pages int[], are_in boolean[]) returns bigint
language sql immutable as $$
  with paged as (
    select count(*)::numeric as seen, count(*) filter (where p.is_in)::numeric as hits
      from unnest(sample_margin.pages, sample_margin.are_in) as p (page, is_in)
     group by p.page
  ), summed as (
    select count(*) as pages, sum(p.seen) as seen, sum(p.hits) as hits from paged p
  )
  select ceil(sample_margin.population * case
           when s.pages = 0 then 1
           -- of what nobody or everybody in a sample is, up to three more may be otherwise (the rule of three)
           when s.hits = 0 or s.hits = s.seen then least(1, 3 / s.seen)
           when s.pages = 1 then 1
           -- users of a page came together and resemble each other: the variance is that of a ratio over pages
           else least(1, 1.96 * sqrt((select sum((p.hits - p.seen * s.hits / s.seen) ^ 2)
                                        from paged p) * s.pages / (s.pages - 1)) / s.seen) end)::bigint
    from summed s
$$;
comment on function internal.sample_margin(bigint, int[], boolean[]) is
  'The margin of an estimate of how many of so many users have a property, from a sample by pages: the number is within
   it in 95 of 100 samples.';

create or replace function internal.sample_margin(population bigint, pages int[], amounts numeric[]) returns bigint
language sql immutable as $$
  with paged as (
    select count(*)::numeric as seen, sum(p.amount) as amount
      from unnest(sample_margin.pages, sample_margin.amounts) as p (page, amount)
     group by p.page
  ), summed as (
    select count(*) as pages, sum(p.seen) as seen, sum(p.amount) as amount from paged p
  )
  select ceil(sample_margin.population * case
           when s.pages = 0 then 0
           -- one page shows no variance
           when s.pages = 1 then s.amount / s.seen
           else 1.96 * sqrt((select sum((p.amount - p.seen * s.amount / s.seen) ^ 2)
                               from paged p) * s.pages / (s.pages - 1)) / s.seen end)::bigint
    from summed s
$$;
comment on function internal.sample_margin(bigint, int[], numeric[]) is
  'The margin of an estimate of what so many users have together, from what each of a sample by pages has: the sum is
   within it in 95 of 100 samples.';
