-- Reads of codes and claims, for users, apps and administrators.
create or replace function internal.referral_state(c app.referral_claims) returns text
language sql stable as $$
  select case when (referral_state.c).state = 'pending' and (referral_state.c).qualified_at is null
              and (referral_state.c).qualify_by <= internal.now()
              then 'expired' else (referral_state.c).state end
$$;
comment on function internal.referral_state is 'pending, rewarded or expired, by the clock.';

create or replace function api.referral_mine() returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  c app.referral_codes;
  d app.referral_defaults;
  mine app.referral_claims;
begin
  if internal.caller() not in ('user', 'server_key_user') or me is null then
    raise exception 'users ask for their own code, not %', internal.caller();
  end if;
  select k.* into d from app.referral_defaults k;
  select k.* into c from app.referral_codes k where k.app_user_id = me;
  if c.id is null and internal.lock_users(array[me]) is null then
    perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user.');
  end if;
  while c.id is null loop
    insert into app.referral_codes as k (code, reward_referrer, reward_referee, max_uses, app_user_id)
    values (internal.referral_code_new(), d.reward_referrer, d.reward_referee, d.max_uses, me)
    -- two concurrent first calls, or a code that another user has just been given
    on conflict do nothing;
    select k.* into c from app.referral_codes k where k.app_user_id = me;
  end loop;
  select l.* into mine from app.referral_claims l where l.claimer_id = me and l.is_personal;
  return internal.reply(200, (
    select json_build_object(
             'code', c.code, 'url', replace(d.share_url, '{code}', replace(c.code, ' ', '%20')), 'claims', count(l.id),
               'max_uses', c.max_uses,
             'rewards_granted', count(l.id) filter (where l.state = 'rewarded'),
             'claimed', case when mine.id is not null
                             then json_build_object('code', mine.code, 'claimed_at', internal.iso(mine.claimed_at)) end)
      from app.referral_claims l
     where l.referrer_id = me));
end $$;
comment on function api.referral_mine is
  'The caller''s code, created at the first call with the defaults of that time, and the counts of its claims. Refuses
   404 USER_NOT_FOUND.';

create or replace function internal.referral_claim_mine_json(c app.referral_claims) returns json
language sql stable as $$
  select json_build_object(
    'id', (referral_claim_mine_json.c).id, 'code', (referral_claim_mine_json.c).code,
      'state', internal.referral_state(referral_claim_mine_json.c),
    'claimed_at', internal.iso((referral_claim_mine_json.c).claimed_at),
    'qualify_by', internal.iso((referral_claim_mine_json.c).qualify_by),
    'rewarded_at', internal.iso((referral_claim_mine_json.c).rewarded_at),
    'claimer', (select json_build_object('display_name', u.display_name, 'avatar_url', u.avatar_url)
                  from app.users u where u.id = (referral_claim_mine_json.c).claimer_id))
$$;
comment on function internal.referral_claim_mine_json is
  'A claim as its referrer sees it: the claimer''s name, and the state.';

select internal.list_declare('referral_claims_page', null::app.referral_claims, 'referral_claim_mine_json',
                             '{claimed_at,id}', required => '{referrer_id}');

create or replace function api.referral_claims_mine(page_limit int default 50, page_offset bigint default 0)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
begin
  if internal.caller() not in ('user', 'server_key_user') or internal.user_id() is null then
    raise exception 'users ask whom they brought, not %', internal.caller();
  end if;
  return internal.referral_claims_page(internal.user_id(), referral_claims_mine.page_offset,
                                       referral_claims_mine.page_limit);
end $$;
comment on function api.referral_claims_mine is
  'A page of the users whom the caller referred: names and states, newest first.';

create or replace function api.referral_show(code text) returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  c app.referral_codes;
  u app.users;
begin
  if internal.caller() <> 'sign_in' then
    raise exception 'codes are looked up with a key, not by %', internal.caller();
  end if;
  select k.* into c from app.referral_codes k where k.lookup = internal.code_normal(referral_show.code);
  perform internal.check_found(c.id is not null, 'code', 'REFERRAL_NOT_FOUND');
  select k.* into u from app.users k where k.id = c.app_user_id;
  return internal.reply(200, json_build_object(
    'valid', c.is_active and (c.max_uses is null or c.uses < c.max_uses) and not coalesce(u.is_banned, false),
    'referrer', case when u.id is not null then json_build_object('display_name', u.display_name,
                                                                  'avatar_url', u.avatar_url) end,
    'reward_referee', c.reward_referee));
end $$;
comment on function api.referral_show is 'A code as an invitation screen shows it. Refuses 404 REFERRAL_NOT_FOUND.';

select internal.count_declare('referral_claims', 'app.referral_claims', key => 'code_id');

create or replace function api.referral_stats(code_id text, page_limit int default 200, page_offset bigint default 0,
                                              include text default null)
returns api.reply
language plpgsql stable as $$
declare
  c constant app.referral_codes := internal.definition_find(null::app.referral_codes, referral_stats.code_id);
begin
  return internal.reply(200, json_build_object(
    'referral_code', internal.referral_code_json(c),
    'total_claims', coalesce(internal.list_counted('referral_claims', 'app.referral_claims', c.id),
                             (select count(*) from app.referral_claims l where l.code_id = c.id)),
    'claims', internal.rows_with_users(coalesce((
      select json_agg(json_build_object(
               'id', (l.k).id, 'claimer_id', (l.k).claimer_id, 'claimed_at', internal.iso((l.k).claimed_at),
                 'state', internal.referral_state(l.k),
               'qualify_event', (l.k).qualify_event, 'qualify_by', internal.iso((l.k).qualify_by),
               'qualified_at', internal.iso((l.k).qualified_at),
               'rewarded_at', internal.iso((l.k).rewarded_at)) order by (l.k).claimed_at desc, (l.k).id desc)
        from (select k
                from app.referral_claims k
               where k.code_id = c.id
               order by k.claimed_at desc, k.id desc
               limit referral_stats.page_limit offset referral_stats.page_offset) l), '[]'),
      referral_stats.include, 'claimer_id')));
end $$;
comment on function api.referral_stats is
  'A code and a page of its claims, newest first. Refuses 404 NOT_FOUND. Contract, referrals.';
