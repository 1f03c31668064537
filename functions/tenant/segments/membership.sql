-- Membership checks, for other areas.
create or replace function internal.segment_caller_check(app_user_id uuid) returns void
language plpgsql volatile as $$
begin
  if internal.caller() in ('user', 'server_key_user') and segment_caller_check.app_user_id is distinct
    from internal.user_id() then
    raise exception 'users ask for their own segments only';
  end if;
end $$;
comment on function internal.segment_caller_check is
  'Permits users to query their own membership only, and all other callers that of any user.';

create or replace function internal.segment_member(segment_id uuid, app_user_id uuid) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.segment_caller_check(segment_member.app_user_id);
  return segment_member.segment_id = any (internal.segments_holding(array[segment_member.segment_id],
                                                                    segment_member.app_user_id));
end $$;
comment on function internal.segment_member is
  'Whether a user is in a segment, evaluated now. False for a segment or user that does not exist, and for an inactive
   segment.';

create or replace function internal.segment_ids_of(app_user_id uuid) returns uuid[]
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.segment_caller_check(segment_ids_of.app_user_id);
  return internal.segments_holding(array(select s.id from app.segments s where s.is_active),
                                   segment_ids_of.app_user_id);
end $$;
comment on function internal.segment_ids_of is 'The segments that a user is in, evaluated now, sorted.';

create or replace function internal.segment_lock_shared(segment_id uuid) returns boolean
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform from app.segments s where s.id = segment_lock_shared.segment_id for key share;
  return found;
end $$;
comment on function internal.segment_lock_shared is
  'Whether a segment exists; a shared lock keeps it until this transaction ends. Every function that stores a segment''s
   id calls this, and declares it in internal.segment_used__<area>(uuid).';
