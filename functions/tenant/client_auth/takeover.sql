-- Account pre-hijacking: anybody can sign up with another person's address. Until the address is proved, the account is
-- only a claim. Whoever proves it from outside the account's own session takes the account over, and everything that
-- the claimant attached is removed.
create or replace function internal.is_claimed(them app.users) returns boolean
language sql stable as $$
  -- the identity stays when the password is unlinked: an account with only the claim and a social link is taken over
  -- all the same
  select exists (select from app.user_passwords p where p.app_user_id = (is_claimed.them).id)
      or exists (select from app.user_identities i
                  where i.app_user_id = (is_claimed.them).id
                    and i.provider = 'email' and i.provider_id = (is_claimed.them).email)
$$;
comment on function internal.is_claimed is
  'Whether a user claimed their email without proof. An email that an administrator set is not claimed, unless the user
   has a password.';

create or replace function internal.account_reclaim(app_user_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  claimed text;
  part text;
begin
  if internal.caller() <> 'sign_in' then
    raise exception 'accounts are taken back by proof of their address, not by %', internal.caller();
  end if;
  select u.email into claimed from app.users u where u.id = account_reclaim.app_user_id for update;
  delete from app.user_passwords p where p.app_user_id = account_reclaim.app_user_id;
  delete from app.user_identities i where i.app_user_id = account_reclaim.app_user_id and i.provider <> 'email';
  update app.users u
     set phone = null, phone_verified = false, anonymous_id = null, updated_at = internal.now()
   where u.id = account_reclaim.app_user_id;
  perform internal.end_sessions(account_reclaim.app_user_id, 'taken_back');
  delete from app.user_codes c where c.app_user_id = account_reclaim.app_user_id and c.used_at is null;
  delete from app.user_codes c where (c.channel, c.address) = ('email', claimed) and c.used_at is null;
  for part in
    select p.proname from pg_catalog.pg_proc p
     where p.pronamespace = 'internal'::regnamespace and p.proname like 'account\_reclaim\_\_%'
       and p.proargtypes = '2950'::oidvector
     order by p.proname
  loop
    execute format('select internal.%I($1)', part) using account_reclaim.app_user_id;
  end loop;
end $$;
comment on function internal.account_reclaim is
  'Removes from an account everything that was attached before its address was proved: password, sessions, phone,
   providers, anonymous id, open codes; and calls each function internal.account_reclaim__<area>(app_user_id uuid),
   which removes what its area attached. Locks the user.';

create or replace function internal.email_proved_elsewhere(them app.users) returns void
language plpgsql volatile as $$
begin
  if internal.is_claimed(email_proved_elsewhere.them) then
    perform internal.account_reclaim((email_proved_elsewhere.them).id);
  end if;
  update app.users u set email_verified = true, updated_at = internal.now()
    where u.id = (email_proved_elsewhere.them).id;
end $$;
comment on function internal.email_proved_elsewhere is
  'Marks the address of a user, proved from outside their session, as verified, and reclaims the account if it was only
   claimed.';
