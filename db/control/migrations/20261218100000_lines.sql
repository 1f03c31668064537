-- migrate:up
-- names that were stored before keep their words: what is refused from now on becomes a space
update app.developer_tokens set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.developer_tokens add constraint developer_tokens_name_is_one_line check (internal.is_line(name));
update app.developers set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.developers add constraint developers_name_is_one_line check (internal.is_line(name));
update app.device_grants set client_name = coalesce(nullif(btrim(internal.as_line(client_name)), ''), '_') where not internal.is_line(client_name);
alter table app.device_grants add constraint device_grants_client_name_is_one_line check (internal.is_line(client_name));
update app.operator_tokens set label = coalesce(nullif(btrim(internal.as_line(label)), ''), '_') where not internal.is_line(label);
alter table app.operator_tokens add constraint operator_tokens_label_is_one_line check (internal.is_line(label));
update app.organizations set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.organizations add constraint organizations_name_is_one_line check (internal.is_line(name));
update app.projects set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.projects add constraint projects_name_is_one_line check (internal.is_line(name));
update app.projects set default_from_name = coalesce(nullif(btrim(internal.as_line(default_from_name)), ''), '_') where not internal.is_line(default_from_name);
alter table app.projects add constraint projects_default_from_name_is_one_line check (internal.is_line(default_from_name));
update app.projects set auth_email_brand_name = coalesce(nullif(btrim(internal.as_line(auth_email_brand_name)), ''), '_') where not internal.is_line(auth_email_brand_name);
alter table app.projects add constraint projects_auth_email_brand_name_is_one_line check (internal.is_line(auth_email_brand_name));
update app.service_accounts set name = coalesce(nullif(btrim(internal.as_line(name)), ''), '_') where not internal.is_line(name);
alter table app.service_accounts add constraint service_accounts_name_is_one_line check (internal.is_line(name));

-- migrate:down
alter table app.service_accounts drop constraint service_accounts_name_is_one_line;
alter table app.projects drop constraint projects_auth_email_brand_name_is_one_line;
alter table app.projects drop constraint projects_default_from_name_is_one_line;
alter table app.projects drop constraint projects_name_is_one_line;
alter table app.organizations drop constraint organizations_name_is_one_line;
alter table app.operator_tokens drop constraint operator_tokens_label_is_one_line;
alter table app.device_grants drop constraint device_grants_client_name_is_one_line;
alter table app.developers drop constraint developers_name_is_one_line;
alter table app.developer_tokens drop constraint developer_tokens_name_is_one_line;
