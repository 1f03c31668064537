-- Achievements as a source of segment rules.
create or replace function internal.segment_source__achievement(leaf jsonb, place text, parameter text)
returns internal.segment_operand
language plpgsql volatile as $$
begin
  perform internal.segment_key_check(segment_source__achievement.leaf, segment_source__achievement.place,
    exists (select from app.achievements a where a.key = segment_source__achievement.leaf ->> 'key'),
    'must be the key of an achievement');
  return internal.segment_operand('boolean', missing => 'false', members => format(
    'select m.app_user_id, true as value from app.user_achievements m join app.achievements a on a.id = '
    'm.achievement_id where a.key = (%s ->> ''key'') and m.revoked_at is null',
    segment_source__achievement.parameter));
end $$;
comment on function internal.segment_source__achievement is
  'Leaves on whether a user has unlocked an achievement: true or false.';
