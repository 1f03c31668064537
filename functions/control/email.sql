create or replace function api.mail_sender(project_id uuid, from_email text default null) returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select json_build_object(
             'brand', coalesce(nullif(btrim(p.auth_email_brand_name), ''), p.name), 'name', p.name, 'magic_link_redirect_url', p.magic_link_redirect_url,
             'from_email', s.address, 'from_name', nullif(btrim(p.default_from_name), ''), 'reply_to', p.default_reply_to,
             'domain', d.domain, 'dkim_sealed', d.dkim_sealed)
      from app.projects p
      left join lateral (
       select a.address
         from unnest(array[mail_sender.from_email, p.default_from_email]) with ordinality a (address, n)
        where internal.domain_sends(p.id, a.address)
        order by a.n
        limit 1) s on true
      left join app.domains d on d.project_id = p.id and d.kind = 'email' and d.status = 'verified' and d.domain = lower(split_part(s.address, '@', 2))
     where p.id = mail_sender.project_id and p.deleted_at is null))
$$;
comment on function api.mail_sender is
  'How a project sends mail now: the wished address or the project''s own, whichever is on a verified domain, with the sealed key that signs for it; without one
   from_email is null, and the installation''s address sends. Null when the project was deleted.';

create or replace function api.mail_from_check(project_id uuid, addresses jsonb) returns api.reply
language plpgsql stable as $$
declare
  project constant app.projects := internal.own_project(mail_from_check.project_id);
  bad text;
begin
  select a into bad from jsonb_array_elements_text(mail_from_check.addresses) a where not internal.domain_sends(project.id, a) limit 1;
  if found then
    perform internal.fail(400, 'INVALID_SENDER', 'from must be on a verified sending domain of the project.',
                          '{"field": "from", "reason": "is not on a verified sending domain"}');
  end if;
  return internal.reply(200, 'true');
end $$;
comment on function api.mail_from_check is 'Whether a project may send from addresses. Refuses 404 NOT_FOUND, 400 INVALID_SENDER.';
