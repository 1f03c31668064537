-- The table of levels, as promotion copies it: whole, under one key.
create or replace function internal.promotion_rows__level() returns table (key text, configuration jsonb)
language sql stable as $$
  select 'levels', jsonb_build_object('levels', l.levels)
    from (select internal.xp_levels_json()::jsonb as levels) l
   where l.levels <> '[{"level": 1, "xp_required": 0, "name": null, "icon_url": null, "reward": null}]'
$$;
comment on function internal.promotion_rows__level is
  'The table of levels as it is copied; none where it is the one of a new project.';

create or replace function internal.promotion_write__level(op text, key text, wanted jsonb) returns void
language plpgsql volatile as $$
begin
  if promotion_write__level.key <> 'levels' then
    perform internal.invalid('levels', 'is the only key of this kind');
  end if;
  perform internal.xp_levels_replace(internal.xp_levels_requested((promotion_write__level.wanted -> 'levels')::json,
                                                                  null));
end $$;
comment on function internal.promotion_write__level is
  'Replaces the table of levels. Refuses 400 VALIDATION_ERROR. Takes the lock "xp levels".';

create or replace function internal.promotion_lock__level(keys text[]) returns void
language sql volatile as $$
  select internal.advisory_lock('xp levels')
$$;
comment on function internal.promotion_lock__level is 'Takes the lock "xp levels".';
