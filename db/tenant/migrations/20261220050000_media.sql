-- migrate:up
alter table app.media_assets add column is_public boolean not null default false;
comment on column app.media_assets.is_public is 'Whether anybody reads the committed file at its public address, without a signature.';

-- migrate:down
alter table app.media_assets drop column is_public;
