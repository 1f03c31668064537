create or replace function api.mail_sender(project_id uuid, from_email text default null) returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select json_build_object(
             'brand', coalesce(nullif(btrim(p.auth_email_brand_name), ''), p.name), 'name', p.name,
               'magic_link_redirect_url', p.magic_link_redirect_url,
             'from_email', s.address, 'from_name', nullif(btrim(p.default_from_name), ''),
             'reply_to', p.default_reply_to,
             'domain', d.domain, 'dkim_sealed', d.dkim_sealed)
      from app.projects p
      left join lateral (
       select a.address
         from unnest(array[mail_sender.from_email, p.default_from_email]) with ordinality a (address, n)
        where internal.domain_sends(p.id, a.address)
        order by a.n
        limit 1) s on true
      left join app.domains d on d.project_id = p.id and d.kind = 'email' and d.status = 'verified'
        and d.domain = lower(split_part(s.address, '@', 2))
     where p.id = mail_sender.project_id and p.deleted_at is null))
$$;
comment on function api.mail_sender is
  'How a project sends mail now: the requested address or the project''s own, whichever is on a verified domain, with
   the sealed key that signs for it; without one from_email is null, and the installation''s address sends. Null when
   the project was deleted.';

create or replace function api.mail_from_check(project_id uuid, addresses jsonb) returns api.reply
language plpgsql stable as $$
declare
  project constant app.projects := internal.own_project(mail_from_check.project_id);
  bad text;
begin
  select a into bad from jsonb_array_elements_text(mail_from_check.addresses) a
   where not internal.domain_sends(project.id, a) limit 1;
  if found then
    perform internal.fail(400, 'INVALID_SENDER', 'from must be on a verified sending domain of the project.',
                          '{"field": "from", "reason": "is not on a verified sending domain"}');
  end if;
  return internal.reply(200, 'true');
end $$;
comment on function api.mail_from_check is
  'Whether a project may send from addresses. Refuses 404 NOT_FOUND, 400 INVALID_SENDER.';

-- What the installation sends in its own name: its address has one reputation, which the sign-in codes of all projects
-- depend on.
create or replace function internal.project_account(project_id uuid) returns app.developers
language sql stable security definer set search_path = '' as $$
  -- an owner whose address is verified answers for the project, before one whose address is not
  select d.*
    from app.projects p
    join app.organization_members m on m.organization_id = p.organization_id and m.role = 'owner'
    join app.developers d on d.id = m.developer_id
   where p.id = project_account.project_id
   order by d.account_state = 'sandbox', m.joined_at, d.id
   limit 1
$$;
comment on function internal.project_account is
  'The account that answers for a project: the oldest owner of its organization with a verified address, else the
   oldest. Granted to nobody.';

create or replace function internal.project_is_sandbox(project_id uuid) returns boolean
language sql stable security definer set search_path = '' as $$
  select coalesce((internal.project_account(project_is_sandbox.project_id)).account_state = 'sandbox', false)
$$;
comment on function internal.project_is_sandbox is 'Whether nobody who owns a project has verified their address.';

create or replace function internal.mail_reaches(project_id uuid, address text) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select from app.projects p
                   join app.organization_members m on m.organization_id = p.organization_id
                   join app.developers d on d.id = m.developer_id
                  where p.id = mail_reaches.project_id and d.email_verified
                    and d.email = internal.email_normal(mail_reaches.address))
$$;
comment on function internal.mail_reaches is
  'Whether an address is the verified one of a member: nobody else gets mail of a project in the sandbox. Granted to
   nobody.';

create or replace function api.mail_take(project_id uuid, address text, is_sign_in boolean, limits json)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  account constant app.developers := internal.project_account(mail_take.project_id);
  is_sandbox constant boolean := coalesce(account.account_state = 'sandbox', false);
  most constant int := (mail_take.limits ->> case when is_sandbox then 'sandbox_per_day' else 'per_day' end)::int;
  wait int;
begin
  perform internal.check_caller('worker', 'mail is sent by workers');
  if is_sandbox and not mail_take.is_sign_in and mail_take.limits ->> 'sandbox_to' = 'own'
     and not internal.mail_reaches(mail_take.project_id, mail_take.address) then
    return internal.reply(200, json_build_object('is_sandbox', true, 'is_refused', true, 'wait', null));
  end if;
  wait := case when most = 0 then 86400
               else internal.take_limits(json_build_array(json_build_object('key', 'mail of account ' || account.id,
                                        'max', most, 'seconds', 86400))) end;
  return internal.reply(200, json_build_object('is_sandbox', is_sandbox, 'is_refused', false, 'wait', wait));
end $$;
comment on function api.mail_take is
  'For workers: counts one message that the installation is about to send in its own name for a project: {is_sandbox,
   is_refused, wait}. is_refused: the project is in the sandbox, and the address is not its own; wait: the seconds after
   which its account may send again, or null. limits is {sandbox_to, sandbox_per_day, per_day}.';

create or replace function api.mail_to_check(project_id uuid, addresses jsonb) returns api.reply
language plpgsql stable as $$
declare
  project constant app.projects := internal.own_project(mail_to_check.project_id);
begin
  if internal.project_is_sandbox(project.id) and not internal.domain_sends(project.id, project.default_from_email)
     and not internal.mail_to_members(project.id, mail_to_check.addresses) then
    perform internal.fail(403, 'EMAIL_NOT_VERIFIED',
                          'Until an owner of the project has verified their address, it sends mail to verified '
                          'addresses of its members only: sign in with a code by mail.');
  end if;
  return internal.reply(200, 'true');
end $$;
comment on function api.mail_to_check is
  'Whether the installation sends mail of a project that names no sender to addresses; a null among them is a user,
   whoever that is. Refuses 404 NOT_FOUND, 403 EMAIL_NOT_VERIFIED.';

create or replace function internal.mail_to_members(project_id uuid, addresses jsonb) returns boolean
language sql stable security definer set search_path = '' as $$
  select not exists (select from jsonb_array_elements_text(mail_to_members.addresses) a
                      where not coalesce(internal.mail_reaches(mail_to_members.project_id, a), false))
$$;
comment on function internal.mail_to_members is 'Whether internal.mail_reaches all of these addresses.';

create or replace function internal.tg_developers__sandbox() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.changed('project:' || p.id)
     from app.organization_members m
     join app.projects p on p.organization_id = m.organization_id and p.deleted_at is null
    where m.developer_id = new.id and m.role = 'owner';
  return null;
end $$;
comment on function internal.tg_developers__sandbox is
  'Servers remember whether a project is in the sandbox: told when its owner verifies their address.';
create or replace trigger tg_developers__sandbox
  after update of account_state, email_verified on app.developers
  for each row when ((old.account_state = 'sandbox') <> (new.account_state = 'sandbox'))
  execute function internal.tg_developers__sandbox();
