-- Subjects of moderation. Each subject type has two hooks: internal.moderation_subject__<type>(id) finds it for the
-- caller, internal.moderation_apply__<type>(id, act, snapshot, kept) hides, shows or removes it.

create or replace function internal.moderation_subject(subject_type text, subject_id uuid, out user_id uuid,
                                                       out snapshot jsonb)
language plpgsql stable as $$
declare
  hook constant text := 'moderation_subject__' || moderation_subject.subject_type;
begin
  if to_regprocedure(format('internal.%I(uuid)', hook)) is not null then
    execute format('select s.user_id, s.snapshot from internal.%I($1) s', hook) into user_id,
      snapshot using moderation_subject.subject_id;
  end if;
  perform internal.check_found(snapshot is not null, 'subject', 'SUBJECT_NOT_FOUND');
end $$;
comment on function internal.moderation_subject is
  'The author of a subject that the caller can see, and a copy of its content. Refuses 404 SUBJECT_NOT_FOUND, also for
   types whose area has no hook.';

create or replace function internal.moderation_subject__user(id uuid, out user_id uuid, out snapshot jsonb)
language sql stable security definer set search_path = '' as $$
  select u.id, jsonb_build_object('display_name', u.display_name, 'avatar_url', u.avatar_url)
    from app.users u
   where u.id = moderation_subject__user.id and not u.is_banned
$$;
comment on function internal.moderation_subject__user is 'The profile of a user who is not banned.';

create or replace function internal.moderation_apply__user(id uuid, act text, snapshot jsonb, kept jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  u app.users;
  name text;
begin
  select k.* into u from app.users k where k.id = moderation_apply__user.id for no key update;
  if moderation_apply__user.act = 'show' then
    -- a name that the user has chosen since then is kept
    update app.users k
       set display_name = case when k.display_name = moderation_apply__user.kept ->> 'shown_name'
                                 then moderation_apply__user.kept ->> 'display_name'
                               else k.display_name end,
           avatar_url = coalesce(k.avatar_url, moderation_apply__user.kept ->> 'avatar_url')
     where k.id = u.id;
    return null;
  end if;
  name := internal.generated_name();
  update app.users k set display_name = name, avatar_url = null where k.id = u.id;
  return case moderation_apply__user.act when 'hide' then
    -- hidden again: an avatar that was hidden before is still kept
    jsonb_build_object('shown_name', name, 'display_name', u.display_name,
                       'avatar_url', coalesce(u.avatar_url, moderation_apply__user.kept ->> 'avatar_url')) end;
end $$;
comment on function internal.moderation_apply__user is
  'Hides or removes a profile: a generated name replaces the name, and the avatar is removed; show restores both. Locks
   the user. Granted to nobody.';

create or replace function internal.moderation_subject__group(id uuid, out user_id uuid, out snapshot jsonb)
language sql stable security definer set search_path = '' as $$
  select (select m.app_user_id from app.group_members m where m.group_id = g.id and m.role = 'owner'),
         jsonb_build_object('name', g.name, 'description', g.description, 'avatar_url', g.avatar_url)
    from app.groups g
   where g.id = moderation_subject__group.id and internal.group_is_visible(g, array(select internal.my_group_ids()))
$$;
comment on function internal.moderation_subject__group is 'A group that the caller can see; its author is its owner.';

create or replace function internal.moderation_lock__group(id uuid) returns void
language sql volatile security definer set search_path = '' as $$
  select from app.groups g where g.id = moderation_lock__group.id for no key update
$$;
comment on function internal.moderation_lock__group is 'Locks a group, before its item. Granted to nobody.';

create or replace function internal.moderation_apply__group(id uuid, act text, snapshot jsonb, kept jsonb) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  g app.groups;
begin
  select k.* into g from app.groups k where k.id = moderation_apply__group.id for no key update;
  if moderation_apply__group.act = 'show' then
    update app.groups k
       set name = case when k.name = 'Group' then moderation_apply__group.kept ->> 'name' else k.name end,
           description = coalesce(k.description, moderation_apply__group.kept ->> 'description'),
           avatar_url = coalesce(k.avatar_url, moderation_apply__group.kept ->> 'avatar_url')
     where k.id = g.id and moderation_apply__group.kept is not null;
    return null;
  end if;
  update app.groups k set name = 'Group', description = null, avatar_url = null where k.id = g.id;
  return case moderation_apply__group.act when 'hide' then
    -- hidden again: what was hidden before is still kept
    jsonb_build_object('name', g.name, 'description',
                       coalesce(g.description, moderation_apply__group.kept ->> 'description'),
                       'avatar_url', coalesce(g.avatar_url, moderation_apply__group.kept ->> 'avatar_url')) end;
end $$;
comment on function internal.moderation_apply__group is
  'Hides or removes the texts of a group: its name becomes Group, its description and avatar are removed; show restores
   them. The group and its members stay. Locks the group. Granted to nobody.';

create or replace function internal.moderation_subject__collection_row(id uuid, out user_id uuid, out snapshot jsonb)
language plpgsql stable as $$
declare
  c record;
begin
  for c in
    select o.name, array(select k.name from app.collection_columns k where k.collection_id = o.id
                          order by k.position) as columns
      from app.collections o order by o.name
  loop
    -- under the policies of the collection: a row that the caller cannot read cannot be reported
    execute format('select t.user_id, to_jsonb(t) from collections.%I t where t.id = $1 and t.deleted_at is null',
                   c.name)
       into user_id, snapshot using moderation_subject__collection_row.id;
    if snapshot is not null then
      select jsonb_build_object('collection', c.name, 'row',
                                coalesce(jsonb_object_agg(n, case when octet_length(snapshot ->> n) > 10000
               then to_jsonb(left(snapshot ->> n, 10000)) else snapshot -> n end), '{}')) into snapshot
        from unnest(c.columns) n;
      return;
    end if;
  end loop;
end $$;
comment on function internal.moderation_subject__collection_row is
  'A row of any collection that the caller can read, looked up by its id in each; values of more than 10,000 bytes are
   truncated.';

create or replace function internal.moderation_lock__collection_row(id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  c record;
  locked int;
begin
  for c in select o.name from app.collections o order by o.name loop
    execute format('select from collections.%I t where t.id = $1 for no key update',
                   c.name) using moderation_lock__collection_row.id;
    get diagnostics locked = row_count;
    exit when locked > 0;
  end loop;
end $$;
comment on function internal.moderation_lock__collection_row is
  'Locks a row of any collection, before its item. Granted to nobody.';

create or replace function internal.moderation_apply__collection_row(id uuid, act text, snapshot jsonb, kept jsonb)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  reached int;
begin
  if to_regclass(format('collections.%I', moderation_apply__collection_row.snapshot ->> 'collection')) is null
     or moderation_apply__collection_row.act = 'show'
     and (moderation_apply__collection_row.kept ->> 'was_live')::boolean is not true then
    return null;
  end if;
  execute format('update collections.%I t set deleted_at = %s where t.id = $1 and t.deleted_at is %s null',
                 moderation_apply__collection_row.snapshot ->> 'collection',
                 case moderation_apply__collection_row.act when 'show' then 'null' else 'internal.now()' end,
                 case moderation_apply__collection_row.act when 'show' then 'not' else '' end)
    using moderation_apply__collection_row.id;
  get diagnostics reached = row_count;
  return jsonb_build_object('was_live', reached > 0
                            or coalesce((moderation_apply__collection_row.kept ->> 'was_live')::boolean, false));
end $$;
comment on function internal.moderation_apply__collection_row is
  'Hides or removes a row by soft deletion, which its author cannot undo; show restores it, unless it was deleted
   before. Granted to nobody.';
