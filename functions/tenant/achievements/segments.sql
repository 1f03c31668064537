-- Achievements as a source of segment rules.
create or replace function internal.segment_source__achievement(leaf jsonb, place text, parameter text, out condition text, out actual text)
language plpgsql volatile as $$
begin
  perform internal.segment_key_check(segment_source__achievement.leaf, segment_source__achievement.place,
    exists (select from app.achievements a where a.key = segment_source__achievement.leaf ->> 'key'), 'must be the key of an achievement');
  select c.condition, c.actual into condition, actual
    from internal.segment_on_json(segment_source__achievement.leaf, segment_source__achievement.place, segment_source__achievement.parameter,
           format('to_jsonb(exists (select from app.user_achievements m join app.achievements a on a.id = m.achievement_id where a.key = %s ->> ''key'' and m.app_user_id = u.id and m.revoked_at is null))',
                  segment_source__achievement.parameter)) c;
end $$;
comment on function internal.segment_source__achievement is 'Leaves on whether a user has unlocked an achievement: true or false.';
