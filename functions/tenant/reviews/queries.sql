-- Lists of reviews, and what administrators do with them.
create or replace function internal.reviews_shown(subject_type text, subject_id uuid, sort text, rating int,
                                                  page_offset int, page_limit int)
returns api.reply
language plpgsql stable security definer set search_path = '' as $$
declare
  sums app.review_sums;
  order_by constant text := case reviews_shown.sort when 'helpful' then 'r.helpful_count desc, '
                                                    when 'rating' then 'r.rating desc, ' else '' end;
  rows_json json;
  answer api.reply;
begin
  select s.* into sums from app.review_sums s
   where (s.subject_type, s.subject_id) = (reviews_shown.subject_type, reviews_shown.subject_id);
  -- planned for these values: each order has an index of its own
  execute format('select json_agg(internal.review_shown_of(p, u, v.review_id is not null, u.id = any ($7))
                                   order by %2$s)
                    from (select r.* from app.reviews r
                           where r.subject_type = $1 and r.subject_id = $2 and r.status = ''published'' %1$s
                           order by %3$s limit $4 offset $5) p
                    join app.users u on u.id = p.app_user_id
                    left join app.review_votes v on v.review_id = p.id and v.app_user_id = $6',
                 case when reviews_shown.rating is not null then 'and r.rating = $3' else '' end,
                 replace(order_by, 'r.', 'p.') || 'p.created_at desc, p.id desc',
                 order_by || 'r.created_at desc, r.id desc')
     into rows_json
    using reviews_shown.subject_type, reviews_shown.subject_id, reviews_shown.rating, reviews_shown.page_limit,
      reviews_shown.page_offset, internal.user_id(), array(select internal.blocked_ids());
  answer := internal.reply_page(rows_json, coalesce(case reviews_shown.rating
                                  when 1 then sums.stars_1 when 2 then sums.stars_2 when 3 then sums.stars_3
                                  when 4 then sums.stars_4 when 5 then sums.stars_5
                                  else sums.stars_1 + sums.stars_2 + sums.stars_3 + sums.stars_4 + sums.stars_5 end, 0),
                                reviews_shown.page_offset, reviews_shown.page_limit);
  answer.body := internal.json_merge(answer.body, json_build_object('summary', internal.review_summary_json(sums)));
  return answer;
end $$;
comment on function internal.reviews_shown is
  'A page of the published reviews of a subject, with the summary of all of them, and no names of users with whom the
   caller has a block. The total comes from the sums.';

create or replace function api.reviews_list(subject_type text, subject_id text default null,
                                            sort text default 'newest', rating int default null,
                                            page_offset int default 0, page_limit int default 50)
returns api.reply
language plpgsql volatile as $$
declare
  subject record;
begin
  subject := internal.review_subject(reviews_list.subject_type, reviews_list.subject_id, 'INVALID_INPUT');
  return internal.reviews_shown(reviews_list.subject_type, subject.id, reviews_list.sort, reviews_list.rating,
                                reviews_list.page_offset, reviews_list.page_limit);
end $$;
comment on function api.reviews_list is
  'The published reviews of a subject that the caller sees, with their summary. Refuses 404 SUBJECT_NOT_FOUND.';

select internal.list_declare('reviews_of_user', null::app.reviews, 'review_shown_json', '{created_at,id}',
                             required => '{app_user_id}');

create or replace function api.reviews_mine(page_offset int default 0, page_limit int default 50) returns api.reply
language sql stable as $$
  select internal.reviews_of_user(internal.user_id(), reviews_mine.page_offset, reviews_mine.page_limit)
$$;
comment on function api.reviews_mine is 'The caller''s reviews in every status, newest first.';

select internal.list_declare('reviews_page', null::app.reviews, 'review_json', '{created_at,id}',
                             filters => '{status,rating,app_user_id,subject_type,subject_id}', is_skewed => true,
                             is_counted => true, counted_filters => '{status}');

create or replace function internal.review_subject_parts(subject text, out subject_type text, out subject_id uuid)
language plpgsql immutable as $$
begin
  if review_subject_parts.subject is null then
    return;
  end if;
  select m.parts[1], internal.as_uuid(m.parts[2]) into subject_type, subject_id
    from regexp_match(review_subject_parts.subject,
                      '^(catalog_item|content|app|user|collection:[a-z][a-z0-9_]{0,62})(?::([0-9A-Fa-f-]{36}))?$')
         as m (parts)
   where m.parts[2] is null or internal.as_uuid(m.parts[2]) is not null;
  if not found or subject_type is null then
    perform internal.invalid('subject', 'must be a type, or a type, a colon and an id', 'INVALID_INPUT');
  end if;
end $$;
comment on function internal.review_subject_parts is
  'The type, and the id or null, of a subject such as catalog_item:<uuid> or collection:notes. Refuses 400
   INVALID_INPUT.';

create or replace function api.reviews_all(status text default null, rating int default null,
                                           user_id uuid default null, subject text default null,
                                           page_offset int default 0, page_limit int default 50)
returns api.reply
language plpgsql stable as $$
declare
  of_what constant record := internal.review_subject_parts(reviews_all.subject);
begin
  return internal.reviews_page(reviews_all.status, reviews_all.rating::smallint, reviews_all.user_id,
                               of_what.subject_type, of_what.subject_id, reviews_all.page_offset,
                               reviews_all.page_limit);
end $$;
comment on function api.reviews_all is 'The reviews of the project, newest first. Refuses 400 INVALID_INPUT.';

create or replace function api.reviews_summary(subject text default null) returns api.reply
language plpgsql stable as $$
declare
  of_what constant record := internal.review_subject_parts(reviews_summary.subject);
  sums app.review_sums;
begin
  select null, null, coalesce(sum(s.stars_1), 0), coalesce(sum(s.stars_2), 0), coalesce(sum(s.stars_3), 0),
         coalesce(sum(s.stars_4), 0), coalesce(sum(s.stars_5), 0), coalesce(sum(s.pending), 0),
         coalesce(sum(s.rejected), 0), coalesce(sum(s.hidden), 0)
    into sums
    from app.review_sums s
   where (of_what.subject_type is null or s.subject_type = of_what.subject_type)
     and (of_what.subject_id is null or s.subject_id = of_what.subject_id);
  return internal.reply(200, internal.json_merge(
    internal.review_summary_json(sums),
    json_build_object('by_status', json_build_object(
      'pending', sums.pending,
      'published', sums.stars_1 + sums.stars_2 + sums.stars_3 + sums.stars_4 + sums.stars_5,
      'rejected', sums.rejected, 'hidden', sums.hidden))));
end $$;
comment on function api.reviews_summary is
  'The summary of the project, or of what subject names: {average, count, histogram, by_status}. Refuses 400
   INVALID_INPUT.';
