-- The helpers above are called by policies, defaults and api functions of every role.
do $$
declare
  role_name text;
begin
  for role_name in
    select rolname from pg_roles
     where rolname in ('app_anon', 'app_user', 'app_server', 'app_admin', 'app_dashboard', 'app_worker', 'app_auth',
                       'control_anon', 'control_developer', 'control_auth', 'control_worker')
  loop
    execute format('grant usage on schema app, api, internal to %I', role_name);
    execute format('grant usage on type api.reply to %I', role_name);
    execute format($grant$
      grant execute on function
        internal.user_id(), internal.session_id(), internal.developer_id(), internal.project_id(), internal.caller(),
          internal.check_caller(text, text),
        internal.actor(), internal.now(), internal.iso(timestamptz), internal.reply(int, json, json),
        internal.json_merge(json, json), internal.reply_page(json, bigint, bigint, bigint), internal.page_bytes(),
        internal.json_fitting(json), internal.reply_cursor(json, text, bigint),
        internal.refuse(int, text, text, json, json), internal.fail(int, text, text, json, json),
        internal.invalid(text, text, text), internal.changed(text), internal.return_setting(text, text),
        internal.constraint_refusal(text, text, text),
        internal.new_id(), internal.as_uuid(text), internal.email_normal(text), internal.email_mailbox(text),
        internal.is_email(text), internal.is_line(text), internal.as_line(text), internal.cursor_write(text, text[]),
        internal.cursor_read(text, text, text[]),
        internal.cursor_time(timestamptz), internal.cursor_moment(text), internal.base64url_text(text),
        internal.is_cursor_key(text, text),
        internal.advisory_lock_key(text), internal.advisory_lock_key(text, text),
        internal.advisory_lock_registered(bigint, text),
        internal.advisory_lock(text), internal.advisory_lock(text, text), internal.try_advisory_lock(text),
        internal.try_advisory_lock(text, text),
        internal.advisory_lock_value(bigint), internal.reply_deleted(), internal.check_limit(bigint, int, text, text),
        internal.check_found(boolean, text, text)
      to %I$grant$, role_name);
  end loop;
end $$;
