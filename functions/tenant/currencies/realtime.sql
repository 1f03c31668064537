-- What currencies publish.

select internal.source_declare(null::app.currency_transactions,
  'currency.changed {currency_code, balance, amount, reason}, to the user.',
  ops => 'insert', by_statement => '{id}', publishes => $q$
    select 'user:' || r.app_user_id, 'currency.changed',
           json_build_object('currency_code', r.currency_code, 'balance', r.balance_after, 'amount', r.amount,
                             'reason', r.reason)$q$);
