-- XP and levels as sources of segment rules.
create or replace function internal.segment_source__xp(leaf jsonb, place text, parameter text, out condition text, out actual text)
language plpgsql volatile as $$
begin
  select c.condition, c.actual into condition, actual
    from internal.segment_on_json(segment_source__xp.leaf, segment_source__xp.place, segment_source__xp.parameter,
           'to_jsonb(coalesce((select t.total from app.xp_totals t where t.app_user_id = u.id), 0))') c;
end $$;
comment on function internal.segment_source__xp is 'Leaves on the XP that a user has; 0 for who has none.';

create or replace function internal.segment_source__level(leaf jsonb, place text, parameter text, out condition text, out actual text)
language plpgsql volatile as $$
begin
  select c.condition, c.actual into condition, actual
    from internal.segment_on_json(segment_source__level.leaf, segment_source__level.place, segment_source__level.parameter,
           'to_jsonb(coalesce((select greatest(t.highest_level, internal.xp_level_of(t.total)) from app.xp_totals t where t.app_user_id = u.id), 1))') c;
end $$;
comment on function internal.segment_source__level is 'Leaves on a users level, as GET /client/xp shows it: the highest ever held; 1 for who has no XP.';
