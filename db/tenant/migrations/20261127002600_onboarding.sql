-- migrate:up
create table app.onboarding_flows (
  id         uuid primary key default internal.new_id(),
  name       text not null constraint onboarding_flows_name_1_to_200 check (char_length(name) between 1 and 200),
  steps      jsonb not null constraint onboarding_flows_steps_is_list check (jsonb_typeof(steps) = 'array'),
  is_active  boolean not null default true,
  created_at timestamptz not null default internal.now(),
  updated_at timestamptz not null default internal.now(),
  constraint onboarding_flows_name_is_one_line check (internal.is_line(name))
);
-- serves the list, and the newest one in use: newest first
create index onboarding_flows_newest on app.onboarding_flows (created_at desc, id desc);

create table app.onboarding_progress (
  app_user_id     uuid not null references app.users on delete cascade on update cascade,
  flow_id         uuid not null references app.onboarding_flows on delete cascade,
  current_step    text,
  completed_steps text[] not null default '{}',
  answers         jsonb not null default '{}',
  status          text not null constraint onboarding_progress_status_known
    check (status in ('in_progress', 'completed', 'skipped')),
  started_at      timestamptz not null default internal.now(),
  completed_at    timestamptz,
  updated_at      timestamptz not null default internal.now(),
  told            text[] not null default '{}',
  primary key (app_user_id, flow_id),
  constraint onboarding_progress_completed_when_over check ((status = 'in_progress') = (completed_at is null))
);
comment on table app.onboarding_progress is 'How far a user is in a flow. current_step is null once no step is left.';
comment on column app.onboarding_progress.told is
  'Which of started, completed and skipped were told as events: each once, so that a flow gone through again earns
   nothing again.';
-- serves the figures of a flow, and its deletion
create index onboarding_progress_of_flow on app.onboarding_progress (flow_id, status);

-- migrate:down
drop table app.onboarding_progress;
drop table app.onboarding_flows;
