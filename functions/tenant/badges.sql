comment on constraint badges_key_unique on app.badges is '409 CONFLICT key: A badge with this key exists.';

create or replace trigger tg_badges__audit
  after insert or update or delete on app.badges
  for each row execute function internal.tg_audit('badges');

create or replace function api.badges_retire() returns api.reply
language plpgsql volatile as $$
declare
  retired int;
begin
  update app.badges b set is_active = false where b.is_active;
  get diagnostics retired = row_count;
  return internal.reply(200, json_build_object('retired', retired));
end $$;
comment on function api.badges_retire is 'Retires all badges: the number of those that were active.';
