-- migrate:up
create table app.group_invites (
  id         uuid primary key default internal.new_id(),
  group_id   uuid not null references app.groups on delete cascade,
  code       text not null constraint group_invites_code_form check (code ~ '^[A-HJKMNP-Z2-9]{12}$'),
  role       text not null default 'member' constraint group_invites_role_below_owner check (role in ('admin', 'member', 'viewer')),
  max_uses   int not null default 1 constraint group_invites_max_uses_1_to_10000 check (max_uses between 1 and 10000),
  uses       int not null default 0 constraint group_invites_uses_0_to_max_uses check (uses between 0 and max_uses),
  created_by uuid not null,
  expires_at timestamptz not null,
  created_at timestamptz not null default internal.now(),
  constraint group_invites_code_unique unique (code),
  -- an invite ends with the membership of who made it
  constraint group_invites_created_by_member foreign key (group_id, created_by) references app.group_members on delete cascade on update cascade
);
comment on table app.group_invites is 'Codes that let their holders into a group, so many and until a time.';
-- serve the list of a group, newest first, and the end of a membership
create index group_invites_newest on app.group_invites (group_id, created_at desc, id desc);
create index group_invites_of_member on app.group_invites (group_id, created_by);

-- serve the administrator's list: all groups, private ones too, newest first or by a part of their name
create index groups_all_newest on app.groups (created_at desc, id desc);
create index groups_all_names on app.groups using gin (name extensions.gin_trgm_ops);

-- migrate:down
drop index app.groups_all_names;
drop index app.groups_all_newest;
drop table app.group_invites;
