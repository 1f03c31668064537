-- Lists of deliveries, and statistics of automations. They run with the rights of administrators.
create or replace function internal.push_delivery_json(d app.campaign_deliveries) returns json
language sql stable as $$
  select json_build_object(
    'id', (push_delivery_json.d).id, 'campaign_id', (push_delivery_json.d).campaign_id,
      'automation_id', (push_delivery_json.d).automation_id,
    'app_user_id', (push_delivery_json.d).app_user_id, 'variant', (push_delivery_json.d).variant,
    'is_test', (push_delivery_json.d).is_test,
    'status', (push_delivery_json.d).status, 'reason', (push_delivery_json.d).reason,
    'code', (push_delivery_json.d).code,
    -- while it is sent its column holds the lease
    'due_at', internal.iso((push_delivery_json.d).due_at - case (push_delivery_json.d).status
                                                                when 'sending' then internal.push_lease() else '0' end),
    'attempts', (push_delivery_json.d).attempts,
    'sent_at', internal.iso((push_delivery_json.d).sent_at),
    'received_at', internal.iso((push_delivery_json.d).received_at),
    'opened_at', internal.iso((push_delivery_json.d).opened_at),
    'converted_at', internal.iso((push_delivery_json.d).converted_at),
    'created_at', internal.iso((push_delivery_json.d).created_at))
$$;
comment on function internal.push_delivery_json is 'A delivery with its attempts as administrators see it.';

-- served by campaign_deliveries_once_per_campaign, or campaign_deliveries_by_status; and by campaign_deliveries_of_user
select internal.list_declare('push_deliveries_page', null::app.campaign_deliveries, 'push_delivery_json',
                             '{app_user_id}', required => '{campaign_id}',
                             filters => '{status}', by_cursor => true);
select internal.list_declare('push_user_deliveries_page', null::app.campaign_deliveries, 'push_delivery_json', '{id}',
                             required => '{app_user_id,channel}',
                             filters => '{status}', by_cursor => true);

create or replace function internal.campaign_deliveries__push(campaign_id uuid, status text, cursor text,
                                                              page_limit bigint)
returns api.reply
language sql stable as $$
  select internal.push_deliveries_page(campaign_deliveries__push.campaign_id, campaign_deliveries__push.status,
                                       campaign_deliveries__push.cursor,
                                       campaign_deliveries__push.page_limit)
$$;
comment on function internal.campaign_deliveries__push is
  'A page of the deliveries of a campaign, as the channel shows them. Refuses 400 INVALID_INPUT.';

create or replace function api.push_deliveries(user_id uuid, status text default null, cursor text default null,
                                               page_limit int default 50)
returns api.reply
language sql stable as $$
  select internal.push_user_deliveries_page(push_deliveries.user_id, 'push', push_deliveries.status,
                                            push_deliveries.cursor, push_deliveries.page_limit)
$$;
comment on function api.push_deliveries is
  'Deliveries of a user, scheduled ones too, newest first, by cursor and status. Refuses 400 INVALID_INPUT.';

create or replace function api.push_automation_stats(id_or_key text) returns api.reply
language sql stable as $$
  select internal.reply(200, internal.campaign_stats_json((internal.definition_find(null::app.push_automations,
                                        push_automation_stats.id_or_key)).id, '{}'))
$$;
comment on function api.push_automation_stats is 'Statistics of an automation. Refuses 404 NOT_FOUND.';
