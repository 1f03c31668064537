-- Votes of users who found a review helpful, one of each.
create or replace function internal.review_voted(review_id uuid, is_helpful boolean) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := internal.review_user();
  review app.reviews;
  status int := 200;
begin
  select r.* into review from app.reviews r where r.id = review_voted.review_id for no key update;
  if review.app_user_id = me then
    perform internal.fail(400, 'SELF_VOTE', 'Users vote for reviews of others.');
  end if;
  perform internal.check_found(review.status = 'published', 'review');
  if review_voted.is_helpful then
    insert into app.review_votes (review_id, app_user_id, created_at)
    values (review.id, me, internal.now())
    on conflict on constraint review_votes_pkey do nothing;
    status := case when found then 201 else 200 end;
  else
    delete from app.review_votes v where v.review_id = review.id and v.app_user_id = me;
  end if;
  return internal.reply(status, json_build_object(
    'id', review.id, 'helpful_count', (select r.helpful_count from app.reviews r where r.id = review.id),
    'voted', review_voted.is_helpful));
end $$;
comment on function internal.review_voted is
  'Gives or takes back the vote of the caller: {id, helpful_count, voted}. Refuses 404 NOT_FOUND for a review that is
   not published, 400 SELF_VOTE. Locks the caller and the review.';

create or replace function api.review_helpful(review_id uuid) returns api.reply
language sql volatile as $$
  select internal.review_voted(review_helpful.review_id, true)
$$;
comment on function api.review_helpful is
  'Votes for a review: 201 the first time, 200 again. Refuses as internal.review_voted.';

create or replace function api.review_not_helpful(review_id uuid) returns api.reply
language sql volatile as $$
  select internal.review_voted(review_not_helpful.review_id, false)
$$;
comment on function api.review_not_helpful is 'Takes a vote back, if there is one. Refuses as internal.review_voted.';
