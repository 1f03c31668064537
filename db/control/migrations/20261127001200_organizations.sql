-- migrate:up
create table app.organizations (
  id           uuid primary key default internal.new_id(),
  name         text not null constraint organizations_name_1_to_200 check (char_length(name) between 1 and 200),
  slug         text not null constraint organizations_slug_unique unique
                 constraint organizations_slug_form check (slug ~ '^[a-z0-9](-?[a-z0-9])*$'
                                                           and char_length(slug) <= 64),
  developer_id uuid constraint organizations_one_personal unique references app.developers on delete cascade,
  created_at   timestamptz not null default internal.now(),
  updated_at   timestamptz not null default internal.now(),
  constraint organizations_name_is_one_line check (internal.is_line(name))
);
comment on table app.organizations is
  'Who owns projects. developer_id is set for a personal organization: each developer has one.';
alter table app.projects add foreign key (organization_id) references app.organizations on delete set null;

create table app.organization_members (
  organization_id uuid not null references app.organizations on delete cascade,
  developer_id    uuid not null references app.developers on delete cascade,
  role            text not null constraint organization_members_role_known
    check (role in ('owner', 'admin', 'developer', 'viewer')),
  joined_at       timestamptz not null default internal.now(),
  primary key (organization_id, developer_id)
);
comment on table app.organization_members is
  'The role of each developer in an organization, and with it in all of its projects.';
-- serves the organizations of a developer, with the role in each
create index organization_members_of_developer on app.organization_members (developer_id,
                                        organization_id) include (role);

create table app.organization_invites (
  id              uuid primary key default internal.new_id(),
  organization_id uuid not null references app.organizations on delete cascade,
  email           text not null,
  mailbox         text not null,
  role            text not null constraint organization_invites_role_known
    check (role in ('owner', 'admin', 'developer', 'viewer')),
  token_hash      text not null constraint organization_invites_token_unique unique,
  invited_by      uuid references app.developers on delete set null,
  accepted_by     uuid references app.developers on delete set null,
  expires_at      timestamptz not null,
  accepted_at     timestamptz,
  revoked_at      timestamptz,
  created_at      timestamptz not null default internal.now()
);
comment on table app.organization_invites is
  'Invites of a mailbox into an organization. token_hash is the SHA-256 of the token in the mail, which derives from the
   id and SECRETS_KEY and is stored nowhere.';
create index organization_invites_of_organization on app.organization_invites (organization_id, created_at desc,
                                        id desc);
create index organization_invites_open on app.organization_invites (organization_id, mailbox)
  where accepted_at is null and revoked_at is null;
create index organization_invites_by on app.organization_invites (invited_by);
create index organization_invites_accepted_by on app.organization_invites (accepted_by);

-- migrate:down
alter table app.projects drop constraint projects_organization_id_fkey;
drop table app.organization_invites;
drop table app.organization_members;
drop table app.organizations;
