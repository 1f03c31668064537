-- Lists of campaigns and deliveries, and statistics. They run with the rights of administrators.
create or replace function internal.push_campaign_is_listed(c app.push_campaigns) returns boolean
language sql immutable parallel safe
return not (push_campaign_is_listed.c).is_deleted;
comment on function internal.push_campaign_is_listed is 'Whether lists show a campaign.';

-- served by push_campaigns_of_channel, or push_campaigns_by_status
select internal.list_declare('push_campaigns_page', null::app.push_campaigns, 'push_campaign_json', '{created_at,id}', required => '{channel}',
                             filters => '{status}', condition => 'push_campaign_is_listed');

create or replace function api.push_campaigns(status text default null, page_offset int default 0, page_limit int default 50, channel text default 'push')
returns api.reply
language sql stable as $$
  select internal.push_campaigns_page(push_campaigns.channel, push_campaigns.status, push_campaigns.page_offset, push_campaigns.page_limit)
$$;
comment on function api.push_campaigns is 'Campaigns, newest first, by status.';

create or replace function internal.push_campaign_found(campaign_id uuid, channel text) returns app.push_campaigns
language plpgsql stable as $$
declare
  found_one app.push_campaigns;
begin
  select c.* into found_one
    from app.push_campaigns c
   where c.id = push_campaign_found.campaign_id and c.channel = push_campaign_found.channel and not c.is_deleted;
  perform internal.check_found(found, 'campaign');
  return found_one;
end $$;
comment on function internal.push_campaign_found is 'A campaign. Refuses 404 NOT_FOUND.';

create or replace function api.push_campaign_get(campaign_id uuid, channel text default 'push') returns api.reply
language sql stable as $$
  select internal.reply(200, internal.push_campaign_json(internal.push_campaign_found(push_campaign_get.campaign_id, push_campaign_get.channel)))
$$;
comment on function api.push_campaign_get is 'A campaign with its counts. Refuses 404 NOT_FOUND.';

create or replace function internal.push_delivery_json(d app.push_deliveries) returns json
language sql stable as $$
  select json_build_object(
    'id', (push_delivery_json.d).id, 'campaign_id', (push_delivery_json.d).campaign_id, 'automation_id', (push_delivery_json.d).automation_id,
    'app_user_id', (push_delivery_json.d).app_user_id, 'variant', (push_delivery_json.d).variant, 'is_test', (push_delivery_json.d).is_test,
    'status', (push_delivery_json.d).status, 'reason', (push_delivery_json.d).reason, 'code', (push_delivery_json.d).code,
    -- while it is sent its column holds the lease
    'due_at', internal.iso((push_delivery_json.d).due_at - case (push_delivery_json.d).status when 'sending' then internal.push_lease() else '0' end),
    'attempts', (push_delivery_json.d).attempts,
    'sent_at', internal.iso((push_delivery_json.d).sent_at), 'received_at', internal.iso((push_delivery_json.d).received_at),
    'opened_at', internal.iso((push_delivery_json.d).opened_at), 'converted_at', internal.iso((push_delivery_json.d).converted_at),
    'created_at', internal.iso((push_delivery_json.d).created_at))
$$;
comment on function internal.push_delivery_json is 'A delivery with its attempts as administrators see it.';

-- served by push_deliveries_once_per_campaign, or push_deliveries_by_status; and by push_deliveries_of_user
select internal.list_declare('push_deliveries_page', null::app.push_deliveries, 'push_delivery_json', '{app_user_id}', required => '{campaign_id}',
                             filters => '{status}', by_cursor => true);
select internal.list_declare('push_user_deliveries_page', null::app.push_deliveries, 'push_delivery_json', '{id}', required => '{app_user_id,channel}',
                             filters => '{status}', by_cursor => true);

create or replace function api.push_campaign_deliveries(campaign_id uuid, status text default null, cursor text default null, page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.push_deliveries_page((internal.push_campaign_found(push_campaign_deliveries.campaign_id, 'push')).id, push_campaign_deliveries.status,
                                       push_campaign_deliveries.cursor, push_campaign_deliveries.page_limit)
$$;
comment on function api.push_campaign_deliveries is
  'Deliveries of a campaign in the order of their users, the newest user first, by cursor and status. Refuses 404 NOT_FOUND, 400 INVALID_INPUT.';

create or replace function api.push_deliveries(user_id uuid, status text default null, cursor text default null, page_limit int default 50) returns api.reply
language sql stable as $$
  select internal.push_user_deliveries_page(push_deliveries.user_id, 'push', push_deliveries.status, push_deliveries.cursor, push_deliveries.page_limit)
$$;
comment on function api.push_deliveries is 'Deliveries of a user, scheduled ones too, newest first, by cursor and status. Refuses 400 INVALID_INPUT.';

create or replace function internal.push_stats_json(source_id uuid, variants text[], is_mail boolean default false) returns json
language sql stable as $$
  select internal.json_merge(internal.push_rates_json(push_stats_json.source_id, null, push_stats_json.is_mail), json_build_object(
    'variants', coalesce((
      select json_agg(internal.json_merge(json_build_object('key', v.key),
                                          internal.push_rates_json(push_stats_json.source_id, v.key, push_stats_json.is_mail)) order by v.n)
        from unnest(push_stats_json.variants) with ordinality as v (key, n)), '[]'),
    'hours', coalesce((
      select json_agg(internal.json_merge(
               json_build_object('hour', internal.iso(h.hour), 'sent', h.sent, 'failed', h.failed, 'skipped', h.skipped, 'opened', h.opened,
                                 'converted', h.converted),
               case when push_stats_json.is_mail then json_build_object('clicked', h.clicked) else '{}' end) order by h.hour)
        from (select n.hour, sum(n.sent) as sent, sum(n.failed) as failed, sum(n.skipped) as skipped, sum(n.opened) as opened, sum(n.converted) as converted,
                     sum(n.clicked) as clicked
                from app.push_counts n
               where n.source_id = push_stats_json.source_id and n.hour > '-infinity'
               group by n.hour order by n.hour desc limit 720) h), '[]')))
$$;
comment on function internal.push_stats_json is
  'Counts and rates in all, by variant, and by hour: the newest 720 hours in which something happened, oldest first.';

create or replace function internal.push_rates_json(source_id uuid, variant text, is_mail boolean) returns json
language sql stable as $$
  select internal.json_merge(
    internal.push_counts_json(push_rates_json.source_id, '-infinity', push_rates_json.variant, push_rates_json.is_mail),
    internal.json_merge(
      json_build_object('open_rate', round(coalesce(sum(n.opened) / nullif(sum(n.sent), 0), 0), 4),
                        'conversion_rate', round(coalesce(sum(n.converted) / nullif(sum(n.sent), 0), 0), 4)),
      case when push_rates_json.is_mail then json_build_object('click_rate', round(coalesce(sum(n.clicked) / nullif(sum(n.sent), 0), 0), 4)) else '{}' end))
    from app.push_counts n
   where n.source_id = push_rates_json.source_id and n.hour = '-infinity' and (push_rates_json.variant is null or n.variant = push_rates_json.variant)
$$;
comment on function internal.push_rates_json is
  'The counts of a campaign or an automation with the shares of what was sent that were opened, converted and, of mail, clicked: 0 to 1.';

create or replace function api.push_campaign_stats(campaign_id uuid, channel text default 'push') returns api.reply
language plpgsql stable as $$
declare
  campaign constant app.push_campaigns := internal.push_campaign_found(push_campaign_stats.campaign_id, push_campaign_stats.channel);
begin
  return internal.reply(200, internal.push_stats_json(campaign.id, array(
    select e.value ->> 'key' from jsonb_array_elements(campaign.variants) with ordinality as e (value, n) order by e.n), campaign.channel = 'email'));
end $$;
comment on function api.push_campaign_stats is 'Statistics of a campaign. Refuses 404 NOT_FOUND.';

create or replace function api.push_automation_stats(id_or_key text) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.push_stats_json((internal.definition_find(null::app.push_automations, push_automation_stats.id_or_key)).id, '{}'))
$$;
comment on function api.push_automation_stats is 'Statistics of an automation. Refuses 404 NOT_FOUND.';
