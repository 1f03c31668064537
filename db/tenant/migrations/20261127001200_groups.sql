-- migrate:up
create table app.groups (
  id           uuid primary key default internal.new_id(),
  name         text not null constraint groups_name_1_to_100 check (char_length(name) between 1 and 100),
  description  text constraint groups_description_at_most_2000 check (char_length(description) <= 2000),
  avatar_url   text constraint groups_avatar_url_at_most_2000 check (char_length(avatar_url) <= 2000),
  is_public    boolean not null default true,
  max_members  int not null default 100 constraint groups_max_members_1_to_100000
    check (max_members between 1 and 100000),
  metadata     jsonb not null default '{}' constraint groups_metadata_is_object
    check (jsonb_typeof(metadata) = 'object'),
  member_count int not null default 0,
  created_at   timestamptz not null default internal.now(),
  updated_at   timestamptz not null default internal.now(),
  constraint groups_within_max_members check (member_count <= max_members),
  -- an update of is_public then locks as a change of a key does: it waits for whoever is adding a row that the group
  -- owns, and they for it, so that no public group ever owns rows
  constraint groups_id_and_is_public unique (id, is_public),
  constraint groups_name_is_one_line check (internal.is_line(name))
);
comment on table app.groups is 'Groups of end users. member_count is kept by a trigger on app.group_members.';
-- serves the search: public groups by a part of their name, and all of them in the order of the list
create index groups_search on app.groups using gin (name extensions.gin_trgm_ops) where is_public;
create index groups_newest on app.groups (created_at desc, id desc) where is_public;
-- serve the administrator's list: all groups, private ones too, newest first or by a part of their name
create index groups_all_newest on app.groups (created_at desc, id desc);
create index groups_all_names on app.groups using gin (name extensions.gin_trgm_ops);

create table app.group_members (
  group_id    uuid not null references app.groups on delete cascade,
  app_user_id uuid not null references app.users on delete cascade on update cascade,
  role        text not null default 'member'
                constraint group_members_role_known check (role in ('owner', 'admin', 'member', 'viewer')),
  metadata    jsonb not null default '{}' constraint group_members_metadata_is_object
    check (jsonb_typeof(metadata) = 'object'),
  joined_at   timestamptz not null default internal.now(),
  primary key (group_id, app_user_id)
);
comment on table app.group_members is 'Who is in a group. Rank: owner, admin, member, viewer.';
-- serves a user's own groups, newest first, and internal.my_group_ids without a look at the table
create index group_members_of_user on app.group_members (app_user_id, joined_at desc, group_id desc) include (role);
-- serves the roster
create index group_members_roster on app.group_members (group_id, joined_at, app_user_id);
create unique index group_members_one_owner on app.group_members (group_id) where role = 'owner';

create table app.group_invites (
  id         uuid primary key default internal.new_id(),
  group_id   uuid not null references app.groups on delete cascade,
  code       text not null constraint group_invites_code_form check (code ~ '^[A-HJKMNP-Z2-9]{12}$'),
  role       text not null default 'member' constraint group_invites_role_below_owner
    check (role in ('admin', 'member', 'viewer')),
  max_uses   int not null default 1 constraint group_invites_max_uses_1_to_10000 check (max_uses between 1 and 10000),
  uses       int not null default 0 constraint group_invites_uses_0_to_max_uses check (uses between 0 and max_uses),
  created_by uuid not null,
  expires_at timestamptz not null,
  created_at timestamptz not null default internal.now(),
  constraint group_invites_code_unique unique (code),
  -- an invite ends with the membership of who made it
  constraint group_invites_created_by_member foreign key (group_id, created_by)
    references app.group_members on delete cascade on update cascade
);
comment on table app.group_invites is 'Codes that let their holders into a group, so many and until a time.';
-- serve the list of a group, newest first, and the end of a membership
create index group_invites_newest on app.group_invites (group_id, created_at desc, id desc);
create index group_invites_of_member on app.group_invites (group_id, created_by);

-- migrate:down
drop table app.group_invites;
drop table app.group_members;
drop table app.groups;
