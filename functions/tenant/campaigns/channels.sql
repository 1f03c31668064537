-- Channels: what a campaign sends, and to whom it can. The machine of campaigns (commands, audiences, plans, claims,
-- quiet hours, caps, counts) knows no channel; an area registers one with a row of internal.campaign_channels and
-- functions named after it, which docs/campaigns.md lists. Each is called once for a batch, so what a dispatch costs
-- does not depend on the number of users.
create or replace function internal.campaign_channel(channel text) returns internal.campaign_channels
language plpgsql stable security definer set search_path = '' as $$
declare
  found_one internal.campaign_channels;
begin
  select k.* into strict found_one from internal.campaign_channels k where k.channel = campaign_channel.channel;
  return found_one;
end $$;
comment on function internal.campaign_channel is 'A channel that is registered. Granted to nobody.';

create or replace function internal.campaign_hook(verb text, channel text) returns text
language sql stable
return (select h.name from (select format('campaign_%s__%s', campaign_hook.verb, campaign_hook.channel) as name) h
         where to_regproc(format('internal.%I', h.name)) is not null);
comment on function internal.campaign_hook is
  'The name of a channel''s function, internal.campaign_<verb>__<channel>; null where it has none of its own.';

create or replace function internal.campaign_hooks(verb text) returns table (channel text, name text)
language sql stable security definer set search_path = '' as $$
  select k.channel, h.name
    from internal.campaign_channels k
   cross join lateral (select internal.campaign_hook(campaign_hooks.verb, k.channel) as name) h
   where h.name is not null
   order by k.channel
$$;
comment on function internal.campaign_hooks is 'The functions of all channels for one purpose. Granted to nobody.';

create or replace function internal.campaign_content(c app.campaigns) returns json
language plpgsql stable as $$
declare
  content json;
begin
  execute format('select internal.%I($1)', 'campaign_content__' || (campaign_content.c).channel) into content
    using campaign_content.c;
  return content;
end $$;
comment on function internal.campaign_content is 'What a campaign sends, as its channel shows it.';

create or replace function internal.campaign_content_of(c app.campaigns, variant text) returns jsonb
language sql immutable parallel safe
return (campaign_content_of.c).message || coalesce((
  select e.value -> 'message' from jsonb_array_elements((campaign_content_of.c).variants) e
   where e.value ->> 'key' = campaign_content_of.variant), '{}');
comment on function internal.campaign_content_of is
  'What is sent to users of a variant: what the variant says, else what the campaign says.';

create or replace function internal.campaign_is_quiet(hours jsonb, at time) returns boolean
language sql immutable parallel safe
return case
  when campaign_is_quiet.hours ->> 'start' is null then false
  when (campaign_is_quiet.hours ->> 'start')::time <= (campaign_is_quiet.hours ->> 'end')::time
  then campaign_is_quiet.at >= (campaign_is_quiet.hours ->> 'start')::time
    and campaign_is_quiet.at < (campaign_is_quiet.hours ->> 'end')::time
  else campaign_is_quiet.at >= (campaign_is_quiet.hours ->> 'start')::time
    or campaign_is_quiet.at < (campaign_is_quiet.hours ->> 'end')::time end;
comment on function internal.campaign_is_quiet is
  'Whether a time of day is within quiet hours {start, end}, which may go past midnight. Equal ends are no time at
   all.';

create or replace function internal.campaign_held_back(channel text, quiet_hours jsonb, own_quiet_hours jsonb,
                                                       local_time time, frequency_cap jsonb, app_user_id uuid,
                                                       delivery_id uuid, at timestamptz)
returns table (reason text)
language sql stable as $$
  select case
    when internal.campaign_is_quiet(campaign_held_back.quiet_hours, campaign_held_back.local_time)
      or internal.campaign_is_quiet(campaign_held_back.own_quiet_hours,
                                    campaign_held_back.local_time) then 'quiet_hours'
    when campaign_held_back.frequency_cap is not null
     and (select count(*)
            from app.campaign_deliveries o
           where o.app_user_id = campaign_held_back.app_user_id and o.id is distinct from campaign_held_back.delivery_id
             and o.channel = campaign_held_back.channel
             and (o.sent_at > campaign_held_back.at
                  - make_interval(hours => (campaign_held_back.frequency_cap ->> 'hours')::int)
                    or o.status = 'sending'))
         >= (campaign_held_back.frequency_cap ->> 'max')::int then 'capped' end
$$;
comment on function internal.campaign_held_back is
  'One row: why a user is not sent a message now, quiet_hours or capped; null where nothing speaks against it. Quiet
   hours are those of the campaign and the user''s own; a cap counts what its channel has sent the user, and is sending.
   A query, so that Postgres plans it within the one that asks. Granted to nobody.';
