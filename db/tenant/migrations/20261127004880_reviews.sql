-- migrate:up
create table app.reviews (
  id              uuid primary key default internal.new_id(),
  app_user_id     uuid not null references app.users on delete cascade,
  subject_type    text not null constraint reviews_subject_type_known
    check (subject_type ~ '^(catalog_item|content|app|user|collection:[a-z][a-z0-9_]{0,62})$'),
  subject_id      uuid not null,
  subject_user_id uuid references app.users on delete cascade,
  rating          smallint not null constraint reviews_rating_1_to_5 check (rating between 1 and 5),
  title           text constraint reviews_title_1_to_120 check (char_length(title) between 1 and 120)
                  constraint reviews_title_is_one_line check (internal.is_line(title)),
  body            text constraint reviews_body_1_to_4000 check (char_length(body) between 1 and 4000),
  status          text not null constraint reviews_status_known
    check (status in ('pending', 'published', 'rejected', 'hidden')),
  needs_decision  boolean not null default false,
  helpful_count   int not null default 0 constraint reviews_helpful_count_never_negative check (helpful_count >= 0),
  reply_body      text constraint reviews_reply_body_1_to_4000 check (char_length(reply_body) between 1 and 4000),
  reply_at        timestamptz,
  locale          text constraint reviews_locale_at_most_35 check (char_length(locale) <= 35),
  app_version     text constraint reviews_app_version_at_most_64 check (char_length(app_version) <= 64),
  published_at    timestamptz,
  created_at      timestamptz not null default internal.now(),
  updated_at      timestamptz not null default internal.now(),
  constraint reviews_one_per_user_and_subject unique (app_user_id, subject_type, subject_id),
  constraint reviews_subject_user_is_subject check (subject_user_id = subject_id),
  constraint reviews_reply_whole check ((reply_body is null) = (reply_at is null))
);
comment on table app.reviews is 'What users think of a subject: one review per user and subject.';
comment on column app.reviews.subject_user_id is
  'The subject where it is a user, so that the reviews of a user go with the user.';
comment on column app.reviews.needs_decision is
  'The author changed it after moderation had rejected or hidden it: it stays pending until it is published by hand.';
comment on column app.reviews.published_at is 'When it was first published; svc.review.published was emitted then.';
-- serve the lists of administrators
create index reviews_newest on app.reviews (created_at desc, id desc);
create index reviews_by_status on app.reviews (status, created_at desc, id desc);
create index reviews_by_rating on app.reviews (rating, created_at desc, id desc);
create index reviews_of_any_status on app.reviews (subject_type, subject_id, created_at desc, id desc);
-- serves the list of an author's own
create index reviews_of_user on app.reviews (app_user_id, created_at desc, id desc);
create index reviews_of_subject_user on app.reviews (subject_user_id) where subject_user_id is not null;
-- serve the public lists, in each order, of all ratings and of one
create index reviews_published on app.reviews (subject_type, subject_id, created_at desc, id desc)
  where status = 'published';
create index reviews_published_by_helpful on app.reviews
  (subject_type, subject_id, helpful_count desc, created_at desc, id desc) where status = 'published';
create index reviews_published_by_rating on app.reviews
  (subject_type, subject_id, rating desc, created_at desc, id desc) where status = 'published';
create index reviews_published_by_rating_and_helpful on app.reviews
  (subject_type, subject_id, rating, helpful_count desc, created_at desc, id desc) where status = 'published';

create table app.review_sums (
  subject_type text not null,
  subject_id   uuid not null,
  stars_1      bigint not null default 0,
  stars_2      bigint not null default 0,
  stars_3      bigint not null default 0,
  stars_4      bigint not null default 0,
  stars_5      bigint not null default 0,
  pending      bigint not null default 0,
  rejected     bigint not null default 0,
  hidden       bigint not null default 0,
  primary key (subject_type, subject_id)
) with (fillfactor = 50);
comment on table app.review_sums is
  'The reviews of a subject, counted: published ones by their rating, others by their status. Triggers of app.reviews
   keep it in the transaction that changes a review.';

create table app.review_votes (
  review_id   uuid not null references app.reviews on delete cascade,
  app_user_id uuid not null references app.users on delete cascade,
  created_at  timestamptz not null default internal.now(),
  primary key (review_id, app_user_id)
);
comment on table app.review_votes is 'Who found a review helpful.';
create index review_votes_of_user on app.review_votes (app_user_id);

create table app.review_prompts (
  app_user_id uuid primary key references app.users on delete cascade,
  shown_at    timestamptz not null
);
comment on table app.review_prompts is 'When a user was last asked for a review in the app store.';

-- migrate:down
drop table app.review_prompts;
drop table app.review_votes;
drop table app.review_sums;
drop table app.reviews;
