-- Reviews by users: one of each subject. Lock order: users, then reviews, then items of moderation and sums.
create or replace function internal.review_json(r app.reviews) returns json
language sql stable as $$
  select json_build_object(
    'id', (review_json.r).id, 'app_user_id', (review_json.r).app_user_id,
    'subject_type', (review_json.r).subject_type, 'subject_id', (review_json.r).subject_id,
    'rating', (review_json.r).rating, 'title', (review_json.r).title, 'body', (review_json.r).body,
    'status', (review_json.r).status, 'helpful_count', (review_json.r).helpful_count,
    'reply', case when (review_json.r).reply_at is not null
                  then json_build_object('body', (review_json.r).reply_body,
                                         'at', internal.iso((review_json.r).reply_at)) end,
    'locale', (review_json.r).locale, 'app_version', (review_json.r).app_version,
    'created_at', internal.iso((review_json.r).created_at), 'updated_at', internal.iso((review_json.r).updated_at),
    'user', (select json_build_object('id', u.id, 'display_name', u.display_name, 'avatar_url', u.avatar_url)
               from app.users u where u.id = (review_json.r).app_user_id))
$$;
comment on function internal.review_json is 'A review with its author, as administrators see it.';

create or replace function internal.review_shown_of(r app.reviews, u app.users, voted boolean,
                                                    is_nameless boolean default false)
returns json
language sql stable as $$
  -- without a subquery, so that Postgres inlines it
  select json_build_object(
    'id', (review_shown_of.r).id, 'app_user_id', (review_shown_of.r).app_user_id,
    'subject_type', (review_shown_of.r).subject_type, 'subject_id', (review_shown_of.r).subject_id,
    'rating', (review_shown_of.r).rating, 'title', (review_shown_of.r).title, 'body', (review_shown_of.r).body,
    'status', (review_shown_of.r).status, 'helpful_count', (review_shown_of.r).helpful_count,
    'reply', case when (review_shown_of.r).reply_at is not null
                  then json_build_object('body', (review_shown_of.r).reply_body,
                                         'at', internal.iso((review_shown_of.r).reply_at)) end,
    'locale', (review_shown_of.r).locale, 'app_version', (review_shown_of.r).app_version,
    'created_at', internal.iso((review_shown_of.r).created_at),
    'updated_at', internal.iso((review_shown_of.r).updated_at),
    'user', json_build_object(
      'id', (review_shown_of.u).id,
      'display_name', case when not review_shown_of.is_nameless then (review_shown_of.u).display_name end,
      'avatar_url', case when not review_shown_of.is_nameless then (review_shown_of.u).avatar_url end),
    'voted', review_shown_of.voted)
$$;
comment on function internal.review_shown_of is
  'A review, its author and whether the caller voted for it, as users see them; is_nameless: without the name and the
   picture of the author.';

create or replace function internal.review_shown_json(r app.reviews) returns json
language sql stable security definer set search_path = '' as $$
  select internal.review_shown_of(review_shown_json.r, u,
                                  exists (select from app.review_votes v
                                           where v.review_id = (review_shown_json.r).id
                                             and v.app_user_id = internal.user_id()))
    from app.users u where u.id = (review_shown_json.r).app_user_id
$$;
comment on function internal.review_shown_json is 'A review as users see it, with whether the caller voted for it.';

create or replace function internal.review_status_set(review app.reviews, status text) returns app.reviews
language plpgsql volatile security definer set search_path = '' as $$
declare
  changed app.reviews;
begin
  update app.reviews r
     set status = review_status_set.status,
         needs_decision = r.needs_decision and review_status_set.status <> 'published',
         published_at = case when review_status_set.status = 'published'
                             then coalesce(r.published_at, internal.now()) else r.published_at end
   where r.id = (review_status_set.review).id
  returning r.* into changed;
  perform internal.review_tell((review_status_set.review).published_at, changed);
  return changed;
end $$;
comment on function internal.review_status_set is
  'Gives a locked review another status; its first publication emits svc.review.published. The author must be locked.
   Granted to nobody.';

create or replace function internal.review_tell(was_published_at timestamptz, review app.reviews) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if review_tell.was_published_at is null and (review_tell.review).published_at is not null then
    perform internal.emit((review_tell.review).app_user_id, 'svc.review.published', jsonb_build_object(
      'review_id', (review_tell.review).id, 'subject_type', (review_tell.review).subject_type,
      'subject_id', (review_tell.review).subject_id, 'rating', (review_tell.review).rating));
  end if;
end $$;
comment on function internal.review_tell is
  'Emits svc.review.published where a review has been published for the first time. Granted to nobody.';

create or replace function internal.review_user() returns uuid
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
begin
  if internal.caller() not in ('user', 'server_key_user') or me is null then
    raise exception 'users write reviews, or servers for them, not %', internal.caller();
  elsif internal.lock_users(array[me]) is null then
    perform internal.fail(401, 'UNAUTHORIZED', 'There is no such user any more.');
  end if;
  return me;
end $$;
comment on function internal.review_user is
  'The caller, who is locked. Refuses 401 UNAUTHORIZED for one who was deleted meanwhile. Granted to nobody.';

create or replace function internal.review_attempt() returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.review_user();
begin
  return internal.rate_refusal('reviews ' || me, 20, 86400, 'A user writes at most 20 reviews a day.');
end $$;
comment on function internal.review_attempt is
  'Counts a PUT of the caller, who is locked: null, or the refusal 429 RATE_LIMITED.';

create or replace function internal.review_placed(written app.reviews, was app.reviews, is_auto boolean)
returns app.reviews
language plpgsql volatile security definer set search_path = '' as $$
declare
  review app.reviews := review_placed.written;
begin
  review.needs_decision := coalesce((review_placed.was).needs_decision
                                    or (review_placed.was).status in ('rejected', 'hidden'), false);
  review.status := case when internal.review_is_caught(review) or review.needs_decision or not review_placed.is_auto
                        then 'pending' else 'published' end;
  review.published_at := coalesce((review_placed.was).published_at,
                                  case when review.status = 'published' then internal.now() end);
  return review;
end $$;
comment on function internal.review_placed is
  'A review with the status that its text has by the rules: an edit of a rejected or hidden one waits for a decision.
   Refuses 400 CONTENT_REJECTED. Granted to nobody.';

create or replace function internal.review_write(written app.reviews) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.user_id();
  settings constant jsonb := internal.review_settings();
  is_auto constant boolean := (settings ->> 'reviews_auto_publish')::boolean;
  review app.reviews := review_write.written;
  was app.reviews;
begin
  perform internal.check_may_write();
  select r.* into was from app.reviews r
   where (r.app_user_id, r.subject_type, r.subject_id) = (me, review.subject_type, review.subject_id)
     for no key update;
  if was.id is null then
    if review.subject_type = 'catalog_item' and (settings ->> 'reviews_require_purchase')::boolean
       and not internal.review_is_eligible(review.subject_id, me) then
      perform internal.fail(403, 'NOT_ELIGIBLE', 'Only users who have had the item review it.');
    end if;
    if review.subject_type = 'user' then
      -- held against deletion until the review has its row
      perform from app.users u where u.id = review.subject_id for key share;
      perform internal.check_found(found, 'subject', 'SUBJECT_NOT_FOUND');
    end if;
    review.id := internal.new_id();
    review.app_user_id := me;
    review := internal.review_placed(review, was, is_auto);
    insert into app.reviews as r (id, app_user_id, subject_type, subject_id, subject_user_id, rating, title, body,
                                  status, locale, app_version, published_at)
    values (review.id, me, review.subject_type, review.subject_id,
            case when review.subject_type = 'user' then review.subject_id end, review.rating, review.title,
            review.body, review.status, review.locale, review.app_version, review.published_at)
    returning r.* into review;
    perform internal.review_tell(null, review);
    return internal.reply(201, internal.review_shown_json(review));
  end if;
  review.id := was.id;
  if (review.rating, review.title, review.body) is not distinct from (was.rating, was.title, was.body) then
    review.status := was.status;
    review.needs_decision := was.needs_decision;
    review.published_at := was.published_at;
  else
    review := internal.review_placed(review, was, is_auto);
  end if;
  update app.reviews r
     set rating = review.rating, title = review.title, body = review.body, locale = review.locale,
         app_version = review.app_version, status = review.status, needs_decision = review.needs_decision,
         published_at = review.published_at, updated_at = internal.now()
   where r.id = was.id
     and (r.rating, r.title, r.body, r.locale, r.app_version)
         is distinct from (review.rating, review.title, review.body, review.locale, review.app_version);
  select r.* into review from app.reviews r where r.id = was.id;
  perform internal.review_tell(was.published_at, review);
  if review.status = 'published' then
    perform internal.review_item_shown(review.id);
  end if;
  return internal.reply(200, internal.review_shown_json(review));
end $$;
comment on function internal.review_write is
  'Writes the review of the caller, who is locked: 201 when it is new, 200 when it took the place of the former. Refuses
   403 USER_BANNED, USER_MUTED, NOT_ELIGIBLE, 404 SUBJECT_NOT_FOUND, 400 CONTENT_REJECTED. Locks the review. Emits
   svc.review.published once.';

create or replace function internal.review_text(value text) returns text
language sql immutable parallel safe
return case when review_text.value ~ '[^[:space:]\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]'
            then review_text.value end;
comment on function internal.review_text is 'A text as it was sent, or null for white space only.';

create or replace function api.review_put(subject_type text, rating int, subject_id text default null,
                                          title text default null, body text default null, locale text default null,
                                          app_version text default null, accept_language text default null)
returns api.reply
language plpgsql volatile as $$
declare
  refused constant api.reply := internal.review_attempt();
  subject record;
  review app.reviews;
  said text;
  refusal json;
begin
  if refused is not null then
    return refused;
  end if;
  begin
    subject := internal.review_subject(review_put.subject_type, review_put.subject_id);
    perform internal.review_owner_check(review_put.subject_type, subject.owner_id);
    review.subject_type := review_put.subject_type;
    review.subject_id := subject.id;
    review.rating := review_put.rating;
    review.title := internal.review_text(review_put.title);
    review.body := internal.review_text(review_put.body);
    review.locale := coalesce(review_put.locale,
                              (select l from unnest(internal.accepted_locales(review_put.accept_language)) l
                                where char_length(l) <= 35 limit 1));
    review.app_version := review_put.app_version;
    return internal.review_write(review);
  exception when sqlstate 'TR000' then
    -- a refusal undoes the review, and is returned, so that the attempt stays counted
    get stacked diagnostics said = message_text, refusal = pg_exception_detail;
    return internal.refuse((refusal ->> 'status')::int, refusal ->> 'code', said,
                           nullif((refusal -> 'details')::text, 'null')::json);
  end;
end $$;
comment on function api.review_put is
  'Writes the caller''s review of a subject, whole: 201 when it is new, 200 when it took the place of the former.
   Refuses 429 RATE_LIMITED (20 a day, refused ones too), 404 SUBJECT_NOT_FOUND, 400 VALIDATION_ERROR (oneself), and as
   internal.review_write. Locks the caller and the review.';

create or replace function api.review_delete_own(review_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.review_user();
begin
  delete from app.reviews r where r.id = review_delete_own.review_id and r.app_user_id = me;
  perform internal.check_found(found, 'review');
  return internal.reply_deleted();
end $$;
comment on function api.review_delete_own is
  'Deletes a review of the caller. Refuses 404 NOT_FOUND. Locks the caller and the sums.';
