-- Codes and defaults, as administrators write them.
comment on constraint referral_codes_code_unique on app.referral_codes is '409 CONFLICT code: A code that reads the same exists.';
comment on constraint referral_codes_code_form on app.referral_codes is
  '400 INVALID_INPUT code: must hold letters, digits, underscores, and between them spaces and dashes.';
comment on constraint referral_codes_lookup_3_to_32 on app.referral_codes is '400 INVALID_INPUT code: must have 3 to 32 characters beside spaces and dashes.';
comment on constraint referral_codes_reward_referrer_is_object on app.referral_codes is '400 INVALID_INPUT reward_referrer: must be an object.';
comment on constraint referral_codes_reward_referee_is_object on app.referral_codes is '400 INVALID_INPUT reward_referee: must be an object.';
comment on constraint referral_codes_max_uses_1_or_more on app.referral_codes is '400 INVALID_INPUT max_uses: must be 1 or more, or null.';
comment on constraint referral_defaults_share_url_form on app.referral_defaults is
  '400 VALIDATION_ERROR share_url: must be an https:// address that holds {code}.';
comment on constraint referral_defaults_qualify_event_form on app.referral_defaults is
  '400 VALIDATION_ERROR qualify_event: must have 1 to 255 characters, no white space at either end.';
comment on constraint referral_defaults_days_of_an_event on app.referral_defaults is
  '400 VALIDATION_ERROR qualify_within_days: goes with a qualify_event only.';

create or replace function internal.referral_lookup(code text) returns text
language sql immutable parallel safe
-- people paste codes with whatever a chat made of their spaces and dashes
return upper(regexp_replace(referral_lookup.code, '[\s\u00ad\u200b-\u200d\u2010-\u2015\u2212\ufeff-]', '', 'g'));
comment on function internal.referral_lookup is 'What a code is looked up by: without case, spaces and dashes of any kind.';

create or replace function internal.referral_code_new() returns text
language plpgsql volatile as $$
declare
  -- nothing that is read as something else: no I, L, O, 0, 1
  alphabet constant text := 'ABCDEFGHJKMNPQRSTUVWXYZ23456789';
  made text;
begin
  loop
    -- 248 is the largest multiple of 31 in a byte: what lies above would make some letters likelier
    select string_agg(substr(alphabet, picked.value % 31 + 1, 1), '') into made
      from (select get_byte(b.bytes, i) as value
              from (select extensions.gen_random_bytes(24) as bytes) b
             cross join generate_series(0, 23) as i
             where get_byte(b.bytes, i) < 248
             limit 8) picked;
    exit when char_length(made) = 8 and not exists (select from app.referral_codes c where c.lookup = made);
  end loop;
  return made;
end $$;
comment on function internal.referral_code_new is 'Eight characters of an alphabet of 31, taken by no code yet.';

create or replace function internal.referral_code_json(c app.referral_codes) returns json
language sql stable as $$
  select json_build_object(
    'id', (referral_code_json.c).id, 'code', (referral_code_json.c).code, 'reward_referrer', (referral_code_json.c).reward_referrer,
    'reward_referee', (referral_code_json.c).reward_referee, 'max_uses', (referral_code_json.c).max_uses, 'uses', (referral_code_json.c).uses,
    'is_active', (referral_code_json.c).is_active, 'app_user_id', (referral_code_json.c).app_user_id,
    'created_at', internal.iso((referral_code_json.c).created_at), 'updated_at', internal.iso((referral_code_json.c).updated_at))
$$;
comment on function internal.referral_code_json is 'A code as administrators see it.';

create or replace function api.referral_define(code text default null, reward_referrer json default '{}', reward_referee json default '{}',
                                               max_uses int default null)
returns api.reply
language plpgsql volatile as $$
declare
  stored app.referral_codes;
begin
  insert into app.referral_codes as c (code, reward_referrer, reward_referee, max_uses)
  values (coalesce(referral_define.code, internal.referral_code_new()),
          referral_define.reward_referrer::jsonb,
          referral_define.reward_referee::jsonb, referral_define.max_uses)
  returning c.* into stored;
  return internal.reply(201, internal.referral_code_json(stored));
end $$;
comment on function api.referral_define is
  'A promo code, which belongs to nobody; one is made up where none is sent. Refuses 400 INVALID_INPUT, 409 CONFLICT. Contract, referrals.';

create or replace function api.referrals_list(page_limit int default 50, page_offset bigint default 0) returns api.reply
language sql stable as $$
  select internal.reply_page(
    (select json_agg(internal.referral_code_json(p.c) order by (p.c).created_at desc, (p.c).id desc)
       from (select c
               from app.referral_codes c
              order by c.created_at desc, c.id desc
              limit referrals_list.page_limit offset referrals_list.page_offset) p),
    (select count(*) from app.referral_codes), referrals_list.page_offset, referrals_list.page_limit)
$$;
comment on function api.referrals_list is 'All codes, those of users too, newest first.';

create or replace function internal.referral_code_find(code_id text) returns app.referral_codes
language plpgsql stable as $$
declare
  found_one app.referral_codes;
begin
  select c.* into found_one from app.referral_codes c where c.id = internal.as_uuid(referral_code_find.code_id);
  if found_one.id is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such referral code.');
  end if;
  return found_one;
end $$;
comment on function internal.referral_code_find is 'A code by its id. Refuses 404 NOT_FOUND.';

create or replace function api.referral_update(code_id text, patch json) returns api.reply
language plpgsql volatile as $$
declare
  wished app.referral_codes := internal.referral_code_find(referral_update.code_id);
begin
  update app.referral_codes c
     set reward_referrer = case when referral_update.patch -> 'reward_referrer' is null then c.reward_referrer
                                else (referral_update.patch -> 'reward_referrer')::jsonb end,
         reward_referee = case when referral_update.patch -> 'reward_referee' is null then c.reward_referee
                               else (referral_update.patch -> 'reward_referee')::jsonb end,
         max_uses = case when referral_update.patch -> 'max_uses' is null then c.max_uses
                         else (referral_update.patch ->> 'max_uses')::int end,
         is_active = coalesce((referral_update.patch ->> 'is_active')::boolean, c.is_active),
         updated_at = internal.now()
   where c.id = wished.id
     and exists (select from json_object_keys(referral_update.patch) p where p in ('reward_referrer', 'reward_referee', 'max_uses', 'is_active'))
  returning c.* into wished;
  if wished.id is null then
    wished := internal.referral_code_find(referral_update.code_id);
  end if;
  return internal.reply(200, internal.referral_code_json(wished));
end $$;
comment on function api.referral_update is
  'Changes rewards, max_uses and is_active, those that are there; claims that were made keep what they were promised. Refuses 404 NOT_FOUND, 400 INVALID_INPUT.
   Locks the code.';

create or replace function internal.referral_claimers_lock(code_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() <> 'developer' then
    raise exception 'codes are deleted by administrators, not by %', internal.caller();
  end if;
  perform internal.lock_users(array(
    select c.claimer_id from app.referral_claims c where c.code_id = referral_claimers_lock.code_id and c.state = 'pending'));
end $$;
comment on function internal.referral_claimers_lock is
  'Locks those whose claims of a code still wait, before the code and the claims: what they do moves these.';

create or replace function api.referral_delete(code_id text) returns api.reply
language plpgsql volatile as $$
declare
  doomed constant app.referral_codes := internal.referral_code_find(referral_delete.code_id);
begin
  perform internal.referral_claimers_lock(doomed.id);
  delete from app.referral_codes c where c.id = doomed.id;
  if not found then
    perform internal.fail(404, 'NOT_FOUND', 'The code was deleted just now.');
  end if;
  return internal.reply(200, '{"deleted": true}');
end $$;
comment on function api.referral_delete is
  'Deletes a code. Claims stay, and what they hold is still given; a user whose code it was gets a new one. Refuses 404 NOT_FOUND.
   Locks who waits for a claim of it, then the code.';

create or replace function internal.referral_defaults_json(d app.referral_defaults) returns json
language sql stable as $$
  select json_build_object(
    'reward_referrer', (referral_defaults_json.d).reward_referrer, 'reward_referee', (referral_defaults_json.d).reward_referee,
    'max_uses', (referral_defaults_json.d).max_uses, 'qualify_event', (referral_defaults_json.d).qualify_event,
    'qualify_within_days', (referral_defaults_json.d).qualify_within_days, 'share_url', (referral_defaults_json.d).share_url,
    'updated_at', internal.iso((referral_defaults_json.d).updated_at))
$$;
comment on function internal.referral_defaults_json is 'The defaults as answers show them.';

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
         qualify_event = case when sent -> 'qualify_event' is null then d.qualify_event else sent ->> 'qualify_event' end,
         -- without an event there is nothing to wait for
         qualify_within_days = case when sent -> 'qualify_within_days' is not null then (sent ->> 'qualify_within_days')::int
                                    when sent -> 'qualify_event' is not null and sent ->> 'qualify_event' is null then null
                                    else d.qualify_within_days end,
         share_url = case when sent -> 'share_url' is null then d.share_url else sent ->> 'share_url' end,
         updated_at = internal.now()
   where exists (select from json_object_keys(sent) p
                  where p in ('reward_referrer', 'reward_referee', 'max_uses', 'qualify_event', 'qualify_within_days', 'share_url'))
  returning d.* into stored;
  if stored.id is null then
    select d.* into stored from app.referral_defaults d;
  end if;
  return internal.reply(200, internal.referral_defaults_json(stored));
end $$;
comment on function api.referral_defaults_update is
  'Changes what codes of users are made with from now on, and what rewards of referrers wait for. Refuses 400 VALIDATION_ERROR. Supplement D7.';

create or replace trigger tg_referral_codes__audit
  after insert or update or delete on app.referral_codes
  for each row execute function internal.tg_audit('referrals');

create or replace trigger tg_referral_defaults__audit
  after update on app.referral_defaults
  for each row execute function internal.tg_audit('referrals');
