-- Reads: a user's achievements with progress, unseen unlocks, and other users' visible unlocks.

create or replace function internal.achievement_rarity(a app.achievements) returns numeric
language sql stable as $$
  select case when (achievement_rarity.a).users > 0
              then round(least(1, (achievement_rarity.a).unlocks::numeric / (achievement_rarity.a).users), 4) else 0 end
$$;
comment on function internal.achievement_rarity is 'The share of users who have it, counted hourly.';

create or replace function internal.achievement_of_user(a app.achievements, u app.user_achievements, app_user_id uuid)
returns json
language plpgsql stable security definer set search_path = '' as $$
declare
  target constant numeric := ((achievement_of_user.a).criteria ->> 'target_value')::numeric;
  current numeric;
begin
  if internal.caller() not in ('user', 'server_key_user') or achievement_of_user.app_user_id is distinct
    from internal.user_id() then
    raise exception 'progress is shown to its own user, not to %', internal.caller();
  end if;
  if (achievement_of_user.a).is_hidden and (achievement_of_user.u).unlocked_at is null then
    return json_build_object('id', (achievement_of_user.a).id, 'key', (achievement_of_user.a).key, 'is_hidden', true,
                             'unlocked', false);
  end if;
  select v.value into current from internal.achievement_values((achievement_of_user.a).criteria,
                                                               array[achievement_of_user.app_user_id]) v;
  current := coalesce(current, 0);
  return json_build_object(
    'id', (achievement_of_user.a).id, 'key', (achievement_of_user.a).key, 'name', (achievement_of_user.a).name,
    'description', (achievement_of_user.a).description, 'icon_url', (achievement_of_user.a).icon_url,
    'xp_reward', (achievement_of_user.a).xp_reward,
    'is_hidden', (achievement_of_user.a).is_hidden, 'sort_order', (achievement_of_user.a).sort_order,
    'unlocked', (achievement_of_user.u).unlocked_at is not null,
    'unlocked_at', internal.iso((achievement_of_user.u).unlocked_at),
    'progress', json_build_object('current', current, 'target', target,
                                  'ratio', case when current >= target then 1
                                                when target > 0 then round(greatest(0, current) / target,
                                                  4) else 0 end),
    'rarity', internal.achievement_rarity(achievement_of_user.a));
end $$;
comment on function internal.achievement_of_user is
  'An achievement as its user sees it; a hidden, locked achievement shows only its id and key.';

create or replace function api.achievements_list(page_offset int default 0, page_limit int default 50) returns api.reply
language sql stable as $$
  with mine as materialized (
    select a as achievement, u as unlock
      from app.achievements a
      left join app.user_achievements u on u.achievement_id = a.id and u.app_user_id = (select internal.user_id())
        and u.revoked_at is null
     where a.is_active or u.unlocked_at is not null
  )
  select internal.reply_page(
    (select json_agg(internal.achievement_of_user(p.achievement, p.unlock,
                                                  internal.user_id()) order by (p.achievement).sort_order,
                                                    (p.achievement).id)
       from (select m.* from mine m order by (m.achievement).sort_order, (m.achievement).id
             limit achievements_list.page_limit offset achievements_list.page_offset) p),
    (select count(*) from mine), achievements_list.page_offset, achievements_list.page_limit)
$$;
comment on function api.achievements_list is
  'Achievements in use, and those that the caller has, by sort_order, with progress.';

create or replace function api.achievement_get(id_or_key text) returns api.reply
language plpgsql stable as $$
declare
  a app.achievements;
  u app.user_achievements;
begin
  select d.* into a from app.achievements d where internal.is_id_or_key(d.id, d.key, achievement_get.id_or_key);
  select m.* into u from app.user_achievements m
   where (m.app_user_id, m.achievement_id) = (internal.user_id(), a.id) and m.revoked_at is null;
  if a.id is null or not a.is_active and u.unlocked_at is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such achievement.');
  end if;
  return internal.reply(200, internal.achievement_of_user(a, u, internal.user_id()));
end $$;
comment on function api.achievement_get is 'One achievement as the caller sees it. Refuses 404 NOT_FOUND.';

create or replace function api.achievements_unseen() returns api.reply
language sql stable as $$
  select internal.reply(200, (
    select coalesce(json_agg(internal.achievement_of_user(n.achievement, n.unlock,
                                                          internal.user_id()) order by (n.unlock).unlocked_at,
                                                            (n.achievement).id), '[]')
      from (select a as achievement, u as unlock
              from app.user_achievements u
              join app.achievements a on a.id = u.achievement_id
             where u.app_user_id = (select internal.user_id()) and u.seen_at is null and u.revoked_at is null
             order by u.unlocked_at, a.id
             limit 200) n))
$$;
comment on function api.achievements_unseen is
  'What the caller has unlocked and not seen yet, oldest first, at most 200.';

create or replace function api.achievements_seen(ids json) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  ids_given constant uuid[] := array(select i::uuid from json_array_elements_text(achievements_seen.ids) i);
  seen int;
begin
  if internal.caller() not in ('user', 'server_key_user') then
    raise exception 'achievements are seen by their users, not by %', internal.caller();
  end if;
  perform internal.lock_users(array[internal.user_id()]);
  update app.user_achievements u
     set seen_at = internal.now()
   where u.app_user_id = internal.user_id() and u.achievement_id = any (ids_given) and u.seen_at is null
     and u.revoked_at is null;
  get diagnostics seen = row_count;
  return internal.reply(200, json_build_object('seen', seen));
end $$;
comment on function api.achievements_seen is
  'Marks unlocks of the caller as seen, on every device: {seen}, how many were not before. Others are left alone. Locks
   the user.';

create or replace function internal.achievements_shown(app_user_id uuid) returns json[]
language plpgsql stable security definer set search_path = '' as $$
begin
  if internal.caller() not in ('user', 'server_key_user') then
    raise exception 'achievements of others are shown to users, not to %', internal.caller();
  end if;
  if achievements_shown.app_user_id <> internal.user_id() then
    if internal.is_blocked(achievements_shown.app_user_id)
       or not exists (select from app.users u
                       where u.id = achievements_shown.app_user_id and u.properties -> 'hide_achievements' is distinct
                         from 'true') then
      perform internal.fail(404, 'NOT_FOUND', 'There is no such user.');
    end if;
  elsif not exists (select from app.users u where u.id = achievements_shown.app_user_id) then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such user.');
  end if;
  return array(
    select json_build_object('id', a.id, 'key', a.key, 'name', a.name, 'description', a.description,
                             'icon_url', a.icon_url, 'xp_reward', a.xp_reward,
                             'unlocked_at', internal.iso(u.unlocked_at), 'rarity', internal.achievement_rarity(a))
      from app.user_achievements u
      join app.achievements a on a.id = u.achievement_id
     where u.app_user_id = achievements_shown.app_user_id and u.revoked_at is null
     order by a.sort_order, a.id);
end $$;
comment on function internal.achievements_shown is
  'What another user has unlocked, by sort_order. Refuses 404 NOT_FOUND, also for one who is blocked or hides them
   (properties.hide_achievements).';

create or replace function api.user_achievements(user_id uuid, page_offset int default 0, page_limit int default 50)
returns api.reply
language plpgsql stable as $$
declare
  shown constant json[] := internal.achievements_shown(user_achievements.user_id);
begin
  return internal.reply_page(array_to_json(shown[
    user_achievements.page_offset + 1 : user_achievements.page_offset + user_achievements.page_limit]),
                             cardinality(shown), user_achievements.page_offset, user_achievements.page_limit);
end $$;
comment on function api.user_achievements is 'A page of what a user has unlocked, at most 500. Refuses 404 NOT_FOUND.';
