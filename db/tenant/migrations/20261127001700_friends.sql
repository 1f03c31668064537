-- migrate:up
create table app.friendships (
  user_a       uuid not null references app.users on delete cascade,
  user_b       uuid not null references app.users on delete cascade,
  status       text not null constraint friendships_status_known check (status in ('pending', 'accepted')),
  requested_by uuid not null,
  requested_at timestamptz not null default internal.now(),
  responded_at timestamptz,
  metadata_a   jsonb not null default '{}' constraint friendships_metadata_a_is_object
    check (jsonb_typeof(metadata_a) = 'object'),
  metadata_b   jsonb not null default '{}' constraint friendships_metadata_b_is_object
    check (jsonb_typeof(metadata_b) = 'object'),
  -- whom a request asks: an index then serves the requests that a user has received, however many these are
  asked        uuid not null
                 generated always as (case when requested_by = user_a then user_b else user_a end) stored,
  primary key (user_a, user_b),
  constraint friendships_one_row_per_pair check (user_a < user_b),
  constraint friendships_requested_by_one_of_both check (requested_by in (user_a, user_b)),
  constraint friendships_accepted_when_responded check ((status = 'accepted') = (responded_at is not null))
);
comment on table app.friendships is
  'One row per pair of users, the smaller id first. metadata_a and metadata_b are the private notes of each about the
   other.';
comment on column app.friendships.asked is 'The one of the two who did not ask.';
create index friendships_of_b on app.friendships (user_b, user_a);
-- serve the friends of a user, newest first, and internal.friend_ids without a look at the table: requests do not weigh
-- on them
create index friendships_accepted_of_a on app.friendships (user_a, responded_at desc, user_b desc)
  where status = 'accepted';
create index friendships_accepted_of_b on app.friendships (user_b, responded_at desc, user_a desc)
  where status = 'accepted';
-- serve the requests of a user in both directions, newest first
create index friendships_incoming on app.friendships (asked, requested_at desc, requested_by desc)
  where status = 'pending';
create index friendships_outgoing on app.friendships (requested_by, requested_at desc, asked desc)
  where status = 'pending';

create table app.blocks (
  blocker    uuid not null references app.users on delete cascade,
  blocked    uuid not null references app.users on delete cascade,
  created_at timestamptz not null default internal.now(),
  primary key (blocker, blocked),
  constraint blocks_never_of_oneself check (blocker <> blocked)
);
comment on table app.blocks is
  'Who wants nothing to do with whom. It stands apart from friendships, and holds both ways.';
create index blocks_of_blocked on app.blocks (blocked, blocker);
-- serves whom a user has blocked, newest first
create index blocks_newest on app.blocks (blocker, created_at desc, blocked desc);

create table app.friend_codes (
  app_user_id uuid primary key references app.users on delete cascade,
  code        text not null constraint friend_codes_code_form check (code ~ '^[A-HJKMNP-Z2-9]{8}$'),
  created_at  timestamptz not null default internal.now(),
  constraint friend_codes_code_unique unique (code)
);
comment on table app.friend_codes is
  'The code of a user, by which others ask to be friends without knowing an id. One each, made at its first use.';

-- migrate:down
drop table app.friend_codes;
drop table app.blocks;
drop table app.friendships;
