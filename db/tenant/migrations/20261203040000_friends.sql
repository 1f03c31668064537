-- migrate:up
-- whom a request asks: an index then serves the requests that a user has received, however many these are
alter table app.friendships add column asked uuid not null
  generated always as (case when requested_by = user_a then user_b else user_a end) stored;
comment on column app.friendships.asked is 'The one of the two who did not ask.';
-- serve the friends of a user, newest first, and internal.friend_ids without a look at the table: requests do not weigh on them
create index friendships_accepted_of_a on app.friendships (user_a, responded_at desc, user_b desc) where status = 'accepted';
create index friendships_accepted_of_b on app.friendships (user_b, responded_at desc, user_a desc) where status = 'accepted';
-- serve the requests of a user in both directions, newest first
create index friendships_incoming on app.friendships (asked, requested_at desc, requested_by desc) where status = 'pending';
create index friendships_outgoing on app.friendships (requested_by, requested_at desc, asked desc) where status = 'pending';
-- serves whom a user has blocked, newest first
create index blocks_newest on app.blocks (blocker, created_at desc, blocked desc);

create table app.friend_codes (
  app_user_id uuid primary key references app.users on delete cascade,
  code        text not null constraint friend_codes_code_form check (code ~ '^[A-HJKMNP-Z2-9]{8}$'),
  created_at  timestamptz not null default internal.now(),
  constraint friend_codes_code_unique unique (code)
);
comment on table app.friend_codes is 'The code of a user, by which others ask to be friends without knowing an id. One each, made at its first use.';

-- migrate:down
drop table app.friend_codes;
drop index app.blocks_newest;
drop index app.friendships_outgoing;
drop index app.friendships_incoming;
drop index app.friendships_accepted_of_b;
drop index app.friendships_accepted_of_a;
alter table app.friendships drop column asked;
