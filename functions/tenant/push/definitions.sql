-- Templates and automations, which developers define, and what is common to messages: their categories.
comment on constraint push_templates_key_unique on app.push_templates is
  '409 CONFLICT key: A template with this key exists.';
comment on constraint push_automations_key_unique on app.push_automations is
  '409 CONFLICT key: An automation with this key exists.';
comment on constraint push_automations_delay_0_to_30_days on app.push_automations is
  '400 VALIDATION_ERROR delay_seconds: must be a whole number of 0 to 2592000.';
comment on constraint push_automations_message_or_template on app.push_automations is
  '400 VALIDATION_ERROR message: send either message or template_key.';

select internal.audit_declare('app.push_templates', 'push');
select internal.audit_declare('app.push_automations', 'push');

create or replace function internal.push_categories_note(messages jsonb[]) returns void
language sql volatile security definer set search_path = '' as $$
  insert into app.push_categories (key)
  select distinct m ->> 'category' from unnest(push_categories_note.messages) m where m ->> 'category' is not null
   order by 1
  on conflict do nothing
$$;
comment on function internal.push_categories_note is
  'Remembers the categories of messages, for the list that users choose from.';

create or replace function internal.push_titles_check(message jsonb) returns void
language plpgsql volatile as $$
declare
  part record;
begin
  select t.place into part
    from (select 'title' as place, push_titles_check.message ->> 'title' as title
           union all
          select 'localized.' || l.key || '.title',
                 case jsonb_typeof(l.value) when 'object' then l.value ->> 'title' end
            from jsonb_each(case jsonb_typeof(push_titles_check.message -> 'localized')
                                 when 'object' then push_titles_check.message -> 'localized' else '{}' end) l) t
   where not internal.is_line(t.title)
   order by t.place
   limit 1;
  if found then
    perform internal.invalid('message.' || part.place, 'must be one line of text');
  end if;
end $$;
comment on function internal.push_titles_check is
  'Refuses 400 VALIDATION_ERROR for a message with a title, in any of its locales, that is not one line of text.';

create or replace function internal.push_template_check(requested app.push_templates, was app.push_templates,
                                                        sent jsonb)
returns app.push_templates
language plpgsql volatile as $$
begin
  perform internal.push_titles_check((push_template_check.requested).message);
  return push_template_check.requested;
end $$;
comment on function internal.push_template_check is
  'Refuses 400 VALIDATION_ERROR for a title that is not one line of text.';

create or replace function internal.push_template_after_write(stored app.push_templates, was app.push_templates,
                                                              sent jsonb)
returns void
language sql volatile as $$
  select internal.push_categories_note(array[(push_template_after_write.stored).message])
$$;
comment on function internal.push_template_after_write is 'Remembers the category of the message.';

create or replace function internal.push_template_before_delete(doomed app.push_templates) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  -- an automation that is just naming it waits for this lock, and then does not find it
  perform from app.push_templates t where t.id = (push_template_before_delete.doomed).id for update;
  if exists (select from app.push_automations a where a.template_key = (push_template_before_delete.doomed).key) then
    perform internal.fail(409, 'CONFLICT',
                          'A template that an automation names cannot be deleted: change the automation first.',
                          '{"field": "key"}');
  end if;
end $$;
comment on function internal.push_template_before_delete is
  'Refuses 409 CONFLICT while an automation names the template. Locks the template.';

create or replace function internal.push_automation_check(requested app.push_automations, was app.push_automations,
                                                          sent jsonb)
returns app.push_automations
language plpgsql volatile security definer set search_path = '' as $$
declare
  made app.push_automations := push_automation_check.requested;
begin
  -- of the two a request that sends one means that one only
  if push_automation_check.sent ? 'message' and not push_automation_check.sent ? 'template_key' then
    made.template_key := null;
  elsif push_automation_check.sent ? 'template_key' and not push_automation_check.sent ? 'message' then
    made.message := null;
  end if;
  perform internal.push_titles_check(made.message);
  if made.template_key is not null then
    perform from app.push_templates t where t.key = made.template_key for key share;
    if not found then
      perform internal.invalid('template_key', 'must be the key of a template');
    end if;
  end if;
  if made.trigger ? 'segment_id' then
    if not internal.segment_lock_shared(internal.as_uuid(made.trigger ->> 'segment_id')) then
      perform internal.invalid('trigger.segment_id', 'must be a segment of the project');
    end if;
  elsif made.trigger ->> 'event_name' = 'svc.message.received' and made.key <> 'message' then
    perform internal.invalid('trigger.event_name', 'belongs to the automation with the key message');
  elsif made.trigger ->> 'event_name' = 'svc.message.received' and made.cancel_if_event is not null then
    perform internal.invalid('cancel_if_event', 'must be null: a message that was read meanwhile is not pushed');
  elsif made.trigger ->> 'event_name' like 'svc.push.%' then
    -- a message that causes itself would not come to rest
    perform internal.invalid('trigger.event_name', 'must not be an event of push itself');
  elsif made.trigger -> 'filter' <> 'null' then
    perform internal.campaign_filter_check('trigger.filter', made.trigger -> 'filter');
  end if;
  return made;
end $$;
comment on function internal.push_automation_check is
  'Refuses 400 VALIDATION_ERROR: a template or a segment that does not exist, an invalid filter, an event of push
   itself, svc.message.received in any other than the automation message. Locks the template and the segment against
   deletion.';

create or replace function internal.push_automation_after_write(stored app.push_automations, was app.push_automations,
                                                                sent jsonb)
returns void
language sql volatile as $$
  select internal.push_categories_note(array[(push_automation_after_write.stored).message])
$$;
comment on function internal.push_automation_after_write is 'Remembers the category of the message.';

create or replace function internal.segment_used__push(segment_id uuid) returns text[]
language sql stable security definer set search_path = '' as $$
  select array(select 'push automation ' || a.key from app.push_automations a
                where a.trigger ->> 'segment_id' = segment_used__push.segment_id::text order by a.key)
$$;
comment on function internal.segment_used__push is 'Automations that name a segment.';
