-- What achievements publish.

select internal.source_declare(null::app.user_achievements,
  'achievement.unlocked {key, name, icon_url, xp_reward}, to the user; also when one that was revoked is unlocked '
  'again.',
  ops => 'insert', changes => '{revoked_at}', by_statement => '{app_user_id,achievement_id}', publishes => $q$
    select 'user:' || r.app_user_id, 'achievement.unlocked',
           (select json_build_object('key', a.key, 'name', a.name, 'icon_url', a.icon_url, 'xp_reward', a.xp_reward)
              from app.achievements a where a.id = r.achievement_id)
     where r.revoked_at is null$q$);
