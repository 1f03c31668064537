-- Checkpoints: where a pull goes on from, and what the answer to it is called.

create or replace function internal.sync_tag(seed bigint, place bigint) returns bigint
language sql immutable
return mod(hashint8extended(sync_tag.place, sync_tag.seed), 5000) + case
  when mod(hashint8extended(sync_tag.place, sync_tag.seed), 5000) < 0 then 5000 else 0 end;
comment on function internal.sync_tag is
  'The last four digits of the checkpoint of a place, below 5000: others of that place are steps. Granted to nobody.';

create or replace function internal.sync_view_at(checkpoint_id bigint, number bigint, out access jsonb,
                                                 out group_ids uuid[], out ranks smallint[])
language plpgsql stable security definer set search_path = '' as $$
declare
  held app.sync_views;
begin
  select v.* into held
    from app.sync_views v
   where v.checkpoint_id = sync_view_at.checkpoint_id and v.since <= sync_view_at.number
   order by v.since desc
   limit 1;
  access := internal.sync_unpacked(held.collection_ids, held.accesses);
  group_ids := held.group_ids;
  ranks := held.ranks;
end $$;
comment on function internal.sync_view_at is
  'What decided at a checkpoint, access null where there is none. Granted to nobody.';

create or replace function internal.sync_resume(k app.sync_checkpoints, number bigint)
returns app.sync_steps
language plpgsql stable security definer set search_path = '' as $$
declare
  oldest constant timestamptz := internal.now() - interval '30 days';
  lowest constant bigint := (select s.floor from app.sync_positions s);
  step app.sync_steps;
begin
  if (sync_resume.k).checkpoint is null or sync_resume.number > (sync_resume.k).checkpoint
     or sync_resume.number < (sync_resume.k).first_checkpoint then
    return null;
  end if;
  select s.* into step from app.sync_steps s
   where s.checkpoint_id = (sync_resume.k).id and s.number = sync_resume.number;
  if step.number is null then
    step := row((sync_resume.k).id, sync_resume.number, null, null, sync_resume.number / 10000, null, null,
                null);
    if sync_resume.number % 10000 <> internal.sync_tag((sync_resume.k).seed, step.target) then
      return null;
    end if;
    step.at := (sync_resume.k).last_pull_at;
    if step.target < (select s.place from app.sync_positions s) then
      -- given before the next place was, which has its time, or came within a minute after the last that has one
      step.at := coalesce((select t.at from app.sync_times t where t.place = step.target + 1),
                          (select t.at + interval '1 minute' from app.sync_times t where t.place <= step.target
                            order by t.place desc limit 1), step.at);
    end if;
  end if;
  if sync_resume.number = (sync_resume.k).checkpoint then
    step.at := (sync_resume.k).last_pull_at;
  end if;
  if step.at < oldest or least(step.target, case when step.after is not null then step.base end) < lowest then
    return null;
  end if;
  return step;
end $$;
comment on function internal.sync_resume is
  'The state that a checkpoint means: the places base and target and, in the middle of a pull, after. Null when it was
   not given to this client or is older than 30 days. Granted to nobody.';

create or replace function internal.sync_client(client_id uuid) returns app.sync_checkpoints
language plpgsql volatile security definer set search_path = '' as $$
declare
  caller constant uuid := internal.user_id();
  k app.sync_checkpoints;
begin
  -- the user first, as a deletion of the account has it
  perform from app.users u where u.id = caller for key share;
  perform internal.check_found(found, 'user', 'USER_NOT_FOUND');
  select c.* into k from app.sync_checkpoints c
   where c.app_user_id = caller and c.client_id = sync_client.client_id for no key update;
  if k.id is not null then
    return k;
  end if;
  perform internal.lock_users(array[caller]);
  insert into app.sync_checkpoints as c (app_user_id, client_id, used_at)
  values (caller, sync_client.client_id, internal.now())
  on conflict on constraint sync_checkpoints_one_per_client do nothing;
  delete from app.sync_checkpoints c
   where c.id in (select o.id from app.sync_checkpoints o
                   where o.app_user_id = caller and o.client_id <> sync_client.client_id
                   order by o.used_at desc, o.id desc offset 19);
  select c.* into k from app.sync_checkpoints c
   where c.app_user_id = caller and c.client_id = sync_client.client_id for no key update;
  return k;
end $$;
comment on function internal.sync_client is
  'The caller''s client of this id, locked; made when there is none, and then the one of twenty others that was used
   longest ago goes. Refuses 404 USER_NOT_FOUND. Granted to nobody.';

create or replace function internal.sync_is_anew(held jsonb, asked uuid[]) returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (
    select from jsonb_each(sync_is_anew.held) h
      join app.sync_collections o on o.collection_id = h.key::uuid
      join app.sync_collections n on n.name = o.name and n.collection_id = any (sync_is_anew.asked)
     where (n.collection_id, n.epoch) <> (o.collection_id, (h.value ->> 'e')::int))
$$;
comment on function internal.sync_is_anew is
  'Whether the sync of a collection that a client holds, by its accesses, was off since, or it was dropped and made
   again: no log says which of its rows have gone. Granted to nobody.';

create or replace function internal.sync_context(k app.sync_checkpoints, number bigint, asked uuid[],
                                                 is_required boolean)
returns jsonb
language plpgsql stable security definer set search_path = '' as $$
declare
  step app.sync_steps;
  held record;
  decides record;
  missed uuid[];
  was_missed uuid[];
begin
  select * into decides from internal.sync_view_now(sync_context.asked);
  if sync_context.number is not null then
    step := internal.sync_resume(sync_context.k, sync_context.number);
    if step.number is not null and internal.sync_is_anew(
         (internal.sync_view_at((sync_context.k).id, sync_context.number)).access, sync_context.asked) then
      step := null;
    end if;
    if step.after is not null then
      held := internal.sync_view_at((sync_context.k).id, sync_context.number);
      if internal.sync_loses(internal.sync_view_whole(held.access, held.group_ids, held.ranks),
                             internal.sync_view_whole(decides.access, decides.group_ids, decides.ranks)) then
        step := null;
      end if;
    end if;
    if step.number is null and sync_context.is_required then
      perform internal.fail(409, 'CHECKPOINT_EXPIRED', 'This client has no such checkpoint, it is older than 30 days, '
                            'a collection was out of sync since, or fewer rows are shown than when this pull began: '
                            'pull with null.');
    end if;
  end if;
  held := internal.sync_view_at((sync_context.k).id, step.number);
  if step.after is not null then
    -- goes on as it began: with what decided then, for the collections that are still asked for
    select coalesce(jsonb_object_agg(a.key, a.value) filter (where decides.access -> a.key -> 'e' = a.value -> 'e'),
                    '{}') as access, held.group_ids as group_ids, held.ranks as ranks
      into decides from jsonb_each(held.access) as a (key, value);
    held := internal.sync_view_at((sync_context.k).id, step.base_number);
    missed := step.missed;
    was_missed := (select s.missed from app.sync_steps s
                    where s.checkpoint_id = (sync_context.k).id and s.number = step.base_number);
  elsif step.number is not null then
    step.base := step.target;
    step.base_number := sync_context.number;
    step.target := null;
    was_missed := step.missed;
  end if;
  return jsonb_build_object(
    'client', (sync_context.k).id, 'number', step.number, 'base', step.base, 'base_number', step.base_number,
    'target', coalesce(step.target, (select s.place from app.sync_positions s)),
    'after', coalesce(step.after, '{"phase": 1}'), 'asked', to_jsonb(sync_context.asked),
    'was', internal.sync_view_whole(coalesce(held.access, '{}'), held.group_ids, held.ranks),
    'is', internal.sync_view_whole(decides.access, decides.group_ids, decides.ranks),
    'missed', coalesce(to_jsonb(missed), '[]'), 'was_missed', coalesce(to_jsonb(was_missed), '[]'),
    'access', decides.access, 'groups', to_jsonb(decides.group_ids), 'ranks', to_jsonb(decides.ranks));
end $$;
comment on function internal.sync_context is
  'What a pull from a checkpoint reads: from the place base (null: everything) to target, beginning at after, what the
   client was shown (was) and is shown (is), and which rows it lacks that the log says it has (was_missed those of its
   checkpoint, missed those of this pull so far). Refuses 409 CHECKPOINT_EXPIRED where is_required, otherwise begins
   from nothing. Granted to nobody.';

create or replace function internal.sync_pull_begin(client_id uuid, checkpoint text, collections json) returns jsonb
language plpgsql volatile security definer set search_path = '' as $$
declare
  caller constant uuid := internal.user_id();
  k app.sync_checkpoints;
  present record;
  stamp bigint;
begin
  -- before what decides is read: a stamp that is older than that is no later one's
  present := internal.sync_present(sync_pull_begin.collections);
  if present.is_of_groups then
    select present.stamp # coalesce(bit_xor(hashtextextended(m.group_id || m.role, 1)), 0) into stamp
      from app.group_members m where m.app_user_id = caller;
  end if;
  perform internal.check_rate('sync pull ' || caller, 10, 1, 'A user pulls at most ten times a second.');
  k := internal.sync_client(sync_pull_begin.client_id);
  return internal.sync_context(k, sync_pull_begin.checkpoint::bigint, present.asked, true)
    || jsonb_build_object('stamp', coalesce(stamp, present.stamp));
end $$;
comment on function internal.sync_pull_begin is
  'Begins a pull of the caller''s client. Refuses 404 COLLECTION_NOT_FOUND, USER_NOT_FOUND, 409 CHECKPOINT_EXPIRED, 429
   RATE_LIMITED. Locks the limit, then the client.';

create or replace function internal.sync_pull_end(pull jsonb, after jsonb, entries int, missed uuid[]) returns text
language plpgsql volatile security definer set search_path = '' as $$
declare
  k app.sync_checkpoints;
  held record;
  target constant bigint := sync_pull_end.pull ->> 'target';
  access constant jsonb := sync_pull_end.pull -> 'access';
  groups constant uuid[] := array(select jsonb_array_elements_text(sync_pull_end.pull -> 'groups')::uuid);
  ranks constant smallint[] := array(select jsonb_array_elements_text(sync_pull_end.pull -> 'ranks')::smallint);
  last bigint;
  is_same boolean;
  number bigint;
  is_step boolean := false;
begin
  if cardinality(sync_pull_end.missed) > 5000 then
    perform internal.fail(409, 'CHECKPOINT_EXPIRED', 'Too many rows were deleted during this pull: pull with null.');
  end if;
  select c.* into k from app.sync_checkpoints c where c.id = (sync_pull_end.pull ->> 'client')::bigint;
  last := coalesce(k.checkpoint, 0);
  held := internal.sync_view_at(k.id, last);
  is_same := (held.access, held.group_ids, held.ranks) is not distinct from (access, groups, ranks);
  if sync_pull_end.after is null then
    number := target * 10000 + internal.sync_tag(k.seed, target);
    if number < last and is_same and sync_pull_end.entries = 0
       and (sync_pull_end.pull ->> 'number')::bigint = last
       and (sync_pull_end.pull ->> 'base')::bigint = target and sync_pull_end.pull -> 'after' = '{"phase": 1}' then
      number := last;
    elsif number < last or number = last and (not is_same or sync_pull_end.missed <> '{}' or exists (
            select from app.sync_steps s where s.checkpoint_id = k.id and s.number = last)) then
      number := last + 1;
      is_step := true;
    end if;
    is_step := is_step or sync_pull_end.missed <> '{}';
  else
    number := greatest(last, target * 10000 - 5000) + 1;
    is_step := true;
  end if;
  if number >= (select (s.place + 1) * 10000 from app.sync_positions s) then
    return null;
  end if;
  if is_step then
    insert into app.sync_steps (checkpoint_id, number, base, base_number, target, after, at, missed)
    values (k.id, number, (sync_pull_end.pull ->> 'base')::bigint, (sync_pull_end.pull ->> 'base_number')::bigint,
            target, sync_pull_end.after, internal.now(), nullif(sync_pull_end.missed, '{}'));
  end if;
  if not is_same then
    insert into app.sync_views (checkpoint_id, since, collection_ids, accesses, group_ids, ranks, at)
    select k.id, number, p.collection_ids, p.accesses, groups, ranks, internal.now()
      from internal.sync_packed(access) p;
  end if;
  update app.sync_checkpoints c
     set checkpoint = number, first_checkpoint = coalesce(c.first_checkpoint, number), last_pull_at = internal.now(),
         used_at = internal.now(),
         -- what a pull with nothing new is known by: not for one of several pages, which began before this stamp
         stamp = case when sync_pull_end.after is null and number / 10000 = target
                       and sync_pull_end.pull -> 'after' = '{"phase": 1}'
                      then (sync_pull_end.pull ->> 'stamp')::bigint end
   where c.id = k.id;
  return number::text;
end $$;
comment on function internal.sync_pull_end is
  'Ends a pull, or where after is given a page of one, and returns its checkpoint: null when the place has no number
   left. Checkpoints of a client only grow. Refuses 409 CHECKPOINT_EXPIRED. The caller has
   begun the pull in the same transaction.';
