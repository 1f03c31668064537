-- migrate:up
alter table app.media_assets add column blocked_at timestamptz;
comment on column app.media_assets.blocked_at is 'Since when moderation hides the asset from its owner and from catalogs.';

-- migrate:down
alter table app.media_assets drop column blocked_at;
