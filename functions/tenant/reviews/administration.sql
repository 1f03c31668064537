-- What administrators do with reviews: publish, reject, hide, answer, delete.
create or replace function internal.review_locked(review_id uuid) returns app.reviews
language plpgsql volatile security definer set search_path = '' as $$
declare
  review app.reviews;
begin
  perform internal.check_caller('developer', 'reviews are moderated by administrators');
  perform internal.lock_users(array(select r.app_user_id from app.reviews r where r.id = review_locked.review_id));
  select r.* into review from app.reviews r where r.id = review_locked.review_id for no key update;
  perform internal.check_found(found, 'review');
  return review;
end $$;
comment on function internal.review_locked is
  'A review, locked after its author. Refuses 404 NOT_FOUND. Granted to nobody.';

create or replace function api.review_update(review_id uuid, status text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  review app.reviews := internal.review_locked(review_update.review_id);
  was constant text := review.status;
begin
  if was = review_update.status then
    return internal.reply(200, internal.review_json(review));
  elsif was || ' ' || review_update.status not in ('pending published', 'pending rejected', 'published hidden',
                                                   'hidden published', 'rejected published') then
    perform internal.fail(409, 'INVALID_TRANSITION', 'A review that is ' || was || ' does not become '
                          || review_update.status || '.',
                          json_build_object('from', was, 'to', review_update.status));
  end if;
  review := internal.review_status_set(review, review_update.status);
  if review.status = 'published' then
    perform internal.review_item_shown(review.id);
  end if;
  perform internal.audit('reviews.update', 'reviews', review.id::text,
                         json_build_object('status', json_build_array(was, review.status)));
  return internal.reply(200, internal.review_json(review));
end $$;
comment on function api.review_update is
  'Publishes, rejects or hides a review; the same status again changes nothing. Refuses 404 NOT_FOUND, 409
   INVALID_TRANSITION {from, to}. Locks the author and the review. Emits svc.review.published once. Audited as
   reviews.update.';

create or replace function api.review_reply(review_id uuid, body text) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  review app.reviews := internal.review_locked(review_reply.review_id);
begin
  update app.reviews r set reply_body = review_reply.body, reply_at = internal.now() where r.id = review.id
  returning r.* into review;
  perform internal.audit('reviews.reply', 'reviews', review.id::text,
                         json_build_object('reply_at', json_build_array(null, internal.iso(review.reply_at))));
  return internal.reply(200, internal.review_json(review));
end $$;
comment on function api.review_reply is
  'Answers a review; a second reply takes the place of the first. Refuses 404 NOT_FOUND. Audited as reviews.reply.';

create or replace function api.review_reply_delete(review_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  review constant app.reviews := internal.review_locked(review_reply_delete.review_id);
begin
  perform internal.check_found(review.reply_at is not null, 'reply');
  update app.reviews r set reply_body = null, reply_at = null where r.id = review.id;
  perform internal.audit('reviews.reply_delete', 'reviews', review.id::text,
                         json_build_object('reply_at', json_build_array(internal.iso(review.reply_at), null)));
  return internal.reply_deleted();
end $$;
comment on function api.review_reply_delete is
  'Deletes the reply to a review. Refuses 404 NOT_FOUND. Audited as reviews.reply_delete.';

create or replace function api.review_delete(review_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  review constant app.reviews := internal.review_locked(review_delete.review_id);
begin
  delete from app.reviews r where r.id = review.id;
  perform internal.audit('reviews.delete', 'reviews', review.id::text,
                         json_build_object('status', json_build_array(review.status, null)));
  return internal.reply_deleted();
end $$;
comment on function api.review_delete is
  'Deletes a review with its votes. Refuses 404 NOT_FOUND. Locks the author and the review. Audited as reviews.delete.';
