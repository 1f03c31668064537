-- Bucketing of users for percentages: the same on every server and in every SDK that implements FNV-1a.
create or replace function internal.fnv1a32(value text) returns bigint
language plpgsql immutable parallel safe as $$
declare
  bytes constant bytea := convert_to(fnv1a32.value, 'UTF8');
  hash bigint := 2166136261;
begin
  for i in 0 .. length(bytes) - 1 loop
    hash := ((hash # get_byte(bytes, i)) * 16777619) & 4294967295;
  end loop;
  return hash;
end $$;
comment on function internal.fnv1a32 is 'FNV-1a, 32 bits, of the text''s UTF-8.';

create or replace function internal.bucket(seed text, app_user_id uuid) returns int
language sql immutable parallel safe
return internal.fnv1a32(internal.fnv1a32(bucket.seed || bucket.app_user_id)::text) % 10000;
comment on function internal.bucket is
  'A user''s bucket for a seed, 0 to 9999: a percentage includes the buckets below a hundred times it, so raising it
   only adds users.';
