-- Boards, as administrators define them.
comment on constraint leaderboards_key_unique on app.leaderboards is '409 CONFLICT key: A leaderboard with this key exists.';
comment on constraint leaderboards_key_form on app.leaderboards is '400 VALIDATION_ERROR key: must match ^[a-z][a-z0-9_-]{0,127}$.';
comment on constraint leaderboards_end_after_start on app.leaderboards is '400 VALIDATION_ERROR ends_at: must be after starts_at.';
comment on constraint leaderboards_max_above_min on app.leaderboards is '400 VALIDATION_ERROR max_score: must not be below min_score.';

create or replace function internal.leaderboard_json(b app.leaderboards) returns json
language sql stable as $$
  select json_build_object(
    'id', (leaderboard_json.b).id, 'key', (leaderboard_json.b).key, 'name', (leaderboard_json.b).name, 'description', (leaderboard_json.b).description,
    'source', (leaderboard_json.b).source, 'scoring', (leaderboard_json.b).scoring, 'sort', (leaderboard_json.b).sort,
    'period', (leaderboard_json.b).period, 'timezone', (leaderboard_json.b).timezone,
    'starts_at', internal.iso((leaderboard_json.b).starts_at), 'ends_at', internal.iso((leaderboard_json.b).ends_at),
    'segment_id', (leaderboard_json.b).segment_id, 'client_writable', (leaderboard_json.b).client_writable,
    'min_score', internal.numeric_json((leaderboard_json.b).min_score), 'max_score', internal.numeric_json((leaderboard_json.b).max_score), 'max_per_minute', (leaderboard_json.b).max_per_minute,
    'rewards', (leaderboard_json.b).rewards, 'keep_runs', (leaderboard_json.b).keep_runs, 'is_active', (leaderboard_json.b).is_active,
    'created_at', internal.iso((leaderboard_json.b).created_at), 'updated_at', internal.iso((leaderboard_json.b).updated_at))
$$;
comment on function internal.leaderboard_json is 'A definition as administrators see it.';

create or replace function internal.leaderboard_find(id_or_key text) returns app.leaderboards
language plpgsql stable as $$
declare
  as_id constant uuid := internal.as_uuid(leaderboard_find.id_or_key);
  board app.leaderboards;
begin
  select b.* into board from app.leaderboards b where b.id = as_id or as_id is null and b.key = leaderboard_find.id_or_key;
  if board.id is null then
    perform internal.fail(404, 'NOT_FOUND', 'There is no such leaderboard.');
  end if;
  return board;
end $$;
comment on function internal.leaderboard_find is 'A board by its id, when the value looks like a uuid, else by its key. Refuses 404 NOT_FOUND.';

create or replace function internal.leaderboard_source_problem(source jsonb) returns text
language plpgsql stable as $$
declare
  s constant jsonb := leaderboard_source_problem.source;
begin
  return case coalesce(s ->> 'type', '')
    when 'manual' then null
    when 'xp' then null
    when 'event' then case
      when jsonb_typeof(s -> 'event_name') is distinct from 'string' or char_length(s ->> 'event_name') not between 1 and 255
           or s ->> 'event_name' ~ '^\s|\s$' then 'event_name must have 1 to 255 characters, no white space at either end'
      when s ->> 'event_name' like 'svc.leaderboard.%' then 'event_name must be no event of leaderboards: it would feed itself'
      when coalesce(jsonb_typeof(s -> 'value_property'), 'null') not in ('string', 'null') or char_length(s ->> 'value_property') not between 1 and 255
        then 'value_property must be a path of 1 to 255 characters'
      when coalesce(jsonb_typeof(s -> 'filter'), 'null') <> 'null' then 'filter: ' || internal.filter_problem((s -> 'filter')::json)
    end
    when 'currency' then case
      when jsonb_typeof(s -> 'currency_code') is distinct from 'string' or char_length(s ->> 'currency_code') not between 1 and 128
        then 'currency_code is required' end
    when 'streak' then case
      when jsonb_typeof(s -> 'streak_key') is distinct from 'string' or char_length(s ->> 'streak_key') not between 1 and 128
        then 'streak_key is required' end
    else 'type must be manual, event, xp, currency or streak'
  end;
end $$;
comment on function internal.leaderboard_source_problem is 'What is wrong with a source, or null.';

create or replace function internal.leaderboard_check(b app.leaderboards, was app.leaderboards default null) returns void
language plpgsql volatile as $$
declare
  w constant app.leaderboards := leaderboard_check.b;
  problem constant text := internal.leaderboard_source_problem(w.source);
  missing text;
begin
  select f.field into missing
    from jsonb_each(to_jsonb(w)) as f (field, value)
   where f.value = 'null'
     and f.field in ('name', 'source', 'scoring', 'sort', 'period', 'timezone', 'client_writable', 'max_per_minute', 'rewards', 'keep_runs', 'is_active')
   limit 1;
  if missing is not null then
    perform internal.invalid(missing, 'must not be null');
  elsif problem is not null then
    perform internal.invalid('source', problem);
  -- one that was right when it was written stays, so that a board whose currency is gone may still be changed
  elsif w.source ->> 'type' = 'currency' and w.source is distinct from (leaderboard_check.was).source
        and not exists (select from app.currencies c where c.code = w.source ->> 'currency_code') then
    perform internal.invalid('source', 'currency_code must be a currency of this project');
  elsif not exists (select from app.timezones t where t.name = w.timezone) then
    perform internal.invalid('timezone', 'must be the name of a time zone');
  elsif exists (select from jsonb_array_elements(w.rewards) r where (r.value ->> 'to_rank')::bigint < (r.value ->> 'from_rank')::bigint) then
    perform internal.invalid('rewards', 'to_rank must not be below from_rank');
  elsif w.segment_id is not null and not internal.segment_hold(w.segment_id) then
    perform internal.invalid('segment_id', 'must be the id of a segment');
  end if;
end $$;
comment on function internal.leaderboard_check is 'What the checks of app.leaderboards cannot say. Refuses 400 VALIDATION_ERROR.';

create or replace function internal.segment_used__leaderboards(segment_id uuid) returns text[]
language sql stable security definer set search_path = '' as $$
  select array(select 'leaderboard ' || b.key from app.leaderboards b where b.segment_id = segment_used__leaderboards.segment_id order by b.key)
$$;
comment on function internal.segment_used__leaderboards is 'The leaderboards that name a segment.';

create or replace function internal.tg_leaderboards__watch() returns trigger
language plpgsql volatile as $$
begin
  new.watches := case new.source ->> 'type'
    when 'event' then array[new.source ->> 'event_name']
    when 'currency' then array['svc.currency.credited', 'svc.currency.debited']
    when 'streak' then array['svc.streak.started', 'svc.streak.extended', 'svc.streak.restored']
    else '{}' end;
  return new;
end $$;
comment on function internal.tg_leaderboards__watch is 'Keeps the names of the events that move a board.';

create or replace trigger tg_leaderboards__watch
  before insert or update of source on app.leaderboards
  for each row execute function internal.tg_leaderboards__watch();

create or replace function internal.tg_leaderboards__plan() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  if tg_op = 'UPDATE' and new.period = 'all_time' then
    -- the one run ends when its board does
    update app.leaderboard_runs r
       set ends_at = new.ends_at
     where r.leaderboard_id = new.id and r.state = 'live' and internal.leaderboard_is_open(r) and r.ends_at is distinct from new.ends_at;
  end if;
  perform internal.enqueue('leaderboards__turn', new.id::text);
  return null;
end $$;
comment on function internal.tg_leaderboards__plan is 'Has the job make the run that is due and say when it looks again.';

create or replace trigger tg_leaderboards__plan
  after insert or update on app.leaderboards
  for each row execute function internal.tg_leaderboards__plan();
create or replace trigger tg_leaderboards__audit
  after insert or update or delete on app.leaderboards
  for each row execute function internal.tg_audit('leaderboards');

create or replace function api.leaderboard_define(
  key text, name text, description text default null, source jsonb default '{"type": "manual"}', scoring text default 'best', sort text default 'desc',
  period text default 'all_time', timezone text default 'UTC', starts_at timestamptz default null, ends_at timestamptz default null,
  segment_id uuid default null, client_writable boolean default false, min_score numeric default null, max_score numeric default null,
  max_per_minute int default 30, rewards jsonb default '[]', keep_runs int default 12, is_active boolean default true)
returns api.reply
language plpgsql volatile as $$
declare
  made app.leaderboards;
begin
  made := (internal.new_id(), leaderboard_define.key, leaderboard_define.name, leaderboard_define.description, leaderboard_define.source, '{}',
           leaderboard_define.scoring, leaderboard_define.sort, leaderboard_define.period, leaderboard_define.timezone, leaderboard_define.starts_at,
           leaderboard_define.ends_at, leaderboard_define.segment_id, leaderboard_define.client_writable, leaderboard_define.min_score,
           leaderboard_define.max_score, leaderboard_define.max_per_minute, leaderboard_define.rewards, leaderboard_define.keep_runs,
           leaderboard_define.is_active, internal.now(), internal.now());
  perform internal.leaderboard_check(made);
  -- taken before the count, so that two at once cannot pass the limit together
  perform pg_advisory_xact_lock(7305441121);
  if (select count(*) from app.leaderboards) >= 100 then
    perform internal.fail(409, 'LIMIT_REACHED', 'A project has at most 100 leaderboards.', '{"limit": 100}');
  end if;
  insert into app.leaderboards select made.*;
  return internal.reply(201, internal.leaderboard_json(made));
end $$;
comment on function api.leaderboard_define is
  'A new board, 201. Refuses 400 VALIDATION_ERROR, 409 CONFLICT (the key is taken), 409 LIMIT_REACHED (100). Supplement D5.';

create or replace function api.leaderboards(page_offset int default 0, page_limit int default 50) returns api.reply
language sql stable as $$
  select internal.reply_page(
    (select json_agg(internal.leaderboard_json(b) order by b.created_at desc, b.id desc)
       from (select l.* from app.leaderboards l order by l.created_at desc, l.id desc limit leaderboards.page_limit offset leaderboards.page_offset) b),
    (select count(*) from app.leaderboards), leaderboards.page_offset, leaderboards.page_limit)
$$;
comment on function api.leaderboards is 'Boards, newest first.';

create or replace function api.leaderboard_definition_get(id_or_key text) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.leaderboard_json(internal.leaderboard_find(leaderboard_definition_get.id_or_key)))
$$;
comment on function api.leaderboard_definition_get is 'A board. Refuses 404 NOT_FOUND.';

create or replace function api.leaderboard_update(id_or_key text, patch jsonb) returns api.reply
language plpgsql volatile as $$
declare
  was app.leaderboards := internal.leaderboard_find(leaderboard_update.id_or_key);
  wished app.leaderboards;
begin
  select b.* into was from app.leaderboards b where b.id = was.id for no key update;
  if not found then
    perform internal.fail(404, 'NOT_FOUND', 'The leaderboard was deleted just now.');
  end if;
  begin
    wished := jsonb_populate_record(was, (
      select coalesce(jsonb_object_agg(f.key, f.value), '{}')
        from jsonb_each(leaderboard_update.patch) f
       where f.key in ('name', 'description', 'source', 'scoring', 'sort', 'period', 'timezone', 'starts_at', 'ends_at', 'segment_id',
                       'client_writable', 'min_score', 'max_score', 'max_per_minute', 'rewards', 'keep_runs', 'is_active')));
  exception when data_exception then
    perform internal.invalid('body', 'has a value of the wrong type');
  end;
  perform internal.leaderboard_check(wished, was);
  if (wished.scoring, wished.sort, wished.period) is distinct from (was.scoring, was.sort, was.period) then
    -- a first score that is on its way is waited for
    perform internal.leaderboard_runs_close(was.id);
    if exists (select from app.leaderboard_entries e join app.leaderboard_runs r on r.id = e.run_id where r.leaderboard_id = was.id) then
      perform internal.fail(409, 'LEADERBOARD_IMMUTABLE', 'scoring, sort and period are fixed once there are entries.');
    end if;
    -- its runs were of the former periods
    perform internal.leaderboard_runs_drop(was.id);
  end if;
  if wished is distinct from was then
    update app.leaderboards b
       set name = wished.name, description = wished.description, source = wished.source, scoring = wished.scoring, sort = wished.sort,
           period = wished.period, timezone = wished.timezone, starts_at = wished.starts_at, ends_at = wished.ends_at, segment_id = wished.segment_id,
           client_writable = wished.client_writable, min_score = wished.min_score, max_score = wished.max_score,
           max_per_minute = wished.max_per_minute, rewards = wished.rewards, keep_runs = wished.keep_runs, is_active = wished.is_active,
           updated_at = internal.now()
     where b.id = was.id
    returning b.* into wished;
  end if;
  return internal.reply(200, internal.leaderboard_json(wished));
end $$;
comment on function api.leaderboard_update is
  'Changes a board. Refuses 404 NOT_FOUND, 400 VALIDATION_ERROR, 409 LEADERBOARD_IMMUTABLE (scoring, sort or period, with entries). Locks the board.';

create or replace function internal.leaderboard_runs_close(leaderboard_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() <> 'developer' then
    raise exception 'boards are changed by administrators, not by %', internal.caller();
  end if;
  -- live ones first, then what is to replace them, as the jobs do
  perform from app.leaderboard_runs r where r.leaderboard_id = leaderboard_runs_close.leaderboard_id order by r.state <> 'live', r.id for update;
end $$;
comment on function internal.leaderboard_runs_close is 'Locks the runs of a board against new entries. Waits for those who are storing one.';

create or replace function internal.leaderboard_lock(leaderboard_id uuid) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() <> 'developer' then
    raise exception 'boards are deleted by administrators, not by %', internal.caller();
  end if;
  -- neither of these two stops whoever stores a score, who has locked their user and waits for the board next
  perform from app.leaderboards b where b.id = leaderboard_lock.leaderboard_id for no key update;
  if not found then
    return false;
  end if;
  perform from app.leaderboard_runs r where r.leaderboard_id = leaderboard_lock.leaderboard_id order by r.state <> 'live', r.id for no key update;
  perform internal.lock_users(array(
    select distinct e.app_user_id
      from app.leaderboard_entries e
      join app.leaderboard_runs r on r.id = e.run_id
     where r.leaderboard_id = leaderboard_lock.leaderboard_id));
  perform from app.leaderboards b where b.id = leaderboard_lock.leaderboard_id for update;
  return true;
end $$;
comment on function internal.leaderboard_lock is
  'Locks a board to be deleted, in the order in which scores, jobs and other changes meet it: the board and its runs against other changes, then everybody
   who has an entry, then the board against new runs. False when it was deleted meanwhile.';

create or replace function internal.leaderboard_runs_drop(leaderboard_id uuid) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if internal.caller() <> 'developer' then
    raise exception 'boards are changed by administrators, not by %', internal.caller();
  end if;
  -- whoever folds one of them is let finish first: it waits for nothing of ours meanwhile
  perform pg_advisory_xact_lock(hashtextextended('leaderboard_fold ' || r.id, 0))
     from (select x.id from app.leaderboard_runs x where x.leaderboard_id = leaderboard_runs_drop.leaderboard_id order by x.id) r;
  delete from app.leaderboard_runs r where r.leaderboard_id = leaderboard_runs_drop.leaderboard_id;
end $$;
comment on function internal.leaderboard_runs_drop is 'Deletes the runs of a board with their entries. Waits for those who fold them.';

create or replace function api.leaderboard_delete(id_or_key text) returns api.reply
language plpgsql volatile as $$
declare
  doomed constant app.leaderboards := internal.leaderboard_find(leaderboard_delete.id_or_key);
begin
  if not internal.leaderboard_lock(doomed.id) then
    perform internal.fail(404, 'NOT_FOUND', 'The leaderboard was deleted just now.');
  end if;
  perform internal.leaderboard_runs_drop(doomed.id);
  delete from app.leaderboards b where b.id = doomed.id;
  return internal.reply(200, '{"deleted": true}');
end $$;
comment on function api.leaderboard_delete is 'Deletes a board with its runs and entries; rewards stay. Refuses 404 NOT_FOUND. Locks it and its users.';
