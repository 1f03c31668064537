create or replace function api.sign_in_settings(project_id uuid) returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select json_build_object(
             'name', p.name, 'bundle_id', p.bundle_id, 'google_oauth_client_id', p.google_oauth_client_id,
             'magic_link_redirect_url', p.magic_link_redirect_url,
             'brand', coalesce(nullif(btrim(p.auth_email_brand_name), ''), p.name),
             'from_email', case when internal.domain_sends(p.id, p.default_from_email) then p.default_from_email end,
             'from_name', nullif(btrim(p.default_from_name), ''), 'reply_to', p.default_reply_to)
      from app.projects p
     where p.id = sign_in_settings.project_id and p.deleted_at is null))
$$;
comment on function api.sign_in_settings is
  'The settings of a project that the sign-in of its end users needs: audiences of identity tokens, the target of links,
   the sender of mail. Null when the project was deleted.';
