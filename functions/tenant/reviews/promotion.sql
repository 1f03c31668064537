-- The settings of reviews, as promotion copies them: one definition, whose segment is named by its key.
create or replace function internal.promotion_rows__review_settings() returns table (key text, configuration jsonb)
language sql stable security definer set search_path = '' as $$
  select 'settings', r.settings || jsonb_build_object('prompt', r.settings -> 'prompt' || jsonb_build_object(
           'segment_id', (select s.key from app.segments s
                           where s.id = internal.as_uuid(r.settings -> 'prompt' ->> 'segment_id'))))
    from (select internal.review_settings() as settings) r
   -- the lock of the row makes an empty one
   where internal.setting('reviews') <> '{}'
$$;
comment on function internal.promotion_rows__review_settings is
  'The settings of reviews as they are copied; none where nobody has set them.';

create or replace function internal.promotion_merged__review_settings(was jsonb, wanted jsonb) returns jsonb
language sql stable as $$
  select promotion_merged__review_settings.was || promotion_merged__review_settings.wanted
         || case when jsonb_typeof(promotion_merged__review_settings.wanted -> 'prompt') = 'object'
                 then jsonb_build_object('prompt', promotion_merged__review_settings.was -> 'prompt'
                                                   || (promotion_merged__review_settings.wanted -> 'prompt'))
                 else '{}' end
$$;
comment on function internal.promotion_merged__review_settings is
  'The settings that are there under those of a document; fields of prompt that it leaves out stay too.';

create or replace function internal.promotion_write__review_settings(op text, key text, wanted jsonb) returns void
language plpgsql volatile as $$
declare
  prompt jsonb := coalesce(promotion_write__review_settings.wanted -> 'prompt', '{}');
  field text;
begin
  if promotion_write__review_settings.key <> 'settings' then
    perform internal.invalid('settings', 'is the only key of this kind');
  end if;
  select f.name into field
    from jsonb_each(prompt) p (name, value)
    left join (values ('min_sessions', 1000), ('gap_days', 3650)) f (name, most) on f.name = p.name
   where case when f.name is not null
              then case when jsonb_typeof(p.value) = 'number' and p.value #>> '{}' ~ '^[0-9]{1,4}$'
                        then (p.value #>> '{}')::int > f.most else true end end;
  if field is not null then
    perform internal.invalid('prompt.' || field, 'must be a whole number within its bounds');
  end if;
  select p.name into field from jsonb_object_keys(prompt) p (name)
   where p.name <> all ('{segment_id,min_sessions,gap_days}');
  if field is not null then
    perform internal.invalid('prompt.' || field, 'is not a field of the prompt');
  end if;
  if coalesce(prompt -> 'segment_id', 'null') <> 'null' then
    -- a key that no segment has is refused as an id that none has is
    prompt := prompt || jsonb_build_object('segment_id', coalesce(
      (select s.id from app.segments s where s.key = prompt ->> 'segment_id'), internal.new_id()));
  end if;
  perform api.review_settings_put(promotion_write__review_settings.wanted || jsonb_build_object('prompt', prompt));
end $$;
comment on function internal.promotion_write__review_settings is
  'Sets the settings of reviews. Refuses 400 VALIDATION_ERROR, and as api.review_settings_put.';

create or replace function internal.promotion_lock__review_settings(keys text[]) returns void
language sql volatile as $$
  select internal.review_settings_lock()
$$;
comment on function internal.promotion_lock__review_settings is 'Locks the row of the settings.';
