-- migrate:up
update app.outbox set task = 'leaderboards__rollover' where task = 'leaderboards__turn';
update app.outbox set task = 'leaderboards__notify' where task = 'leaderboards__tell';
update app.outbox set task = 'flags__notify' where task = 'flags__tell';
update app.outbox set task = 'webhooks__notify' where task = 'webhooks__tell';

-- migrate:down
update app.outbox set task = 'webhooks__tell' where task = 'webhooks__notify';
update app.outbox set task = 'flags__tell' where task = 'flags__notify';
update app.outbox set task = 'leaderboards__tell' where task = 'leaderboards__notify';
update app.outbox set task = 'leaderboards__turn' where task = 'leaderboards__rollover';
