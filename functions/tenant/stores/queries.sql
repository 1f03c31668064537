-- Reads of purchases, by users and administrators.
select internal.list_declare('purchases_of_user', null::app.purchases, 'purchase_json', '{id}',
                             required => '{app_user_id}');

create or replace function api.purchases_list(page_offset int default 0, page_limit int default 50) returns api.reply
language sql stable as $$
  select internal.purchases_of_user(internal.user_id(), purchases_list.page_offset, purchases_list.page_limit)
$$;
comment on function api.purchases_list is 'The caller''s purchases, newest first.';

create or replace function api.purchase_get(purchase_id uuid) returns api.reply
language plpgsql stable as $$
declare
  bought app.purchases;
begin
  select p.* into bought from app.purchases p
   where p.id = purchase_get.purchase_id and p.app_user_id = internal.user_id();
  perform internal.check_found(found, 'purchase');
  return internal.reply(200, internal.purchase_json(bought));
end $$;
comment on function api.purchase_get is 'One of the caller''s purchases. Refuses 404 NOT_FOUND.';

select internal.list_declare('purchases_page', null::app.purchases, 'purchase_json', '{id}',
                             filters => '{app_user_id,store_id,offer_id,status}', by_cursor => true,
                             is_skewed => true);

create or replace function api.purchases_all(user_id uuid default null, store_id uuid default null,
                                             offer_id uuid default null, status text default null,
                                             cursor text default null, page_limit int default 50,
                                             include text default null)
returns api.reply
language sql stable as $$
  select internal.reply_with_users(
    internal.purchases_page(purchases_all.user_id, purchases_all.store_id, purchases_all.offer_id,
                            purchases_all.status, purchases_all.cursor, purchases_all.page_limit),
    purchases_all.include)
$$;
comment on function api.purchases_all is 'The purchases of all users, newest first. Refuses 400 INVALID_INPUT.';

create or replace function internal.store_figures(store_id uuid)
returns table (offer_id uuid, purchases bigint, refunded bigint, units bigint, revenue json)
language sql stable as $$
  select g.offer_id, sum(g.purchases)::bigint, sum(g.refunded)::bigint, sum(g.units)::bigint,
         coalesce(json_object_agg(g.currency_code, g.revenue order by g.currency_code)
                    filter (where g.purchases > g.refunded), '{}')
    from (select p.offer_id, p.currency_code, count(*) as purchases,
                 count(*) filter (where p.status = 'refunded') as refunded,
                 coalesce(sum(p.quantity) filter (where p.status = 'completed'), 0) as units,
                 coalesce(sum(p.total_price) filter (where p.status = 'completed'), 0) as revenue
            from app.purchases p
           where p.store_id = store_figures.store_id
           group by grouping sets ((p.offer_id, p.currency_code), (p.currency_code))) g
   group by g.offer_id
$$;
comment on function internal.store_figures is
  'What was sold in a store, by offer, and with offer_id null of the whole: units and revenue without refunded
   purchases, purchases with them.';

create or replace function api.store_stats(id_or_key text) returns api.reply
language plpgsql stable as $$
declare
  store constant app.stores := internal.definition_find(null::app.stores, store_stats.id_or_key);
  buyers bigint;
  answer json;
begin
  select count(distinct p.app_user_id) into buyers
    from app.purchases p where p.store_id = store.id and p.status = 'completed';
  with figures as materialized (select f.* from internal.store_figures(store.id) f)
  select json_build_object(
           'purchases', coalesce(w.purchases, 0), 'refunded', coalesce(w.refunded, 0), 'buyers', buyers,
           'units', coalesce(w.units, 0), 'revenue', coalesce(w.revenue, '{}'),
           'offers', coalesce((
             select json_agg(json_build_object('offer_id', o.id, 'key', o.key, 'purchases', coalesce(f.purchases, 0),
                                               'units', coalesce(f.units, 0),
                                               'revenue', coalesce(f.revenue, '{}')) order by o.sort_order, o.key)
               from app.store_offers o
               left join figures f on f.offer_id = o.id
              where o.store_id = store.id), '[]'))
    into answer
    from (select) one
    left join figures w on w.offer_id is null;
  return internal.reply(200, answer);
end $$;
comment on function api.store_stats is
  'What was sold in a store, in all and by offer: {purchases, refunded, buyers, units, revenue {CODE: n}, offers}.
   Refuses 404 NOT_FOUND.';
