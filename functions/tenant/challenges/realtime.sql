-- What challenges publish.

select internal.source_declare(null::app.challenge_participants,
  'challenge.joined, challenge.progress, challenge.completed and challenge.left {id, progress, goal_value, status}, '
  'to the user.',
  ops => 'insert', changes => '{progress,status}', by_statement => '{challenge_id,app_user_id}', publishes => $q$
    select 'user:' || r.app_user_id,
           case when op = 'INSERT' or was.status = 'left' and r.status = 'in_progress' then 'challenge.joined'
                when r.status = 'left' then 'challenge.left'
                when r.status = 'completed' and was.status <> 'completed' then 'challenge.completed'
                else 'challenge.progress' end,
           (select json_build_object('id', c.id, 'progress', r.progress, 'goal_value', c.goal_value, 'status', r.status)
              from app.challenges c where c.id = r.challenge_id)$q$);
