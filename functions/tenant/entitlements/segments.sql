-- Entitlements as a source of segment rules.
create or replace function internal.segment_source__entitlement(leaf jsonb, place text, parameter text, out condition text, out actual text)
language plpgsql volatile as $$
begin
  -- entitlements are not defined anywhere: an id that nobody was granted yet is one like any other
  if coalesce(jsonb_typeof(segment_source__entitlement.leaf -> 'entitlement_id'), '') <> 'string'
     or char_length(segment_source__entitlement.leaf ->> 'entitlement_id') not between 1 and 128 then
    perform internal.invalid(segment_source__entitlement.place || '.entitlement_id', 'must have 1 to 128 characters');
  elsif not coalesce(segment_source__entitlement.leaf ->> 'op' in ('active', 'inactive'), false) then
    perform internal.invalid(segment_source__entitlement.place || '.op', 'must be active or inactive');
  end if;
  actual := format('exists (select from app.entitlement_grants g where g.app_user_id = u.id and g.entitlement_id = %s ->> ''entitlement_id'' and internal.grant_end(g) > internal.now())',
                   segment_source__entitlement.parameter);
  condition := case when segment_source__entitlement.leaf ->> 'op' = 'inactive' then '(not ' || actual || ')' else '(' || actual || ')' end;
  actual := format('to_jsonb(case when %s then ''active'' else ''inactive'' end)', actual);
end $$;
comment on function internal.segment_source__entitlement is 'Leaves on whether a user has an entitlement now, by any of its grants: active or inactive.';
