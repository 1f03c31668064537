alter table app.developer_tokens enable row level security;
select internal.checks_declare('app.developer_tokens');
alter table app.developer_token_secrets enable row level security;

create policy "developers read their own tokens" on app.developer_tokens for select to control_developer
  using (developer_id = (select internal.developer_id()));
create policy "developers create tokens of their own" on app.developer_tokens for insert to control_developer
  with check (developer_id = (select internal.developer_id()));
create policy "developers change their own tokens" on app.developer_tokens for update to control_developer
  using (developer_id = (select internal.developer_id()))
  with check (developer_id = (select internal.developer_id()));
create policy "developers read the expiry of texts of their own tokens" on app.developer_token_secrets
  for select to control_developer
  using (token_id in (select t.id from app.developer_tokens t where t.developer_id = (select internal.developer_id())));
create policy "developers store texts of their own tokens" on app.developer_token_secrets
  for insert to control_developer
  with check (token_id in (select t.id from app.developer_tokens t
                            where t.developer_id = (select internal.developer_id())));
create policy "developers end texts of their own tokens" on app.developer_token_secrets for update to control_developer
  using (token_id in (select t.id from app.developer_tokens t where t.developer_id = (select internal.developer_id())))
  with check (token_id in (select t.id from app.developer_tokens t
                            where t.developer_id = (select internal.developer_id())));
create policy "the server reads tokens" on app.developer_tokens for select to control_auth using (true);
create policy "the server records the use of tokens" on app.developer_tokens for update to control_auth using (true)
  with check (true);
create policy "the server looks up texts" on app.developer_token_secrets for select to control_auth using (true);

-- restrictive: it narrows what the policies of projects allow, in lists too
create policy "a token that is limited to projects reaches no others" on app.projects as restrictive
  for all to control_developer
  using ((select internal.token_project_ids()) is null or id = any ((select internal.token_project_ids())::uuid[]))
  with check ((select internal.token_project_ids()) is null
              or id = any ((select internal.token_project_ids())::uuid[]));

grant select on app.developer_tokens to control_developer, control_auth;
grant insert (developer_id, name, token_prefix, scopes, project_ids, lifetime_days, expires_at),
      update (token_prefix, expires_at, revoked_at, updated_at) on app.developer_tokens to control_developer;
grant update (last_used_at) on app.developer_tokens to control_auth;
grant select (token_id, ends_at), insert (token_hash, token_id),
  update (ends_at) on app.developer_token_secrets to control_developer;
grant select on app.developer_token_secrets to control_auth;
grant execute on function internal.token_project_ids, internal.developer_token_json, internal.token_limit_check,
  internal.lock_own_account, api.token_create, internal.developer_tokens_page, api.token_list, api.token_revoke,
  api.token_rotate to control_developer;
grant execute on function api.token_check to control_auth;
