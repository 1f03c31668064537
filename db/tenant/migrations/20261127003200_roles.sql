-- migrate:up
create table app.roles (
  id          uuid primary key default internal.new_id(),
  key         text not null constraint roles_key_form check (key ~ '^[a-z][a-z0-9_-]{0,127}$'),
  name        text not null constraint roles_name_1_to_200 check (char_length(name) between 1 and 200),
  description text constraint roles_description_at_most_2000 check (char_length(description) <= 2000),
  permissions text[] not null default '{}' constraint roles_permissions_at_most_100
    check (cardinality(permissions) <= 100)
              constraint roles_permissions_form
              check (array_to_string(permissions, ' ', '*') ~ '^([a-z0-9_.:-]{1,64}( [a-z0-9_.:-]{1,64})*)?$'
                     and cardinality(string_to_array(array_to_string(permissions, ' ', '*'),
                                                     ' ')) = cardinality(permissions)),
  is_default  boolean not null default false,
  created_at  timestamptz not null default internal.now(),
  updated_at  timestamptz not null default internal.now(),
  constraint roles_key_unique unique (key),
  constraint roles_name_is_one_line check (internal.is_line(name))
);
comment on table app.roles is 'Roles: lists of permissions that administrators give to users. At most 50.';
create unique index roles_one_default on app.roles (is_default) where is_default;

create table app.role_assignments (
  id          uuid primary key default internal.new_id(),
  role_id     uuid not null references app.roles on delete restrict,
  app_user_id uuid not null references app.users on delete cascade,
  group_id    uuid references app.groups on delete cascade,
  granted_by  text,
  expires_at  timestamptz,
  created_at  timestamptz not null default internal.now(),
  constraint role_assignments_once unique nulls not distinct (role_id, app_user_id, group_id)
);
comment on table app.role_assignments is
  'The roles of users, in the whole project or in one group. The default role of all users is not stored.';
comment on column app.role_assignments.granted_by is
  'The id of the developer, the token or the service account that assigned the role.';
-- serve the list of a role, newest first; the roles of a user; the foreign key
create index role_assignments_newest on app.role_assignments (role_id, created_at desc, id desc);
create index role_assignments_of_user on app.role_assignments (app_user_id, role_id);
create index role_assignments_of_group on app.role_assignments (group_id);

-- migrate:down
drop table app.role_assignments;
drop table app.roles;
