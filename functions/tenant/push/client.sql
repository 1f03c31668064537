-- What users do: preferences, the inbox, and reports that a message was received or opened. Each function works on the
-- caller's own rows.
create or replace function internal.push_preferences_json() returns json
language sql stable security definer set search_path = '' as $$
  select json_build_object(
    'enabled', coalesce(p.enabled, true),
    'categories', (select coalesce(json_object_agg(k.key,
                                                   coalesce((p.categories ->> k.key)::boolean, true) order by k.key),
                                                     '{}')
                     from (select c.key from app.push_categories c union select j
                             from jsonb_object_keys(coalesce(p.categories, '{}')) j) k),
    'quiet_hours', p.quiet_hours, 'timezone', u.timezone)
    from app.users u
    left join app.push_preferences p on p.app_user_id = u.id
   where u.id = internal.user_id()
$$;
comment on function internal.push_preferences_json is
  'The caller''s preferences: all categories of the project, those that the caller has not switched off are on.';

create or replace function api.push_preferences_get() returns api.reply
language sql stable as $$
  select internal.reply(200, internal.push_preferences_json())
$$;
comment on function api.push_preferences_get is 'The caller''s preferences.';

create or replace function api.push_preferences_put(patch jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  p constant jsonb := push_preferences_put.patch;
begin
  perform internal.lock_users(array[internal.user_id()]);
  if p ->> 'timezone' is not null then
    if not internal.is_timezone(p ->> 'timezone') then
      perform internal.invalid('timezone', 'must be an IANA time zone');
    end if;
    update app.users u set timezone = p ->> 'timezone', updated_at = internal.now()
     where u.id = internal.user_id() and u.timezone is distinct from p ->> 'timezone';
  end if;
  insert into app.push_preferences as q (app_user_id, enabled, categories, quiet_hours)
  values (internal.user_id(), coalesce((p ->> 'enabled')::boolean, true), coalesce(p -> 'categories', '{}'),
          nullif(p -> 'quiet_hours', 'null'))
  on conflict (app_user_id) do update
     set enabled = excluded.enabled, categories = excluded.categories, quiet_hours = excluded.quiet_hours,
       updated_at = internal.now();
  return internal.reply(200, internal.push_preferences_json());
end $$;
comment on function api.push_preferences_put is
  'Replaces the caller''s preferences; a time zone that is sent becomes the caller''s. Refuses 400 VALIDATION_ERROR.
   Locks the user.';

select internal.row_declare('push_inbox_json', null::app.push_inbox_items,
                            '{id,title,body,image_url,deep_link,data,created_at,read_at,expires_at}');
comment on function internal.push_inbox_json is 'An item of an inbox as responses show it.';

create or replace function internal.push_inbox_is_current(i app.push_inbox_items) returns boolean
language sql stable
return (push_inbox_is_current.i).expires_at > internal.now();
comment on function internal.push_inbox_is_current is 'Whether an item has not expired.';

-- served by push_inbox_items_newest, or push_inbox_items_unread
select internal.list_declare('push_inbox_page', null::app.push_inbox_items, 'push_inbox_json', '{created_at,id}',
                             required => '{app_user_id}',
                             condition => 'push_inbox_is_current', by_cursor => true);
select internal.list_declare('push_inbox_unread_page', null::app.push_inbox_items, 'push_inbox_json', '{created_at,id}',
                             required => '{app_user_id,is_read}',
                             condition => 'push_inbox_is_current', by_cursor => true);

create or replace function api.push_inbox(unread boolean default false, cursor text default null,
                                          page_limit int default 50)
returns api.reply
language plpgsql stable as $$
begin
  if push_inbox.unread then
    return internal.push_inbox_unread_page(internal.user_id(), false, push_inbox.cursor, push_inbox.page_limit);
  end if;
  return internal.push_inbox_page(internal.user_id(), push_inbox.cursor, push_inbox.page_limit);
end $$;
comment on function api.push_inbox is
  'The caller''s inbox, newest first, by cursor; unread: only what is unread. Refuses 400 INVALID_INPUT.';

create or replace function api.push_inbox_unread_count() returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object('count', (
    select count(*) from app.push_inbox_items i
     where i.app_user_id = internal.user_id() and not i.is_read and i.expires_at > internal.now())))
$$;
comment on function api.push_inbox_unread_count is
  'How many items of the caller''s inbox are unread: {count}, at most 500.';

create or replace function api.push_inbox_read(inbox_item_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  item app.push_inbox_items;
begin
  update app.push_inbox_items i
     set is_read = true, read_at = coalesce(i.read_at, internal.now())
   where i.id = push_inbox_read.inbox_item_id and i.app_user_id = internal.user_id() and i.expires_at > internal.now()
  returning i.* into item;
  perform internal.check_found(found, 'item');
  return internal.reply(200, internal.push_inbox_json(item));
end $$;
comment on function api.push_inbox_read is
  'Marks an item of the caller as read; the first time counts. Refuses 404 NOT_FOUND.';

create or replace function api.push_inbox_read_all() returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  n bigint;
begin
  perform internal.lock_users(array[internal.user_id()]);
  update app.push_inbox_items i set is_read = true, read_at = internal.now()
    where i.app_user_id = internal.user_id() and not i.is_read;
  get diagnostics n = row_count;
  return internal.reply(200, json_build_object('read', n));
end $$;
comment on function api.push_inbox_read_all is
  'Marks all items of the caller as read: {read}, how many were not. Locks the user.';

create or replace function api.push_inbox_delete(inbox_item_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
begin
  delete from app.push_inbox_items i where i.id = push_inbox_delete.inbox_item_id
    and i.app_user_id = internal.user_id();
  perform internal.check_found(found, 'item');
  return internal.reply_deleted();
end $$;
comment on function api.push_inbox_delete is 'Deletes an item of the caller. Refuses 404 NOT_FOUND.';

create or replace function internal.push_report(delivery_id uuid, is_opened boolean) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  d app.campaign_deliveries;
begin
  perform internal.lock_users(array[internal.user_id()]);
  select e.* into d
    from app.campaign_deliveries e
   where e.id = push_report.delivery_id and e.app_user_id = internal.user_id()
     -- what no device was ever sent, none can have received
     and e.status <> 'skipped' and (e.status <> 'pending' or e.tries > 0)
     for no key update;
  perform internal.check_found(d.id is not null, 'delivery');
  if not push_report.is_opened then
    update app.campaign_deliveries e set received_at = internal.now() where e.id = d.id and e.received_at is null;
    return;
  elsif d.opened_at is not null then
    return;
  end if;
  perform internal.campaign_delivery_opened(d.id);
  perform internal.emit(d.app_user_id, 'svc.push.opened', jsonb_build_object(
    'delivery_id', d.id, 'campaign_id', d.campaign_id, 'automation_id', d.automation_id, 'variant', d.variant));
end $$;
comment on function internal.push_report is
  'Notes that a message of the caller was received or opened; the first time counts, and emits svc.push.opened. Refuses
   404 NOT_FOUND, also for a delivery that was not sent. Locks the user.';

create or replace function api.push_opened(delivery_id uuid) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.push_report(push_opened.delivery_id, true);
  return internal.reply(200, '{"opened": true}');
end $$;
comment on function api.push_opened is 'The caller has opened a message. Refuses 404 NOT_FOUND.';

create or replace function api.push_received(delivery_id uuid) returns api.reply
language plpgsql volatile as $$
begin
  perform internal.push_report(push_received.delivery_id, false);
  return internal.reply(200, '{"received": true}');
end $$;
comment on function api.push_received is 'A device of the caller has received a message. Refuses 404 NOT_FOUND.';
