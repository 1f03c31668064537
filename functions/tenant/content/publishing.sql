-- Publishing. A schedule counts from its time on, by internal.content_state; the row follows when a worker, or the next
-- write of the entry, settles it. Both hold the lock of the entry, so a publication is announced once.
create or replace function internal.content_changed(entry app.content_entries, locale text) returns void
language sql volatile as $$
  select internal.publish('config', 'content.changed', json_build_object(
    'key', (content_changed.entry).key, 'content_type', (content_changed.entry).content_type,
    'locale', content_changed.locale))
$$;
comment on function internal.content_changed is
  'Publishes content.changed {key, content_type, locale} to the channel config: what apps see of an entry has changed.';

create or replace function internal.content_announce(entry app.content_entries, locale text, version int,
                                                     at timestamptz)
returns void
language plpgsql volatile as $$
begin
  -- an event without a user is no row of the users' events: it goes to webhooks alone
  perform internal.on_events__90_webhooks(array[jsonb_populate_record(null::app.engagement_events, jsonb_build_object(
    'id', internal.new_id(), 'event_name', 'svc.content.published', 'occurred_at', content_announce.at,
    'received_at', internal.now(), 'source', 'system', 'is_historical', false,
    'properties', jsonb_build_object('entry_id', (content_announce.entry).id, 'key', (content_announce.entry).key,
                                     'content_type', (content_announce.entry).content_type,
                                     'locale', content_announce.locale, 'version', content_announce.version)))]);
  perform internal.content_changed(content_announce.entry, content_announce.locale);
end $$;
comment on function internal.content_announce is
  'Tells of a publication: svc.content.published to webhooks, content.changed to apps.';

create or replace function internal.content_settle(entry app.content_entries) returns void
language plpgsql volatile as $$
declare
  settled record;
begin
  for settled in
    update app.content_locales l
       set published_version = l.scheduled_version, published_at = l.publish_at, scheduled_version = null,
           publish_at = null
     where l.entry_id = (content_settle.entry).id and l.publish_at <= internal.now()
    returning l.locale, l.published_version as version, l.published_at as at
  loop
    perform internal.content_announce(content_settle.entry, settled.locale, settled.version, settled.at);
  end loop;
end $$;
comment on function internal.content_settle is
  'Writes down the schedules of a locked entry that are due, and announces them. What reads show stays as it is.';

create or replace function internal.content_settle_each(due app.content_entries[]) returns void
language plpgsql volatile as $$
declare
  entry app.content_entries;
begin
  foreach entry in array content_settle_each.due loop
    begin
      perform internal.content_settle(entry);
    exception when others then
      raise warning 'The schedules of content % cannot be settled: %', entry.id, sqlerrm;
      insert into app.content_failures as s (entry_id, retry_at, reason)
      values (entry.id, internal.now() + interval '10 seconds', left(sqlerrm, 1000))
      on conflict (entry_id) do update
        set attempts = s.attempts + 1, reason = excluded.reason,
            retry_at = internal.now() + least(interval '10 seconds' * 2 ^ least(s.attempts, 10), interval '1 hour');
    end;
  end loop;
end $$;
comment on function internal.content_settle_each is
  'Settles locked entries one by one, each in a subtransaction. One that fails is left as it was, and is tried again
   after ten seconds, then after twice the time before, at most an hour.';

create or replace function internal.content_settled_next() returns timestamptz
language sql stable as $$
  select least(
    (select l.publish_at
       from app.content_locales l
      where l.publish_at is not null and not exists (select from app.content_failures s where s.entry_id = l.entry_id)
      order by l.publish_at limit 1),
    (select min(greatest(s.retry_at, l.publish_at))
       from app.content_failures s join app.content_locales l on l.entry_id = s.entry_id
      where l.publish_at is not null))
$$;
comment on function internal.content_settled_next is
  'When schedules are to be settled next, of an entry that has failed not before its next attempt; null when there are
   none.';

create or replace function api.content_settle(most int default 100) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  due app.content_entries[];
  entry app.content_entries;
  next_at timestamptz;
begin
  perform internal.check_caller('worker', 'schedules are settled by workers');
  -- an entry that is being written is left to its writer, or to the next run: no lock waits for another
  due := array(select e
                 from app.content_entries e
                where e.id in (select l.entry_id from app.content_locales l
                                where l.publish_at <= internal.now()
                                  and not exists (select from app.content_failures s
                                                   where s.entry_id = l.entry_id and s.retry_at > internal.now())
                                order by l.publish_at limit content_settle.most)
                  for no key update skip locked);
  begin
    foreach entry in array due loop
      perform internal.content_settle(entry);
    end loop;
  exception when others then
    perform internal.content_settle_each(due);
  end;
  delete from app.content_failures s
   where not exists (select from app.content_locales l
                      where l.entry_id = s.entry_id and l.publish_at <= internal.now());
  next_at := internal.content_settled_next();
  if next_at <= internal.now() and cardinality(due) = 0 then
    next_at := internal.now() + interval '1 second';
  end if;
  -- no earlier than its time: what answers is in milliseconds
  return internal.reply(200, to_json(internal.iso(next_at + interval '999 microseconds')));
end $$;
comment on function api.content_settle is
  'For workers, at the time of a schedule: announces what is due, of at most so many entries, those that are due longest
   first. Answers when it is to be called again: at the time of the next schedule, at once when more is due, null when
   there is none. A schedule that was cancelled or moved is passed over, and so is an entry that fails, until its next
   attempt. Locks the entries, without waiting.';

create or replace function internal.content_is_live(entry app.content_entries) returns boolean
language sql stable as $$
  select exists (select from app.content_locales l
                  cross join lateral internal.content_state(l) s
                  where l.entry_id = (content_is_live.entry).id and s.live_version is not null)
$$;
comment on function internal.content_is_live is 'Whether apps can see an entry in some language.';

create or replace function internal.content_place(entry app.content_entries, locale text) returns app.content_locales
language plpgsql volatile as $$
declare
  tag constant text := internal.locale_checked(content_place.locale, 'locale');
  place app.content_locales;
begin
  select l.* into place from app.content_locales l where l.entry_id = (content_place.entry).id and l.locale = tag;
  perform internal.check_found(found, 'locale of the entry');
  return place;
end $$;
comment on function internal.content_place is
  'A language of an entry. Refuses 400 VALIDATION_ERROR for what is no tag, 404 NOT_FOUND.';

create or replace function internal.content_version(place app.content_locales, version int)
returns app.content_versions
language plpgsql volatile as $$
declare
  found_one app.content_versions;
begin
  select v.* into found_one
    from app.content_versions v
   where v.entry_id = (content_version.place).entry_id and v.locale = (content_version.place).locale
     and v.version = content_version.version;
  perform internal.check_found(found, 'version of this locale');
  return found_one;
end $$;
comment on function internal.content_version is 'A version of a language. Refuses 404 NOT_FOUND.';

create or replace function internal.content_publish(entry app.content_entries, place app.content_locales, version int,
                                                    publish_at timestamptz)
returns app.content_entries
language plpgsql volatile as $$
declare
  at constant timestamptz := content_publish.publish_at;
  chosen constant int := content_publish.version;
begin
  if at > internal.now() then
    if ((content_publish.place).scheduled_version, (content_publish.place).publish_at)
       is not distinct from (chosen, at) then
      return content_publish.entry;
    end if;
    update app.content_locales l
       set scheduled_version = chosen, publish_at = at
     where l.entry_id = (content_publish.place).entry_id and l.locale = (content_publish.place).locale;
    -- without a key: one run settles all that is due
    perform internal.enqueue('content__publish', due_at => at);
    return internal.content_touch(content_publish.entry);
  elsif (content_publish.place).published_version = chosen then
    return content_publish.entry;
  end if;
  update app.content_locales l
     set published_version = chosen, published_at = internal.now(), scheduled_version = null, publish_at = null
   where l.entry_id = (content_publish.place).entry_id and l.locale = (content_publish.place).locale;
  perform internal.content_announce(content_publish.entry, (content_publish.place).locale, chosen, internal.now());
  return internal.content_touch(content_publish.entry);
end $$;
comment on function internal.content_publish is
  'Publishes a version of a language at once, or schedules it in place of a former schedule. What is published, or
   scheduled for that time, stays as it is. The entry is locked.';

create or replace function api.content_publish(id_or_key text, locale text, version int default null,
                                               publish_at timestamptz default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  was constant app.content_entries := internal.content_lock(content_publish.id_or_key);
  place constant app.content_locales := internal.content_place(was, content_publish.locale);
  chosen constant int := (internal.content_version(place, coalesce(content_publish.version, place.version))).version;
  entry app.content_entries;
begin
  entry := internal.content_publish(was, place, chosen, content_publish.publish_at);
  if entry.version > was.version then
    perform internal.audit_act('content.publish', 'content', entry.id::text, json_build_object(
      'locale', place.locale, 'version', chosen, 'publish_at', internal.iso(content_publish.publish_at)), 200);
  end if;
  return internal.reply(200, internal.content_json(entry));
end $$;
comment on function api.content_publish is
  'Publishes the newest version of a language, or the one that is named, at once or at a time to come. Refuses 404
   NOT_FOUND, 400 VALIDATION_ERROR. Locks the entry.';

create or replace function internal.content_unpublish(entry app.content_entries, place app.content_locales)
returns app.content_entries
language plpgsql volatile as $$
begin
  if (content_unpublish.place).publish_at is not null then
    update app.content_locales l
       set scheduled_version = null, publish_at = null
     where l.entry_id = (content_unpublish.place).entry_id and l.locale = (content_unpublish.place).locale;
  elsif (content_unpublish.place).published_version is not null then
    update app.content_locales l
       set published_version = null, published_at = null
     where l.entry_id = (content_unpublish.place).entry_id and l.locale = (content_unpublish.place).locale;
    perform internal.content_changed(content_unpublish.entry, (content_unpublish.place).locale);
  else
    return content_unpublish.entry;
  end if;
  return internal.content_touch(content_unpublish.entry);
end $$;
comment on function internal.content_unpublish is
  'Cancels the schedule of a language, or withdraws what is published where there is none. The entry is locked.';

create or replace function api.content_unpublish(id_or_key text, locale text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  was constant app.content_entries := internal.content_lock(content_unpublish.id_or_key);
  place constant app.content_locales := internal.content_place(was, content_unpublish.locale);
  entry app.content_entries;
begin
  entry := internal.content_unpublish(was, place);
  if entry.version > was.version then
    perform internal.audit_act('content.unpublish', 'content', entry.id::text,
                               json_build_object('locale', place.locale), 200);
  end if;
  return internal.reply(200, internal.content_json(entry));
end $$;
comment on function api.content_unpublish is
  'Cancels a schedule, or withdraws what is published. A draft stays one. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR.
   Locks the entry.';

create or replace function api.content_rollback(id_or_key text, locale text, version int) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  entry app.content_entries := internal.content_lock(content_rollback.id_or_key);
  place constant app.content_locales := internal.content_place(entry, content_rollback.locale);
  former constant app.content_versions := internal.content_version(place, content_rollback.version);
  stored app.content_versions;
begin
  perform internal.content_check(entry, place.locale, former.fields);
  stored := internal.content_save(entry, place.locale, former.fields);
  entry := internal.content_touch(entry);
  perform internal.audit_act('content.rollback', 'content', entry.id::text, json_build_object(
    'locale', place.locale, 'version', stored.version, 'from', former.version), 200);
  return internal.reply(200, internal.content_json(entry));
end $$;
comment on function api.content_rollback is
  'Saves the fields of a former version as the newest one, and publishes nothing. Refuses 404 NOT_FOUND, 400
   VALIDATION_ERROR where the schema of the type does not allow them any more. Locks the entry.';
