-- The sentence of a refusal for a CHECK of one column, made from the CHECK: a policy file declares a table,
-- internal.checks_declare writes the comments of those constraints that have none. A check that names several columns,
-- or that this file does not know, gets its comment by hand.
create or replace function internal.check_sentence(definition text, name text) returns text
language plpgsql immutable parallel safe as $$
declare
  least constant text := substring(check_sentence.definition from '>= ''?([0-9.]+)');
  most constant text := substring(check_sentence.definition from '<= ''?([0-9.]+)');
  size constant text := format('char_length(%I)', check_sentence.name);
  words text[];
begin
  case check_sentence.definition
    when format('CHECK (internal.is_line(%I))', check_sentence.name) then
      return 'must be one line of text.';
    when format('CHECK (((%1$s >= %2$s) AND (%1$s <= %3$s)))', size, least, most) then
      return format('must have %s to %s characters.', least, most);
    when format('CHECK ((%s <= %s))', size, most) then
      return format('must have at most %s characters.', most);
    when format('CHECK ((cardinality(%I) <= %s))', check_sentence.name, most) then
      return format('must have at most %s items.', most);
    when format('CHECK ((jsonb_typeof(%I) = ''object''::text))', check_sentence.name) then
      return 'must be an object.';
    else null;
  end case;
  -- bigint constants are written '1000000000000'::bigint
  if regexp_replace(check_sentence.definition, '''([0-9]+)''::bigint', '\1', 'g')
     = format('CHECK (((%1$I >= %2$s) AND (%1$I <= %3$s)))', check_sentence.name, least, most) then
    return format('must be %s to %s.', least, most);
  end if;
  words := array(select w[1] from regexp_matches(
    substring(check_sentence.definition from format('^CHECK \(\(%I = ANY \(ARRAY\[(.*)\]\)\)\)$', check_sentence.name)),
      '''([^'']*)''::text', 'g') w);
  if cardinality(words) > 1 then
    return format('must be %s or %s.', array_to_string(trim_array(words, 1), ', '), words[cardinality(words)]);
  end if;
  return 'must match ' || substring(check_sentence.definition from format('^CHECK \(\(%I ~ ''([^'']*)''::text\)\)$',
                                                                          check_sentence.name)) || '.';
end $$;
comment on function internal.check_sentence is
  'What a CHECK of one column asks, as the end of a sentence: "must have 1 to 200 characters." Null for a check of
   another form.';

create or replace function internal.checks_declare(source regclass, code text default 'VALIDATION_ERROR',
                                                   but text[] default '{}')
returns void
language plpgsql volatile as $$
declare
  of record;
begin
  for of in
    select k.conname, a.attname, internal.check_sentence(pg_catalog.pg_get_constraintdef(k.oid), a.attname) as sentence
      from pg_catalog.pg_constraint k
      join pg_catalog.pg_attribute a on a.attrelid = k.conrelid and k.conkey = array[a.attnum]
        and a.attname <> all (checks_declare.but)
     where k.conrelid = checks_declare.source and k.contype = 'c'
       and pg_catalog.obj_description(k.oid, 'pg_constraint') is null
  loop
    if of.sentence is not null then
      execute format('comment on constraint %I on %s is %L', of.conname, checks_declare.source,
                     format('400 %s %s: %s', checks_declare.code, of.attname, of.sentence));
    end if;
  end loop;
end $$;
comment on function internal.checks_declare is
  'Writes the refusals of the checks of a table that have none and that internal.check_sentence knows: 400 with the
   code, the column and the sentence. Leaves out the columns that only functions write, where a wrong value is a defect.
   For policy files.';
