alter table app.invites enable row level security;
alter table app.waitlist_entries enable row level security;

create policy "sign-up looks codes up" on app.invites for select to control_auth using (true);
create policy "sign-up redeems codes" on app.invites for update to control_auth using (true) with check (true);
create policy "sign-up counts the waitlist" on app.waitlist_entries for select to control_auth using (true);
create policy "anybody joins the waitlist" on app.waitlist_entries for insert to control_auth with check (true);

grant select (id, code_hash, expires_at, revoked_at, used_at), update (used_at, used_by) on app.invites to control_auth;
grant select (id, mailbox), insert (email, mailbox, note) on app.waitlist_entries to control_auth;
grant execute on function internal.invite_lock, api.waitlist_join to control_auth;
grant execute on function api.invite_redeem to control_developer;
