-- Answers and refusals. What raises is volatile: the planner would evaluate an immutable refusal while it plans. Times
-- go out through internal.iso, errors through internal.fail or internal.refuse. What makes JSON is stable and not
-- immutable, as json_build_object is: only so does Postgres put its text in the place of the call, which is ten times
-- cheaper.
create or replace function internal.iso(at timestamptz) returns text
language sql stable parallel safe
return to_char(iso.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
comment on function internal.iso is 'ISO 8601 in UTC with milliseconds and Z, as every time in an answer.';

create or replace function internal.reply(status int, data json, headers json default null) returns api.reply
language sql stable parallel safe
return row(reply.status, json_build_object('data', reply.data), reply.headers)::api.reply;
comment on function internal.reply is 'An answer with one key, data.';

create or replace function internal.reply_deleted() returns api.reply
language sql stable parallel safe
return internal.reply(200, '{"deleted": true}');
comment on function internal.reply_deleted is 'The answer to a deletion: 200 {"deleted": true}.';

create or replace function internal.json_merge(a json, b json) returns json
language sql immutable parallel safe
return case
  when json_merge.a::text ~ '^\s*\{\s*\}\s*$' then json_merge.b
  when json_merge.b::text ~ '^\s*\{\s*\}\s*$' then json_merge.a
  else (left(rtrim(json_merge.a::text), -1) || ', ' || substr(ltrim(json_merge.b::text), 2))::json
end;
comment on function internal.json_merge is
  'The fields of one object and then those of another, in their order. jsonb would sort them, and costs three times as
   much.';

create or replace function internal.page_bytes() returns int
language sql immutable parallel safe
return 8388608;
comment on function internal.page_bytes is
  'The most bytes that the rows of one page, or of one batch of an export, may have: 8 MB. A single row may have more.';

create or replace function internal.json_fitting(data json, out shown json, out n bigint)
language sql stable parallel safe as $$
  select json_agg(e.value order by e.n), count(*)
    from (select r.value, r.n, sum(octet_length(r.value::text) + 2) over (order by r.n) as bytes
            from json_array_elements(json_fitting.data) with ordinality as r (value, n)) as e
   where e.n = 1 or e.bytes <= internal.page_bytes()
$$;
comment on function internal.json_fitting is
  'The first elements of a list, as many as internal.page_bytes() allows and at least one, and how many that are.';

create or replace function internal.reply_page(data json, total bigint, page_offset bigint, page_limit bigint)
returns api.reply
language sql stable parallel safe
return case
  when reply_page.data is null or octet_length(reply_page.data::text) <= internal.page_bytes()
  then row(200, json_build_object('data', coalesce(reply_page.data, '[]'), 'total', reply_page.total,
                                  'offset', reply_page.page_offset, 'limit', reply_page.page_limit), null)::api.reply
  else (select row(200, json_build_object('data', f.shown, 'total', reply_page.total, 'offset', reply_page.page_offset,
                                          'limit', f.n), null)::api.reply
          from internal.json_fitting(reply_page.data) f)
end;
comment on function internal.reply_page is
  'An offset-paged list: data, total, offset, limit. Null data is an empty list. Of rows of more than 8 MB the first
   that fit, and limit is their number: the next page begins at offset + limit.';

create or replace function internal.reply_cursor(data json, next_cursor text, total bigint default null)
returns api.reply
language sql stable parallel safe
return row(200, json_build_object('data', coalesce(reply_cursor.data, '[]'),
                                  'pagination', json_build_object('next_cursor', reply_cursor.next_cursor,
                                                                  'total', reply_cursor.total)), null)::api.reply;
comment on function internal.reply_cursor is
  'A cursor-paged list: data and pagination {next_cursor, total}. Null data is an empty list.';

create or replace function internal.refuse(status int, code text, message text, details json default null,
                                           headers json default null)
returns api.reply
language sql stable parallel safe
return row(refuse.status,
           json_build_object('error', case
             when refuse.details is null then json_build_object('code', refuse.code, 'message', refuse.message)
             else json_build_object('code', refuse.code, 'message', refuse.message, 'details', refuse.details)
           end), refuse.headers)::api.reply;
comment on function internal.refuse is
  'A refusal that is returned, so that what was written with it stays: a counted failure, an ended session.';

create or replace function internal.fail(status int, code text, message text, details json default null,
                                         headers json default null)
returns void
language plpgsql volatile as $$
begin
  raise exception using
    errcode = 'TR000',
    message = fail.message,
    detail = json_build_object('status', fail.status, 'code', fail.code, 'details', fail.details,
                               'headers', fail.headers)::text;
end $$;
comment on function internal.fail is
  'Refuses and undoes everything: raises TR000, which the server answers as this status, code, message and details.';

create or replace function internal.invalid(field text, reason text, code text default 'VALIDATION_ERROR') returns void
language sql volatile
return internal.fail(400, invalid.code, invalid.field || ': ' || invalid.reason,
                     json_build_object('field', invalid.field, 'reason', invalid.reason));
comment on function internal.invalid is 'Refuses a field of the request: 400 with details {field, reason}.';

create or replace function internal.check_found(is_found boolean, thing text, code text default 'NOT_FOUND')
returns void
language plpgsql volatile as $$
begin
  if check_found.is_found is not true then
    perform internal.fail(404, check_found.code, 'There is no such ' || check_found.thing || '.');
  end if;
end $$;
comment on function internal.check_found is 'Refuses 404 with the entity''s own code when it was not found.';

create or replace function internal.check_limit(taken bigint, most int, message text, code text default 'LIMIT_REACHED')
returns void
language plpgsql volatile as $$
begin
  if check_limit.taken >= check_limit.most then
    perform internal.fail(409, check_limit.code, check_limit.message, json_build_object('limit', check_limit.most));
  end if;
end $$;
comment on function internal.check_limit is
  'Refuses 409 LIMIT_REACHED with details {limit} when there are as many as may be. The caller holds a lock, so that two
   at once cannot pass together.';

create or replace function internal.return_setting(name text, value text) returns void
language plpgsql volatile as $$
begin
  perform set_config(return_setting.name, return_setting.value, true);
  -- what a trigger does after the statement's answer was built, the answer cannot say
  if current_setting('app.is_answered', true) = 'on' then
    raise info using errcode = 'TR002', message = return_setting.name || '=' || return_setting.value;
  end if;
end $$;
comment on function internal.return_setting is
  'Returns a value to the server through a transaction-local setting that every statement reads back, app.due_at or
   app.changed; as a notice where the response is built already.';

create or replace function internal.changed(what text) returns void
language sql volatile as $$
  select internal.return_setting('app.changed',
                                 concat_ws(',', nullif(current_setting('app.changed', true), ''), changed.what))
$$;
comment on function internal.changed is
  'Cache invalidation: makes the servers drop a cached credential after this commit: key:<sha256 hex>, session:<id>,
   user:<id>, project:<id>, token:<id> (a personal access token), developer:<id> (all that an account holds).';

create or replace function internal.constraint_refusal(constraint_schema text, table_name text, constraint_name text)
returns text
language sql stable as $$
  select coalesce(
    (select obj_description(c.oid, 'pg_constraint')
       from pg_catalog.pg_constraint c
       join pg_catalog.pg_class t on t.oid = c.conrelid
      where t.relnamespace = to_regnamespace(quote_ident(constraint_refusal.constraint_schema))
        and t.relname = constraint_refusal.table_name
        and c.conname = constraint_refusal.constraint_name),
    (select obj_description(i.oid, 'pg_class')
       from pg_catalog.pg_class i
      where i.relnamespace = to_regnamespace(quote_ident(constraint_refusal.constraint_schema))
        and i.relname = constraint_refusal.constraint_name
        and i.relkind in ('i', 'I')))
$$;
comment on function internal.constraint_refusal is
  'The comment of a violated constraint or unique index, "409 CONFLICT key: A streak with this key exists.", which the
   server answers; null when the constraint is none that a person can violate.';
