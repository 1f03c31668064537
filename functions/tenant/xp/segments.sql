-- XP and levels as sources of segment rules.
create or replace function internal.segment_source__xp(leaf jsonb, place text, parameter text)
returns internal.segment_operand
language plpgsql volatile as $$
begin
  return internal.segment_operand('numeric', missing => '0',
                                  members => 'select t.app_user_id, t.total as value from app.xp_totals t');
end $$;
comment on function internal.segment_source__xp is 'Leaves on a user''s XP; 0 for a user who has none.';

create or replace function internal.segment_source__level(leaf jsonb, place text, parameter text)
returns internal.segment_operand
language plpgsql volatile as $$
begin
  return internal.segment_operand('numeric', missing => '1', members =>
    'select t.app_user_id, greatest(t.highest_level, internal.xp_level_of(t.total)) as value from app.xp_totals t');
end $$;
comment on function internal.segment_source__level is
  'Leaves on a user''s level, as GET /client/xp shows it: the highest ever reached; 1 for a user without XP.';
