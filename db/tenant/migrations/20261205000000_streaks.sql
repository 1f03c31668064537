-- migrate:up
alter table app.user_streaks rename column risk_told to risk_notified_through;
alter table app.user_streaks rename column lapse_told to lapse_notified_through;
comment on column app.user_streaks.risk_notified_through is 'The newest period for which svc.streak.at_risk was emitted, or need not be.';
comment on column app.user_streaks.lapse_notified_through is
  'The newest period whose lapse was emitted (svc.streak.frozen, svc.streak.broken), or need not be.';

-- migrate:down
alter table app.user_streaks rename column lapse_notified_through to lapse_told;
alter table app.user_streaks rename column risk_notified_through to risk_told;
