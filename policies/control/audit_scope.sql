grant execute on function internal.audit_scope to control_developer;
