-- Currencies as a source of segment rules.
create or replace function internal.segment_source__currency(leaf jsonb, place text, parameter text)
returns internal.segment_operand
language plpgsql volatile as $$
begin
  perform internal.segment_key_check(segment_source__currency.leaf, segment_source__currency.place,
    exists (select from app.currencies c where c.code = segment_source__currency.leaf ->> 'key'),
    'must be the code of a currency');
  -- as internal.currency_current; a balance that time does not change is read as it is stored
  return internal.segment_operand('numeric',
    missing => format(
      'coalesce((select case when c.regen_amount is null then c.initial_grant else (internal.currency_accrue(c, '
      'c.initial_grant, greatest(u.created_at, c.created_at), null, null, null, internal.segment_time(%1$s ->> '
      '''now''))).balance end from app.currencies c where c.code = (%1$s ->> ''key'')), 0)',
      segment_source__currency.parameter),
    members => format(
      'select b.app_user_id, case when c.regen_amount is null and l.expiries is null then b.balance else '
      '(internal.currency_accrue(c, b.balance, b.balance_at, b.regen_at, l.expiries, l.remainders, '
      'internal.segment_time(%1$s ->> ''now''))).balance end as value from app.currencies c join app.currency_balances '
      'b on b.currency_code = c.code left join (select x.app_user_id, x.currency_code, array_agg(x.expires_at order by '
      'x.expires_at, x.id) as expiries, array_agg(x.remaining order by x.expires_at, x.id) as remainders from '
      'app.currency_lots x where x.expires_at <= internal.segment_time(%1$s ->> ''now'') group by x.app_user_id, '
      'x.currency_code) l on (l.app_user_id, l.currency_code) = (b.app_user_id, b.currency_code) where c.code = (%1$s '
      '->> ''key'')',
      segment_source__currency.parameter));
end $$;
comment on function internal.segment_source__currency is
  'Rules on the current balance, including regeneration, expiry and the initial grant.';
