-- Currencies as a source of segment rules.
create or replace function internal.segment_source__currency(leaf jsonb, place text, parameter text, out condition text, out actual text)
language plpgsql volatile as $$
begin
  perform internal.segment_key_check(segment_source__currency.leaf, segment_source__currency.place,
    exists (select from app.currencies c where c.code = segment_source__currency.leaf ->> 'key'), 'must be the code of a currency');
  select c.condition, c.actual into condition, actual
    from internal.segment_on_json(segment_source__currency.leaf, segment_source__currency.place, segment_source__currency.parameter,
           format('to_jsonb(coalesce((select (internal.currency_current(c, u.id)).balance from app.currencies c where c.code = %s ->> ''key''), 0))',
                  segment_source__currency.parameter)) c;
end $$;
comment on function internal.segment_source__currency is 'Leaves on the current balance, including regeneration, expiry and the initial grant.';
