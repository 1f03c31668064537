-- Reviews of users who are deleted or merged.
create or replace function internal.reviews_lock(user_ids uuid[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  touched uuid[];
begin
  select array_agg(k.id) into touched
    from (select r.id
            from app.reviews r
           where r.app_user_id = any (reviews_lock.user_ids) or r.subject_user_id = any (reviews_lock.user_ids)
              or r.id in (select v.review_id from app.review_votes v where v.app_user_id = any (reviews_lock.user_ids))
           order by r.id
             for no key update) k;
  perform from app.review_sums s
    where (s.subject_type, s.subject_id) in (select r.subject_type, r.subject_id from app.reviews r
                                              where r.id = any (touched))
    order by s.subject_type, s.subject_id
      for no key update;
end $$;
comment on function internal.reviews_lock is
  'Locks all reviews by users, about them, and with votes of theirs, then the sums of their subjects, in one order, so
   that concurrent deletions and merges cannot deadlock. Granted to nobody.';

create or replace function internal.tg_users__reviews() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.reviews_lock(array[old.id]);
  return old;
end $$;
comment on function internal.tg_users__reviews is
  'Before a user is deleted: locks the reviews that go or lose a vote, and their sums.';

create or replace trigger tg_users__reviews
  before delete on app.users
  for each row execute function internal.tg_users__reviews();

create or replace function internal.merge__reviews(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  users constant uuid[] := array[merge__reviews.survivor, merge__reviews.other];
  collection text;
  moved int;
begin
  perform internal.reviews_lock(users);
  -- reviews of each other would be of oneself
  delete from app.reviews r where r.app_user_id = any (users) and r.subject_user_id = any (users);
  -- and so would reviews of each other's rows
  for collection in
    select c.name from app.collections c
     where 'collection:' || c.name in (select r.subject_type from app.reviews r where r.app_user_id = any (users))
     order by c.name
  loop
    execute format('delete from app.reviews r using collections.%I t
                     where r.app_user_id = any ($1) and r.subject_type = $2 and r.subject_id = t.id
                       and t.user_id = any ($1)', collection) using users, 'collection:' || collection;
  end loop;
  -- the survivor's review of a subject stays
  delete from app.reviews r
   where r.app_user_id = merge__reviews.other
     and exists (select from app.reviews s
                  where (s.app_user_id, s.subject_type, s.subject_id) = (merge__reviews.survivor, r.subject_type,
                                                                         r.subject_id));
  -- the same among reviews of the two by others
  delete from app.reviews r
   where r.subject_user_id = merge__reviews.other
     and exists (select from app.reviews s
                  where (s.app_user_id, s.subject_type, s.subject_id) = (r.app_user_id, 'user',
                                                                         merge__reviews.survivor));
  -- votes for one's own, and second votes
  delete from app.review_votes v
   where v.app_user_id = merge__reviews.other
     and (exists (select from app.review_votes s
                   where (s.review_id, s.app_user_id) = (v.review_id, merge__reviews.survivor))
          or exists (select from app.reviews r where r.id = v.review_id and r.app_user_id = merge__reviews.survivor));
  delete from app.review_votes v
   where v.app_user_id = merge__reviews.survivor
     and exists (select from app.reviews r where r.id = v.review_id and r.app_user_id = merge__reviews.other);
  update app.review_votes v set app_user_id = merge__reviews.survivor where v.app_user_id = merge__reviews.other;
  update app.reviews r set subject_id = merge__reviews.survivor, subject_user_id = merge__reviews.survivor
   where r.subject_user_id = merge__reviews.other;
  update app.reviews r set app_user_id = merge__reviews.survivor where r.app_user_id = merge__reviews.other;
  get diagnostics moved = row_count;
  return moved;
end $$;
comment on function internal.merge__reviews is
  'Moves reviews and votes of one user, and reviews of that user, to another; where both have reviewed a subject the
   survivor''s stays, and those by the one of the other, or of a row of the other, go. Locks the reviews and their sums.
   Granted to nobody.';

create or replace function internal.merge__review_prompts(survivor uuid, other uuid) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  moved int;
begin
  insert into app.review_prompts as p (app_user_id, shown_at)
  select merge__review_prompts.survivor, o.shown_at
    from app.review_prompts o where o.app_user_id = merge__review_prompts.other
  on conflict (app_user_id) do update set shown_at = greatest(p.shown_at, excluded.shown_at);
  get diagnostics moved = row_count;
  return moved;
end $$;
comment on function internal.merge__review_prompts is 'Keeps the later time of two prompts. Granted to nobody.';
