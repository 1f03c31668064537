-- Seals: one sealer at a time numbers and hashes committed rows into a hash chain, in the order of their positions. No
-- writer waits for it.
create or replace function internal.audit_seal_hash(previous bytea, seal app.audit_seals) returns bytea
language sql stable as $$
  select sha256(audit_seal_hash.previous || convert_to(json_build_array(
    (audit_seal_hash.seal).scope, (audit_seal_hash.seal).position, (audit_seal_hash.seal).event_id,
    to_char((audit_seal_hash.seal).occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    encode((audit_seal_hash.seal).digest, 'hex'),
    to_char((audit_seal_hash.seal).sealed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'))::text, 'UTF8'))
$$;
comment on function internal.audit_seal_hash is 'The hash of a seal: sha256(hash of the previous seal || the seal).';

create or replace function internal.audit_waiting() returns boolean
language sql stable security definer set search_path = '' as $$
  -- uses the index, which skips dead rows; a table scan would read them until the next vacuum
  select exists (select from app.audit_digests d order by d.position limit 1)
$$;
comment on function internal.audit_waiting is 'Whether a row of the trail waits for its seal.';

create or replace function internal.audit_head_keep(head app.audit_heads, former_position bigint) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  insert into app.audit_heads as h select (audit_head_keep.head).*
  on conflict on constraint audit_heads_pkey do update
     set last_hash = excluded.last_hash, last_position = excluded.last_position, last_at = excluded.last_at
   where h.last_position = audit_head_keep.former_position;
  -- the sealer's lock makes this impossible; if the lock were lost, the second sealer would be rolled back
  if not found then
    raise exception 'the trail % was sealed by another at the same time', (audit_head_keep.head).scope;
  end if;
end $$;
comment on function internal.audit_head_keep is
  'Stores the current end of a month of a chain. Raises an exception when the stored end is not where the caller began.
   Granted to nobody.';

create or replace function internal.audit_seal(batch int) returns int
language plpgsql volatile security definer set search_path = '' as $$
declare
  waiting app.audit_digests;
  head app.audit_heads;
  seal app.audit_seals;
  month date;
  former_position bigint;
  sealed int := 0;
begin
  -- does not wait for the lock: its holder seals these rows as well
  if not internal.try_advisory_lock('audit seal') then
    return null;
  end if;
  for waiting in
    -- a digest is deleted by the transaction that seals it, so it cannot be sealed twice
    with taken as (
      delete from app.audit_digests d
       where d.position in (select w.position from app.audit_digests w order by w.position limit audit_seal.batch)
      returning d.*
    )
    select t.* from taken t order by t.scope, t.position
  loop
    if head.scope is distinct from waiting.scope then
      if head.scope is not null then
        perform internal.audit_head_keep(head, former_position);
      end if;
      select h.* into head from app.audit_heads h where h.scope = waiting.scope order by h.month desc limit 1;
      if not found then
        head := row(waiting.scope, null, null, null, '', 0, null)::app.audit_heads;
      end if;
      former_position := head.last_position;
    end if;
    -- the time never goes back, so that a month of seals is one contiguous piece of the chain and is kept longer than
    -- its rows
    seal.sealed_at := greatest(internal.now(), head.last_at, waiting.occurred_at);
    month := date_trunc('month', seal.sealed_at at time zone 'UTC')::date;
    if month is distinct from head.month then
      if head.last_position > former_position then
        perform internal.audit_head_keep(head, former_position);
      end if;
      head.month := month;
      head.opening_hash := head.last_hash;
      head.opening_position := head.last_position;
      former_position := head.last_position;
    end if;
    seal.scope := waiting.scope;
    seal.position := head.last_position + 1;
    seal.event_id := waiting.event_id;
    seal.occurred_at := waiting.occurred_at;
    seal.digest := waiting.digest;
    seal.hash := internal.audit_seal_hash(head.last_hash, seal);
    insert into app.audit_seals select seal.*;
    head.last_hash := seal.hash;
    head.last_position := seal.position;
    head.last_at := seal.sealed_at;
    sealed := sealed + 1;
  end loop;
  if sealed > 0 then
    perform internal.audit_head_keep(head, former_position);
  end if;
  return sealed;
end $$;
comment on function internal.audit_seal is
  'Seals at most batch committed rows, each scope in its own chain, in the order of their positions; returns their
   number, or null when another sealer is at work. A row that commits after rows with later positions is sealed after
   them. One sealer works at a time in a database.';

create or replace function api.audit_seal(batch int) returns api.reply
language plpgsql volatile as $$
declare
  sealed constant int := internal.audit_seal(audit_seal.batch);
begin
  return internal.reply(200, json_build_object('sealed', coalesce(sealed, 0), 'is_busy', sealed is null,
                                               'is_over', not internal.audit_waiting()));
end $$;
comment on function api.audit_seal is
  'For the worker: one step of the sealer, {sealed, is_busy, is_over}. is_busy: another sealer is at work; is_over: no
   row waits for its seal.';
