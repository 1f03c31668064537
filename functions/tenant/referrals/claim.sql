-- Claiming a code, and the referrer's reward: paid at once, or when the claimer is verified and has met the conditions
-- of the defaults. Rewards are paid only here. Lock order: users, then the code.

create or replace function internal.referral_known(app_user_id uuid) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select from app.users u where u.id = referral_known.app_user_id
                    and (u.email_verified or u.phone_verified))
      -- identities of providers count as verified; an email or a phone counts when it is verified
      or exists (select from app.user_identities i
                  where i.app_user_id = referral_known.app_user_id and i.provider not in ('email', 'phone'))
$$;
comment on function internal.referral_known is
  'Whether a user has a verified identity, so that nobody is paid for invented users. Granted to nobody.';

create or replace function internal.referral_installs(app_user_id uuid) returns setof text
language sql stable security definer set search_path = '' as $$
  select u.anonymous_id from app.users u where u.id = referral_installs.app_user_id and u.anonymous_id is not null
  union
  select s.original_anonymous_id from app.user_sessions s
   where s.app_user_id = referral_installs.app_user_id and s.original_anonymous_id is not null
$$;
comment on function internal.referral_installs is
  'The anonymous ids, one for each install of an app, that a user has or has signed in with. Granted to nobody.';

create or replace function internal.referral_claim_json(c app.referral_claims) returns json
language sql stable as $$
  select json_build_object('claim', json_build_object('id', (referral_claim_json.c).id,
                                                      'code', (referral_claim_json.c).code,
                                                      'claimed_at', internal.iso((referral_claim_json.c).claimed_at)),
                           'reward', (referral_claim_json.c).reward_referee)
$$;
comment on function internal.referral_claim_json is 'A claim as the claimer sees it, with their reward.';

create or replace function internal.referral_pay(claim app.referral_claims) returns app.referral_claims
language plpgsql volatile security definer set search_path = '' as $$
declare
  c app.referral_claims := referral_pay.claim;
begin
  if c.referrer_id is not null then
    perform internal.grant_reward(c.referrer_id, c.reward_referrer, 'referral_referrer', c.id::text);
  end if;
  update app.referral_claims k
     set state = 'rewarded', rewarded_at = internal.now()
   where k.id = c.id
  returning k.* into c;
  return c;
end $$;
comment on function internal.referral_pay is
  'Pays the reward of a claim''s referrer, once. Claimer and referrer must be locked. Granted to nobody.';

create or replace function api.referral_claim(code text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  c app.referral_codes;
  owner_id uuid;
  d app.referral_defaults;
  claim app.referral_claims;
  is_personal boolean;
  refusal api.reply;
  is_banned boolean;
begin
  if internal.caller() not in ('user', 'server_key_user') or me is null then
    raise exception 'codes are claimed by users or for them, not by %', internal.caller();
  end if;
  select k.* into c from app.referral_codes k where k.lookup = internal.code_normal(referral_claim.code);
  select l.* into claim from app.referral_claims l where (l.claimer_id, l.code_id) = (me, c.id);
  if claim.id is not null then
    return internal.reply(200, internal.referral_claim_json(claim));
  end if;
  if me <> all (coalesce(internal.lock_users(array[me, c.app_user_id]), '{}')) then
    perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user.');
  end if;
  perform internal.check_session();
  -- a concurrent request has claimed this code: it is not counted as a second attempt
  select l.* into claim from app.referral_claims l where (l.claimer_id, l.code_id) = (me, c.id);
  if claim.id is not null then
    return internal.reply(200, internal.referral_claim_json(claim));
  end if;
  refusal := internal.rate_refusal('referral claims ' || me, 5, 3600, 'A user tries at most 5 codes an hour.');
  if refusal.status is not null then
    return refusal;
  end if;
  -- from here on refusals are returned, so that the attempt stays counted: codes must not be found by guessing
  if c.id is null then
    return internal.refuse(404, 'REFERRAL_NOT_FOUND', 'There is no such code.');
  end if;
  is_personal := c.app_user_id is not null;
  if c.app_user_id = me then
    return internal.refuse(400, 'SELF_REFERRAL',
                           'Users may not claim their own code: send the code of another user.',
                           '{"field": "code", "reason": "same_user"}');
  end if;
  if is_personal and exists (select from internal.referral_installs(me) i
                              where i in (select o from internal.referral_installs(c.app_user_id) o)) then
    return internal.refuse(400, 'SELF_REFERRAL',
                           'Users may not claim the code of an account of their own device: send another code.',
                           '{"field": "code", "reason": "same_device"}');
  end if;

  owner_id := c.app_user_id;
  select k.* into c from app.referral_codes k where k.id = c.id for no key update;
  if c.id is null then
    return internal.refuse(404, 'REFERRAL_NOT_FOUND', 'There is no such code.');
  elsif c.app_user_id = me then
    return internal.refuse(400, 'SELF_REFERRAL',
                           'Users may not claim their own code: send the code of another user.',
                           '{"field": "code", "reason": "same_user"}');
  elsif c.app_user_id is distinct from owner_id then
    -- the owner was merged meanwhile, and the new owner is not locked
    raise exception 'the owner of the code has changed' using errcode = 'serialization_failure';
  end if;
  select coalesce(bool_or(u.is_banned), false) into is_banned from app.users u where u.id = c.app_user_id;
  if not c.is_active or is_banned then
    return internal.refuse(409, 'REFERRAL_INACTIVE', 'This code is not active.');
  elsif is_personal and exists (select from app.referral_claims l where l.claimer_id = me and l.is_personal) then
    return internal.refuse(409, 'REFERRAL_ALREADY_CLAIMED', 'A user claims the code of one other user, ever.');
  elsif c.uses >= c.max_uses then
    return internal.refuse(409, 'REFERRAL_EXHAUSTED', 'This code has reached its maximum number of uses.');
  end if;

  select k.* into d from app.referral_defaults k;
  update app.referral_codes k set uses = k.uses + 1 where k.id = c.id;
  insert into app.referral_claims as l
    (code_id, code, claimer_id, referrer_id, is_personal, state, reward_referrer, reward_referee, qualify_event,
     qualify_by)
  values (c.id, c.code, me, c.app_user_id, is_personal, 'pending', c.reward_referrer, c.reward_referee,
          case when is_personal then d.qualify_event end,
          case when is_personal then internal.now() + make_interval(days => d.qualify_within_days) end)
  returning l.* into claim;
  -- a user gets one reward for users' codes, whichever code it is, so that two merged accounts have one
  perform internal.grant_reward(me, claim.reward_referee, 'referral_referee',
                                case when is_personal then 'user' else c.id::text end);
  if not is_personal or claim.qualify_event is null and internal.referral_known(me) then
    claim := internal.referral_pay(claim);
  elsif claim.qualify_by is not null then
    perform internal.enqueue('referrals__release', claim.id::text, due_at => claim.qualify_by);
  end if;
  perform internal.emit(me, 'svc.referral.claimed', jsonb_build_object(
    'claim_id', claim.id, 'code_id', c.id, 'code', c.code, 'referrer_id', c.app_user_id, 'state', claim.state));
  return internal.reply(201, internal.referral_claim_json(claim));
end $$;
comment on function api.referral_claim is
  'The caller claims a code: 201, or 200 for a code that they have claimed already. Refuses 404 REFERRAL_NOT_FOUND,
   USER_NOT_FOUND, 400 SELF_REFERRAL, 409 REFERRAL_INACTIVE, REFERRAL_ALREADY_CLAIMED, REFERRAL_EXHAUSTED, 429
   RATE_LIMITED. Locks the claimer and the owner, then the limit, then the code.';

create or replace function api.referral_release(claim_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  c app.referral_claims;
begin
  perform internal.check_caller('worker', 'held rewards are released by workers');
  select k.* into c from app.referral_claims k where k.id = referral_release.claim_id;
  perform internal.lock_users(array[c.claimer_id, c.referrer_id]);
  -- read again, now that it is locked
  select k.* into c from app.referral_claims k where k.id = referral_release.claim_id;
  if c.state is distinct from 'pending' then
    return internal.reply(200, null);
  end if;
  if c.referrer_id is null or c.referrer_id = c.claimer_id
    or c.qualify_event is not null and c.qualified_at is null and c.qualify_by <= internal.now() then
    update app.referral_claims k set state = 'expired' where k.id = c.id;
    return internal.reply(200, null);
  end if;
  if (c.qualify_event is null or c.qualified_at is not null) and internal.referral_known(c.claimer_id) then
    perform internal.referral_pay(c);
    return internal.reply(200, null);
  end if;
  -- the other conditions queue this again when they change; only the expiry needs a due time
  return internal.reply(200, to_json(internal.iso(case when c.qualified_at is null then c.qualify_by end)));
end $$;
comment on function api.referral_release is
  'For the task referrals__release: pays the referrer of a claim whose conditions are met, or ends a claim that expired,
   or whose referrer was deleted or merged with the claimer. Returns the next due time, or null. Idempotent. Locks
   claimer and referrer.';

create or replace function internal.on_events__80_referrals(events app.engagement_events[]) returns void
language plpgsql volatile set plan_cache_mode = 'auto' as $$
declare
  ready uuid;
begin
  if not internal.event_hooks_may_run()
     or not exists (select from app.referral_claims c
                     where c.state = 'pending' and c.qualified_at is null and c.qualify_event is not null) then
    return;
  end if;
  -- the claimers are locked; their referrers are not, so the worker pays the reward
  for ready in
    with qualified as (
      update app.referral_claims c
         set qualified_at = internal.now()
       where c.state = 'pending' and c.qualified_at is null and c.qualify_event is not null
         and exists (select from unnest(on_events__80_referrals.events) i
                      cross join lateral (select internal.xp_counted_at(i.source, i.occurred_at, i.received_at) as at) t
                      where (i.app_user_id, i.event_name) = (c.claimer_id, c.qualify_event)
                        and t.at >= c.claimed_at and (c.qualify_by is null or t.at <= c.qualify_by))
      returning c.id, c.claimer_id
    )
    select q.id from qualified q order by q.claimer_id
  loop
    perform internal.enqueue('referrals__release', ready::text);
  end loop;
end $$;
comment on function internal.on_events__80_referrals is
  'Records that claimers sent the event that their referrer''s reward requires, after the claim and in time; for events
   of a device the time of receipt counts.';

create or replace function internal.on_event__80_referrals(event app.engagement_events, plan boolean) returns void
language plpgsql volatile as $$
begin
  if exists (select from app.referral_claims c
              where c.claimer_id = (on_event__80_referrals.event).app_user_id
                and c.qualify_event = (on_event__80_referrals.event).event_name
                and c.state = 'pending' and c.qualified_at is null and c.qualify_event is not null) then
    perform internal.on_events__80_referrals(array[on_event__80_referrals.event]);
  end if;
end $$;
comment on function internal.on_event__80_referrals is 'Finds a claim of the user that requires this event.';

create or replace function internal.event_plan__referrals() returns table (event_name text, plan boolean)
language sql stable as $$
  -- former names are kept: a claim that is being made uses the name that was the default when it began
  select p.event_name, true from app.event_plans p where p.referrals
  union
  select d.qualify_event, true from app.referral_defaults d where d.qualify_event is not null
  union
  select distinct c.qualify_event, true
    from app.referral_claims c
   where c.state = 'pending' and c.qualified_at is null and c.qualify_event is not null
$$;
comment on function internal.event_plan__referrals is
  'The events that referrers'' rewards require, now or formerly. Granted to nobody.';

create or replace trigger tg_referral_defaults__event_plans
  after insert or update of qualify_event on app.referral_defaults
  for each statement execute function internal.tg_event_plans();

create or replace function internal.referral_queue(claimer_id uuid) returns void
language sql volatile security definer set search_path = '' as $$
  select internal.enqueue('referrals__release', c.id::text)
    from app.referral_claims c
   where c.claimer_id = referral_queue.claimer_id and c.state = 'pending' and c.is_personal
$$;
comment on function internal.referral_queue is 'Queues the check of a claim''s conditions. Granted to nobody.';

create or replace function internal.tg_users__referrals() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.referral_queue(new.id);
  return null;
end $$;
comment on function internal.tg_users__referrals is
  'When a user''s email or phone is verified, queues the check of their claim.';

create or replace trigger tg_users__referrals
  after update of email_verified, phone_verified on app.users
  for each row when (new.email_verified and not old.email_verified or new.phone_verified and not old.phone_verified)
  execute function internal.tg_users__referrals();

create or replace function internal.tg_user_identities__referrals() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.referral_queue(new.app_user_id);
  return null;
end $$;
comment on function internal.tg_user_identities__referrals is
  'When a user links a provider, queues the check of their claim.';

create or replace trigger tg_user_identities__referrals
  after insert on app.user_identities
  for each row when (new.provider not in ('email', 'phone'))
  execute function internal.tg_user_identities__referrals();

create or replace function internal.merge__referral_claims(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  moved int;
  brought int;
begin
  -- a code that both claimed stays as the survivor's claim
  update app.referral_claims c
     set claimer_id = merge__referral_claims.survivor
   where c.claimer_id = merge__referral_claims.other
     and not exists (select from app.referral_claims mine
                      where mine.claimer_id = merge__referral_claims.survivor
                        and (mine.code_id = c.code_id or mine.is_personal and c.is_personal));
  get diagnostics moved = row_count;
  update app.referral_claims c set referrer_id = merge__referral_claims.survivor
    where c.referrer_id = merge__referral_claims.other;
  get diagnostics brought = row_count;
  perform internal.referral_queue(merge__referral_claims.survivor);
  return moved + brought;
end $$;
comment on function internal.merge__referral_claims is
  'Merges two users'' claims, both as claimers and as referrers. A user who thereby became their own referrer is not
   paid. Granted to nobody.';

create or replace function internal.account_reclaim__referrals(app_user_id uuid) returns void
language sql volatile security definer set search_path = '' as $$
  delete from app.referral_claims c where c.claimer_id = account_reclaim__referrals.app_user_id and c.state = 'pending'
    and c.is_personal
$$;
comment on function internal.account_reclaim__referrals is
  'When an account is reclaimed, deletes its pending claims: a claim on another person''s address pays no referrer.
   Granted to nobody.';
