-- What XP publishes.

select internal.source_declare(null::app.xp_transactions,
  'xp.changed {total, amount, level}, to the user.',
  ops => 'insert', by_statement => '{id}', publishes => $q$
    select 'user:' || r.app_user_id, 'xp.changed',
           json_build_object('total', r.total_after, 'amount', r.amount, 'level',
                             greatest(internal.xp_level_of(r.total_after),
                                      (select t.highest_level from app.xp_totals t
                                        where t.app_user_id = r.app_user_id)))
     where r.amount <> 0$q$);
