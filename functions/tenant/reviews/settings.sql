-- Settings of reviews, and when an app may ask its user for a review in the app store.
create or replace function internal.review_settings() returns jsonb
language sql stable security definer set search_path = '' as $$
  select '{"reviews_auto_publish": true, "reviews_require_purchase": false}'::jsonb || s.stored
         || jsonb_build_object('prompt', '{"segment_id": null, "min_sessions": 3, "gap_days": 90}'::jsonb
                                         || coalesce(s.stored -> 'prompt', '{}'))
    from (select coalesce(internal.setting('reviews'), '{}') as stored) s
$$;
comment on function internal.review_settings is
  'The settings of reviews with their defaults: {reviews_auto_publish, reviews_require_purchase, prompt {segment_id,
   min_sessions, gap_days}}.';

create or replace function internal.review_settings_json() returns json
language sql stable as $$
  select json_build_object(
    'reviews_auto_publish', s -> 'reviews_auto_publish', 'reviews_require_purchase', s -> 'reviews_require_purchase',
    'prompt', json_build_object('segment_id', s -> 'prompt' -> 'segment_id',
                                'min_sessions', s -> 'prompt' -> 'min_sessions',
                                'gap_days', s -> 'prompt' -> 'gap_days'))
    from internal.review_settings() s
$$;
comment on function internal.review_settings_json is 'The settings of reviews as responses show them.';

create or replace function api.review_settings_get() returns api.reply
language sql stable as $$
  select internal.reply(200, internal.review_settings_json())
$$;
comment on function api.review_settings_get is 'The settings of reviews.';

create or replace function internal.review_settings_lock() returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  insert into app.settings (key, value) values ('reviews', '{}') on conflict (key) do nothing;
  perform from app.settings s where s.key = 'reviews' for update;
end $$;
comment on function internal.review_settings_lock is
  'Locks the row of the settings, so that two writers of different fields come one after the other.';

create or replace function api.review_settings_put(patch jsonb) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  was jsonb;
  made jsonb;
  segment_id constant uuid := (review_settings_put.patch -> 'prompt' ->> 'segment_id')::uuid;
begin
  perform internal.check_caller('developer', 'settings of reviews are set by administrators');
  perform internal.review_settings_lock();
  was := internal.review_settings();
  made := was || (review_settings_put.patch - 'prompt')
          || jsonb_build_object('prompt', was -> 'prompt' || coalesce(review_settings_put.patch -> 'prompt', '{}'));
  if segment_id is not null and not internal.segment_lock_shared(segment_id) then
    perform internal.invalid('prompt.segment_id', 'must be the id of a segment');
  end if;
  if made <> was then
    perform internal.audit('reviews.settings', 'settings', 'reviews', (
      select json_object_agg(e.key, json_build_array(was -> e.key, e.value))
        from jsonb_each(made) e where e.value is distinct from was -> e.key));
  end if;
  -- defaults that somebody has set are stored too
  perform internal.set_setting('reviews', made);
  return internal.reply(200, internal.review_settings_json());
end $$;
comment on function api.review_settings_put is
  'Sets the fields that are sent, of prompt too, and answers all. Refuses 400 VALIDATION_ERROR for a segment that does
   not exist. Audited as reviews.settings.';

create or replace function internal.segment_used__reviews(segment_id uuid) returns text[]
language sql stable security definer set search_path = '' as $$
  select case when internal.as_uuid(internal.review_settings() -> 'prompt' ->> 'segment_id')
                   = segment_used__reviews.segment_id
              then array['reviews prompt'] else '{}' end
$$;
comment on function internal.segment_used__reviews is 'The prompt for reviews, where only members of a segment see it.';

create or replace function api.review_prompt() returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  prompt constant jsonb := internal.review_settings() -> 'prompt';
  reason text := 'ok';
begin
  if prompt ->> 'segment_id' is not null
     and not internal.segment_member((prompt ->> 'segment_id')::uuid, me) then
    reason := 'not_in_segment';
  elsif (select count(*) from (select from app.app_sessions s where s.app_user_id = me
                                limit (prompt ->> 'min_sessions')::int) k) < (prompt ->> 'min_sessions')::int then
    reason := 'too_few_sessions';
  elsif exists (select from app.review_prompts p
                 where p.app_user_id = me
                   and p.shown_at > internal.now() - make_interval(hours => 24 * (prompt ->> 'gap_days')::int)
                   and (prompt ->> 'gap_days')::int > 0) then
    reason := 'shown_recently';
  end if;
  return internal.reply(200, json_build_object('should_prompt', reason = 'ok', 'reason', reason));
end $$;
comment on function api.review_prompt is
  'Whether the caller may be asked for a review in the app store now: {should_prompt, reason}, the first reason against
   it, else ok.';

create or replace function api.review_prompt_shown() returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.review_user();
  at timestamptz;
begin
  insert into app.review_prompts as p (app_user_id, shown_at) values (me, internal.now())
  on conflict (app_user_id) do update set shown_at = greatest(p.shown_at, excluded.shown_at)
  returning p.shown_at into at;
  return internal.reply(201, json_build_object('shown_at', internal.iso(at)));
end $$;
comment on function api.review_prompt_shown is 'Notes that the caller was asked for a review now: 201 {shown_at}.';
