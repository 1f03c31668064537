-- Codes that people read out and type.

create or replace function internal.random_code(size int) returns text
language plpgsql volatile as $$
declare
  -- nothing that is read as something else: no I, L, O, 0, 1
  alphabet constant text := 'ABCDEFGHJKMNPQRSTUVWXYZ23456789';
  made text := '';
begin
  while char_length(made) < random_code.size loop
    -- 248 is the largest multiple of 31 in a byte: what lies above would make some letters likelier
    select made || coalesce(string_agg(substr(alphabet, picked.value % 31 + 1, 1), ''), '') into made
      from (select get_byte(b.bytes, i) as value
              from (select extensions.gen_random_bytes(24) as bytes) b
             cross join generate_series(0, 23) as i
             where get_byte(b.bytes, i) < 248) picked;
  end loop;
  return left(made, random_code.size);
end $$;
comment on function internal.random_code is 'So many random characters of an alphabet of 31 that nobody confuses.';

create or replace function internal.code_normal(code text) returns text
language sql immutable parallel safe
-- people paste codes with whatever a chat made of their spaces and dashes
return upper(regexp_replace(code_normal.code, '[\s\u00ad\u200b-\u200d\u2010-\u2015\u2212\ufeff-]', '', 'g'));
comment on function internal.code_normal is 'A code as it is compared: without case, spaces and dashes of any kind.';
