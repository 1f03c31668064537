-- migrate:up
-- names that were stored before keep their words: what is refused from now on becomes a space
update app.achievements set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.achievements add constraint achievements_name_is_one_line check (internal.is_line(name));
update app.catalog_items set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.catalog_items add constraint catalog_items_name_is_one_line check (internal.is_line(name));
update app.challenges set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.challenges add constraint challenges_name_is_one_line check (internal.is_line(name));
update app.currencies set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.currencies add constraint currencies_name_is_one_line check (internal.is_line(name));
update app.email_templates set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.email_templates add constraint email_templates_name_is_one_line check (internal.is_line(name));
update app.email_templates set subject = coalesce(nullif(btrim(internal.as_line(subject)), ''), '_') where not internal.is_line(subject);
alter table app.email_templates add constraint email_templates_subject_is_one_line check (internal.is_line(subject));
update app.flags set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.flags add constraint flags_name_is_one_line check (internal.is_line(name));
update app.leaderboards set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.leaderboards add constraint leaderboards_name_is_one_line check (internal.is_line(name));
update app.media_catalogs set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.media_catalogs add constraint media_catalogs_name_is_one_line check (internal.is_line(name));
update app.media_folders set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.media_folders add constraint media_folders_name_is_one_line check (internal.is_line(name));
update app.moderation_rules set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.moderation_rules add constraint moderation_rules_name_is_one_line check (internal.is_line(name));
update app.onboarding_flows set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.onboarding_flows add constraint onboarding_flows_name_is_one_line check (internal.is_line(name));
update app.push_campaigns set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.push_campaigns add constraint push_campaigns_name_is_one_line check (internal.is_line(name));
update app.push_templates set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.push_templates add constraint push_templates_name_is_one_line check (internal.is_line(name));
update app.roles set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.roles add constraint roles_name_is_one_line check (internal.is_line(name));
update app.segments set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.segments add constraint segments_name_is_one_line check (internal.is_line(name));
update app.streak_definitions set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.streak_definitions add constraint streak_definitions_name_is_one_line check (internal.is_line(name));
-- names of boosts are unique, and two may have the same words
update app.xp_boosts set name = left(coalesce(nullif(btrim(internal.as_line(name)), ''), '_'), 160) || ' ' || id where not internal.is_line(name);
alter table app.xp_boosts add constraint xp_boosts_name_is_one_line check (internal.is_line(name));
update app.xp_levels set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.xp_levels add constraint xp_levels_name_is_one_line check (internal.is_line(name));
update app.xp_rules set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.xp_rules add constraint xp_rules_name_is_one_line check (internal.is_line(name));

-- tables of any size: existing rows are validated by the next migration, without a lock that holds up requests
update app.conversations set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.conversations add constraint conversations_name_is_one_line check (internal.is_line(name)) not valid;
update app.groups set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.groups add constraint groups_name_is_one_line check (internal.is_line(name)) not valid;
update app.users set display_name = coalesce(nullif(btrim(internal.as_line(display_name)), ''), '_') where not internal.is_line(display_name);
alter table app.users add constraint users_display_name_is_one_line check (internal.is_line(display_name)) not valid;

-- migrate:down
alter table app.users drop constraint users_display_name_is_one_line;
alter table app.groups drop constraint groups_name_is_one_line;
alter table app.conversations drop constraint conversations_name_is_one_line;
alter table app.xp_rules drop constraint xp_rules_name_is_one_line;
alter table app.xp_levels drop constraint xp_levels_name_is_one_line;
alter table app.xp_boosts drop constraint xp_boosts_name_is_one_line;
alter table app.streak_definitions drop constraint streak_definitions_name_is_one_line;
alter table app.segments drop constraint segments_name_is_one_line;
alter table app.roles drop constraint roles_name_is_one_line;
alter table app.push_templates drop constraint push_templates_name_is_one_line;
alter table app.push_campaigns drop constraint push_campaigns_name_is_one_line;
alter table app.onboarding_flows drop constraint onboarding_flows_name_is_one_line;
alter table app.moderation_rules drop constraint moderation_rules_name_is_one_line;
alter table app.media_folders drop constraint media_folders_name_is_one_line;
alter table app.media_catalogs drop constraint media_catalogs_name_is_one_line;
alter table app.leaderboards drop constraint leaderboards_name_is_one_line;
alter table app.flags drop constraint flags_name_is_one_line;
alter table app.email_templates drop constraint email_templates_subject_is_one_line;
alter table app.email_templates drop constraint email_templates_name_is_one_line;
alter table app.currencies drop constraint currencies_name_is_one_line;
alter table app.challenges drop constraint challenges_name_is_one_line;
alter table app.catalog_items drop constraint catalog_items_name_is_one_line;
alter table app.achievements drop constraint achievements_name_is_one_line;
