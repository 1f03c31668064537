-- migrate:up
create table app.tenant_moves (
  project_id      uuid primary key references app.projects on delete cascade,
  from_cluster_id uuid not null references app.clusters on delete restrict,
  to_cluster_id   uuid not null references app.clusters on delete restrict,
  state           text not null default 'copying' constraint tenant_moves_state_known
    check (state in ('copying', 'following', 'switched')),
  started_at      timestamptz not null default internal.now()
);
comment on table app.tenant_moves is
  'Projects that move to another server. following: the rows are there and changes follow; switched: the project is
   served there, and what it left behind goes.';
create index tenant_moves_from on app.tenant_moves (from_cluster_id);
create index tenant_moves_to on app.tenant_moves (to_cluster_id);

-- migrate:down
drop table app.tenant_moves;
