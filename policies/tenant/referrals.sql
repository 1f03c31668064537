alter table app.referral_codes enable row level security;
select internal.checks_declare('app.referral_codes', 'INVALID_INPUT');
alter table app.referral_claims enable row level security;
alter table app.referral_defaults enable row level security;

create policy "administrators read codes" on app.referral_codes for select to app_admin using (true);
create policy "administrators add promo codes" on app.referral_codes for insert to app_admin
  with check (app_user_id is null);
create policy "administrators change codes" on app.referral_codes for update to app_admin using (true)
  with check (true);
create policy "administrators delete codes" on app.referral_codes for delete to app_admin using (true);
create policy "administrators read claims" on app.referral_claims for select to app_admin using (true);
create policy "users count the claims of their codes" on app.referral_claims for select to app_user
  using (referrer_id = (select internal.user_id()));
create policy "administrators read the defaults" on app.referral_defaults for select to app_admin using (true);
create policy "administrators change the defaults" on app.referral_defaults for update to app_admin using (true)
  with check (true);

grant select on app.referral_claims to app_admin;
-- claimers are shown by name, not by id
grant select (id, referrer_id, state, claimed_at) on app.referral_claims to app_user;
grant select, update (reward_referrer, reward_referee, max_uses, qualify_event, qualify_within_days, share_url,
                      updated_at)
  on app.referral_defaults to app_admin;

grant execute on function api.referral_claim, api.referral_mine, api.referral_claims_mine to app_user;
grant execute on function api.referral_show to app_auth;
grant execute on function internal.random_code, internal.referral_code_new, internal.referral_code_json,
  internal.referral_code_check, internal.referral_code_before_delete, internal.referral_defaults_json,
  internal.referral_state, internal.referral_claimers_lock, api.referral_defaults_update,
  api.referral_stats to app_admin;
grant execute on function api.referral_release to app_worker;

select internal.graphql_declare('app.referral_claims');
select internal.graphql_declare('app.referral_codes');

insert into internal.user_data
  (table_name, user_column, section, export_columns, secret_columns, reset_section, on_merge, on_delete, exempt_reason,
   declared_in)
values
  ('app.referral_codes', 'app_user_id', 'referral_codes',
   array['id', 'code', 'lookup', 'reward_referrer', 'reward_referee', 'max_uses', 'uses', 'is_active', 'app_user_id',
         'created_at', 'updated_at'], '{}',
   null, 'move', 'cascade', null, current_setting('trellis.file')),
  ('app.referral_claims', 'claimer_id', 'referral_claims',
   array['id', 'code_id', 'code', 'claimer_id', 'is_personal', 'reward_referee', 'claimed_at'],
   array['referrer_id', 'state', 'reward_referrer', 'qualify_event', 'qualify_by', 'qualified_at', 'rewarded_at'],
   null, 'one of each code, and one of a user''s', 'cascade', null, current_setting('trellis.file')),
  ('app.referral_claims', 'referrer_id', 'referral_claims',
   array['id', 'code_id', 'code', 'referrer_id', 'is_personal', 'state', 'reward_referrer', 'qualify_event',
         'qualify_by', 'qualified_at', 'claimed_at', 'rewarded_at'],
   array['claimer_id', 'reward_referee'],
   null, 'one of each code, and one of a user''s', 'set null', null, current_setting('trellis.file'));

insert into internal.definitions (kind, table_name, singular, plural, key_column, found_by, invalid_code, fixed_columns,
                                  state_columns, create_order, kept_back, declared_in)
values ('referral_code', 'app.referral_codes', 'referral code', 'referral codes', 'code', 'id', 'INVALID_INPUT',
        '{code}', '{lookup,uses,app_user_id}', 50, 'codes belong to users', current_setting('trellis.file'));
select internal.definition_declare('referral_code');
