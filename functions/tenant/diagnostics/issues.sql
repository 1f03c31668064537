-- What administrators see: issues, their reports, and the health of the project.
create or replace function internal.diagnostics_issue_json(issue app.diagnostic_issues) returns json
language sql stable as $$
  select json_build_object(
    'id', (diagnostics_issue_json.issue).id, 'fingerprint', (diagnostics_issue_json.issue).fingerprint,
    'title', (diagnostics_issue_json.issue).title, 'level', (diagnostics_issue_json.issue).level,
    'first_seen', internal.iso((diagnostics_issue_json.issue).first_seen),
    'last_seen', internal.iso((diagnostics_issue_json.issue).last_seen),
    'count', (diagnostics_issue_json.issue).count, 'users', (diagnostics_issue_json.issue).users,
    'status', (diagnostics_issue_json.issue).status,
    'app_versions', (select coalesce(json_agg(v order by internal.diagnostics_version_key(v) collate "C",
                                                   v collate "C"), '[]')
                       from jsonb_object_keys((diagnostics_issue_json.issue).version_counts) v),
    'version_counts', (diagnostics_issue_json.issue).version_counts,
    'day_counts', internal.diagnostics_recent((diagnostics_issue_json.issue).day_counts,
                                              (internal.now() at time zone 'UTC')::date))
$$;
comment on function internal.diagnostics_issue_json is
  'An issue with its versions in their order, and its counts by version and by day of the last 30.';

select internal.row_declare('diagnostics_report_json', null::app.diagnostic_reports,
  '{id,kind,level,message,stack,context,occurred_at,received_at,app_version,os_version,device_model,app_user_id}');
comment on function internal.diagnostics_report_json is 'A report as responses show it.';

select internal.list_declare('diagnostics_reports_page', null::app.diagnostic_reports, 'diagnostics_report_json',
                             '{occurred_at,id}', required => '{issue_id}', by_cursor => true);

create or replace function api.diagnostics_issues(status text default null, level text default null,
                                                  app_version text default null, page_offset int default 0,
                                                  page_limit int default 50)
returns api.reply
-- counts are of the index of a status, which is smaller than the table and in memory as often
language plpgsql stable set plan_cache_mode = 'force_custom_plan' set random_page_cost = 1.1 as $$
declare
  rows_json json;
  total bigint;
begin
  -- the page by an index alone: a row is read when it is shown, not when it is passed over
  select json_agg(internal.diagnostics_issue_json(i) order by p.last_seen desc, p.id desc) into rows_json
    from (select i.id, i.last_seen from app.diagnostic_issues i
           where (diagnostics_issues.status is null or i.status = diagnostics_issues.status)
             and (diagnostics_issues.level is null or i.level = diagnostics_issues.level)
             and (diagnostics_issues.app_version is null
                  or i.id in (select v.issue_id from app.diagnostic_issue_versions v
                               where v.app_version = diagnostics_issues.app_version))
           order by i.last_seen desc, i.id desc
           limit diagnostics_issues.page_limit offset diagnostics_issues.page_offset) p
    join app.diagnostic_issues i on i.id = p.id;
  if diagnostics_issues.status is null and diagnostics_issues.level is null
    and diagnostics_issues.app_version is not null then
    select count(*) into total
      from app.diagnostic_issue_versions v where v.app_version = diagnostics_issues.app_version;
  else
    select count(*) into total
      from app.diagnostic_issues i
     where (diagnostics_issues.status is null or i.status = diagnostics_issues.status)
       and (diagnostics_issues.level is null or i.level = diagnostics_issues.level)
       and (diagnostics_issues.app_version is null
            or i.id in (select v.issue_id from app.diagnostic_issue_versions v
                         where v.app_version = diagnostics_issues.app_version));
  end if;
  return internal.reply_page(rows_json, total, diagnostics_issues.page_offset, diagnostics_issues.page_limit);
end $$;
comment on function api.diagnostics_issues is 'Issues, last seen first.';

create or replace function api.diagnostics_issue(issue_id uuid) returns api.reply
language plpgsql stable as $$
declare
  issue app.diagnostic_issues;
begin
  select i.* into issue from app.diagnostic_issues i where i.id = diagnostics_issue.issue_id;
  perform internal.check_found(found, 'issue');
  return internal.reply(200, internal.diagnostics_issue_json(issue));
end $$;
comment on function api.diagnostics_issue is 'An issue. Refuses 404 NOT_FOUND.';

create or replace function api.diagnostics_issue_update(issue_id uuid, status text default null) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  was app.diagnostic_issues;
  issue app.diagnostic_issues;
begin
  perform internal.check_caller('developer', 'issues are changed by developers');
  select i.* into was from app.diagnostic_issues i where i.id = diagnostics_issue_update.issue_id for no key update;
  perform internal.check_found(found, 'issue');
  if diagnostics_issue_update.status is null or diagnostics_issue_update.status = was.status then
    return internal.reply(200, internal.diagnostics_issue_json(was));
  end if;
  update app.diagnostic_issues i
     set status = diagnostics_issue_update.status,
         resolved_version_key = (select max(internal.diagnostics_version_key(v) collate "C")
                                   from jsonb_object_keys(i.version_counts) v where v ~ '^[0-9]')
   where i.id = was.id
  returning i.* into issue;
  perform internal.audit_act('diagnostics.update', 'diagnostic_issue', issue.id::text,
                             json_build_object('status', json_build_array(was.status, issue.status)), 200);
  return internal.reply(200, internal.diagnostics_issue_json(issue));
end $$;
comment on function api.diagnostics_issue_update is
  'Sets the status of an issue. A resolved one opens again by a version that is newer than all that it has now. Refuses
   404 NOT_FOUND. Locks the issue.';

create or replace function api.diagnostics_issue_reports(issue_id uuid, cursor text default null,
                                                         page_limit bigint default 50)
returns api.reply
language plpgsql stable as $$
begin
  perform from app.diagnostic_issues i where i.id = diagnostics_issue_reports.issue_id;
  perform internal.check_found(found, 'issue');
  return internal.diagnostics_reports_page(diagnostics_issue_reports.issue_id, diagnostics_issue_reports.cursor,
                                           diagnostics_issue_reports.page_limit);
end $$;
comment on function api.diagnostics_issue_reports is
  'The reports of an issue of the last 30 days, newest first. Refuses 404 NOT_FOUND, and as
   internal.diagnostics_reports_page.';

create or replace function api.diagnostics_health() returns api.reply
language plpgsql stable security definer set search_path = '' as $$
begin
  perform internal.check_caller('developer', 'the health of a project is asked by developers');
  return internal.reply(200, json_build_object(
    'schema_version', (select max(m.version::text) from ops.schema_migrations m),
    'queue_lag_seconds', coalesce((select greatest(extract(epoch from internal.now() - min(o.due_at)), 0)
                                     from app.outbox o where o.failed_at is null and o.locked_until is null), 0),
    'outbox_pending', (select count(*) from app.outbox o where o.failed_at is null),
    'webhook_dlq', (select count(*) from app.webhook_deliveries d where d.status = 'dlq'),
    'realtime_connections', (select count(*) from app.realtime_connections)));
end $$;
comment on function api.diagnostics_health is
  'For the server: {schema_version, queue_lag_seconds, outbox_pending, webhook_dlq, realtime_connections}.';
