-- migrate:up
-- the largest holders of a currency, also where all have as much: currency_balances_largest left those to a sort of all of them
create index currency_balances_by_size on app.currency_balances (currency_code, balance desc, app_user_id);
drop index app.currency_balances_largest;

-- migrate:down
create index currency_balances_largest on app.currency_balances (currency_code, balance desc);
drop index app.currency_balances_by_size;
