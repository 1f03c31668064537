-- migrate:up
alter table app.user_streaks add column next_check_at timestamptz;
alter table app.user_streaks add column risk_told date;
alter table app.user_streaks add column lapse_told date;
comment on column app.user_streaks.next_check_at is
  'When the clock next has something to tell of this streak, if nothing happens to it before: it is at risk, used a freeze, is broken. Null: nothing.';
comment on column app.user_streaks.risk_told is 'The newest period for which svc.streak.at_risk was told, or needs no telling.';
comment on column app.user_streaks.lapse_told is 'The newest period of whose passing uncovered was told (svc.streak.frozen, broken), or needs no telling.';
-- serves the clock: which streaks are due
create index user_streaks_next_check on app.user_streaks (next_check_at) where next_check_at is not null;
-- streaks that were there before their clock: a first look at each
update app.user_streaks set next_check_at = internal.now() where last_period is not null;
insert into app.outbox (task, key) select 'streaks__tick', 'clock' where exists (select from app.user_streaks s where s.next_check_at is not null);

-- migrate:down
drop index app.user_streaks_next_check;
alter table app.user_streaks drop column lapse_told;
alter table app.user_streaks drop column risk_told;
alter table app.user_streaks drop column next_check_at;
