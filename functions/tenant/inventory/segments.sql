-- Inventories as a source of segment rules.
create or replace function internal.segment_source__inventory(leaf jsonb, place text, parameter text, out condition text, out actual text)
language plpgsql volatile as $$
begin
  perform internal.segment_key_check(segment_source__inventory.leaf, segment_source__inventory.place,
    exists (select from app.catalog_items i where i.key = segment_source__inventory.leaf ->> 'key'), 'must be the key of a catalog item');
  select c.condition, c.actual into condition, actual
    from internal.segment_on_json(segment_source__inventory.leaf, segment_source__inventory.place, segment_source__inventory.parameter,
           format('to_jsonb((select coalesce(sum(s.quantity), 0) from app.inventory_stacks s join app.catalog_items i on i.id = s.catalog_item_id where i.key = %s ->> ''key'' and s.app_user_id = u.id and (s.expires_at is null or s.expires_at > internal.now())))',
                  segment_source__inventory.parameter)) c;
end $$;
comment on function internal.segment_source__inventory is 'Leaves on how many of a catalog item a user has now, all stacks that have not expired.';
