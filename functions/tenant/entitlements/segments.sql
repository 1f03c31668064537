-- Entitlements as a source of segment rules.
create or replace function internal.segment_source__entitlement(leaf jsonb, place text, parameter text)
returns internal.segment_operand
language plpgsql volatile as $$
begin
  -- entitlements have no definitions, so an id that nobody has been granted is valid
  if coalesce(jsonb_typeof(segment_source__entitlement.leaf -> 'entitlement_id'), '') <> 'string'
     or char_length(segment_source__entitlement.leaf ->> 'entitlement_id') not between 1 and 128 then
    perform internal.invalid(segment_source__entitlement.place || '.entitlement_id', 'must have 1 to 128 characters');
  elsif not coalesce(segment_source__entitlement.leaf ->> 'op' in ('active', 'inactive'), false) then
    perform internal.invalid(segment_source__entitlement.place || '.op', 'must be active or inactive');
  end if;
  return internal.segment_operand('text', missing => '''inactive''',
    condition => format('({value} = %L)', segment_source__entitlement.leaf ->> 'op'),
    members => format(
      'select g.app_user_id, ''active'' as value from app.entitlement_grants g where g.entitlement_id = (%1$s ->> '
      '''entitlement_id'') and internal.grant_end(g) > internal.segment_time(%1$s ->> ''now'') group by g.app_user_id',
      segment_source__entitlement.parameter));
end $$;
comment on function internal.segment_source__entitlement is
  'Rules on whether a user has an entitlement now, by any of its grants: active or inactive.';
