-- A channel of the tests' own: all that one costs. A pigeon carries a text to the loft of a user, and to one that is far only the channel knows when it has arrived.
create table app.test_letters (delivery_id uuid primary key, app_user_id uuid not null, text text not null);

create function internal.campaign_patched__pigeon(c app.campaigns, patch jsonb) returns app.campaigns
language plpgsql volatile security definer set search_path = '' as $$
begin
  c.message := coalesce(c.message, '{}') || jsonb_strip_nulls(jsonb_build_object('text', patch -> 'text', 'kind', patch -> 'kind'));
  c.variants := coalesce(patch -> 'variants', c.variants);
  if c.message ->> 'text' is null then
    perform internal.invalid('text', 'is required');
  end if;
  return c;
end $$;

create function internal.campaign_content__pigeon(c app.campaigns) returns json
language sql immutable
return json_build_object('text', (c).message -> 'text', 'kind', (c).message -> 'kind', 'variants', (c).variants);

create function internal.campaign_reached__pigeon(content jsonb, user_ids uuid[])
returns table (app_user_id uuid, refused text, own_quiet_hours jsonb, unreachable text)
language sql stable as $$
  select u.id, case when u.properties -> ('no_' || (content ->> 'kind')) = 'true' then 'opted_out' end, u.properties -> 'asleep',
         case when not u.properties ? 'loft' then 'no_loft' end
    from app.users u where u.id = any (user_ids)
$$;

create function internal.campaign_send__pigeon(c app.campaigns, content jsonb, delivery_ids uuid[])
returns table (delivery_id uuid, status text, detail text)
language sql volatile security definer set search_path = '' as $$
  with loft as (
    select d.id, u.id as user_id, u.properties ->> 'loft' as name
      from app.campaign_deliveries d join app.users u on u.id = d.app_user_id
     where d.id = any (delivery_ids)
  ), carried as (
    insert into app.test_letters select l.id, l.user_id, content ->> 'text' from loft l where l.name <> 'closed'
  )
  select l.id, case l.name when 'closed' then 'failed' when 'far' then 'sending' else 'sent' end, case l.name when 'closed' then 'LOFT_CLOSED' end from loft l
$$;

create function internal.campaign_rendered__pigeon(c app.campaigns, shown app.users) returns json
language sql stable
return json_build_object('text', (c).message -> 'text', 'to', (shown).properties -> 'loft');

grant execute on function internal.campaign_content__pigeon to app_admin;

insert into internal.campaign_channels (channel, skip_reasons, sends_per_second, most_waiting, declared_in)
values ('pigeon', '{no_loft,opted_out}', 1000, 5, 'test/campaigns/pigeon.sql');
