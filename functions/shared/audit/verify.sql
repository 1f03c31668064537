-- Verification of the hash chain: three passes, one after the other, in batches. The seals, each with its row; the
-- rows, each with its seal or digest; the digests that wait, each with its row. A changed, removed or inserted row
-- fails one of them.
create or replace function internal.audit_key_of(occurred_at timestamptz, place bigint, event_id uuid) returns text
language sql stable as $$
  select to_char(audit_key_of.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || ' '
         || lpad(audit_key_of.place::text, 19, '0') || ' ' || audit_key_of.event_id
$$;
comment on function internal.audit_key_of is 'The sort key in the list of a row of which only these values are known.';

create or replace function internal.audit_verify_seals(scope uuid, since timestamptz, until timestamptz,
                                                       after_position bigint, page_limit int, out seen bigint,
                                                       out counted bigint, out last_position bigint, out broken json)
language plpgsql stable as $$
begin
  with chosen as materialized (
    select s as seal, s.position as at, s.hash
      from app.audit_seals s
     where s.scope = audit_verify_seals.scope and s.position > audit_verify_seals.after_position
       and (audit_verify_seals.since is null or s.occurred_at >= audit_verify_seals.since)
       and (audit_verify_seals.until is null or s.occurred_at < audit_verify_seals.until)
     order by s.position
     limit audit_verify_seals.page_limit
  ), neighbours as (
    select c.seal, c.at, lag(c.hash) over by_position as hash_before, lag(c.at) over by_position as position_before
      from chosen c
    window by_position as (order by c.at)
  ), expected as (
    select n.seal, n.at, opened.opening_hash, month.last_position,
           case when n.position_before = n.at - 1 then n.hash_before
                else (select p.hash from app.audit_seals p
                       where p.scope = audit_verify_seals.scope and p.position = n.at - 1) end as hash_before,
           (select e from app.audit_events e where e.id = (n.seal).event_id
               and e.occurred_at = (n.seal).occurred_at) as event,
           -- a row that committed after the end of its month is dropped with its month, and its seal with the next
           -- month
           (n.seal).occurred_at < internal.audit_oldest_time() as is_dropped
      from neighbours n
      left join app.audit_heads opened on opened.scope = audit_verify_seals.scope and opened.opening_position = n.at - 1
      left join app.audit_heads month on month.scope = audit_verify_seals.scope
                                     and month.month = date_trunc('month', (n.seal).sealed_at at time zone 'UTC')::date
  ), evaluated as (
    select x.seal, x.at, x.is_dropped,
           coalesce(x.hash_before, x.opening_hash) is not null
           and (x.hash_before is null or x.opening_hash is null or x.hash_before = x.opening_hash)
           and (x.seal).hash = internal.audit_seal_hash(coalesce(x.opening_hash, x.hash_before), x.seal)
           and x.at <= x.last_position
           and (x.is_dropped or internal.audit_digest(x.event) = (x.seal).digest) as is_whole
      from expected x
  )
  select count(*), count(*) filter (where not j.is_dropped), max(j.at),
         (array_agg(json_build_object('id', (j.seal).event_id,
                                      'key', internal.audit_key_of((j.seal).occurred_at, 0, (j.seal).event_id))
                                        order by j.at)
           filter (where j.is_whole is not true))[1]
    into seen, counted, last_position, broken
    from evaluated j;
end $$;
comment on function internal.audit_verify_seals is
  'Verifies seals: the hash of each follows from the previous one, within the recorded months, and its row is as it was
   written.';

create or replace function internal.audit_verify_rows(scope uuid, since timestamptz, until timestamptz,
                                                      after_position bigint, page_limit int, out seen bigint,
                                                      out counted bigint, out last_position bigint, out broken json)
language plpgsql stable as $$
begin
  with chosen as materialized (
    select e as event, e.id, e.position as at, e.occurred_at
      from app.audit_events e
     where e.scope = audit_verify_rows.scope and e.position > audit_verify_rows.after_position
       and (audit_verify_rows.since is null or e.occurred_at >= audit_verify_rows.since)
       and (audit_verify_rows.until is null or e.occurred_at < audit_verify_rows.until)
     order by e.position
     limit audit_verify_rows.page_limit
  )
  -- counted with their seals and digests
  select count(*), 0, max(c.at),
         (array_agg(json_build_object('id', c.id, 'key', internal.audit_key(c.event)) order by c.at)
           filter (where c.at not between 1 and 999999999999999
                     or not exists (select from app.audit_seals s
                                      where s.event_id = c.id and s.occurred_at = c.occurred_at
                                        and s.scope = audit_verify_rows.scope
                                        and s.sealed_at >= c.occurred_at)
                        and not exists (select from app.audit_digests d
                                         where d.position = c.at and d.event_id = c.id)))[1]
    into seen, counted, last_position, broken
    from chosen c;
end $$;
comment on function internal.audit_verify_rows is
  'Verifies that each row has a seal or a waiting digest. Their contents are verified by the other passes.';

create or replace function internal.audit_verify_digests(scope uuid, since timestamptz, until timestamptz,
                                                         after_position bigint, page_limit int, out seen bigint,
                                                         out counted bigint, out last_position bigint, out broken json)
language plpgsql stable as $$
begin
  with chosen as materialized (
    select d.position, d.event_id, d.occurred_at, d.digest,
           (select e from app.audit_events e where e.id = d.event_id and e.occurred_at = d.occurred_at) as event
      from app.audit_digests d
     where d.scope = audit_verify_digests.scope and d.position > audit_verify_digests.after_position
       and (audit_verify_digests.since is null or d.occurred_at >= audit_verify_digests.since)
       and (audit_verify_digests.until is null or d.occurred_at < audit_verify_digests.until)
     order by d.position
     limit audit_verify_digests.page_limit
  )
  select count(*), count(*), max(c.position),
         (array_agg(json_build_object('id', c.event_id,
                                      'key', internal.audit_key_of(c.occurred_at, c.position, c.event_id))
                                        order by c.position)
           filter (where ((c.event).scope = audit_verify_digests.scope and (c.event).position = c.position
                          and c.position between 1 and 999999999999999
                          and internal.audit_digest(c.event) = c.digest) is not true))[1]
    into seen, counted, last_position, broken
    from chosen c;
end $$;
comment on function internal.audit_verify_digests is
  'Verifies digests that wait to be sealed: each has its row, as it was written.';

create or replace function internal.audit_is_cut(scope uuid, since timestamptz, until timestamptz) returns boolean
language sql stable as $$
  select exists (
    select from app.audit_heads h
     where h.scope = audit_is_cut.scope
       and (audit_is_cut.since is null or h.last_at >= audit_is_cut.since)
       and (audit_is_cut.until is null or h.last_at < audit_is_cut.until)
       and h.month >= internal.audit_oldest_month()
       and not exists (select from app.audit_seals s
                        where s.scope = audit_is_cut.scope and s.position = h.last_position and s.sealed_at = h.last_at
                          and s.hash = h.last_hash))
$$;
comment on function internal.audit_is_cut is
  'Whether a month ends elsewhere than recorded. This detects the removal of rows from the end, which breaks no hash.';

create or replace function internal.audit_sealed(scope uuid, before text default null) returns json
language sql stable as $$
  with waiting as (
    select count(*) as unsealed, min(internal.audit_key_of(d.occurred_at, d.position,
                                                           d.event_id) collate "C") as first_key
      from app.audit_digests d
     where d.scope = audit_sealed.scope
  ), bound as (
    select split_part(k.key, ' ', 1)::timestamptz as at, split_part(k.key, ' ', 2)::bigint as position,
           split_part(k.key, ' ', 3)::uuid as id
      from (select least(w.first_key, audit_sealed.before) as key from waiting w) k
  )
  select json_build_object('unsealed', w.unsealed, 'first_unsealed', w.first_key, 'through', (
           select json_build_object('id', e.id, 'key', internal.audit_key(e))
             from app.audit_events e
            where e.scope = audit_sealed.scope
              and (b.at is null or (e.occurred_at <= b.at
                                    and (e.occurred_at, e.position, e.id) < (b.at, b.position, b.id)))
            order by e.occurred_at desc, e.position desc, e.id desc
            limit 1))
    from waiting w, bound b
$$;
comment on function internal.audit_sealed is
  'How many rows wait for their seal, the key of the oldest of them, and the row through which all are sealed: the
   newest row before that one and before the key "before".';

create or replace function api.audit_sealed(before text) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.audit_sealed(internal.audit_scope(), audit_sealed.before))
$$;
comment on function api.audit_sealed is
  'The row, older than a key, through which one database''s part of a trail is sealed: {unsealed, first_unsealed,
   through {id, key}}.';

create or replace function internal.audit_verify_limit(walk text, scope uuid, since timestamptz, until timestamptz,
                                                       after_position bigint, page_limit int)
returns int
language plpgsql stable as $$
declare
  -- the stored size: pglz compresses to a hundredth at best
  most constant bigint := 1048576;
  sizes bigint[];
  bytes bigint := 0;
begin
  if audit_verify_limit.walk = 'seals' then
    sizes := array(
      select coalesce(pg_column_size(e.changes), 0)
        from (select s.* from app.audit_seals s
               where s.scope = audit_verify_limit.scope and s.position > audit_verify_limit.after_position
                 and (audit_verify_limit.since is null or s.occurred_at >= audit_verify_limit.since)
                 and (audit_verify_limit.until is null or s.occurred_at < audit_verify_limit.until)
               order by s.position limit audit_verify_limit.page_limit) s
        left join app.audit_events e on e.id = s.event_id and e.occurred_at = s.occurred_at
       order by s.position);
  elsif audit_verify_limit.walk = 'digests' then
    sizes := array(
      select coalesce(pg_column_size(e.changes), 0)
        from (select d.* from app.audit_digests d
               where d.scope = audit_verify_limit.scope and d.position > audit_verify_limit.after_position
                 and (audit_verify_limit.since is null or d.occurred_at >= audit_verify_limit.since)
                 and (audit_verify_limit.until is null or d.occurred_at < audit_verify_limit.until)
               order by d.position limit audit_verify_limit.page_limit) d
        left join app.audit_events e on e.id = d.event_id and e.occurred_at = d.occurred_at
       order by d.position);
  else
    sizes := array(
      select pg_column_size(e.changes)
        from app.audit_events e
       where e.scope = audit_verify_limit.scope and e.position > audit_verify_limit.after_position
         and (audit_verify_limit.since is null or e.occurred_at >= audit_verify_limit.since)
         and (audit_verify_limit.until is null or e.occurred_at < audit_verify_limit.until)
       order by e.position limit audit_verify_limit.page_limit);
  end if;
  for n in 1 .. cardinality(sizes) loop
    bytes := bytes + sizes[n];
    if bytes > most then
      return greatest(n - 1, 1);
    end if;
  end loop;
  return audit_verify_limit.page_limit;
end $$;
comment on function internal.audit_verify_limit is
  'How many rows of a pass one step may verify: page_limit, or fewer, but at least one, if their stored changes exceed 1
   MB. Reads only sizes.';

create or replace function api.audit_verify(since timestamptz default null, until timestamptz default null,
                                            after_position bigint default 0, page_limit int default 2000)
returns api.reply
language plpgsql stable as $$
declare
  own_scope constant uuid := internal.audit_scope();
  walks constant text[] := array['seals', 'rows', 'digests'];
  -- after_position encodes the pass and its progress in one number that fits a double
  walk_size constant bigint := 1000000000000000;
  walk int := audit_verify.after_position / walk_size;
  after bigint := audit_verify.after_position % walk_size;
  from_position bigint;
  most int;
  step record;
  counted bigint := 0;
  is_over boolean;
begin
  loop
    -- from the very first position: an inserted row may have any position
    from_position := case when after = 0 then -9223372036854775808 else after end;
    most := internal.audit_verify_limit(walks[walk + 1], own_scope, audit_verify.since, audit_verify.until,
                                        from_position, audit_verify.page_limit);
    execute format('select * from internal.%I($1, $2, $3, $4, $5)', 'audit_verify_' || walks[walk + 1])
       into step using own_scope, audit_verify.since, audit_verify.until,
                       from_position, most;
    counted := counted + step.counted;
    after := greatest(least(coalesce(step.last_position, 0), walk_size - 1), 0);
    exit when step.broken is not null or step.seen >= most;
    walk := walk + 1;
    after := 0;
    exit when walk = cardinality(walks);
  end loop;
  is_over := walk = cardinality(walks);
  return internal.reply(200, json_build_object(
    'checked', counted, 'last_position', walk * walk_size + after, 'is_over', is_over, 'first_broken', step.broken,
    'is_cut', is_over and internal.audit_is_cut(own_scope, audit_verify.since, audit_verify.until),
    'sealed', case when is_over or step.broken is not null then internal.audit_sealed(own_scope) end));
end $$;
comment on function api.audit_verify is
  'Verifies one database''s part of a trail, a batch of rows at a time, from last_position of the previous step: detects
   rows that were changed, removed, inserted or cut off, sealed or not. The last step has internal.audit_sealed as
   sealed.';
