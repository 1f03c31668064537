-- migrate:up
alter table app.inventory_stacks add column expired_at timestamptz;
comment on column app.inventory_stacks.expired_at is 'When it was told that what was left of the stack expired; null until then. That it has expired says expires_at alone.';
-- what expired before anybody told of it is no news
update app.inventory_stacks set expired_at = expires_at where expires_at <= internal.now();
-- serves the telling of what expires next
create index inventory_stacks_expiring on app.inventory_stacks (expires_at, id) where expires_at is not null and expired_at is null and quantity > 0;
insert into app.outbox (task, due_at)
select 'inventory__expire', min(s.expires_at) from app.inventory_stacks s where s.expires_at is not null and s.expired_at is null and s.quantity > 0
having count(*) > 0
on conflict do nothing;

-- migrate:down
drop index app.inventory_stacks_expiring;
alter table app.inventory_stacks drop column expired_at;
