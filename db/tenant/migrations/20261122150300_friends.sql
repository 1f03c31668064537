-- migrate:up
create table app.friendships (
  user_a       uuid not null references app.users on delete cascade,
  user_b       uuid not null references app.users on delete cascade,
  status       text not null constraint friendships_status_known check (status in ('pending', 'accepted')),
  requested_by uuid not null,
  requested_at timestamptz not null default internal.now(),
  responded_at timestamptz,
  metadata_a   jsonb not null default '{}' constraint friendships_metadata_a_is_object check (jsonb_typeof(metadata_a) = 'object'),
  metadata_b   jsonb not null default '{}' constraint friendships_metadata_b_is_object check (jsonb_typeof(metadata_b) = 'object'),
  primary key (user_a, user_b),
  constraint friendships_one_row_per_pair check (user_a < user_b),
  constraint friendships_requested_by_one_of_both check (requested_by in (user_a, user_b)),
  constraint friendships_accepted_when_responded check ((status = 'accepted') = (responded_at is not null))
);
comment on table app.friendships is
  'One row per pair of users, the smaller id first. metadata_a and metadata_b are the private notes of each about the other.';
create index friendships_of_b on app.friendships (user_b, user_a);

create table app.blocks (
  blocker    uuid not null references app.users on delete cascade,
  blocked    uuid not null references app.users on delete cascade,
  created_at timestamptz not null default internal.now(),
  primary key (blocker, blocked),
  constraint blocks_never_of_oneself check (blocker <> blocked)
);
comment on table app.blocks is 'Who wants nothing to do with whom. It stands apart from friendships, and holds both ways.';
create index blocks_of_blocked on app.blocks (blocked, blocker);

-- migrate:down
drop table app.blocks;
drop table app.friendships;
