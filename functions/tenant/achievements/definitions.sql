-- Checks of achievement definitions; granting and revoking by administrators.
comment on constraint achievements_key_unique on app.achievements is
  '409 CONFLICT key: An achievement with this key exists.';

create or replace function internal.achievement_find(achievement_id text) returns app.achievements
language plpgsql stable as $$
declare
  as_id constant uuid := internal.as_uuid(achievement_find.achievement_id);
  found_one app.achievements;
begin
  if as_id is null then
    perform internal.invalid('achievementId', 'must be a uuid', 'INVALID_ID');
  end if;
  select a.* into found_one from app.achievements a where a.id = as_id;
  perform internal.check_found(found_one.id is not null, 'achievement');
  return found_one;
end $$;
comment on function internal.achievement_find is 'A definition by its id. Refuses 400 INVALID_ID, 404 NOT_FOUND.';

create or replace function internal.achievement_criteria_check(criteria jsonb) returns void
language plpgsql stable as $$
declare
  c constant jsonb := achievement_criteria_check.criteria;
  kind constant text := c ->> 'type';
  problem text;
begin
  if jsonb_typeof(c) is distinct from 'object' then
    perform internal.invalid('criteria', 'must be an object {type, target_value}');
  elsif kind is null or kind not in ('event_count', 'streak_length', 'xp_threshold', 'property_value') then
    perform internal.invalid('criteria.type', 'must be event_count, streak_length, xp_threshold or property_value');
  elsif jsonb_typeof(c -> 'target_value') is distinct from 'number'
    or abs((c ->> 'target_value')::numeric) > 1000000000000000 then
    perform internal.invalid('criteria.target_value', 'must be a number');
  elsif kind <> 'property_value' and (c ->> 'target_value')::numeric <= 0 then
    perform internal.invalid('criteria.target_value', 'must be above 0');
  end if;
  if kind = 'event_count' and (jsonb_typeof(c -> 'event_name') is distinct from 'string'
                               or char_length(c ->> 'event_name') not between 1 and 255
                               or c ->> 'event_name' ~ '^\s|\s$') then
    perform internal.invalid('criteria.event_name', 'must have 1 to 255 characters, no white space at either end');
  elsif kind = 'property_value' and (jsonb_typeof(c -> 'property_key') is distinct from 'string'
                                     or char_length(c ->> 'property_key') not between 1 and 255) then
    perform internal.invalid('criteria.property_key', 'must have 1 to 255 characters');
  elsif kind = 'streak_length' and c ->> 'streak_definition_id' is not null
        and not exists (select from app.streak_definitions d
                         where d.id = internal.as_uuid(c ->> 'streak_definition_id')) then
    perform internal.invalid('criteria.streak_definition_id', 'must be the id of a streak');
  end if;
  if c ->> 'event_filter' is not null then
    problem := case when kind <> 'event_count' then 'goes with event_count only'
                    else internal.filter_problem((c -> 'event_filter')::json) end;
    if problem is not null then
      perform internal.invalid('criteria.event_filter', problem);
    end if;
  end if;
  if c ->> 'since' is not null and (kind <> 'event_count' or internal.as_time(c ->> 'since') is null) then
    perform internal.invalid('criteria.since', 'must be an ISO 8601 time, with event_count');
  end if;
end $$;
comment on function internal.achievement_criteria_check is
  'Whether criteria can be measured. Refuses 400 VALIDATION_ERROR with the field inside.';

create or replace function internal.achievement_criteria(criteria jsonb) returns jsonb
language plpgsql stable as $$
begin
  perform internal.achievement_criteria_check(achievement_criteria.criteria);
  if achievement_criteria.criteria ->> 'since' is not null then
    -- a time without a zone is UTC, whatever the session's time zone
    return achievement_criteria.criteria || jsonb_build_object('since',
                                                               internal.iso(internal.as_time(
                                                                 achievement_criteria.criteria ->> 'since')));
  end if;
  return achievement_criteria.criteria;
end $$;
comment on function internal.achievement_criteria is 'Criteria as they are stored. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.achievement_check(requested app.achievements, was app.achievements, sent jsonb)
returns app.achievements
language plpgsql stable as $$
declare
  achievement app.achievements := achievement_check.requested;
begin
  if achievement_check.sent ? 'criteria' then
    achievement.criteria := internal.achievement_criteria(achievement.criteria);
  end if;
  return achievement;
end $$;
comment on function internal.achievement_check is
  'Checks criteria that were sent. Refuses 400 VALIDATION_ERROR with the field inside.';

create or replace function internal.tg_achievements__catch_up() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if new.is_active and (tg_op = 'INSERT' or not old.is_active or old.criteria <> new.criteria) then
    delete from app.achievement_backfills b where b.operation_id = new.id;
    perform internal.enqueue('achievements__catch_up', new.id::text);
  end if;
  if tg_op = 'INSERT' then
    perform internal.enqueue('achievements__rarity');
  end if;
  return null;
end $$;
comment on function internal.tg_achievements__catch_up is
  'When an achievement becomes active or its criteria change, queues its measurement for all users. Its backfill is
   stored under the achievement''s own id.';

create or replace trigger tg_achievements__catch_up
  after insert or update of is_active, criteria on app.achievements
  for each row execute function internal.tg_achievements__catch_up();

select internal.audit_declare('app.achievements', 'achievements');

select internal.row_declare('user_achievement_json', null::app.user_achievements,
                            '{app_user_id,achievement_id,unlocked_at,source}');
comment on function internal.user_achievement_json is 'An unlock as administrators see it.';

create or replace function internal.achievement_adjust(achievement_id uuid, app_user_id uuid, is_grant boolean)
returns app.user_achievements
language plpgsql volatile security definer set search_path = '' as $$
declare
  kept app.user_achievements;
  was_there boolean;
begin
  perform internal.check_caller('developer', 'achievements are granted and revoked by administrators');
  if internal.lock_users(array[achievement_adjust.app_user_id]) is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such user.');
  end if;
  select u.* into kept
    from app.user_achievements u
   where (u.app_user_id, u.achievement_id) = (achievement_adjust.app_user_id, achievement_adjust.achievement_id)
     and u.revoked_at is null;
  was_there := kept.achievement_id is not null;
  if not achievement_adjust.is_grant and not was_there then
    perform internal.fail(404, 'USER_ACHIEVEMENT_NOT_FOUND', 'The user does not have this achievement.');
  elsif achievement_adjust.is_grant and not was_there then
    perform internal.achievements_unlock(array[achievement_adjust.app_user_id],
                                         array[achievement_adjust.achievement_id], 'grant');
    select u.* into kept
      from app.user_achievements u
     where (u.app_user_id, u.achievement_id) = (achievement_adjust.app_user_id, achievement_adjust.achievement_id);
    if not found then
      perform internal.fail(404, 'NOT_FOUND', 'The achievement was deleted just now.');
    end if;
  elsif not achievement_adjust.is_grant then
    update app.user_achievements u
       set revoked_at = internal.now()
     where (u.app_user_id, u.achievement_id) = (achievement_adjust.app_user_id, achievement_adjust.achievement_id);
    perform internal.emit(kept.app_user_id, 'svc.achievement.revoked', (
      select jsonb_build_object('achievement_id', a.id, 'key', a.key, 'name', a.name) from app.achievements a
       where a.id = kept.achievement_id));
  end if;
  if achievement_adjust.is_grant <> was_there then
    perform internal.audit(case when achievement_adjust.is_grant then 'achievements.grant'
                                else 'achievements.revoke' end, 'users',
                           kept.app_user_id::text, json_build_object('achievement_id', json_build_array(
                             case when not achievement_adjust.is_grant then kept.achievement_id end,
                             case when achievement_adjust.is_grant then kept.achievement_id end)),
                           case when achievement_adjust.is_grant then 201 else 200 end);
  end if;
  return kept;
end $$;
comment on function internal.achievement_adjust is
  'Grants an achievement without its XP, keeping an earlier unlock, or revokes it; its rewards stay paid. Refuses 404
   NOT_FOUND, USER_ACHIEVEMENT_NOT_FOUND. Locks the user.';

create or replace function api.achievement_grant(achievement_id text, app_user_id uuid) returns api.reply
language plpgsql volatile as $$
begin
  return internal.reply(201, internal.user_achievement_json(internal.achievement_adjust(
    (internal.achievement_find(achievement_grant.achievement_id)).id, achievement_grant.app_user_id, true)));
end $$;
comment on function api.achievement_grant is
  'Grants an achievement, 201, also when the user has it: unlocked_at stays. Refuses 400 INVALID_ID, 404 NOT_FOUND.';

create or replace function api.achievement_revoke(achievement_id text, app_user_id uuid) returns api.reply
language plpgsql volatile as $$
declare
  taken constant app.user_achievements := internal.achievement_adjust(
    (internal.achievement_find(achievement_revoke.achievement_id)).id, achievement_revoke.app_user_id, false);
begin
  return internal.reply(200, json_build_object('app_user_id', taken.app_user_id, 'achievement_id', taken.achievement_id,
                                               'revoked', true));
end $$;
comment on function api.achievement_revoke is
  'Takes an unlock away. Refuses 400 INVALID_ID, 404 NOT_FOUND, USER_ACHIEVEMENT_NOT_FOUND.';
