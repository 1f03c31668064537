-- Invocations: api.ai_begin reserves what a call may cost at most, before the provider is called; api.ai_finish records
-- what it has cost. Both are called by the server as app_worker under the claims of the caller, so that no one else
-- can. Lock order: the window of the rate limit, users, the prompt, the spend ceiling.

create or replace function internal.ai_rendered(template text, variables jsonb, code text) returns text
language plpgsql stable as $$
declare
  -- internal.ai_placeholder_form without its lengths, which make an expression of Postgres ten times as slow: a longer
  -- one is no placeholder, and stays as it is
  form constant text := '(\{\{\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*(?:\|([^{}]*))?\}\})';
  rendered text;
begin
  if strpos(ai_rendered.template, '{{') = 0 then
    return ai_rendered.template;
  end if;
  -- in one pass: what is filled in is never read for placeholders
  select string_agg(l.literal || case when length(m.groups[2]) > 200 or length(m.groups[3]) > 250 then m.groups[1]
                                      else coalesce(nullif(ai_rendered.variables #>> string_to_array(m.groups[2], '.'),
                                                           ''), m.groups[3], '') end, '' order by l.n)
    into rendered
    from regexp_split_to_table(ai_rendered.template, form) with ordinality as l (literal, n)
    left join regexp_matches(ai_rendered.template, form, 'g') with ordinality as m (groups, n) on m.n = l.n;
  if char_length(rendered) > 1000000 then
    perform internal.invalid('context', 'makes a system prompt of more than 1000000 characters', ai_rendered.code);
  end if;
  return rendered;
end $$;
comment on function internal.ai_rendered is
  'A system prompt with its {{path|fallback}} filled in; a path that leads nowhere, or to an empty text, is its
   fallback, or nothing.';

create or replace function internal.ai_variables(context jsonb, app_user_id uuid) returns jsonb
language sql stable as $$
  select coalesce(ai_variables.context, '{}') || coalesce((
    select jsonb_build_object('user', jsonb_build_object('display_name', u.display_name, 'properties', u.properties))
      from app.users u where u.id = ai_variables.app_user_id), '{}')
$$;
comment on function internal.ai_variables is
  'The variables of a system prompt: the context of the request, and the user, whom the server fills in.';

create or replace function api.ai_begin(prompt text, is_client boolean, kind text, context jsonb, texts text,
                                        bytes bigint, images int, has_messages boolean, max_tokens int, address text,
                                        allows_echo boolean, prices jsonb, is_comped boolean default false,
                                        is_stream boolean default false)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := case when internal.caller() in ('user', 'server_key_user') then internal.user_id() end;
  invocation_id constant uuid := internal.new_id();
  reservation_ends constant timestamptz := internal.now() + interval '15 minutes';
  invalid_code constant text := case when ai_begin.is_client then 'VALIDATION_ERROR' else 'INVALID_INPUT' end;
  p app.ai_prompts;
  price record;
  system_text text;
  most_tokens int;
  reserve numeric;
  used record;
  charge app.currency_transactions;
  c app.currencies;
  moderates_output boolean;
  begun app.ai_invocations;
begin
  select a.* into p from app.ai_prompts a where a.name = ai_begin.prompt
     and (a.client_invokable or not ai_begin.is_client);
  perform internal.check_found(found, 'prompt');
  perform internal.ai_provider_check(p.provider, ai_begin.allows_echo);
  system_text := internal.ai_rendered(p.system_prompt, internal.ai_variables(ai_begin.context, me), invalid_code);
  if not ai_begin.has_messages and coalesce(btrim(system_text), '') = '' then
    perform internal.invalid('messages', 'is required for a prompt without system_prompt', invalid_code);
  end if;
  price := internal.ai_price(p.provider, p.model, ai_begin.prices);
  if ai_begin.images > 0 and price.is_multimodal is false then
    perform internal.fail(422, 'ai_model_not_multimodal', format('%s takes no images.', left(p.model, 200)));
  end if;
  -- an evaluation is a test of the prompt, not its use
  if p.rate_limit is not null and ai_begin.kind <> 'evaluate' then
    perform internal.check_rate(
      format('ai %s %s', p.id, case p.rate_limit ->> 'key'
                                    when 'user' then coalesce(me::text, internal.actor() ->> 'id',
                                                              'nobody') when 'ip' then ai_begin.address else '' end),
      (p.rate_limit ->> 'max')::int, (p.rate_limit ->> 'window')::int,
      'This prompt was invoked too often: wait before the next call.');
  end if;
  if me is not null then
    perform internal.moderate('ai_input', 'ai_invocation', invocation_id, ai_begin.texts,
                              jsonb_build_object('prompt', p.name), me);
    if exists (select from app.moderation_items i
                where i.subject_type = 'ai_invocation' and i.subject_id = invocation_id and i.is_hidden) then
      -- returned, so that the item stays in the queue
      return internal.refuse(400, 'CONTENT_REJECTED', 'A moderation rule of the app rejects this text: change it.');
    end if;
    if p.cost is not null then
      perform internal.ledger_lock_user(me);
      c := internal.currency_find(p.cost ->> 'currency_code', true);
      charge := internal.currency_apply(me, c, -(p.cost ->> 'amount')::bigint, 'ai', 'spend', invocation_id::text,
                                        jsonb_build_object('prompt', p.name));
    end if;
  end if;
  most_tokens := least(coalesce(ai_begin.max_tokens, p.max_tokens), p.max_tokens);
  -- a token is at least one byte; an image counts 3000 tokens
  reserve := ((ai_begin.bytes + coalesce(octet_length(system_text),
                                         0) + 3000 * ai_begin.images) * price.input_usd
                                           + most_tokens * price.output_usd) / 1000000;
  if p.budget_usd is not null then
    -- calls of one prompt under a budget reserve one after the other; the budget may have changed meanwhile
    select a.* into p from app.ai_prompts a where a.id = p.id for no key update;
    perform internal.check_found(found, 'prompt');
    -- in one statement: a call that is finished meanwhile is in one of the sums
    select internal.ai_period_spend(p.id, p.budget_period) as spend,
           coalesce((select sum(i.reserved_usd) from app.ai_invocations i
                      where i.prompt_id = p.id and i.status = 'running'
                        -- one that was abandoned, and is not released yet, is owed on its day
                        and (i.expires_at > internal.now() or p.budget_period = 'total'
                             or i.created_at >= internal.ai_period_start(p.budget_period, null))), 0) as held
      into used;
    if used.spend + used.held + reserve > p.budget_usd or used.spend >= p.budget_usd then
      perform internal.fail(429, 'ai_budget_exceeded', 'The budget of this prompt does not cover this call.',
                            case when me is null then json_build_object(
                              'budget_usd', internal.ai_number(p.budget_usd), 'budget_period', p.budget_period,
                              'period_spend_usd', internal.ai_number(used.spend),
                              'reserved_usd', internal.ai_number(used.held),
                              'call_usd', internal.ai_number(reserve)) end);
    end if;
  end if;
  perform internal.spend_check(ai_begin.is_comped, reserve);
  moderates_output := me is not null and exists (select from app.moderation_rules r
                                                  where r.is_active and 'ai_output' = any (r.applies_to)
                                                    and r.rule_type <> 'report_threshold');
  insert into app.ai_invocations (id, kind, prompt_id, prompt, version, provider, model, app_user_id, input_usd,
                                  output_usd, reserved_usd, charge_id,
                                  moderates_output, is_streamed, expires_at)
  values (invocation_id, ai_begin.kind, p.id, p.name, p.version, p.provider, p.model, me, price.input_usd,
          price.output_usd, reserve, charge.id,
          -- a text that has to be evaluated is held back until its end is recorded
          moderates_output, ai_begin.is_stream and not moderates_output, reservation_ends)
  returning * into begun;
  perform internal.enqueue('ai__release', invocation_id::text, due_at => reservation_ends);
  if internal.caller() = 'developer' then
    perform internal.audit('ai.' || ai_begin.kind, 'ai_prompts', p.id::text,
                           json_build_object('invocation_id', json_build_array(null, invocation_id)), 200);
  end if;
  return internal.reply(200, json_build_object(
    'id', begun.id, 'prompt', begun.prompt, 'version', begun.version, 'provider', begun.provider, 'model', begun.model,
      'system', system_text,
    'max_tokens', most_tokens, 'moderates_output', begun.moderates_output, 'log_payloads', p.log_payloads,
    'api_key_sealed', (select k.api_key_sealed from app.ai_providers k where k.name = p.provider)));
end $$;
comment on function api.ai_begin is
  'For the server: admits a call of a prompt and reserves what it may cost at most. Refuses 404 NOT_FOUND, 409
   PROVIDER_NOT_REGISTERED, INSUFFICIENT_FUNDS, 422 ai_model_not_multimodal, 429 RATE_LIMITED, ai_budget_exceeded, 402
   SPEND_CEILING_REACHED, 400 CONTENT_REJECTED, 403 USER_MUTED. A reservation ends with api.ai_finish, which books what
   the call has cost, or after 15 minutes with api.ai_release, which books the reservation.';

create or replace function internal.ai_refund(invocation app.ai_invocations) returns void
language plpgsql volatile security definer set search_path = '' as $$
declare
  charge app.currency_transactions;
begin
  select t.* into charge from app.currency_transactions t where t.id = (ai_refund.invocation).charge_id;
  if charge.id is null or exists (select from app.currency_transactions t
                                   where (t.app_user_id, t.source_type, t.source_id, t.currency_code)
                                           = (charge.app_user_id, 'refund', charge.id::text, charge.currency_code)) then
    return;
  end if;
  perform internal.currency_undo(charge);
exception when others then
  if internal.is_passing(sqlstate) then
    raise;
  end if;
  -- the balance is full, or the currency deleted: there is nothing to give back to
  return;
end $$;
comment on function internal.ai_refund is
  'Gives back the currency that an invocation was charged, once. The user must be locked. Granted to nobody.';

create or replace function internal.ai_book(invocation app.ai_invocations, booked_usd numeric, calls int) returns void
language sql volatile security definer set search_path = '' as $$
  -- the day on which the call was made: its reservation was one of that day
  insert into app.ai_prompt_days as d (prompt_id, day, spend_usd, calls)
  select p.id, internal.utc_day((ai_book.invocation).created_at), ai_book.booked_usd, ai_book.calls
    from app.ai_prompts p
   where p.id = (ai_book.invocation).prompt_id
     for key share
  on conflict (prompt_id, day) do update set spend_usd = d.spend_usd + excluded.spend_usd,
    calls = d.calls + excluded.calls
$$;
comment on function internal.ai_book is
  'Adds to the sums of a prompt on the day of a call; of a call without a prompt nothing. Granted to nobody.';

create or replace function api.ai_finish(invocation_id uuid, outcome text, input_tokens bigint, output_tokens bigint,
                                         is_estimated boolean, finish_reason text default null,
                                         error_code text default null, output text default null,
                                         payload jsonb default null)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  owner_id constant uuid := (select i.app_user_id from app.ai_invocations i where i.id = ai_finish.invocation_id);
  state text := ai_finish.outcome;
  done app.ai_invocations;
  -- what was booked of the call already
  booked_usd numeric;
  booked_calls int;
begin
  if owner_id is not null then
    perform internal.lock_users(array[owner_id]);
  end if;
  -- one that counts as abandoned comes to its end after all
  select i.* into done
    from app.ai_invocations i
   where i.id = ai_finish.invocation_id and (i.status = 'running' or i.error_code = 'ABANDONED')
     for update;
  if not found then
    -- a repetition of a call whose answer was lost; the user may be deleted
    return internal.reply(200, (select json_build_object('cost_usd', coalesce(internal.ai_number(max(i.cost_usd)), 0),
                                                         'is_rejected', coalesce(bool_or(i.status = 'rejected'), false))
                                  from app.ai_invocations i where i.id = ai_finish.invocation_id));
  end if;
  booked_usd := coalesce(done.cost_usd, 0);
  booked_calls := case when done.status = 'running' then 0 else 1 end;
  if done.moderates_output and ai_finish.output <> '' then
    begin
      perform internal.moderate('ai_output', 'ai_invocation', done.id, ai_finish.output,
                                jsonb_build_object('prompt', done.prompt), done.app_user_id, false);
      if exists (select from app.moderation_items i
                  where i.subject_type = 'ai_invocation' and i.subject_id = done.id and i.is_hidden) then
        state := 'rejected';
      end if;
    exception when others then
      if internal.is_passing(sqlstate) then
        raise;
      end if;
      -- what cannot be evaluated is not shown; the cost is recorded all the same
      state := 'rejected';
    end;
  end if;
  update app.ai_invocations i
     set status = state, error_code = case when state = 'rejected' then 'CONTENT_REJECTED'
                                           else ai_finish.error_code end,
         input_tokens = ai_finish.input_tokens, output_tokens = ai_finish.output_tokens,
         is_estimated = ai_finish.is_estimated,
         cost_usd = (ai_finish.input_tokens * i.input_usd + ai_finish.output_tokens * i.output_usd) / 1000000,
         finish_reason = left(ai_finish.finish_reason, 100), payload = ai_finish.payload, finished_at = internal.now()
   where i.id = done.id
  returning i.* into done;
  perform internal.ai_book(done, done.cost_usd - booked_usd, 1 - booked_calls);
  delete from app.outbox o where o.task = 'ai__release' and o.key = done.id::text and o.locked_until is null;
  if done.status in ('failed', 'rejected') then
    perform internal.ai_refund(done);
  elsif done.status = 'succeeded' and done.app_user_id is not null and done.kind = 'invoke' then
    perform internal.emit(done.app_user_id, 'svc.ai.invoked', jsonb_build_object(
      'invocation_id', done.id, 'prompt', done.prompt, 'version', done.version, 'provider', done.provider,
        'model', done.model,
      'input_tokens', done.input_tokens, 'output_tokens', done.output_tokens,
      'cost_usd', internal.ai_number(done.cost_usd)));
  end if;
  return internal.reply(200, json_build_object('cost_usd', internal.ai_number(done.cost_usd),
                                               'is_rejected', done.status = 'rejected'));
end $$;
comment on function api.ai_finish is
  'For the server: records how an invocation ended: succeeded, failed or cancelled, and its tokens; evaluates the rules
   of moderation for output, {is_rejected}; books the cost on the day of the call, in place of a reservation that was
   booked because the call counted as abandoned; gives back the currency of one that failed or was rejected; emits
   svc.ai.invoked. Locks the user and the invocation.';

create or replace function api.ai_reserve(kind text, provider text, model text, most_input bigint,
                                          most_output bigint default 0, prices jsonb default '{}',
                                          is_comped boolean default false)
returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  me constant uuid := case when internal.caller() in ('user', 'server_key_user') then internal.user_id() end;
  reservation_ends constant timestamptz := internal.now() + interval '15 minutes';
  price record := internal.ai_price(ai_reserve.provider, ai_reserve.model, ai_reserve.prices);
  reserve constant numeric := (ai_reserve.most_input * price.input_usd
                               + ai_reserve.most_output * price.output_usd) / 1000000;
  begun app.ai_invocations;
begin
  perform internal.ai_provider_check(ai_reserve.provider, false);
  perform internal.spend_check(ai_reserve.is_comped, reserve);
  insert into app.ai_invocations (kind, provider, model, app_user_id, input_usd, output_usd, reserved_usd, expires_at)
  select ai_reserve.kind, ai_reserve.provider, left(ai_reserve.model, 200), u.id, price.input_usd, price.output_usd,
         reserve, reservation_ends
    from (select) one
    left join app.users u on u.id = me
  returning * into begun;
  perform internal.enqueue('ai__release', begun.id::text, due_at => reservation_ends);
  if internal.caller() = 'developer' then
    perform internal.audit('ai.' || ai_reserve.kind, 'ai_invocations', begun.id::text,
                           json_build_object('provider', json_build_array(null, ai_reserve.provider)), 200);
  end if;
  return internal.reply(200, json_build_object(
    'id', begun.id, 'api_key_sealed', (select k.api_key_sealed from app.ai_providers k
                                        where k.name = ai_reserve.provider)));
end $$;
comment on function api.ai_reserve is
  'For the server: admits a call that belongs to no prompt, messages or embeddings, and reserves what so many tokens
   cost: {id, api_key_sealed}. Refuses 409 PROVIDER_NOT_REGISTERED, 402 SPEND_CEILING_REACHED. A reservation ends as one
   of api.ai_begin does.';

create or replace function api.ai_release(invocation_id uuid) returns api.reply
language plpgsql volatile security definer set search_path = '' as $$
declare
  owner_id constant uuid := (select i.app_user_id from app.ai_invocations i where i.id = ai_release.invocation_id);
  abandoned app.ai_invocations;
begin
  if owner_id is not null then
    perform internal.lock_users(array[owner_id]);
  end if;
  update app.ai_invocations i
     set status = 'failed', error_code = 'ABANDONED', input_tokens = 0, output_tokens = 0, is_estimated = true,
       cost_usd = i.reserved_usd,
         finished_at = internal.now()
   where i.id = ai_release.invocation_id and i.status = 'running' and i.expires_at <= internal.now()
  returning i.* into abandoned;
  if found then
    perform internal.ai_book(abandoned, abandoned.cost_usd, 1);
    -- the text of a stream was passed on as it came; any other one is nobody's before its end is recorded
    if not abandoned.is_streamed then
      perform internal.ai_refund(abandoned);
    end if;
  end if;
  return internal.reply(200, 'true');
end $$;
comment on function api.ai_release is
  'For the task ai__release: ends an invocation whose end nobody has recorded, as when its server has crashed: failed
   with ABANDONED. The provider may have been paid, so it costs what was reserved. The currency of a stream, whose text
   may have been read, is kept; that of any other call is given back. Locks the user and the invocation.';

create or replace function internal.tg_ai_invocations__running() returns trigger
language plpgsql volatile security definer set search_path = '' as $$
begin
  perform internal.ai_book(old, old.reserved_usd, 1);
  return null;
end $$;
comment on function internal.tg_ai_invocations__running is
  'When a user is deleted during a call, books what was reserved for it: the record of its end will find no invocation,
   and the provider is paid all the same.';
create or replace trigger tg_ai_invocations__running
  after delete on app.ai_invocations
  for each row when (old.status = 'running' and old.prompt_id is not null)
  execute function internal.tg_ai_invocations__running();

create or replace function internal.purge__ai(most int default 5000) returns bigint
language sql volatile security definer set search_path = '' as $$
  select internal.purge_rows('app.ai_invocations', 't.created_at < internal.now() - interval ''90 days''',
                             purge__ai.most)
$$;
comment on function internal.purge__ai is 'Daily: invocations after 90 days. The sums by day are kept.';
