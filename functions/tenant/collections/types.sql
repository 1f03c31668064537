-- The project's collections as types of programs: JSON Schema and TypeScript, of rows as they are answered and as they
-- are sent.

create or replace function internal.collection_type_schema(k app.collection_columns, is_sent boolean) returns json
language sql stable as $$
  select json_strip_nulls(json_build_object(
    'type', case when t.kinds is null then null
                 when (collection_type_schema.k).nullable then to_json(t.kinds || 'null'::text)
                   else to_json(t.kinds) end,
    'format', case when e.enum is not null then null
                   when (collection_type_schema.k).type in ('uuid', 'date') then (collection_type_schema.k).type
                   -- what is sent may lack its zone, or be a date
                   when (collection_type_schema.k).type = 'timestamptz'
                     and not collection_type_schema.is_sent then 'date-time' end,
    'enum', case when e.enum is null then null
                 when (collection_type_schema.k).nullable then (e.enum::jsonb || 'null'::jsonb)::json else e.enum end,
    'maxLength', (collection_type_schema.k).max_length,
    'minimum', (collection_type_schema.k).min, 'maximum', (collection_type_schema.k).max,
    'minItems', (collection_type_schema.k).dimensions, 'maxItems', (collection_type_schema.k).dimensions,
    'items', case (collection_type_schema.k).type
               when 'vector' then json_build_object('type', 'number')
               when 'text[]' then json_build_object('type', array['string', 'null'])
               when 'uuid[]' then json_build_object('type', array['string', 'null'], 'format', 'uuid')
               when 'boolean[]' then json_build_object('type', array['boolean', 'null'])
               when 'integer[]' then json_build_object('type', array['integer', 'null'])
               when 'bigint[]' then json_build_object('type', array['integer', 'string', 'null'])
               when 'numeric[]' then json_build_object('type', array['number', 'string', 'null']) end))
    from (select case
            when (collection_type_schema.k).type in ('text', 'uuid', 'date', 'timestamptz') then array['string']
            when (collection_type_schema.k).type = 'integer' then array['integer']
            when (collection_type_schema.k).type = 'double' then array['number']
            when (collection_type_schema.k).type = 'bigint' then array['integer', 'string']
            when (collection_type_schema.k).type = 'numeric' then array['number', 'string']
            when (collection_type_schema.k).type = 'boolean' then array['boolean']
            when (collection_type_schema.k).type <> 'jsonb' then array['array'] end as kinds) t,
         -- one value of the other types has several spellings in JSON
         (select case when (collection_type_schema.k).type in ('text', 'integer', 'double',
                                                               'date') then (collection_type_schema.k).enum end as enum)
                                                                 e
$$;
comment on function internal.collection_type_schema is
  'The JSON Schema of a column''s values, as they are answered or sent. A jsonb has none: any value.';

create or replace function internal.collection_type_text(k app.collection_columns) returns text
language sql stable as $$
  select case
    when (collection_type_text.k).type = 'jsonb' then 'unknown'
    else case
      when (collection_type_text.k).enum is not null
        and (collection_type_text.k).type in ('text', 'integer', 'double', 'date')
        then (select string_agg(e.value::text, ' | ' order by e.n)
                from json_array_elements((collection_type_text.k).enum) with ordinality as e (value, n))
      when (collection_type_text.k).type in ('integer', 'double') then 'number'
      when (collection_type_text.k).type in ('bigint', 'numeric') then 'number | string'
      when (collection_type_text.k).type = 'boolean' then 'boolean'
      when (collection_type_text.k).type = 'vector' then 'Array<number>'
      when (collection_type_text.k).type in ('text[]', 'uuid[]') then 'Array<string | null>'
      when (collection_type_text.k).type = 'boolean[]' then 'Array<boolean | null>'
      when (collection_type_text.k).type = 'integer[]' then 'Array<number | null>'
      when (collection_type_text.k).type in ('bigint[]', 'numeric[]') then 'Array<number | string | null>'
      else 'string'
    end || case when (collection_type_text.k).nullable then ' | null' else '' end
  end
$$;
comment on function internal.collection_type_text is 'The TypeScript of a column''s values.';

create or replace function internal.collection_types(c app.collections) returns table (schemas json, typescript text)
language sql stable as $$
  with columns as (
    select k.name, k.position, true as is_sent, k.nullable or k.default_value is not null as is_optional,
           internal.collection_type_schema(k, false) as answered, internal.collection_type_schema(k, true) as sent,
           internal.collection_type_text(k) as type
      from app.collection_columns k
     where k.collection_id = (collection_types.c).id
    union all
    select m.name, m.position, false, null, case
                                                 when m.nullable then json_build_object('type', array['string', 'null'],
                                                   'format', m.format)
                                                 else json_build_object('type', 'string', 'format', m.format) end,
           null, case when m.nullable then 'string | null' else 'string' end
      from (values ('id', -6, false, 'uuid'), ('user_id', -5, (collection_types.c).owner_scope = 'group', 'uuid'),
            ('group_id', -4, false, 'uuid'),
                   ('created_at', -3, false, 'date-time'), ('updated_at', -2, false, 'date-time'),
                   ('deleted_at', -1, true, 'date-time'))
           as m (name, position, nullable, format)
     where m.name <> 'group_id' or (collection_types.c).owner_scope = 'group'
  )
  select json_build_object(
           'row', json_build_object('$schema', 'https://json-schema.org/draft/2020-12/schema', 'type', 'object',
             'properties', json_object_agg(k.name, k.answered order by k.position),
             'required', json_agg(k.name order by k.position), 'additionalProperties', false),
           'input', json_build_object('$schema', 'https://json-schema.org/draft/2020-12/schema', 'type', 'object',
             'properties', coalesce(json_object_agg(k.name, k.sent order by k.position) filter (where k.is_sent), '{}'),
             'required', coalesce(json_agg(k.name order by k.position) filter (where k.is_sent and not k.is_optional),
                                  '[]'),
             'additionalProperties', false)),
         -- a description must not end the comment that it stands in
         coalesce('  /** ' || replace(regexp_replace((collection_types.c).description, '\s+', ' ', 'g'), '*/',
                                      '*\/') || E' */\n', '')
         || '  ' || (collection_types.c).name || E': {\n    row: {\n'
         || string_agg('      ' || k.name || ': ' || k.type || E'\n', '' order by k.position)
         || E'    }\n    input: {\n'
         || coalesce(string_agg('      ' || k.name || case when k.is_optional then '?'
                                                           else '' end || ': ' || k.type || E'\n', ''
                                                             order by k.position)
                       filter (where k.is_sent), '')
         || E'    }\n  }\n'
    from columns k
$$;
comment on function internal.collection_types is
  'A collection as {row, input}, each a JSON Schema, and as a member of the interface Collections of TypeScript.';

create or replace function api.collections_types() returns api.reply
language sql stable as $$
  select internal.reply(200, json_build_object(
           'typescript', E'export interface Collections {\n' || coalesce(string_agg(t.typescript, '' order by c.name),
                                                                         '') || E'}\n',
           'json_schema', coalesce(json_object_agg(c.name, t.schemas order by c.name), '{}')))
    from app.collections c
   cross join lateral internal.collection_types(c) t
$$;
comment on function api.collections_types is
  'The types of the rows of the project''s collections, at most 200: {typescript, json_schema {collection: {row,
   input}}}.';
