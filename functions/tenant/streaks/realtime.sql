-- What streaks publish: their system events.

select internal.event_source_declare('streak', '{started,extended,restored,frozen,at_risk,broken,milestone}',
  'streak.* {key, status, current_count, freezes_remaining}, to the user.', $q$
    select json_build_object('key', s.shown ->> 'key', 'status', s.shown ->> 'status',
                             'current_count', s.shown -> 'current_count',
                             'freezes_remaining', s.shown -> 'freezes_remaining')
      from (select internal.streak_json(d, u) as shown
              from app.streak_definitions d
              join app.user_streaks u on u.streak_definition_id = d.id and u.app_user_id = (e).app_user_id
             where d.id = ((e).properties ->> 'streak_definition_id')::uuid) s$q$);
