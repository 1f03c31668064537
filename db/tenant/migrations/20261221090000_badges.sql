-- migrate:up
create table app.badges (
  id          uuid primary key default internal.new_id(),
  key         text not null constraint badges_key_form check (key ~ '^[a-z][a-z0-9_-]{0,127}$'),
  name        text not null constraint badges_name_1_to_200 check (char_length(name) between 1 and 200)
                            constraint badges_name_is_one_line check (internal.is_line(name)),
  is_active   boolean not null default true,
  created_at  timestamptz not null default internal.now(),
  updated_at  timestamptz not null default internal.now(),
  constraint badges_key_unique unique (key)
);

-- migrate:down
drop table app.badges;
