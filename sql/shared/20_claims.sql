-- Who is calling, and when: transaction-local settings that the server sets before each call. A setting that was once
-- set reads '' in later transactions, never null, hence nullif everywhere.
create or replace function internal.user_id() returns uuid
language sql stable parallel safe
return nullif(current_setting('app.user_id', true), '')::uuid;
comment on function internal.user_id is
  'The end user of this call, or null. In policies always as (select internal.user_id()).';

create or replace function internal.session_id() returns uuid
language sql stable parallel safe
return nullif(current_setting('app.session_id', true), '')::uuid;
comment on function internal.session_id is 'The sign-in session of this call (end user''s or developer''s), or null.';

create or replace function internal.developer_id() returns uuid
language sql stable parallel safe
return nullif(current_setting('app.developer_id', true), '')::uuid;
comment on function internal.developer_id is
  'The developer of this call, or null. In policies always as (select internal.developer_id()).';

create or replace function internal.project_id() returns uuid
language sql stable parallel safe
return nullif(current_setting('app.project_id', true), '')::uuid;
comment on function internal.project_id is 'The project of this call, or null.';

create or replace function internal.caller() returns text
language sql stable parallel safe
return coalesce(nullif(current_setting('app.caller', true), ''), 'none');
comment on function internal.caller is
  'What kind of credential called: client_key, user, server_key, server_key_user (a server key on behalf of a user),
   developer, worker, none.';

create or replace function internal.check_caller(kind text, rule text) returns void
language plpgsql stable as $$
begin
  if internal.caller() <> check_caller.kind then
    raise exception '%, not by %', check_caller.rule, internal.caller();
  end if;
end $$;
comment on function internal.check_caller is
  'Raises, for the log, unless a credential of this kind called; rule says what is done by whom: "replays are run by a
   worker". The server calls no function under another credential, so this is a defect and no refusal.';

create or replace function internal.actor() returns json
language sql stable parallel safe
return nullif(current_setting('app.actor', true), '')::json;
comment on function internal.actor is 'For the audit trail: {type, id, label, ip, user_agent, request_id}, or null.';

create or replace function internal.now() returns timestamptz
language sql stable parallel safe
return coalesce(nullif(current_setting('app.clock', true), '')::timestamptz, now());
comment on function internal.now is
  'The clock: the transaction''s time, or the one that a test harness passes. No request can set it.';
