-- migrate:up
alter table app.project_signing_keys
  drop constraint project_signing_keys_pkey,
  add primary key (key_id),
  add column use_from timestamptz not null default internal.now();
-- serves the look-up of a project's keys, newest first
create unique index project_signing_keys_of_project on app.project_signing_keys (project_id, use_from desc);
comment on table app.project_signing_keys is
  'ES256 key pairs that sign a project''s session tokens: the newest whose use_from is reached signs, and those before it are accepted until what they signed has expired. The private half is encrypted by the server.';

-- migrate:down
delete from app.project_signing_keys k
 using app.project_signing_keys newer
 where newer.project_id = k.project_id and newer.use_from > k.use_from;
drop index app.project_signing_keys_of_project;
alter table app.project_signing_keys
  drop column use_from,
  drop constraint project_signing_keys_pkey,
  add primary key (project_id);
comment on table app.project_signing_keys is 'ES256 key pair that signs the project''s session tokens; the private half is encrypted by the server.';
