-- Reports, the moderation queue and its transitions, trust levels. Lock order: users, then the item, then the content.

select internal.row_declare('moderation_item_json', null::app.moderation_items,
                            '{id,subject_type,subject_id,subject_user_id,snapshot,source,rule_id,reasons,
                             report_count,priority,status,is_hidden,moderator_id,resolved_at,note,created_at}');
comment on function internal.moderation_item_json is 'An item of the queue as responses show it.';

select internal.row_declare('moderation_report_json', null::app.moderation_reports,
                            '{id,subject_type,subject_id,reason,details,status,created_at}');
comment on function internal.moderation_report_json is 'A report as its reporter sees it.';

select internal.row_declare('moderation_trust_json', null::app.moderation_trust_levels,
                            '{app_user_id,trust_level,auto_approve,created_at,updated_at}');
comment on function internal.moderation_trust_json is 'A trust level as responses show it.';

select internal.list_declare('moderation_items_page', null::app.moderation_items, 'moderation_item_json',
                             '{created_at,id}', required => '{status}', is_counted => true);
select internal.list_declare('moderation_reports_page', null::app.moderation_reports, 'moderation_report_json',
                             '{created_at,id}', required => '{reporter_id}');
select internal.list_declare('moderation_trust_page', null::app.moderation_trust_levels, 'moderation_trust_json',
                             '{created_at,app_user_id}', is_counted => true);

create or replace function internal.moderation_report(subject_type text, subject_id uuid, author_id uuid,
                                                      snapshot jsonb, reason text, details text)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  report app.moderation_reports;
  item app.moderation_items;
begin
  -- the author as well, who is changed when the report hides a profile: two users may report each other at once
  perform internal.lock_users(array_remove(array[me, moderation_report.author_id], null));
  select m.* into report from app.moderation_reports m
   where (m.reporter_id, m.subject_type, m.subject_id) = (me, moderation_report.subject_type,
                                                          moderation_report.subject_id);
  if found then
    return internal.reply(200, json_build_object('id', report.id, 'status', report.status));
  end if;
  perform internal.check_rate('reports of ' || me, 30, 86400, 'A user sends at most 30 reports a day.');
  perform internal.moderation_lock(moderation_report.subject_type, moderation_report.subject_id);
  item := internal.moderation_enqueue(moderation_report.subject_type, moderation_report.subject_id,
                                      moderation_report.author_id,
    moderation_report.snapshot, null, moderation_report.reason,
    case when moderation_report.reason = 'self_harm' then 5
         when moderation_report.reason in ('violence', 'sexual') then 3
         when moderation_report.reason = 'abuse' then 2 else 1 end);
  insert into app.moderation_reports as m (reporter_id, item_id, subject_type, subject_id, reason, details)
  values (me, item.id, moderation_report.subject_type, moderation_report.subject_id, moderation_report.reason,
          moderation_report.details)
  returning m.* into report;
  -- the lock of the item serialises the counting of reports
  if not item.is_hidden and exists (
       select from app.moderation_rules r
        where r.is_active and r.rule_type = 'report_threshold' and r.action = 'hide'
          and moderation_report.subject_type = any (r.applies_to)
          and (select count(*) from app.moderation_reports m
                where m.item_id = item.id and m.created_at > internal.now()
                  - make_interval(hours => (r.config ->> 'window_hours')::int))
              >= (r.config ->> 'count')::int) then
    item := internal.moderation_apply(item, 'hide');
  end if;
  perform internal.emit(me, 'svc.moderation.reported', jsonb_build_object(
    'report_id', report.id, 'item_id', item.id, 'subject_type', item.subject_type, 'subject_id', item.subject_id,
      'reason', report.reason));
  return internal.reply(201, json_build_object('id', report.id, 'status', report.status));
end $$;
comment on function internal.moderation_report is
  'Stores a report of the caller and queues its subject: 201, or 200 when the caller has reported it already. Refuses
   429 RATE_LIMITED (30 a day). Hides the subject when a rule report_threshold is reached. Locks the reporter and the
   author, then the content and the item. Emits svc.moderation.reported.';

create or replace function api.moderation_report(subject_type text, subject_id uuid, reason text,
                                                 details text default null)
returns api.reply
language plpgsql volatile as $$
declare
  subject record;
begin
  subject := internal.moderation_subject(moderation_report.subject_type, moderation_report.subject_id);
  if subject.user_id = internal.user_id() then
    perform internal.fail(400, 'SELF_REPORT', 'Users may report only what others have made.');
  end if;
  return internal.moderation_report(moderation_report.subject_type, moderation_report.subject_id, subject.user_id,
                                    subject.snapshot,
                                    moderation_report.reason, moderation_report.details);
end $$;
comment on function api.moderation_report is
  'Reports content that the caller can see, with a copy of it. Refuses 404 SUBJECT_NOT_FOUND, 400 SELF_REPORT, and as
   internal.moderation_report.';

create or replace function api.moderation_reports(page_offset int default 0, page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.moderation_reports_page(internal.user_id(), moderation_reports.page_offset,
                                          moderation_reports.page_limit)
$$;
comment on function api.moderation_reports is 'A page of the caller''s own reports, newest first.';

create or replace function api.moderation_queue(status text default 'pending', page_offset int default 0,
                                                page_limit int default 50, include text default null)
returns api.reply
language sql stable as $$
  select internal.reply_with_users(
    internal.moderation_items_page(moderation_queue.status, moderation_queue.page_offset, moderation_queue.page_limit),
    moderation_queue.include, 'subject_user_id')
$$;
comment on function api.moderation_queue is 'A page of the items with a status, newest first.';

create or replace function internal.moderation_move(item_id uuid, status text, note text default null,
                                                    action text default 'none')
returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  item app.moderation_items;
  was text;
begin
  perform internal.check_caller('developer', 'the queue is moved by administrators');
  -- users before items: a report locks its reporter and then waits for the item
  perform internal.lock_users(array(select i.subject_user_id from app.moderation_items i
                                     where i.id = moderation_move.item_id));
  -- content before items: a write of content that a rule matches locks them in this order
  perform internal.moderation_lock(i.subject_type, i.subject_id) from app.moderation_items i
    where i.id = moderation_move.item_id;
  select i.* into item from app.moderation_items i where i.id = moderation_move.item_id for update;
  perform internal.check_found(found, 'item');
  was := item.status;
  if was = moderation_move.status then
    return internal.moderation_item_json(item);
  elsif was in ('approved', 'rejected') then
    perform internal.fail(409, 'ALREADY_RESOLVED', 'The item has been resolved already.',
                          json_build_object('status', was));
  end if;
  if moderation_move.status = 'approved' and item.is_hidden then
    item := internal.moderation_apply(item, 'show');
  elsif moderation_move.status = 'rejected' then
    item := internal.moderation_apply(item, 'remove');
    update app.users u
       set muted_until = case when moderation_move.action = 'mute_24h' then greatest(u.muted_until,
                                        internal.now() + interval '24 hours') else u.muted_until end,
           is_banned = u.is_banned or moderation_move.action = 'ban'
     where u.id = item.subject_user_id and moderation_move.action in ('mute_24h', 'ban');
  end if;
  update app.moderation_items i
     set status = moderation_move.status, note = coalesce(moderation_move.note, i.note),
         moderator_id = case when moderation_move.status = 'escalated' then i.moderator_id else 'admin' end,
         resolved_at = case when moderation_move.status = 'escalated' then null else internal.now() end
   where i.id = item.id
  returning i.* into item;
  perform internal.audit('moderation.' || case item.status when 'approved' then 'approve' when 'rejected' then 'reject'
                                               else 'escalate' end,
                         'moderation_items', item.id::text,
                         json_build_object('status', json_build_array(was, item.status),
                                           'action', json_build_array(null, moderation_move.action)));
  if item.status <> 'escalated' then
    update app.moderation_reports r
       set status = case item.status when 'rejected' then 'action_taken' else 'no_action' end
     where r.item_id = item.id;
    if item.subject_user_id is not null then
      perform internal.emit(item.subject_user_id, 'svc.moderation.resolved', jsonb_build_object(
        'item_id', item.id, 'subject_type', item.subject_type, 'subject_id', item.subject_id, 'status', item.status,
          'action', moderation_move.action));
    end if;
  end if;
  return internal.moderation_item_json(item);
end $$;
comment on function internal.moderation_move is
  'Approves an item (the content stays, or is restored), rejects it (the content is removed; action warns, mutes for 24
   hours or bans its author) or escalates it. Repeating a transition changes nothing. Refuses 404 NOT_FOUND, 409
   ALREADY_RESOLVED. Locks the author, the item and its reports. Emits svc.moderation.resolved for the author.';

create or replace function api.moderation_approve(item_id uuid, note text default null) returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.moderation_move(moderation_approve.item_id, 'approved', moderation_approve.note))
$$;
comment on function api.moderation_approve is 'Approves an item. Refuses as internal.moderation_move.';

create or replace function api.moderation_reject(item_id uuid, note text default null, action text default 'none')
returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.moderation_move(moderation_reject.item_id, 'rejected', moderation_reject.note,
                                                      moderation_reject.action))
$$;
comment on function api.moderation_reject is 'Rejects an item. Refuses as internal.moderation_move.';

create or replace function api.moderation_escalate(item_id uuid, note text default null) returns api.reply
language sql volatile as $$
  select internal.reply(200, internal.moderation_move(moderation_escalate.item_id, 'escalated',
                                                      moderation_escalate.note))
$$;
comment on function api.moderation_escalate is 'Escalates an item. Refuses as internal.moderation_move.';

create or replace function api.moderation_trust_put(app_user_id uuid, patch jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  was app.moderation_trust_levels;
  trust app.moderation_trust_levels;
begin
  perform internal.check_caller('developer', 'trust levels are set by administrators');
  if internal.lock_users(array[moderation_trust_put.app_user_id]) is null then
    perform internal.fail(404, 'USER_NOT_FOUND', 'There is no such user.');
  end if;
  select t.* into was from app.moderation_trust_levels t where t.app_user_id = moderation_trust_put.app_user_id;
  insert into app.moderation_trust_levels as t (app_user_id, trust_level, auto_approve)
  values (moderation_trust_put.app_user_id, coalesce(moderation_trust_put.patch ->> 'trust_level', 'new'),
          coalesce((moderation_trust_put.patch ->> 'auto_approve')::boolean, false))
  on conflict on constraint moderation_trust_levels_pkey do update
     set trust_level = coalesce(moderation_trust_put.patch ->> 'trust_level', t.trust_level),
         auto_approve = coalesce((moderation_trust_put.patch ->> 'auto_approve')::boolean, t.auto_approve),
         updated_at = internal.now()
  returning t.* into trust;
  perform internal.audit('moderation.trust', 'users', trust.app_user_id::text, json_build_object(
    'trust_level', json_build_array(was.trust_level, trust.trust_level),
      'auto_approve', json_build_array(was.auto_approve, trust.auto_approve)));
  return internal.reply(200, internal.moderation_trust_json(trust));
end $$;
comment on function api.moderation_trust_put is
  'Sets the trust level of a user: inserts a row, or updates the fields that were sent. Refuses 404 USER_NOT_FOUND.
   Locks the user.';

create or replace function api.moderation_trust_list(page_offset int default 0, page_limit int default 50,
                                                     include text default null)
returns api.reply
language sql stable as $$
  select internal.reply_with_users(
    internal.moderation_trust_page(moderation_trust_list.page_offset, moderation_trust_list.page_limit),
    moderation_trust_list.include)
$$;
comment on function api.moderation_trust_list is 'A page of the trust levels, newest first.';

create or replace function internal.merge__moderation_reports(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  moved int;
begin
  -- if both users reported a subject, the survivor's report is kept
  delete from app.moderation_reports m
   where m.reporter_id = merge__moderation_reports.other
     and exists (select from app.moderation_reports s
                  where (s.reporter_id, s.subject_type, s.subject_id) = (merge__moderation_reports.survivor,
                                                                         m.subject_type, m.subject_id));
  update app.moderation_reports m set reporter_id = merge__moderation_reports.survivor
    where m.reporter_id = merge__moderation_reports.other;
  get diagnostics moved = row_count;
  return moved;
end $$;
comment on function internal.merge__moderation_reports is
  'Moves the reports of one user to another, one for each subject. Granted to nobody.';

create or replace function internal.merge__moderation_items(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  theirs app.moderation_items;
  mine app.moderation_items;
  moved int;
begin
  select i.* into mine from app.moderation_items i
   where i.subject_type = 'user' and i.subject_id = merge__moderation_items.survivor
     and i.status in ('pending', 'escalated') for update;
  select i.* into theirs from app.moderation_items i
   where i.subject_type = 'user' and i.subject_id = merge__moderation_items.other
     and i.status in ('pending', 'escalated') for update;
  if mine.id is not null and theirs.id is not null then
    -- at most one open item of a subject: it takes the reports of both
    update app.moderation_reports r set item_id = mine.id where r.item_id = theirs.id;
    update app.moderation_items i
       set report_count = i.report_count + theirs.report_count, priority = i.priority + theirs.priority,
           reasons = (select coalesce(jsonb_object_agg(s.key, s.n), '{}')
                        from (select e.key, sum(e.value::int) as n
                                from (select * from jsonb_each_text(mine.reasons) union all select *
                                        from jsonb_each_text(theirs.reasons)) e
                               group by e.key) s)
     where i.id = mine.id;
    delete from app.moderation_items i where i.id = theirs.id;
  end if;
  -- the merged user's profile is deleted, so there is nothing to restore
  update app.moderation_items i
     set subject_id = merge__moderation_items.survivor, is_hidden = false, kept = null
   where i.subject_type = 'user' and i.subject_id = merge__moderation_items.other;
  delete from app.moderation_reports r
   where r.subject_type = 'user' and r.subject_id = merge__moderation_items.other
     and exists (select from app.moderation_reports s
                  where (s.reporter_id, s.subject_type, s.subject_id) = (r.reporter_id, 'user',
                                                                         merge__moderation_items.survivor));
  update app.moderation_reports r set subject_id = merge__moderation_items.survivor
   where r.subject_type = 'user' and r.subject_id = merge__moderation_items.other;
  update app.moderation_items i set subject_user_id = merge__moderation_items.survivor
    where i.subject_user_id = merge__moderation_items.other;
  get diagnostics moved = row_count;
  return moved;
end $$;
comment on function internal.merge__moderation_items is
  'Moves items about one user and their content to another; of two open items about the profiles one remains, with the
   reports of both. Granted to nobody.';
