-- Lists of campaigns and deliveries, and statistics. They run with the rights of administrators.
create or replace function internal.campaign_is_listed(c app.campaigns) returns boolean
language sql immutable parallel safe
return not (campaign_is_listed.c).is_deleted;
comment on function internal.campaign_is_listed is 'Whether lists show a campaign.';

-- served by campaigns_of_channel, or campaigns_by_status
select internal.list_declare('campaigns_page', null::app.campaigns, 'campaign_json', '{created_at,id}',
                             required => '{channel}',
                             filters => '{status}', condition => 'campaign_is_listed');

create or replace function api.campaigns(channel text, status text default null, page_offset int default 0,
                                         page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.campaigns_page(campaigns.channel, campaigns.status, campaigns.page_offset, campaigns.page_limit)
$$;
comment on function api.campaigns is 'Campaigns, newest first, by status.';

create or replace function internal.campaign_found(campaign_id uuid, channel text) returns app.campaigns
language plpgsql stable as $$
declare
  found_one app.campaigns;
begin
  select c.* into found_one
    from app.campaigns c
   where c.id = campaign_found.campaign_id and c.channel = campaign_found.channel and not c.is_deleted;
  perform internal.check_found(found, 'campaign');
  return found_one;
end $$;
comment on function internal.campaign_found is 'A campaign. Refuses 404 NOT_FOUND.';

create or replace function api.campaign_get(campaign_id uuid, channel text) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.campaign_json(internal.campaign_found(campaign_get.campaign_id,
                                        campaign_get.channel)))
$$;
comment on function api.campaign_get is 'A campaign with its counts. Refuses 404 NOT_FOUND.';

select internal.row_declare('campaign_delivery_json', null::app.campaign_deliveries,
                            '{id,campaign_id,app_user_id,variant,status,reason,code,due_at,sent_at,opened_at,
                             clicked_at,converted_at,created_at}');
comment on function internal.campaign_delivery_json is
  'A delivery as administrators see it, of a channel that does not show more.';

-- served by campaign_deliveries_once_per_campaign, or campaign_deliveries_by_status; a channel that shows more declares
-- its own
select internal.list_declare('campaign_deliveries_page', null::app.campaign_deliveries, 'campaign_delivery_json',
                             '{app_user_id}', required => '{campaign_id}',
                             filters => '{status}', by_cursor => true);

create or replace function api.campaign_deliveries(campaign_id uuid, channel text, status text default null,
                                                   cursor text default null, page_limit int default 50,
                                                   include text default null)
returns api.reply
language plpgsql stable as $$
declare
  campaign constant app.campaigns := internal.campaign_found(campaign_deliveries.campaign_id,
                                                             campaign_deliveries.channel);
  reply api.reply;
begin
  execute format('select r.* from internal.%I($1, $2, $3, $4) r',
                 coalesce(internal.campaign_hook('deliveries', campaign.channel), 'campaign_deliveries_page'))
     into reply using campaign.id, campaign_deliveries.status, campaign_deliveries.cursor,
       campaign_deliveries.page_limit::bigint;
  return internal.reply_with_users(reply, campaign_deliveries.include);
end $$;
comment on function api.campaign_deliveries is
  'Deliveries of a campaign in the order of their users, the newest user first, by cursor and status. Refuses 404
   NOT_FOUND, 400 INVALID_INPUT.';

create or replace function internal.campaign_stats_json(source_id uuid, variants text[],
                                                        has_clicks boolean default false)
returns json
language sql stable as $$
  select internal.json_merge(internal.campaign_rates_json(campaign_stats_json.source_id, null,
                                                          campaign_stats_json.has_clicks), json_build_object(
    'variants', coalesce((
      select json_agg(internal.json_merge(json_build_object('key', v.key),
                                          internal.campaign_rates_json(campaign_stats_json.source_id, v.key,
                                                                       campaign_stats_json.has_clicks)) order by v.n)
        from unnest(campaign_stats_json.variants) with ordinality as v (key, n)), '[]'),
    'hours', coalesce((
      select json_agg(internal.json_merge(
               json_build_object('hour', internal.iso(h.hour), 'sent', h.sent, 'failed', h.failed, 'skipped', h.skipped,
                                 'opened', h.opened,
                                 'converted', h.converted),
               case when campaign_stats_json.has_clicks then json_build_object('clicked', h.clicked) else '{}' end)
                 order by h.hour)
        from (select n.hour, sum(n.sent) as sent, sum(n.failed) as failed, sum(n.skipped) as skipped,
              sum(n.opened) as opened, sum(n.converted) as converted,
                     sum(n.clicked) as clicked
                from app.campaign_counts n
               where n.source_id = campaign_stats_json.source_id and n.hour > '-infinity'
               group by n.hour order by n.hour desc limit 720) h), '[]')))
$$;
comment on function internal.campaign_stats_json is
  'Counts and rates in all, by variant, and by hour: the newest 720 hours in which something happened, oldest first.';

create or replace function internal.campaign_rates_json(source_id uuid, variant text, has_clicks boolean) returns json
language sql stable as $$
  select internal.json_merge(
    internal.campaign_counts_json(campaign_rates_json.source_id, '-infinity', campaign_rates_json.variant,
                                  campaign_rates_json.has_clicks),
    internal.json_merge(
      json_build_object('open_rate', round(coalesce(sum(n.opened) / nullif(sum(n.sent), 0), 0), 4),
                        'conversion_rate', round(coalesce(sum(n.converted) / nullif(sum(n.sent), 0), 0), 4)),
      case when campaign_rates_json.has_clicks
             then json_build_object('click_rate', round(coalesce(sum(n.clicked) / nullif(sum(n.sent), 0), 0), 4))
               else '{}' end))
    from app.campaign_counts n
   where n.source_id = campaign_rates_json.source_id and n.hour = '-infinity'
     and (campaign_rates_json.variant is null or n.variant = campaign_rates_json.variant)
$$;
comment on function internal.campaign_rates_json is
  'The counts of a campaign or an automation with the shares of what was sent that were opened, converted and, where its
   channel has clicks, clicked: 0 to 1.';

create or replace function api.campaign_stats(campaign_id uuid, channel text) returns api.reply
language plpgsql stable as $$
declare
  campaign constant app.campaigns := internal.campaign_found(campaign_stats.campaign_id, campaign_stats.channel);
begin
  return internal.reply(200, internal.campaign_stats_json(campaign.id, array(
    select e.value ->> 'key' from jsonb_array_elements(campaign.variants) with ordinality as e (value, n) order by e.n),
           internal.campaign_has_clicks(campaign.channel)));
end $$;
comment on function api.campaign_stats is 'Statistics of a campaign. Refuses 404 NOT_FOUND.';

-- by the index of the source; the sums stand at -infinity
select internal.days_declare('campaign_days', 'app.campaign_counts', 'hour',
  array[['sent', 'sum(r.sent)'], ['failed', 'sum(r.failed)'], ['opened', 'sum(r.opened)'],
        ['clicked', 'sum(r.clicked)'], ['converted', 'sum(r.converted)']],
  'r.source_id = {of}::uuid');

create or replace function api.campaign_daily(campaign_id uuid, channel text, "from" date default null,
                                              "to" date default null, timezone text default null)
returns api.reply
language sql stable as $$
  select internal.days_reply('{campaign_days}', campaign_daily."from", campaign_daily."to", campaign_daily.timezone,
                             (internal.campaign_found(campaign_daily.campaign_id, campaign_daily.channel)).id::text)
$$;
comment on function api.campaign_daily is
  'Deliveries of a campaign that were sent, failed, opened, clicked and converted on each day, by counts of
   hours. Refuses 404 NOT_FOUND, 400 INVALID_INPUT.';
