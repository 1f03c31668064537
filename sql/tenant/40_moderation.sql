-- The trigger function of moderated texts, loaded before all areas, so that each can name it in triggers of its own.
-- See docs/moderation.md.
create or replace function internal.is_moderated_write() returns boolean
language sql stable parallel safe
return internal.caller() in ('user', 'server_key_user')
  and coalesce(current_setting('app.is_moderating', true), '') <> 'on';
comment on function internal.is_moderated_write is
  'Whether an end user writes, or a server for one, and not moderation itself.';

create or replace function internal.tg_moderated_text() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
declare
  t record;
  written constant jsonb := to_jsonb(new);
begin
  if not internal.is_moderated_write() then
    return null;
  end if;
  select m.* into strict t from internal.moderated_texts m where m.kind = tg_argv[0];
  perform internal.moderate(t.kind, t.subject_type, (written ->> t.id_column)::uuid,
                            (select string_agg(written ->> c.name, e'\n' order by c.n)
                               from unnest(t.text_columns) with ordinality c (name, n)));
  return null;
end $$;
comment on function internal.tg_moderated_text is
  'After a row with moderated columns was added, or one of them changed, by an end user: internal.moderate. Its argument
   is the kind in internal.moderated_texts.';
revoke execute on function internal.tg_moderated_text from public;
revoke execute on function internal.is_moderated_write from public;
