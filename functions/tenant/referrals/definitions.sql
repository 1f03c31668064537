-- Referral codes and their defaults: validation and administration.
comment on constraint referral_codes_code_unique on app.referral_codes is
  '409 CONFLICT code: A code that reads the same exists.';
comment on constraint referral_codes_code_form on app.referral_codes is
  '400 INVALID_INPUT code: must consist of letters, digits and underscores, with spaces and dashes between them.';
comment on constraint referral_codes_lookup_3_to_32 on app.referral_codes is
  '400 INVALID_INPUT code: must have 3 to 32 characters beside spaces and dashes.';
comment on constraint referral_codes_max_uses_1_or_more on app.referral_codes is
  '400 INVALID_INPUT max_uses: must be 1 or more, or null.';
comment on constraint referral_defaults_share_url_form on app.referral_defaults is
  '400 VALIDATION_ERROR share_url: must be an https:// address that contains {code}.';
comment on constraint referral_defaults_qualify_event_form on app.referral_defaults is
  '400 VALIDATION_ERROR qualify_event: must have 1 to 255 characters, no white space at either end.';
comment on constraint referral_defaults_days_of_an_event on app.referral_defaults is
  '400 VALIDATION_ERROR qualify_within_days: requires a qualify_event.';

create or replace function internal.referral_code_new() returns text
language plpgsql volatile as $$
declare
  made text;
begin
  loop
    made := internal.random_code(8);
    exit when not exists (select from app.referral_codes c where c.lookup = made);
  end loop;
  return made;
end $$;
comment on function internal.referral_code_new is
  'Generates an unused code of eight characters from an alphabet of 31.';

select internal.row_declare('referral_code_json', null::app.referral_codes,
                            '{id,code,reward_referrer,reward_referee,max_uses,uses,is_active,app_user_id,
                             created_at,updated_at}');
comment on function internal.referral_code_json is 'A code as administrators see it.';

create or replace function internal.referral_claimers_lock(code_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'codes are deleted by administrators');
  perform internal.lock_users(array(
    select c.claimer_id from app.referral_claims c
     where c.code_id = referral_claimers_lock.code_id and c.state = 'pending'));
end $$;
comment on function internal.referral_claimers_lock is
  'Locks the users whose claims of a code are pending, before the code and the claims, in the lock order of claims.';

create or replace function internal.referral_code_check(requested app.referral_codes, was app.referral_codes,
                                                        sent jsonb)
returns app.referral_codes
language plpgsql volatile as $$
declare
  made app.referral_codes := referral_code_check.requested;
begin
  made.code := coalesce(made.code, internal.referral_code_new());
  return made;
end $$;
comment on function internal.referral_code_check is 'Generates a code when none is sent.';

create or replace function internal.referral_code_before_delete(doomed app.referral_codes) returns void
language sql volatile as $$
  select internal.referral_claimers_lock((referral_code_before_delete.doomed).id)
$$;
comment on function internal.referral_code_before_delete is
  'Locks the users whose claims of a code are pending, before the code. Claims stay, and their rewards are still paid;
   the owner of the code gets a new one.';

select internal.row_declare('referral_defaults_json', null::app.referral_defaults,
                            '{reward_referrer,reward_referee,max_uses,qualify_event,qualify_within_days,
                             share_url,updated_at}');
comment on function internal.referral_defaults_json is 'The defaults as responses show them.';

create or replace function api.referral_defaults_update(patch json) returns api.reply
language plpgsql volatile as $$
declare
  sent constant json := referral_defaults_update.patch;
  stored app.referral_defaults;
begin
  update app.referral_defaults d
     set reward_referrer = case when sent -> 'reward_referrer' is null then d.reward_referrer
                                else (sent -> 'reward_referrer')::jsonb end,
         reward_referee = case when sent -> 'reward_referee' is null then d.reward_referee
                               else (sent -> 'reward_referee')::jsonb end,
         max_uses = case when sent -> 'max_uses' is null then d.max_uses else (sent ->> 'max_uses')::int end,
         qualify_event = case when sent -> 'qualify_event' is null then d.qualify_event
                              else sent ->> 'qualify_event' end,
         -- without an event there is no period to wait for it
         qualify_within_days = case when sent -> 'qualify_within_days' is not null
                                      then (sent ->> 'qualify_within_days')::int
                                    when sent -> 'qualify_event' is not null
                                      and sent ->> 'qualify_event' is null then null
                                    else d.qualify_within_days end,
         share_url = case when sent -> 'share_url' is null then d.share_url else sent ->> 'share_url' end,
         updated_at = internal.now()
   where exists (select from json_object_keys(sent) p
                  where p in ('reward_referrer', 'reward_referee', 'max_uses', 'qualify_event', 'qualify_within_days',
                              'share_url'))
  returning d.* into stored;
  if stored.id is null then
    select d.* into stored from app.referral_defaults d;
  end if;
  return internal.reply(200, internal.referral_defaults_json(stored));
end $$;
comment on function api.referral_defaults_update is
  'Changes the defaults of users'' new codes, and the conditions of referrers'' rewards. Refuses 400 VALIDATION_ERROR.';

select internal.audit_declare('app.referral_codes', 'referrals');

create or replace trigger tg_referral_defaults__audit
  after update on app.referral_defaults
  for each row execute function internal.tg_audit('referrals');
