-- The register of advisory locks that transactions take, and the only functions that take them: a lock has a name here
-- and a number nowhere else. One class has a number of two parts: functions/tenant/definitions/commands.sql takes
-- (73054420, hashtext(kind)), so that creations of one kind of definition come one after the other.
-- Transactions that write to the log of sync share (73054423, the second in which they began), which nobody waits for.
-- Locks of sessions, which only the server takes, are named in fleet/locks.ts. scripts/registers.ts checks both (npm
-- run check). The role of dashboards may take none (sql/cluster/lock_down.sql).
create or replace function internal.advisory_lock_key(name text) returns bigint
language sql immutable parallel safe
return case advisory_lock_key.name
  -- leases of the outbox: two drains would count the same free places
  when 'outbox lease' then 7305441006
  -- definitions of events: a creation says truly whether the definition is new
  when 'event definitions' then 7305441007
  -- entries of the waitlist, which has a limit
  when 'waitlist' then 7305441010
  -- creating a collection: names of indexes are looked up before they are taken
  when 'collections' then 7305441011
  -- the catalog: two changes that are fine alone could make a circle of bundles
  when 'catalog' then 7305441022
  -- compiling segments: two that would make a circle together must see each other
  when 'segments' then 7305441031
  -- creating a flag
  when 'flags' then 7305441051
  -- computing the plans of events: each computation sees what those before it committed
  when 'event plans' then 7305441060
  -- counting evaluations of flags: the last day of a user goes forward
  when 'flag evaluations' then 7305441052
  -- the table of XP levels
  when 'xp levels' then 7305441102
  -- challenges that are active or to come, which have a limit
  when 'challenges' then 7305441104
  -- numbering and forgetting events of realtime
  when 'realtime' then 7305441140
  -- sealing the audit trail
  when 'audit seal' then 7305441130
  -- registering a file in a free project: the sum of all files has a limit
  when 'media budget' then 7305441150
  -- making a bucket: a project has a number of them
  when 'media buckets' then 7305441151
  -- declaring and adopting what a project sells: each replaces what it has read
  when 'monetization' then 7305441170
  -- registering prompts of AI, which have a limit
  when 'ai prompts' then 7305441180
  -- admitting calls of providers under a spend ceiling: each sees what those before it have reserved
  when 'spend ceiling' then 7305441190
  -- applying a plan of promotion: one at a time
  when 'promotion' then 7305441211
  -- giving places to changes of synced collections
  when 'sync' then 7305441230
  -- adding entries and types of content, which have limits
  when 'content' then 7305441220
  -- setting providers of sign-in by redirect, which have a limit, and the addresses that it returns to
  when 'oauth' then 7305441270
  -- bulk updates of users that change unique fields: two that want each other's addresses would wait in a circle
  when 'users bulk update' then hashtextextended('users bulk update', 0)
end;
comment on function internal.advisory_lock_key(text) is
  'The number of an advisory lock, or null for a name that is not registered.';

create or replace function internal.advisory_lock_key(name text, item text) returns bigint
language sql immutable parallel safe
return case when advisory_lock_key.name in (
  -- an email address or a phone number, "email a@example.org", that has no row yet
  'address',
  -- an identity of a provider, "google 1234", that has no row yet
  'identity',
  -- counting the changes of a run of a leaderboard into its buckets
  'leaderboard_fold',
  -- queueing that
  'leaderboard_fold_later',
  -- the clock of a leaderboard
  'leaderboard_rollover',
  -- closing a run of a league by hand
  'league_close',
  -- one of the eight lanes in which users enter the cohorts of a tier
  'league_lane',
  -- the clock of a league
  'league_turn',
  -- a key of a file that no user owns, and that may have no row yet
  'media_key',
  -- restores of one purchase by several users: each finds the owner whom the one before it has made
  'restore'
) then hashtextextended(advisory_lock_key.name || ' ' || advisory_lock_key.item, 0) end;
comment on function internal.advisory_lock_key(text, text) is
  'The number of the advisory lock of one item, or null for a class that is not registered. Two items may share a
   number: then they wait for each other.';

create or replace function internal.advisory_lock_registered(key bigint, name text) returns bigint
language plpgsql immutable as $$
begin
  if advisory_lock_registered.key is null then
    raise exception 'no advisory lock is registered as %', advisory_lock_registered.name;
  end if;
  return advisory_lock_registered.key;
end $$;
comment on function internal.advisory_lock_registered is
  'The number of an advisory lock. Raises for null: Postgres takes no lock for that, and does not say so.';

create or replace function internal.advisory_lock(name text) returns void
language sql volatile as $$
  select pg_advisory_xact_lock(internal.advisory_lock_registered(internal.advisory_lock_key(advisory_lock.name),
                                                                 advisory_lock.name))
$$;
comment on function internal.advisory_lock(text) is
  'Waits for an advisory lock of the register and holds it to the end of the transaction.';

create or replace function internal.advisory_lock(name text, item text) returns void
language sql volatile as $$
  select pg_advisory_xact_lock(internal.advisory_lock_registered(internal.advisory_lock_key(advisory_lock.name,
                                        advisory_lock.item), advisory_lock.name))
$$;
comment on function internal.advisory_lock(text, text) is
  'Waits for the advisory lock of one item and holds it to the end of the transaction.';

create or replace function internal.try_advisory_lock(name text) returns boolean
language sql volatile as $$
  select pg_try_advisory_xact_lock(internal.advisory_lock_registered(internal.advisory_lock_key(try_advisory_lock.name),
                                                                     try_advisory_lock.name))
$$;
comment on function internal.try_advisory_lock(text) is
  'Takes an advisory lock of the register if it is free, and holds it to the end of the transaction.';

create or replace function internal.try_advisory_lock(name text, item text) returns boolean
language sql volatile as $$
  select pg_try_advisory_xact_lock(internal.advisory_lock_registered(internal.advisory_lock_key(try_advisory_lock.name,
                                        try_advisory_lock.item),
                                                                     try_advisory_lock.name))
$$;
comment on function internal.try_advisory_lock(text, text) is
  'Takes the advisory lock of one item if it is free, and holds it to the end of the transaction.';

create or replace function internal.advisory_lock_value(key bigint) returns void
language sql volatile as $$
  select pg_advisory_xact_lock(advisory_lock_value.key)
$$;
comment on function internal.advisory_lock_value is
  'For values of unique columns that a transaction is about to write: waits for the lock of a hash that the caller
   computes, because the caller takes many in the order of their numbers.';
