-- migrate:up
create table app.promotion_plans (
  id                uuid primary key default internal.new_id(),
  project_id        uuid not null references app.projects on delete cascade,
  plan_hash         text not null constraint promotion_plans_plan_hash_at_most_64 check (length(plan_hash) <= 64),
  target_project_id uuid not null references app.projects on delete cascade,
  options           jsonb not null,
  planned_at        timestamptz not null default internal.now(),
  constraint promotion_plans_one_per_hash unique (project_id, plan_hash)
);
comment on table app.promotion_plans is
  'Plans of promotion that may be applied: what their hashes mean. The newest 100 of a project, for a day.';
create index promotion_plans_of_target on app.promotion_plans (target_project_id);

-- migrate:down
drop table app.promotion_plans;
