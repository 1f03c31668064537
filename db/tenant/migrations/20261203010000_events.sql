-- migrate:up
create type internal.event_problem as (
  code    text,
  field   text,
  reason  text
);
comment on type internal.event_problem is 'Why an item of a request is not stored: DUPLICATE, or the code of its rejection; the field; what is wrong with it. No code: nothing.';

-- in place of internal.judged_event, which the version before still uses
create type internal.validated_event as (
  index          int,
  id             uuid,
  is_client_id   boolean,
  app_user_id    uuid,
  event_name     text,
  properties     jsonb,
  occurred_at    timestamptz,
  session_id     uuid,
  clock_adjusted boolean,
  problem        internal.event_problem
);
comment on type internal.validated_event is 'One item of a request, and what prevents that it is stored.';

-- migrate:down
drop type internal.validated_event;
drop type internal.event_problem;
