-- What promotion copies and what is not one row of one table: by functions of each kind, found by their names.
create or replace function internal.promotion_composed(kind text) returns internal.composed_definitions
language sql stable as $$
  select c.* from internal.composed_definitions c where c.kind = promotion_composed.kind
$$;
comment on function internal.promotion_composed is
  'The declaration of a composed kind; null for a kind of internal.definitions.';

create or replace function internal.promotion_composed_rows(kind text) returns table (key text, configuration jsonb)
language plpgsql stable as $$
begin
  return query execute format('select r.key, r.configuration from internal.%I() r',
                              'promotion_rows__' || promotion_composed_rows.kind);
end $$;
comment on function internal.promotion_composed_rows is
  'What a composed kind has in this project, as it is copied, by internal.promotion_rows__<kind>().';

create or replace function internal.promotion_merged(kind text, was jsonb, wanted jsonb) returns jsonb
language plpgsql stable as $$
declare
  hook constant regprocedure := to_regprocedure(format('internal.%I(jsonb,jsonb)',
                                                       'promotion_merged__' || promotion_merged.kind));
  merged jsonb;
begin
  if hook is null or promotion_merged.was is null then
    return promotion_merged.was || promotion_merged.wanted;
  end if;
  execute format('select %s($1, $2)', hook::regproc) into merged using promotion_merged.was, promotion_merged.wanted;
  return merged;
end $$;
comment on function internal.promotion_merged is
  'What something is to be, of what it is and what a document says: the fields of the document over those that are
   there, or what internal.promotion_merged__<kind>(was, wanted) says.';

create or replace function internal.promotion_refusal(kind text, op text, wanted jsonb, was jsonb) returns text[]
language plpgsql stable as $$
declare
  hook constant regprocedure := to_regprocedure(format('internal.%I(text,jsonb,jsonb)',
                                                       'promotion_refusal__' || promotion_refusal.kind));
  refused text[];
begin
  if hook is not null and promotion_refusal.op <> 'delete' then
    execute format('select %s($1, $2, $3)', hook::regproc) into refused using promotion_refusal.op,
      promotion_refusal.wanted, promotion_refusal.was;
  end if;
  return refused;
end $$;
comment on function internal.promotion_refusal is
  'Why a change of a composed kind is blocked, {code, reason}, by internal.promotion_refusal__<kind>(op, wanted, was);
   null where it is not.';

create or replace function internal.promotion_composed_write(kind text, op text, key text, wanted jsonb) returns void
language plpgsql volatile as $$
begin
  execute format('select internal.%I($1, $2, $3)', 'promotion_write__' || promotion_composed_write.kind)
    using promotion_composed_write.op, promotion_composed_write.key, promotion_composed_write.wanted;
end $$;
comment on function internal.promotion_composed_write is
  'Executes one op on a composed kind, by internal.promotion_write__<kind>(op, key, wanted): wanted is all that it is to
   be. Refuses as the routes of the kind do.';

create or replace function internal.promotion_composed_lock(kind text, keys text[]) returns void
language plpgsql volatile as $$
declare
  hook constant regprocedure := to_regprocedure(format('internal.%I(text[])',
                                                       'promotion_lock__' || promotion_composed_lock.kind));
begin
  if hook is not null then
    execute format('select %s($1)', hook::regproc) using promotion_composed_lock.keys;
  end if;
end $$;
comment on function internal.promotion_composed_lock is
  'Locks what a plan changes of a composed kind until the transaction ends, by internal.promotion_lock__<kind>(keys).';

create or replace function internal.promotion_parts(kind text) returns jsonb
language plpgsql stable as $$
declare
  hook constant regprocedure := case when promotion_parts.kind is not null then to_regprocedure(format('internal.%I()',
                                        'promotion_parts__' || promotion_parts.kind)) end;
  parts jsonb := '{}';
begin
  if hook is not null then
    execute format('select %s()', hook::regproc) into parts;
  end if;
  return parts;
end $$;
comment on function internal.promotion_parts is
  'The lists of objects in a composed kind and the fields of these, {field: [name]}, by
   internal.promotion_parts__<kind>(); {} where it has none, and for null.';
