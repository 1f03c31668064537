-- Reviews as subjects of moderation: rules read them before they are written, and users report published ones.
create or replace function internal.review_snapshot(r app.reviews) returns jsonb
language sql stable as $$
  select jsonb_build_object('subject_type', (review_snapshot.r).subject_type,
                            'subject_id', (review_snapshot.r).subject_id, 'rating', (review_snapshot.r).rating,
                            'title', (review_snapshot.r).title, 'body', (review_snapshot.r).body)
$$;
comment on function internal.review_snapshot is 'A review as the queue of moderation keeps it.';

create or replace function internal.review_item(review_id uuid) returns app.moderation_items
language sql stable security definer set search_path = '' as $$
  select i.* from app.moderation_items i
   where i.subject_type = 'review' and i.subject_id = review_item.review_id and i.status in ('pending', 'escalated')
$$;
comment on function internal.review_item is 'The open item of a review, or null. Granted to nobody.';

create or replace function internal.review_is_caught(r app.reviews) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
declare
  body constant text := concat_ws(e'\n', (review_is_caught.r).title, (review_is_caught.r).body);
  before app.moderation_items;
  item app.moderation_items;
begin
  if body = '' then
    return false;
  end if;
  before := internal.review_item((review_is_caught.r).id);
  perform internal.moderate('review', 'review', (review_is_caught.r).id, body,
                            internal.review_snapshot(review_is_caught.r));
  item := internal.review_item((review_is_caught.r).id);
  -- each match adds to the priority; reports, which do too, wait for the lock of the review
  if item.id is null or item.priority is not distinct from before.priority then
    return false;
  elsif not item.is_hidden then
    perform internal.moderation_apply(item, 'hide');
  end if;
  return true;
end $$;
comment on function internal.review_is_caught is
  'Whether a rule of moderation catches a review that is being written: then the queue has it, as hidden, so that its
   approval publishes. Refuses 400 CONTENT_REJECTED. Granted to nobody.';

create or replace function internal.review_item_shown(review_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  item constant app.moderation_items := internal.review_item(review_item_shown.review_id);
begin
  if item.is_hidden then
    perform internal.moderation_apply(item, 'show');
  end if;
end $$;
comment on function internal.review_item_shown is
  'Tells the queue that a review was published otherwise, so that reports can hide it again. Granted to nobody.';

create or replace function internal.moderation_subject__review(id uuid, out user_id uuid, out snapshot jsonb)
language sql stable security definer set search_path = '' as $$
  select r.app_user_id, internal.review_snapshot(r)
    from app.reviews r
   where r.id = moderation_subject__review.id
     and (r.status = 'published' or r.app_user_id = internal.user_id())
$$;
comment on function internal.moderation_subject__review is 'A published review, or one of the caller.';

create or replace function internal.moderation_lock__review(id uuid) returns void
language sql volatile security definer set search_path = '' as $$
  select from app.reviews r where r.id = moderation_lock__review.id for no key update
$$;
comment on function internal.moderation_lock__review is 'Locks a review, before its item. Granted to nobody.';

create or replace function internal.moderation_apply__review(id uuid, act text, snapshot jsonb, kept jsonb)
returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  review app.reviews;
  status text;
begin
  select r.* into review from app.reviews r where r.id = moderation_apply__review.id for no key update;
  status := case
    when moderation_apply__review.act = 'show' then 'published'
    when review.status = 'published' then 'hidden'
    when moderation_apply__review.act = 'remove' and review.status = 'pending' then 'rejected'
    else review.status end;
  if status is distinct from review.status then
    perform internal.review_status_set(review, status);
  end if;
  return null;
end $$;
comment on function internal.moderation_apply__review is
  'show publishes a review; hide hides a published one; remove rejects a pending one and hides a published one. Locks
   the review. Granted to nobody.';

create or replace function api.review_report(review_id uuid, reason text, details text default null) returns api.reply
language sql volatile as $$
  select api.moderation_report('review', review_report.review_id, review_report.reason, review_report.details)
$$;
comment on function api.review_report is
  'Reports a published review, as the caller reports any content. Refuses as api.moderation_report.';
