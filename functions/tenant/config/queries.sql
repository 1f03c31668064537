-- Evaluation for apps: one value for each key, of the key's declared type.
create or replace function internal.config_coerced(value_type text, value jsonb) returns json
language plpgsql immutable as $$
declare
  kind constant text := jsonb_typeof(config_coerced.value);
  bare constant text := btrim(config_coerced.value #>> '{}');
begin
  case
    when config_coerced.value_type = 'string' and kind in ('number', 'boolean') then
      return to_json(config_coerced.value #>> '{}');
    when config_coerced.value_type = 'number' and kind = 'string'
      and bare ~ '^-?(0|[1-9]\d{0,99})(\.\d{1,99})?([eE][+-]?\d{1,2})?$' then
      return to_json(bare::numeric);
    when config_coerced.value_type = 'boolean' and kind = 'string' and bare in ('true', 'false') then
      return bare::json;
    when config_coerced.value_type = 'boolean' and kind = 'number' and config_coerced.value in ('0', '1') then
      return to_json(config_coerced.value = '1');
    when config_coerced.value_type = 'json' and kind = 'string' then
      begin
        return bare::json;
      -- JSON that is nested more deeply than the stack allows counts as invalid too
      exception when invalid_text_representation or statement_too_complex then
        return config_coerced.value::json;
      end;
    else
      return config_coerced.value::json;
  end case;
end $$;
comment on function internal.config_coerced is
  'A value converted to its declared type; unchanged where it cannot be converted.';

create or replace function internal.config_value(k app.config_keys, app_user_id uuid, segment_ids uuid[]) returns jsonb
language sql stable as $$
  select coalesce(
    (select c.value -> 'value'
       from jsonb_array_elements((config_value.k).conditions) with ordinality as c (value, n)
      where (c.value ->> 'segment_id' is null
             or internal.as_uuid(c.value ->> 'segment_id') = any (config_value.segment_ids))
        and (c.value ->> 'percentage' is null
             or internal.bucket((config_value.k).key || ':',
                                config_value.app_user_id) < (c.value ->> 'percentage')::numeric * 100)
      order by c.n
      limit 1),
    (config_value.k).value)
$$;
comment on function internal.config_value is
  'The value of the first condition of a key that matches this user, else the default.';

create or replace function internal.etag_matches(if_none_match text, etag text) returns boolean
language sql immutable as $$
  -- our tags may contain commas, so the list cannot be split at commas
  select coalesce(btrim(etag_matches.if_none_match) in ('*', etag_matches.etag)
                  or strpos(etag_matches.if_none_match, '"' || etag_matches.etag || '"') > 0, false)
$$;
comment on function internal.etag_matches is
  'Whether an If-None-Match header names this tag (given without its quotes), weakly or not, alone or among others, or
   is *.';

create or replace function internal.config_tag() returns text
language sql stable security definer set search_path = '' as $$
  select v.version_hash from app.config_versions v
$$;
comment on function internal.config_tag is 'The hash of the project''s configuration.';

create or replace function api.config_values(if_none_match text default null) returns api.reply
language plpgsql stable as $$
declare
  me constant uuid := internal.user_id();
  tag text := internal.config_tag();
  segments uuid[];
  headers json;
begin
  -- segments are evaluated only for a signed-in user
  if me is not null then
    segments := internal.segment_ids_of(me);
    tag := concat_ws(':', tag, me, array_to_string(segments, ','));
  end if;
  headers := json_build_object(
    'ETag', '"' || tag || '"', 'Cache-Control', 'private, max-age=' || case when me is null then 300 else 60 end,
    'Vary', 'Authorization, X-On-Behalf-Of');
  if internal.etag_matches(config_values.if_none_match, tag) then
    return row(304, 'null', headers)::api.reply;
  end if;
  return internal.reply(200, (
    select coalesce(json_object_agg(k.key, internal.config_coerced(
             k.value_type, case when me is null then k.value else internal.config_value(k, me, segments) end)
               order by k.key), '{}')
      from app.config_keys k), headers);
end $$;
comment on function api.config_values is
  'Every key with its value for the caller; 304 when the caller''s ETag is current. Callers without a user get the
   defaults.';
