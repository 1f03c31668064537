-- Push as a channel of campaigns: docs/campaigns.md says what each function is. A worker sends what is claimed, so push
-- has claims of its own: send.sql.
create or replace function internal.campaign_patched__push(c app.campaigns, patch jsonb) returns app.campaigns
language plpgsql volatile security definer set search_path = '' as $$
declare
  p constant jsonb := campaign_patched__push.patch;
begin
  c.message := coalesce(p -> 'message', c.message);
  c.variants := coalesce(p -> 'variants', c.variants, '[]');
  c.inbox := coalesce((p ->> 'inbox')::boolean, c.inbox, true);
  perform internal.push_categories_note(array[c.message] || array(select v -> 'message'
                                                                    from jsonb_array_elements(c.variants) v));
  return c;
end $$;
comment on function internal.campaign_patched__push is
  'A campaign with the message of a request, whose category is remembered. Granted to nobody.';

create or replace function internal.campaign_content__push(c app.campaigns) returns json
language sql immutable parallel safe
return json_build_object('message', (campaign_content__push.c).message, 'variants', (campaign_content__push.c).variants,
                         'inbox', (campaign_content__push.c).inbox);
comment on function internal.campaign_content__push is 'What a campaign of push sends, as responses show it.';

create or replace function internal.push_is_connected() returns boolean
language sql stable security definer set search_path = '' as $$
  select exists (select from app.integrations i where i.is_active and i.provider in ('apns', 'fcm', 'log'))
$$;
comment on function internal.push_is_connected is
  'Whether a provider of push is connected, for any platform. Granted to nobody.';

create or replace function internal.push_configured_check(is_production boolean, platforms text[]) returns void
language plpgsql volatile security definer set search_path = '' as $$
begin
  if push_configured_check.is_production and not exists (
       select from app.integrations i where i.is_active and i.provider = 'log')
     and (case when push_configured_check.platforms is null
               then not internal.push_is_connected()
               else exists (select from unnest(push_configured_check.platforms) p
                             where not exists (select from app.integrations i
                                                where i.is_active and i.provider = case p when 'ios' then 'apns'
                                                  else 'fcm' end)) end) then
    perform internal.fail(400, 'PUSH_NOT_CONFIGURED',
                          'Connect a push provider first: POST .../integrations with apns or fcm.');
  end if;
end $$;
comment on function internal.push_configured_check is
  'Refuses 400 PUSH_NOT_CONFIGURED in a production project: when one of these platforms has no provider, or for null,
   when there is none at all. Granted to nobody.';

create or replace function internal.campaign_check__push(c app.campaigns, is_production boolean) returns void
language sql volatile security definer set search_path = '' as $$
  select internal.push_configured_check(campaign_check__push.is_production, null)
$$;
comment on function internal.campaign_check__push is
  'Before a campaign is scheduled. Refuses 400 PUSH_NOT_CONFIGURED. Granted to nobody.';

create or replace function internal.campaign_reached__push(content jsonb, user_ids uuid[])
returns table (app_user_id uuid, refused text, own_quiet_hours jsonb, unreachable text)
language sql stable as $$
  select i.id, case when internal.push_is_refused(p.enabled, p.categories,
                                                  campaign_reached__push.content ->> 'category') then 'opted_out' end,
                                                    p.quiet_hours,
         case when not exists (select from app.push_tokens t
                                where t.app_user_id = i.id and t.is_active) then 'no_token' end
    from unnest(campaign_reached__push.user_ids) i (id)
    left join app.push_preferences p on p.app_user_id = i.id
$$;
comment on function internal.campaign_reached__push is
  'Who gets no push: opted_out, or no_token; and their own quiet hours. Granted to nobody.';

create or replace function internal.campaign_figures__push(user_ids uuid[], scale numeric) returns json
language sql stable as $$
  select json_build_object(
    'provider_connected', internal.push_is_connected(),
    'devices', round(campaign_figures__push.scale * count(*)),
    'by_platform', json_build_object('ios', round(
      campaign_figures__push.scale * count(*) filter (where t.platform = 'ios')),
                                     'android', round(campaign_figures__push.scale * count(*) filter (
                                       where t.platform = 'android'))))
    from unnest(campaign_figures__push.user_ids) i (id)
    join app.push_tokens t on t.app_user_id = i.id and t.is_active
$$;
comment on function internal.campaign_figures__push is
  'The devices of users, and whether a provider is connected, for a preview: {provider_connected, devices,
   by_platform}. Granted to nobody.';

create or replace function internal.campaign_rendered__push(c app.campaigns, shown app.users) returns json
language sql stable as $$
  select internal.push_rendered((campaign_rendered__push.c).message,
                                coalesce((campaign_rendered__push.shown).properties, '{}'),
                                (campaign_rendered__push.shown).display_name, null)::json
$$;
comment on function internal.campaign_rendered__push is
  'The message of a campaign for a user, or for one without properties. Granted to nobody.';

create or replace function internal.campaign_test__push(c app.campaigns, user_ids uuid[], is_production boolean)
returns json
language sql volatile security definer set search_path = '' as $$
  select internal.push_deliver(campaign_test__push.user_ids, (campaign_test__push.c).message, true, false,
                               campaign_test__push.is_production)
$$;
comment on function internal.campaign_test__push is
  'A test is a direct send. Refuses as internal.push_deliver. Granted to nobody.';

create or replace function internal.campaign_claim__push(queue uuid, allowed int, is_production boolean,
                                                         out deliveries json, out picked int, out taken int,
                                                         out held_until timestamptz)
language plpgsql volatile security definer set search_path = '' as $$
declare
  is_probe boolean;
begin
  select max(b.open_until) filter (where b.open_until > internal.now()),
         coalesce(bool_or(b.failures >= 50), false) into held_until, is_probe
    from app.push_breakers b;
  if held_until is not null then
    return;
  end if;
  -- a provider that failed is tried with a few messages first
  select r.deliveries, r.picked, r.taken into deliveries, picked, taken
    from internal.push_claim_rows(campaign_claim__push.queue,
                                  case when is_probe then least(campaign_claim__push.allowed, 10)
                                       else campaign_claim__push.allowed end,
                                  not campaign_claim__push.is_production) r;
  if is_probe and taken > 0 then
    -- the next ones wait for what becomes of these, or of their worker
    update app.push_breakers b set open_until = internal.now() + interval '30 seconds' where b.failures >= 50;
  end if;
end $$;
comment on function internal.campaign_claim__push is
  'Claims due deliveries of a queue for a worker, by internal.push_claim_rows; or says until when none is made, while
   the circuit breaker of a provider is open. Granted to nobody.';
