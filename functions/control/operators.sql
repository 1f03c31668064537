-- Operators' commands, for scripts/admin.ts: run as the owner of the database, granted to nobody. The audit trail
-- records their changes with the system as the actor; for accounts, triggers write it.
create or replace function internal.operator_invites_create(codes json, days int, note text default null) returns json
language plpgsql volatile as $$
declare
  made json;
begin
  with new_ones as (
    insert into app.invites (code_hash, code_hint, note, expires_at)
    select c.code_hash, c.code_hint, operator_invites_create.note,
           internal.now() + make_interval(days => operator_invites_create.days)
      from json_to_recordset(operator_invites_create.codes) as c (code_hash text, code_hint text)
    returning id, code_hash, expires_at
  )
  select json_agg(json_build_object('id', n.id, 'code_hash', n.code_hash, 'expires_at', internal.iso(n.expires_at)))
    into made from new_ones n;
  perform internal.audit('invites.create', 'invites', i ->> 'id',
                         json_build_object('expires_at', json_build_array(null, i ->> 'expires_at'),
                                           'note', json_build_array(null, operator_invites_create.note)))
     from json_array_elements(made) i;
  return made;
end $$;
comment on function internal.operator_invites_create is
  'Stores the hashes of new invite codes that are valid for the given number of days: [{id, code_hash, expires_at}].';

create or replace function internal.invite_status(i app.invites) returns text
language sql stable as $$
  select case
    when (invite_status.i).used_at is not null then 'used'
    when (invite_status.i).revoked_at is not null then 'revoked'
    when (invite_status.i).expires_at <= internal.now() then 'expired'
    else 'open'
  end
$$;
comment on function internal.invite_status is 'The status of an invite: open, used, revoked or expired.';

create or replace function internal.operator_invites_list(whole boolean) returns json
language sql stable as $$
  select coalesce(json_agg(json_build_object(
           'id', i.id, 'hint', i.code_hint, 'status', internal.invite_status(i),
             'expires_at', internal.iso(i.expires_at),
           'used_by', d.email, 'note', i.note) order by i.created_at desc, i.id desc), '[]')
    from app.invites i
    left join app.developers d on d.id = i.used_by
   where operator_invites_list.whole or internal.invite_status(i) = 'open'
$$;
comment on function internal.operator_invites_list is 'Invites, newest first: those that are open, or all.';

create or replace function internal.operator_invite_revoke(invite_id uuid, code_hash text) returns json
language plpgsql volatile as $$
declare
  invite app.invites;
begin
  select i.* into invite from app.invites i
   where i.id = operator_invite_revoke.invite_id or i.code_hash = operator_invite_revoke.code_hash
     for update;
  perform internal.check_found(invite.id is not null, 'invite');
  if invite.used_at is not null then
    perform internal.fail(409, 'CONFLICT',
                          'This invite was used already: revoke the account''s access with "developer provisioning '
                          'EMAIL revoked".');
  end if;
  if invite.revoked_at is null then
    update app.invites i set revoked_at = internal.now() where i.id = invite.id returning i.* into invite;
    perform internal.audit('invites.update', 'invites', invite.id::text,
                           json_build_object('revoked_at', json_build_array(null, internal.iso(invite.revoked_at))));
  end if;
  return json_build_object('id', invite.id, 'hint', invite.code_hint);
end $$;
comment on function internal.operator_invite_revoke is
  'Revokes an invite, by its id or by the hash of its code; idempotent. Refuses 404 NOT_FOUND, 409 CONFLICT for a used
   one. Locks the invite.';

create or replace function internal.operator_waitlist() returns json
language sql stable as $$
  select coalesce(json_agg(json_build_object('email', w.email, 'note', w.note, 'created_at', internal.iso(w.created_at))
                           order by w.created_at, w.id), '[]')
    from app.waitlist_entries w
$$;
comment on function internal.operator_waitlist is 'The addresses on the waitlist, oldest first.';

create or replace function internal.operator_waitlist_delete(email text) returns json
language plpgsql volatile as $$
declare
  entry app.waitlist_entries;
begin
  delete from app.waitlist_entries w where w.mailbox = internal.email_mailbox(operator_waitlist_delete.email)
    returning w.* into entry;
  if entry.id is null then
    perform internal.fail(404, 'NOT_FOUND', 'This address is not on the waitlist.');
  end if;
  perform internal.audit('waitlist.delete', 'waitlist', entry.id::text);
  return json_build_object('email', entry.email);
end $$;
comment on function internal.operator_waitlist_delete is 'Removes an address from the waitlist. Refuses 404 NOT_FOUND.';

create or replace function internal.operator_project(project_id uuid) returns app.projects
language plpgsql volatile as $$
declare
  project app.projects;
begin
  select p.* into project from app.projects p
   where p.id = operator_project.project_id and p.deleted_at is null for no key update;
  if project.id is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no project with this id.');
  end if;
  return project;
end $$;
comment on function internal.operator_project is 'A project of any developer, locked. Refuses 404 NOT_FOUND.';

create or replace function internal.operator_project_set(project_id uuid, tier text default null,
                                                         comped boolean default null)
returns json
language plpgsql volatile as $$
declare
  before constant app.projects := internal.operator_project(operator_project_set.project_id);
  changed app.projects;
  changes jsonb := '{}';
begin
  update app.projects p
     set tier = coalesce(operator_project_set.tier, p.tier), comped = coalesce(operator_project_set.comped, p.comped),
         updated_at = internal.now()
   where p.id = before.id
  returning p.* into changed;
  if changed.tier <> before.tier then
    changes := changes || jsonb_build_object('tier', jsonb_build_array(before.tier, changed.tier));
  end if;
  if changed.comped <> before.comped then
    changes := changes || jsonb_build_object('comped', jsonb_build_array(before.comped, changed.comped));
  end if;
  if changes <> '{}' then
    perform internal.audit('projects.update', 'projects', changed.id::text, changes::json, scope => changed.id);
  end if;
  -- the servers' project cache holds the tier that limits depend on
  perform internal.changed('project:' || changed.id);
  return json_build_object('name', changed.name, 'tier', changed.tier, 'comped', changed.comped,
                           'effective_tier', internal.effective_tier(changed.tier, changed.comped));
end $$;
comment on function internal.operator_project_set is
  'Sets a project''s tier, or whether it is comped. Refuses 404 NOT_FOUND. Locks the project.';

create or replace function internal.operator_developer_set(email text, provisioning text default null,
                                                           verified boolean default false)
returns json
language plpgsql volatile as $$
declare
  them app.developers;
begin
  select d.* into them from app.developers d
   where d.mailbox = internal.email_mailbox(operator_developer_set.email) for no key update;
  if them.id is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no developer with this address.');
  end if;
  update app.developers d
     set provisioning = coalesce(operator_developer_set.provisioning, d.provisioning),
         email_verified = d.email_verified or operator_developer_set.verified,
         updated_at = internal.now()
   where d.id = them.id
  returning d.* into them;
  return json_build_object('email', them.email, 'provisioning', them.provisioning, 'account_state', them.account_state);
end $$;
comment on function internal.operator_developer_set is
  'Marks a developer''s address verified, or sets whether the account may create projects (on; off: not before a code is
   redeemed; revoked). Refuses 404 NOT_FOUND. Locks the account.';

create or replace function internal.operator_signing_key_add(project_id uuid, signing json) returns json
language plpgsql volatile as $$
declare
  project constant app.projects := internal.operator_project(operator_signing_key_add.project_id);
  starts constant timestamptz := internal.now() + interval '1 minute';
begin
  if exists (select from app.project_signing_keys k
              where k.project_id = project.id and k.use_from > internal.now()) then
    perform internal.fail(409, 'CONFLICT',
                          'The project was given a key within the last minute, which does not sign yet.');
  end if;
  delete from app.project_signing_keys k
   where k.project_id = project.id and not exists (select from internal.signing_keys(project.id) s
                                                    where s.key_id = k.key_id);
  insert into app.project_signing_keys (project_id, key_id, public_jwk, sealed, use_from)
  values (project.id, operator_signing_key_add.signing ->> 'key_id', operator_signing_key_add.signing -> 'public_jwk',
          operator_signing_key_add.signing ->> 'sealed', starts);
  perform internal.audit('projects.update', 'projects', project.id::text,
                         json_build_object('signing_key', json_build_array(null,
                                        operator_signing_key_add.signing ->> 'key_id')), scope => project.id);
  perform internal.changed('project:' || project.id);
  return json_build_object('name', project.name, 'use_from', internal.iso(starts));
end $$;
comment on function internal.operator_signing_key_add is
  'Gives a project a new key for session tokens, {key_id, public_jwk, sealed}, which signs after a minute, when every
   server accepts it: {name, use_from}. Removes keys that nothing valid was signed with. Refuses 404 NOT_FOUND, 409
   CONFLICT while the former new key does not sign yet. Locks the project.';
