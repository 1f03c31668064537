-- Texts that rules evaluate, in the transaction that writes them. A table is moderated by a row in
-- internal.moderated_texts and triggers with internal.tg_moderated_text; docs/moderation.md shows both. Only texts of
-- end users are evaluated, not those of administrators and server keys without a user.

create or replace function internal.check_not_banned(app_user_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if exists (select from app.users u where u.id = check_not_banned.app_user_id and u.is_banned) then
    perform internal.fail(403, 'USER_BANNED', 'This user is banned.');
  end if;
end $$;
comment on function internal.check_not_banned is
  'Refuses 403 USER_BANNED. Servers refuse the writes of a banned user before they ask a database; this is for what
   lasts longer than a request. Granted to nobody.';

create or replace function internal.check_may_write() returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  is_banned boolean;
  until timestamptz;
begin
  select u.is_banned, u.muted_until into is_banned, until
    from app.users u where u.id = internal.user_id() and (u.is_banned or u.muted_until > internal.now());
  if is_banned then
    perform internal.fail(403, 'USER_BANNED', 'This user is banned.');
  elsif until is not null then
    perform internal.fail(403, 'USER_MUTED', 'The user is muted until details.muted_until.',
                          json_build_object('muted_until', internal.iso(until)));
  end if;
end $$;
comment on function internal.check_may_write is
  'Refuses 403 USER_BANNED, and USER_MUTED with details {muted_until} while the caller is muted. Granted to nobody.';

create or replace function internal.moderation_enqueue(subject_type text, subject_id uuid, subject_user_id uuid,
                                                       snapshot jsonb, rule_id uuid, reason text, priority int)
returns app.moderation_items
language sql volatile security definer set search_path = '' as $$
  insert into app.moderation_items as i (subject_type, subject_id, subject_user_id, snapshot, source, rule_id, reasons,
                                         report_count, priority)
  values (moderation_enqueue.subject_type, moderation_enqueue.subject_id, moderation_enqueue.subject_user_id,
          moderation_enqueue.snapshot,
          case when moderation_enqueue.reason is null then 'rule' else 'report' end, moderation_enqueue.rule_id,
          case when moderation_enqueue.reason is null then '{}'
               else jsonb_build_object(moderation_enqueue.reason, 1) end,
          case when moderation_enqueue.reason is null then 0 else 1 end, moderation_enqueue.priority)
  on conflict (subject_type, subject_id) where status in ('pending', 'escalated') do update
     set reasons = case when moderation_enqueue.reason is null then i.reasons
                        else jsonb_set(i.reasons, array[moderation_enqueue.reason],
                                       to_jsonb(coalesce((i.reasons ->> moderation_enqueue.reason)::int, 0) + 1)) end,
         report_count = i.report_count + excluded.report_count,
         priority = i.priority + excluded.priority,
         rule_id = coalesce(i.rule_id, excluded.rule_id),
         -- what was reported is kept; beside it the latest text that a rule caught
         snapshot = case when moderation_enqueue.reason is null then i.snapshot || excluded.snapshot else i.snapshot end
  returning i.*
$$;
comment on function internal.moderation_enqueue is
  'The open item of a subject: inserts one, or adds a report or a match to the existing one. Without a reason it comes
   from a rule. Locks the item. Granted to nobody.';

create or replace function internal.moderation_lock(subject_type text, subject_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  hook constant text := 'moderation_lock__' || moderation_lock.subject_type;
begin
  if to_regprocedure(format('internal.%I(uuid)', hook)) is not null then
    execute format('select internal.%I($1)', hook) using moderation_lock.subject_id;
  end if;
end $$;
comment on function internal.moderation_lock is
  'Locks the content of a subject before its item, by the hook internal.moderation_lock__<subject type>(id) of its area:
   a write of the content locks them in this order. Granted to nobody.';

create or replace function internal.moderation_apply(item app.moderation_items, act text) returns app.moderation_items
language plpgsql volatile security definer set search_path = '' as $$
declare
  hook constant text := 'moderation_apply__' || (moderation_apply.item).subject_type;
  made jsonb;
  changed app.moderation_items;
begin
  if to_regprocedure(format('internal.%I(uuid,text,jsonb,jsonb)', hook)) is not null then
    -- writes by moderation itself are not evaluated
    perform set_config('app.is_moderating', 'on', true);
    execute format('select internal.%I($1, $2, $3, $4)', hook)
       into made
      using (moderation_apply.item).subject_id, moderation_apply.act, (moderation_apply.item).snapshot,
        (moderation_apply.item).kept;
    perform set_config('app.is_moderating', '', true);
  end if;
  update app.moderation_items i
     set is_hidden = moderation_apply.act = 'hide' or moderation_apply.act = 'remove', kept = made
   where i.id = (moderation_apply.item).id
  returning i.* into changed;
  return changed;
end $$;
comment on function internal.moderation_apply is
  'Hides, shows or removes the content of an item, by the hook of its area: internal.moderation_apply__<subject
   type>(id, act, snapshot, kept) returns the data for showing the content again. Content of a subject without a hook is
   unchanged. Granted to nobody.';

create or replace function internal.moderate(kind text, subject_type text, subject_id uuid, body text,
                                             snapshot jsonb default '{}', author_id uuid default internal.user_id(),
                                             may_block boolean default true)
returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  longest constant int := internal.moderation_longest();
  -- invisible characters push nothing out of what is read
  shown constant text := case when char_length(moderate.body) > longest
                                then internal.moderation_visible(left(moderate.body, 16 * longest))
                                  else moderate.body end;
  head constant text := left(shown, longest);
  is_longer constant boolean := char_length(shown) > longest or char_length(moderate.body) > 16 * longest;
  readings text[];
  r app.moderation_rules;
  -- budget of characters for all regular expressions together
  budget int := 100000;
  read int;
  -- a text with invisible characters is matched twice
  passes int;
  is_caught boolean;
  is_unread boolean := false;
  caught_by uuid;
  action text;
  user_since timestamptz;
begin
  perform internal.check_may_write();
  for r in
    select m.* from app.moderation_rules m
     where m.is_active and moderate.kind = any (m.applies_to) and m.rule_type <> 'report_threshold'
     order by case m.action when 'block' then 1 when 'hide' then 2 else 3 end, m.created_at, m.id
  loop
    -- the first match decides: rules are ordered from the strictest action
    exit when action is not null;
    case r.rule_type
      when 'rate' then
        is_caught := moderate.author_id is not null and internal.take_limits(json_build_array(json_build_object(
          'key', format('moderation %s %s', r.id, moderate.author_id), 'max', (r.config ->> 'max')::int,
          'seconds', (r.config ->> 'window_seconds')::int))) is not null;
      when 'new_account' then
        if user_since is null then
          select u.created_at into user_since from app.users u where u.id = moderate.author_id;
        end if;
        is_caught := user_since > internal.now() - make_interval(hours => (r.config ->> 'max_age_hours')::int);
      when 'regex' then
        passes := coalesce(passes, case when internal.moderation_visible(head) <> head then 2 else 1 end);
        read := least(char_length(head), budget / passes);
        budget := budget - read * passes;
        is_unread := is_unread or is_longer or read < char_length(head);
        is_caught := cardinality(internal.moderation_found(r, left(head, read))) > 0;
      else
        -- the words of a text are computed once for all rules
        readings := coalesce(readings, internal.moderation_readings(head));
        is_unread := is_unread or is_longer;
        is_caught := cardinality(internal.moderation_found(r, head, readings)) > 0;
    end case;
    if is_caught then
      action := r.action;
      caught_by := r.id;
    end if;
  end loop;
  if action is null and not is_unread then
    return;
  elsif action = 'block' and moderate.may_block then
    perform internal.fail(400, 'CONTENT_REJECTED', 'A moderation rule of the app rejects this text: change it.');
  end if;
  declare
    item app.moderation_items := internal.moderation_enqueue(moderate.subject_type, moderate.subject_id,
                                                             moderate.author_id,
      moderate.snapshot || jsonb_build_object('kind', moderate.kind, 'text', head), caught_by, null,
      case action when 'block' then 3 when 'hide' then 3 else 1 end);
  begin
    -- also where the item is hidden already: this text has taken the place of what was hidden
    if action in ('hide', 'block') then
      item := internal.moderation_apply(item, 'hide');
    end if;
  end;
end $$;
comment on function internal.moderate is
  'Evaluates a text that the caller writes, within its transaction. Refuses 403 USER_MUTED, 400 CONTENT_REJECTED when a
   rule blocks; else queues the subject, and hides it, as the strictest matching rule says. Rules evaluate 10,240
   characters of a text, and all regular expressions together 100,000; a longer text is queued. Without may_block a rule
   that blocks hides instead. Locks the item, and the windows of rate rules.';

create or replace trigger tg_users__moderated
  after update of display_name on app.users
  for each row when (old.display_name is distinct from new.display_name)
  execute function internal.tg_moderated_text('display_name');
create or replace trigger tg_groups__moderated
  after insert on app.groups
  for each row execute function internal.tg_moderated_text('group_name');
create or replace trigger tg_groups__moderated_change
  after update of name on app.groups
  for each row when (old.name is distinct from new.name)
  execute function internal.tg_moderated_text('group_name');

create or replace function internal.tg_collection_rows__moderated() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  written constant jsonb := to_jsonb(new);
  before constant jsonb := case tg_op when 'UPDATE' then to_jsonb(old) else '{}' end;
  body text;
begin
  if not internal.is_moderated_write() then
    return null;
  end if;
  select string_agg(written ->> k.name, e'\n' order by k.position) into body
    from app.collections c
    join app.collection_columns k on k.collection_id = c.id and k.is_moderated
   where c.name = tg_table_name
     and exists (select from app.collection_columns o
                  where o.collection_id = c.id and o.is_moderated and written ->> o.name is distinct
                    from before ->> o.name);
  if body is not null then
    perform internal.moderate('collection_row', 'collection_row', (written ->> 'id')::uuid, body,
                              jsonb_build_object('collection', tg_table_name));
  end if;
  return null;
end $$;
comment on function internal.tg_collection_rows__moderated is
  'After an insert into a collection with moderated columns, or an update of one of them: calls internal.moderate.';

create or replace function internal.collection_moderation_sql(collection text, is_moderated boolean) returns text
language sql immutable parallel safe
return case when collection_moderation_sql.is_moderated
  then format('create or replace trigger collection_moderated after insert or update on collections.%I for each row '
              'execute function internal.tg_collection_rows__moderated()', collection_moderation_sql.collection)
  else format('drop trigger if exists collection_moderated on collections.%I',
              collection_moderation_sql.collection) end;
comment on function internal.collection_moderation_sql is
  'The trigger that evaluates the texts of a collection; null for a collection without moderated columns.';

create or replace function internal.moderation_restore_check(subject_type text, subject_id uuid) returns void
language plpgsql stable security definer set search_path = '' as $$
begin
  if internal.caller() in ('user', 'server_key_user')
    and coalesce(current_setting('app.is_moderating', true), '') <> 'on'
     and exists (select from app.moderation_items i
                  where (i.subject_type, i.subject_id) = (moderation_restore_check.subject_type,
                                                          moderation_restore_check.subject_id) and i.is_hidden) then
    perform internal.fail(400, 'CONTENT_REJECTED', 'Moderation has removed this content: it cannot be restored.');
  end if;
end $$;
comment on function internal.moderation_restore_check is
  'Before a user undoes a deletion: refuses 400 CONTENT_REJECTED for content that moderation has hidden or removed.';

create or replace function internal.moderated_texts__collection_row(since timestamptz, most bigint)
returns table (id uuid, user_id uuid, body text, written_at timestamptz)
language plpgsql stable security definer set search_path = '' as $$
declare
  c record;
begin
  for c in
    select o.name, string_agg(format('t.%I', k.name), ', ' order by k.position) as columns
      from app.collections o
      join app.collection_columns k on k.collection_id = o.id and k.is_moderated
     group by o.name
     order by o.name
  loop
    return query execute format('select t.id, t.user_id, concat_ws(e''\n'', %s), t.created_at from collections.%I t
                                  where t.created_at >= $1 and t.deleted_at is null
                                  order by t.created_at desc limit $2',
                                c.columns, c.name)
      using moderated_texts__collection_row.since, moderated_texts__collection_row.most;
  end loop;
end $$;
comment on function internal.moderated_texts__collection_row is
  'The newest rows of all collections with moderated columns, as rules evaluate them.';
