-- migrate:up
-- each member cost as much again to check as to write. Whoever writes these rows has locked their users and the segment, and triggers on app.users and app.segments
-- take the rows with them
alter table app.segment_members drop constraint segment_members_segment_id_fkey;
alter table app.segment_members drop constraint segment_members_app_user_id_fkey;
alter table app.user_event_counters drop constraint user_event_counters_app_user_id_fkey;

-- migrate:down
alter table app.user_event_counters add constraint user_event_counters_app_user_id_fkey foreign key (app_user_id) references app.users on delete cascade;
alter table app.segment_members add constraint segment_members_app_user_id_fkey
  foreign key (app_user_id) references app.users on delete cascade on update cascade;
alter table app.segment_members add constraint segment_members_segment_id_fkey foreign key (segment_id) references app.segments on delete cascade;
