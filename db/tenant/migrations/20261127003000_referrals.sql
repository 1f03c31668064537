-- migrate:up
create table app.referral_codes (
  id              uuid primary key default internal.new_id(),
  code            text not null constraint referral_codes_code_form
    check (code ~ '^[A-Za-z0-9_]([A-Za-z0-9_ -]{0,62}[A-Za-z0-9_])?$'),
  lookup          text not null generated always as (upper(translate(code, ' -', ''))) stored
                    constraint referral_codes_lookup_3_to_32 check (char_length(lookup) between 3 and 32),
  reward_referrer jsonb not null default '{}' constraint referral_codes_reward_referrer_is_object
    check (jsonb_typeof(reward_referrer) = 'object'),
  reward_referee  jsonb not null default '{}' constraint referral_codes_reward_referee_is_object
    check (jsonb_typeof(reward_referee) = 'object'),
  max_uses        int constraint referral_codes_max_uses_1_or_more check (max_uses >= 1),
  uses            int not null default 0 constraint referral_codes_uses_0_or_more check (uses >= 0),
  is_active       boolean not null default true,
  app_user_id     uuid references app.users on delete cascade,
  created_at      timestamptz not null default internal.now(),
  updated_at      timestamptz not null default internal.now(),
  constraint referral_codes_code_unique unique (lookup),
  constraint referral_codes_one_per_user unique (app_user_id)
);
comment on table app.referral_codes is
  'Codes that users share, one each, and promo codes of administrators, which belong to nobody. uses counts claims and
   is never above max_uses by a claim.';
comment on column app.referral_codes.lookup is 'What codes are compared by: without case, spaces and dashes.';
-- serves the administrator's list, newest first
create index referral_codes_newest on app.referral_codes (created_at desc, id desc);

create table app.referral_claims (
  id              uuid primary key default internal.new_id(),
  code_id         uuid references app.referral_codes on delete set null,
  code            text not null default '',
  claimer_id      uuid not null references app.users on delete cascade,
  referrer_id     uuid references app.users on delete set null,
  is_personal     boolean not null,
  state           text not null default 'pending' constraint referral_claims_state_known
    check (state in ('pending', 'rewarded', 'expired')),
  reward_referrer jsonb not null,
  reward_referee  jsonb not null,
  qualify_event   text,
  qualify_by      timestamptz,
  qualified_at    timestamptz,
  claimed_at      timestamptz not null default internal.now(),
  rewarded_at     timestamptz,
  constraint referral_claims_once_per_code unique (claimer_id, code_id),
  constraint referral_claims_rewarded_has_time check ((state = 'rewarded') = (rewarded_at is not null)),
  constraint referral_claims_qualify_by_of_an_event check (qualify_by is null or qualify_event is not null)
);
comment on table app.referral_claims is
  'Who used which code. What was promised stands here as it was when the code was claimed, so that it outlives the code.
   is_personal: the code was a user''s.';
-- a user claims one code of another user, ever, also when that code or its owner is gone
create unique index referral_claims_one_personal on app.referral_claims (claimer_id) where is_personal;
-- serves the claims of a code
create index referral_claims_of_code on app.referral_claims (code_id, claimed_at desc, id desc);
-- serves what a user brought
create index referral_claims_of_referrer on app.referral_claims (referrer_id, claimed_at desc, id desc);
-- serves the look at every batch of events: nothing in most projects
create index referral_claims_waiting on app.referral_claims (claimer_id, qualify_event)
  where state = 'pending' and qualified_at is null and qualify_event is not null;

create table app.referral_defaults (
  id                  text primary key default 'defaults' constraint referral_defaults_is_one_row
    check (id = 'defaults'),
  reward_referrer     jsonb not null default '{}' constraint referral_defaults_reward_referrer_is_object
    check (jsonb_typeof(reward_referrer) = 'object'),
  reward_referee      jsonb not null default '{}' constraint referral_defaults_reward_referee_is_object
    check (jsonb_typeof(reward_referee) = 'object'),
  max_uses            int constraint referral_defaults_max_uses_1_or_more check (max_uses >= 1),
  qualify_event       text constraint referral_defaults_qualify_event_form
                        check (char_length(qualify_event) between 1 and 255 and qualify_event !~ '^\s|\s$'),
  qualify_within_days int constraint referral_defaults_qualify_within_days_1_to_365
    check (qualify_within_days between 1 and 365),
  share_url           text constraint referral_defaults_share_url_form
    check (char_length(share_url) <= 2000 and share_url ~ '^https://\S+$' and share_url like '%{code}%'),
  updated_at          timestamptz not null default internal.now(),
  constraint referral_defaults_days_of_an_event check (qualify_within_days is null or qualify_event is not null)
);
comment on table app.referral_defaults is
  'What codes of users begin with, and what the reward of a referrer waits for. One row.';
insert into app.referral_defaults (id) values ('defaults');

-- migrate:down
drop table app.referral_defaults;
drop table app.referral_claims;
drop table app.referral_codes;
