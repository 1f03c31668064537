-- Previews: whom a campaign would reach now, and why others are skipped.
create or replace function internal.campaign_preview(c app.campaigns, user_id uuid, affordable bigint default 20000)
returns json
language plpgsql volatile security definer set search_path = '' as $$
declare
  campaign constant app.campaigns := campaign_preview.c;
  channel constant internal.campaign_channels := internal.campaign_channel(campaign.channel);
  figures constant text := internal.campaign_hook('figures', campaign.channel);
  compiled record;
  plan jsonb;
  is_estimate boolean := false;
  ids uuid[];
  scale numeric := 1;
  margin bigint := 0;
  shown app.users;
  counted json;
  made json;
begin
  select a.* into compiled from internal.campaign_audience_compile(campaign.audience, campaign.exclude_segment_id) a;
  if channel.is_estimated and not campaign.audience ? 'user_ids' then
    plan := internal.plan_of(compiled.query, internal.segment_bind(compiled.parameters));
    is_estimate := (plan ->> 'rows')::numeric > campaign_preview.affordable
      or (plan ->> 'cost')::numeric > campaign_preview.affordable;
  end if;
  if is_estimate then
    select s.ids, s.scale, s.margin into ids, scale, margin
      from internal.campaign_audience_sample(campaign.audience, campaign.exclude_segment_id,
                                             internal.users_estimate()) s;
  else
    execute format('select array(%s)', compiled.query) into ids
      using internal.segment_bind(compiled.parameters), null::uuid, null::uuid,
        internal.campaign_audience_user_ids(campaign.audience);
  end if;
  execute format($query$
    with known as materialized (
      select i.id, coalesce(u.properties ->> 'locale', 'default') as locale,
             coalesce(r.refused, h.reason, r.unreachable) as reason
        from unnest($1) i (id)
        join app.users u on u.id = i.id
        left join app.timezones z on z.name = u.timezone
        join internal.%I($2, $1) r on r.app_user_id = i.id
       cross join lateral internal.campaign_held_back($3, $4, r.own_quiet_hours,
                                                      ($5 at time zone coalesce(z.name, 'UTC'))::time, $6, i.id, null,
                                                        $5) h
    )
    select json_build_object(
      'audience_count', round($7 * count(*)),
      'by_locale', (select coalesce(json_object_agg(l.locale, round($7 * l.n)), '{}')
                      from (select left(g.locale, 35) as locale, count(*) as n from known g group by 1 order by 2 desc,
                            1 limit 50) l),
      'skipped', (select json_object_agg(case s.reason when 'quiet_hours' then 'quiet' else s.reason end,
                                         round($7 * s.n) order by s.place)
                    from (select w.reason, w.place, count(g.id) as n
                            from unnest($8) with ordinality w (reason, place)
                            left join known g on g.reason = w.reason
                           group by 1, 2) s))
      from known k
  $query$, 'campaign_reached__' || campaign.channel)
     into counted
    using ids, campaign.message, campaign.channel, campaign.quiet_hours, internal.now(), campaign.frequency_cap, scale,
          channel.skip_reasons || '{quiet_hours,capped}';
  if channel.is_estimated then
    counted := internal.json_merge(counted, json_build_object('is_estimate', is_estimate, 'margin', margin));
  end if;
  if figures is not null then
    execute format('select internal.%I($1, $2)', figures) into made using ids, scale;
    counted := internal.json_merge(counted, made);
  end if;
  if campaign_preview.user_id is not null then
    select u.* into shown from app.users u where u.id = campaign_preview.user_id;
    perform internal.check_found(found, 'user', 'USER_NOT_FOUND');
  end if;
  execute format('select internal.%I($1, $2)', 'campaign_rendered__' || campaign.channel) into made using campaign,
    shown;
  return internal.json_merge(counted, json_build_object('rendered', made));
end $$;
comment on function internal.campaign_preview is
  'Whom a campaign would reach now: {audience_count, by_locale (50), skipped, rendered}, and the figures of its channel.
   Of a channel whose previews are estimated also {is_estimate, margin}: exact while the planner expects at most
   affordable users, at no higher cost; otherwise an estimate from about 5,000 users, whose audience_count is within
   margin in 95 of 100 samples. rendered is the message for a user, or for one without properties. Refuses 404
   USER_NOT_FOUND, 400 VALIDATION_ERROR. Granted to nobody.';
