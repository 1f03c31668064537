-- migrate:up
-- again, for rows that were written between the first look and the lock of the constraint
update app.conversations set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.conversations validate constraint conversations_name_is_one_line;
update app.groups set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.groups validate constraint groups_name_is_one_line;
update app.users set display_name = coalesce(nullif(btrim(internal.as_line(display_name)), ''), '_') where not internal.is_line(display_name);
alter table app.users validate constraint users_display_name_is_one_line;

-- migrate:down
-- nothing to do: the constraints go with the migration that made them
