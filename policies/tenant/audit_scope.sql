grant execute on function internal.audit_scope to app_admin;
