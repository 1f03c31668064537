create or replace function internal.account_reclaim__groups(app_user_id uuid) returns void
language sql volatile security definer set search_path = '' as $$
  delete from app.group_invites i where i.created_by = account_reclaim__groups.app_user_id
$$;
comment on function internal.account_reclaim__groups is
  'Ends the invites that were made in the name of an account which is reclaimed by the owner of its address: whoever has
   their codes may be anybody. Called by sign-in; granted to nobody.';
