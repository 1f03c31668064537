-- Entries that users post as subjects of moderation: rules evaluate the texts in their metadata in the transaction that
-- writes them, and who sees an entry reports it. See docs/moderation.md.

create or replace function internal.feed_texts(metadata jsonb) returns text
language sql immutable parallel safe
return (select string_agg(t #>> '{}', e'\n' order by n)
          from jsonb_path_query(feed_texts.metadata, 'strict $.** ? (@.type() == "string")') with ordinality as f (t,
                                        n));
comment on function internal.feed_texts is
  'All texts in the metadata of an entry, at any depth, joined by line breaks; null for none.';

create or replace function internal.tg_feed_entries__moderated() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  e record;
begin
  if not internal.is_moderated_write() then
    return null;
  end if;
  for e in
    select n.id, n.actor_id, internal.feed_texts(n.metadata) as texts
      from came n
     where n.metadata <> '{}' and n.actor_id is not null
       -- what events make holds texts of developers
       and not exists (select from internal.feed_events f where f.action = n.action)
  loop
    if e.texts is not null then
      perform internal.moderate('feed_entry', 'feed_entry', e.id, e.texts);
    end if;
  end loop;
  return null;
end $$;
comment on function internal.tg_feed_entries__moderated is
  'After users posted entries: calls internal.moderate for the texts in their metadata.';
-- after tg_feed_entries__count_in, so that an entry which is hidden was counted, and before tg_feed_entries__publish,
-- which shows it as it is then
create or replace trigger tg_feed_entries__moderated
  after insert on app.feed_entries
  referencing new table as came
  for each statement execute function internal.tg_feed_entries__moderated();

create or replace function internal.moderation_subject__feed_entry(id uuid, out user_id uuid, out snapshot jsonb)
language sql stable security definer set search_path = '' as $$
  select e.actor_id, jsonb_build_object('action', e.action, 'target_id', e.target_id, 'group_id', e.group_id,
                                        'metadata', e.metadata)
    from app.feed_entries e
    left join app.groups g on g.id = e.group_id
   where e.id = moderation_subject__feed_entry.id
     and (e.group_id in (select internal.my_group_ids())
          or e.is_home and (g.id is null or g.is_public)
             and (e.actor_id is null or e.actor_id = internal.user_id()
                  or e.actor_id in (select internal.friend_ids())))
     and (e.actor_id is null or e.actor_id = internal.user_id()
          or e.actor_id <> all (array(select internal.blocked_ids()))
          and not exists (select from app.users u where u.id = e.actor_id and u.is_banned))
$$;
comment on function internal.moderation_subject__feed_entry is
  'An entry in one of the feeds that the caller sees; its author is its actor.';

create or replace function internal.moderation_apply__feed_entry(id uuid, act text, snapshot jsonb, kept jsonb)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  e app.feed_entries;
begin
  if moderation_apply__feed_entry.act = 'remove' then
    delete from app.feed_entries k where k.id = moderation_apply__feed_entry.id;
    return null;
  elsif moderation_apply__feed_entry.act = 'show' then
    update app.feed_entries k
       set metadata = moderation_apply__feed_entry.kept -> 'metadata'
     where k.id = moderation_apply__feed_entry.id and moderation_apply__feed_entry.kept is not null;
    return null;
  end if;
  select k.* into e from app.feed_entries k where k.id = moderation_apply__feed_entry.id for no key update;
  update app.feed_entries k set metadata = '{}' where k.id = e.id;
  return case when e.id is not null then jsonb_build_object('metadata', e.metadata) end;
end $$;
comment on function internal.moderation_apply__feed_entry is
  'Hides an entry: its metadata becomes empty; show restores it, remove deletes the entry. Locks the entry and its
   counts. Granted to nobody.';

create or replace function internal.moderated_texts__feed_entry(since timestamptz, most bigint)
returns table (id uuid, user_id uuid, body text, written_at timestamptz)
language sql stable security definer set search_path = '' as $$
  select e.id, e.actor_id, internal.feed_texts(e.metadata), e.created_at
    from app.feed_entries e
   where e.created_at >= moderated_texts__feed_entry.since and e.metadata <> '{}' and e.actor_id is not null
     and not exists (select from internal.feed_events f where f.action = e.action)
     and internal.feed_texts(e.metadata) is not null
   order by e.created_at desc
   limit moderated_texts__feed_entry.most
$$;
comment on function internal.moderated_texts__feed_entry is
  'The newest texts of entries that users posted, as rules evaluate them.';
