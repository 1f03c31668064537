-- Sums of reviews and counts of votes, kept by triggers in the transaction that changes a row. A statement changes
-- each sum once, in the order of their keys, so that two writers of the same subjects cannot deadlock.
create or replace function internal.review_sums_add(subject_types text[], subject_ids uuid[], ratings smallint[],
                                                    statuses text[], signs int[])
returns void
language sql volatile security definer set search_path = '' as $$
  insert into app.review_sums as s (subject_type, subject_id, stars_1, stars_2, stars_3, stars_4, stars_5, pending,
                                    rejected, hidden)
  select d.*
    from (select c.subject_type, c.subject_id,
                 coalesce(sum(c.sign) filter (where c.status = 'published' and c.rating = 1), 0) as stars_1,
                 coalesce(sum(c.sign) filter (where c.status = 'published' and c.rating = 2), 0) as stars_2,
                 coalesce(sum(c.sign) filter (where c.status = 'published' and c.rating = 3), 0) as stars_3,
                 coalesce(sum(c.sign) filter (where c.status = 'published' and c.rating = 4), 0) as stars_4,
                 coalesce(sum(c.sign) filter (where c.status = 'published' and c.rating = 5), 0) as stars_5,
                 coalesce(sum(c.sign) filter (where c.status = 'pending'), 0) as pending,
                 coalesce(sum(c.sign) filter (where c.status = 'rejected'), 0) as rejected,
                 coalesce(sum(c.sign) filter (where c.status = 'hidden'), 0) as hidden
            from unnest(review_sums_add.subject_types, review_sums_add.subject_ids, review_sums_add.ratings,
                        review_sums_add.statuses, review_sums_add.signs)
                 as c (subject_type, subject_id, rating, status, sign)
           group by c.subject_type, c.subject_id) d
   where (d.stars_1, d.stars_2, d.stars_3, d.stars_4, d.stars_5, d.pending, d.rejected, d.hidden)
         <> (0, 0, 0, 0, 0, 0, 0, 0)
   order by d.subject_type, d.subject_id
  on conflict (subject_type, subject_id) do update
     set stars_1 = s.stars_1 + excluded.stars_1, stars_2 = s.stars_2 + excluded.stars_2,
         stars_3 = s.stars_3 + excluded.stars_3, stars_4 = s.stars_4 + excluded.stars_4,
         stars_5 = s.stars_5 + excluded.stars_5, pending = s.pending + excluded.pending,
         rejected = s.rejected + excluded.rejected, hidden = s.hidden + excluded.hidden
$$;
comment on function internal.review_sums_add is
  'Counts reviews in (sign 1) or out (-1) of the sums of their subjects; what cancels out writes nothing. Locks the sums
   in the order of their keys. Granted to nobody.';

create or replace function internal.tg_reviews__sum_in() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.review_sums_add(array_agg(n.subject_type), array_agg(n.subject_id), array_agg(n.rating),
                                   array_agg(n.status), array_agg(1))
     from came n;
  return null;
end $$;
comment on function internal.tg_reviews__sum_in is 'Counts new reviews. Locks the sums of their subjects.';

create or replace function internal.tg_reviews__sum_out() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.review_sums_add(array_agg(o.subject_type), array_agg(o.subject_id), array_agg(o.rating),
                                   array_agg(o.status), array_agg(-1))
     from gone o;
  return null;
end $$;
comment on function internal.tg_reviews__sum_out is
  'Counts deleted reviews out, with their authors too. Locks the sums of their subjects.';

create or replace function internal.tg_reviews__sum_change() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.review_sums_add(array_agg(c.subject_type), array_agg(c.subject_id), array_agg(c.rating),
                                   array_agg(c.status), array_agg(c.sign))
     from (select o.subject_type, o.subject_id, o.rating, o.status, -1 as sign from gone o
           union all
           select n.subject_type, n.subject_id, n.rating, n.status, 1 from came n) c;
  return null;
end $$;
comment on function internal.tg_reviews__sum_change is
  'Counts changed reviews out as they were and in as they are. Locks the sums that change.';

create or replace trigger tg_reviews__sum_in
  after insert on app.reviews
  referencing new table as came
  for each statement execute function internal.tg_reviews__sum_in();
create or replace trigger tg_reviews__sum_out
  after delete on app.reviews
  referencing old table as gone
  for each statement execute function internal.tg_reviews__sum_out();
create or replace trigger tg_reviews__sum_change
  after update on app.reviews
  referencing old table as gone new table as came
  for each statement execute function internal.tg_reviews__sum_change();

create or replace function internal.review_votes_count(review_ids uuid[], step int) returns void
language sql volatile security definer set search_path = '' as $$
  update app.reviews r
     set helpful_count = r.helpful_count + review_votes_count.step * v.votes
    from (select i.id, count(*)::int as votes from unnest(review_votes_count.review_ids) i (id) group by i.id) v
   where r.id = v.id
$$;
comment on function internal.review_votes_count is
  'Adds votes to the counts of their reviews, or takes them away. Who calls it has locked the reviews. Granted to
   nobody.';

create or replace function internal.tg_review_votes__count_in() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.review_votes_count(array(select n.review_id from came n), 1);
  return null;
end $$;
comment on function internal.tg_review_votes__count_in is 'Counts new votes on their reviews.';

create or replace function internal.tg_review_votes__count_out() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.review_votes_count(array(select o.review_id from gone o), -1);
  return null;
end $$;
comment on function internal.tg_review_votes__count_out is
  'Counts votes out that were taken back, or that went with their voters.';

create or replace trigger tg_review_votes__count_in
  after insert on app.review_votes
  referencing new table as came
  for each statement execute function internal.tg_review_votes__count_in();
create or replace trigger tg_review_votes__count_out
  after delete on app.review_votes
  referencing old table as gone
  for each statement execute function internal.tg_review_votes__count_out();

create or replace function internal.review_summary_json(s app.review_sums) returns json
language sql immutable as $$
  select json_build_object(
           'average', trim_scale(round(((review_summary_json.s).stars_1 + 2 * (review_summary_json.s).stars_2
                                        + 3 * (review_summary_json.s).stars_3 + 4 * (review_summary_json.s).stars_4
                                        + 5 * (review_summary_json.s).stars_5)::numeric / nullif(c.n, 0), 2)),
           'count', c.n,
           'histogram', json_build_object(
             '1', coalesce((review_summary_json.s).stars_1, 0), '2', coalesce((review_summary_json.s).stars_2, 0),
             '3', coalesce((review_summary_json.s).stars_3, 0), '4', coalesce((review_summary_json.s).stars_4, 0),
             '5', coalesce((review_summary_json.s).stars_5, 0)))
    from (select coalesce((review_summary_json.s).stars_1 + (review_summary_json.s).stars_2
                          + (review_summary_json.s).stars_3 + (review_summary_json.s).stars_4
                          + (review_summary_json.s).stars_5, 0) as n) c
$$;
comment on function internal.review_summary_json is
  'The summary of published reviews: {average, count, histogram}; average has two decimals, rounded half up, and is null
   without reviews. Null sums are those of a subject without reviews.';
