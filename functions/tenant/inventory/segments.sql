-- Inventories as a source of segment rules.
create or replace function internal.segment_source__inventory(leaf jsonb, place text, parameter text)
returns internal.segment_operand
language plpgsql volatile as $$
begin
  perform internal.segment_key_check(segment_source__inventory.leaf, segment_source__inventory.place,
    exists (select from app.catalog_items i where i.key = segment_source__inventory.leaf ->> 'key'),
    'must be the key of a catalog item');
  return internal.segment_operand('numeric', missing => '0', members => format(
    'select s.app_user_id, sum(s.quantity) as value from app.inventory_stacks s join app.catalog_items i on i.id = '
    's.catalog_item_id where i.key = (%1$s ->> ''key'') and (s.expires_at is null or s.expires_at > '
    'internal.segment_time(%1$s ->> ''now'')) group by s.app_user_id',
    segment_source__inventory.parameter));
end $$;
comment on function internal.segment_source__inventory is
  'Rules on how many of a catalog item a user has now, over all stacks that have not expired.';
