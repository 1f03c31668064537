-- Statistics of a currency, and the check that balances equal the sums of the ledger.
create or replace function internal.currency_figures(code text, affordable int default 100000) returns json
language plpgsql volatile as $$
declare
  population constant bigint := internal.users_estimate();
  reads constant bigint := internal.planned_rows(format('select from app.currency_transactions t where '
                                                        't.currency_code = %L', currency_figures.code))
                         + internal.planned_rows(format('select from app.currency_balances b where b.currency_code = '
                                                        '%L', currency_figures.code));
  is_estimate constant boolean := reads > currency_figures.affordable;
  -- null for everybody
  sampled uuid[];
  pages int[];
  balances numeric[];
  scale numeric := 1;
begin
  if is_estimate then
    select s.ids, s.pages into sampled, pages
      from internal.users_sampled(population, 1, internal.users_afforded(population, reads, 10000)) s;
    scale := population::numeric / greatest(cardinality(sampled), 1);
    -- per user, in the order of the pages
    balances := array(
      select coalesce((select b.balance from app.currency_balances b
                        where (b.app_user_id, b.currency_code) = (i.id, currency_figures.code)), 0)
        from unnest(sampled) with ordinality as i (id, n)
       order by i.n);
  end if;
  return (
    with moved as (
      select t.reason, t.amount
        from app.currency_transactions t
       where not is_estimate and t.currency_code = currency_figures.code
      union all
      select t.reason, t.amount
        from unnest(sampled) as i (id)
        join app.currency_transactions t on (t.app_user_id, t.currency_code) = (i.id, currency_figures.code)
       where is_estimate
    ), reasons as (
      select m.reason, round(scale * coalesce(sum(m.amount) filter (where m.amount > 0), 0)) as minted,
             round(scale * coalesce(-sum(m.amount) filter (where m.amount < 0), 0)) as burned,
             round(scale * count(*)) as transactions
        from moved m
       group by m.reason
    ), held as (
      select b.balance from app.currency_balances b where not is_estimate and b.currency_code = currency_figures.code
      union all
      select k from unnest(balances) k where is_estimate
    -- read in the order of an index, and only then joined
    ), largest as materialized (
      select b.app_user_id, b.balance
        from app.currency_balances b
       where b.currency_code = currency_figures.code and b.balance > 0
       order by b.balance desc, b.app_user_id
       limit 10
    ), holders as (
      select l.app_user_id, u.display_name, l.balance from largest l join app.users u on u.id = l.app_user_id
    ), sums as (
      select round(scale * coalesce(sum(h.balance), 0)) as circulating,
             round(scale * count(*) filter (where h.balance > 0)) as holders from held h
    )
    select json_build_object(
      'currency_code', currency_figures.code,
      'minted', coalesce((select sum(r.minted) from reasons r), 0),
      'burned', coalesce((select sum(r.burned) from reasons r), 0),
      'circulating', s.circulating, 'holders', s.holders,
      'is_estimate', is_estimate,
      'margin', case when is_estimate then internal.sample_margin(population, pages, balances) else 0 end,
      'top_holders', coalesce((select json_agg(json_build_object('app_user_id', h.app_user_id,
                                                                 'display_name', h.display_name, 'balance', h.balance)
                                               order by h.balance desc, h.app_user_id) from holders h), '[]'),
      'reasons', coalesce((select json_agg(json_build_object('reason', r.reason, 'minted', r.minted, 'burned', r.burned,
                                                             'transactions', r.transactions)
                                           order by r.minted + r.burned desc, r.reason)
                                             from (select * from reasons l order by l.minted + l.burned desc, l.reason
                                                    limit 100) r), '[]'))
      from sums s);
end $$;
comment on function internal.currency_figures is
  'The figures of a currency. Exact while the planner expects at most affordable rows of ledger and balances together;
   otherwise estimates from 200 to 10,000 users, whose circulating is within margin in 95 of 100 samples. The largest
   holders are always exact.';

create or replace function api.currency_stats(code text) returns api.reply
language plpgsql volatile as $$
declare
  c constant app.currencies := internal.currency_find(currency_stats.code);
begin
  return internal.reply(200, internal.currency_figures(c.code));
end $$;
comment on function api.currency_stats is
  'Minted, burned, circulating, the ten largest holders, and sums by reason (the hundred largest), from the ledger:
   time-based changes since a user''s last write are not in it yet. In large projects an estimate: see
   internal.currency_figures. Refuses 404 NOT_FOUND.';

create or replace function internal.currency_check_json(k app.currency_checks) returns json
language sql stable as $$
  select json_build_object(
    'checked_at', internal.iso((currency_check_json.k).checked_at),
      'finished_at', internal.iso((currency_check_json.k).finished_at),
    'ok', (currency_check_json.k).mismatched = 0, 'balances', (currency_check_json.k).balances,
    'mismatched', (currency_check_json.k).mismatched,
    'mismatches', (currency_check_json.k).mismatches)
$$;
comment on function internal.currency_check_json is 'The result of a check as responses show it.';

create or replace function api.currencies_integrity() returns api.reply
language sql stable as $$
  select internal.reply(200, (select internal.currency_check_json(k)
                                from app.currency_checks k
                               where k.finished_at is not null
                               order by k.checked_at desc, k.id desc
                               limit 1))
$$;
comment on function api.currencies_integrity is
  'The newest finished check that every balance is the sum of its ledger; null before the first check.';

create or replace function api.currencies_check(check_id uuid default null, batch int default 1000) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  proof app.currency_checks;
  found record;
begin
  perform internal.check_caller('worker', 'balances are proved by workers');
  if currencies_check.check_id is null then
    -- results are kept for a month
    delete from app.currency_checks k where k.checked_at < internal.now() - interval '30 days';
    insert into app.currency_checks default values returning * into proof;
  else
    select k.* into proof from app.currency_checks k where k.id = currencies_check.check_id for no key update;
  end if;
  -- one statement reads balances and ledger in one snapshot
  with users as (
    select distinct b.app_user_id from app.currency_balances b
     where b.app_user_id > coalesce(proof.reached, '00000000-0000-0000-0000-000000000000')
     order by b.app_user_id
     limit currencies_check.batch
  ), compared as (
    select b.app_user_id, b.currency_code, b.balance, l.ledger, o.lots
      from users u
      join app.currency_balances b on b.app_user_id = u.app_user_id
     cross join lateral (select coalesce(sum(t.amount), 0) as ledger from app.currency_transactions t
                          where t.app_user_id = b.app_user_id and t.currency_code = b.currency_code) l
     cross join lateral (select coalesce(sum(k.remaining), 0) as lots from app.currency_lots k
                          where k.app_user_id = b.app_user_id and k.currency_code = b.currency_code) o
  )
  select (select max(u.app_user_id::text)::uuid from users u) as reached, count(*) as balances,
         count(*) filter (where c.balance <> c.ledger or c.lots > c.balance) as mismatched,
         coalesce(jsonb_agg(jsonb_build_object('app_user_id', c.app_user_id, 'currency_code', c.currency_code,
                                               'balance', c.balance,
                                               'ledger', c.ledger, 'expiring', c.lots)
                            order by c.app_user_id, c.currency_code) filter (where c.balance <> c.ledger
                                        or c.lots > c.balance), '[]') as mismatches
    into found
    from compared c;
  update app.currency_checks k
     set reached = coalesce(found.reached, k.reached), balances = k.balances + found.balances,
       mismatched = k.mismatched + found.mismatched,
         mismatches = (select coalesce(jsonb_agg(m.value order by m.n), '[]')
                         from jsonb_array_elements(k.mismatches || found.mismatches) with ordinality as m (value, n)
                           where m.n <= 100),
         finished_at = case when found.reached is null then internal.now() end
   where k.id = proof.id
  returning k.* into proof;
  return internal.reply(200, json_build_object('id', proof.id, 'is_over', proof.finished_at is not null,
                                               'mismatched', proof.mismatched));
end $$;
comment on function api.currencies_check is
  'For workers: one step of the nightly check, which compares the balances of a batch of users with their ledgers: {id,
   is_over, mismatched}. A null id begins a new check.';

select internal.days_declare('currency_days', 'app.currency_transactions', 'created_at',
  array[['granted', 'sum(r.amount) filter (where r.amount > 0)'],
        ['spent', '-sum(r.amount) filter (where r.amount < 0)'],
        ['users', 'count(distinct r.app_user_id)']],
  'r.currency_code = {of}');

create or replace function api.currency_daily(code text, "from" date default null, "to" date default null,
                                              timezone text default null)
returns api.reply
language sql stable as $$
  select internal.days_reply('{currency_days}', currency_daily."from", currency_daily."to", currency_daily.timezone,
                             (internal.currency_find(currency_daily.code)).code)
$$;
comment on function api.currency_daily is
  'What was added to balances of a currency and what was taken from them on each day, and of how many users, by the
   ledger. Refuses 404 NOT_FOUND, 400 INVALID_INPUT.';
