-- Identifiers that sort by time: UUID version 7.
do $$
begin
  if current_setting('server_version_num')::int >= 180000 then
    create or replace function internal.new_id() returns uuid
    language sql volatile parallel safe
    return uuidv7();
  else
    create or replace function internal.new_id() returns uuid
    language sql volatile parallel safe
    return encode(
      -- random bytes, the first 48 bits replaced by milliseconds, version 4 turned into 7 by two bits
      set_bit(set_bit(
        overlay(uuid_send(gen_random_uuid())
                placing substring(int8send(floor(extract(epoch from clock_timestamp()) * 1000)::bigint) from 3)
                from 1 for 6),
        52, 1), 53, 1), 'hex')::uuid;
  end if;
end $$;
comment on function internal.new_id is 'A new UUID, version 7 (RFC 9562): later ones sort later.';

create or replace function internal.as_uuid(value text) returns uuid
language sql immutable parallel safe
return case
  -- a quarter of the time of one regular expression with counts in it
  when as_uuid.value like '________-____-____-____-____________'
   and as_uuid.value !~ '[^0-9a-fA-F-]'
   and length(replace(as_uuid.value, '-', '')) = 32
  then as_uuid.value::uuid
end;
comment on function internal.as_uuid is 'The uuid that a text spells in the 8-4-4-4-12 form, any version, or null.';
