// What the later areas leave behind in a project of any size: collections, media, push, mail, webhooks, subscriptions, flags, the audit trail.

/** Definitions of these areas, which come before their rows. Campaigns are as many as a project has after years, whatever its size. */
export const areaDefinitions = `
  do $$ begin
    perform set_config('app.developer_id', gen_random_uuid()::text, true), set_config('app.caller', 'developer', true);
    perform internal.collection_create('{"name": "notes", "read_policy": "public", "columns": [{"name": "title", "type": "text"}, {"name": "rank", "type": "integer"}]}', false);
  end $$;
  insert into app.media_folders (name) select 'Folder ' || n from generate_series(1, 100) n;
  insert into app.push_templates (key, name, message) values ('hello', 'Hello', '{"title": "Hello", "body": "There is something new."}');
  insert into app.push_categories (key) values ('news');
  insert into app.push_automations (key, trigger, message)
  values ('after-lesson', '{"event_name": "lesson_abandoned"}', '{"title": "Go on", "body": "A lesson waits."}');
  insert into app.campaigns (channel, name, message, audience, status, created_at, scheduled_at, started_at, finished_at)
  select 'push', 'Campaign ' || n, '{"title": "News", "body": "There is something new."}', '{"all": true}', case when n % 20 = 0 then 'draft' else 'sent' end,
         t.at, t.at, t.at, t.at + interval '10 minutes'
    from generate_series(1, 2000) n, lateral (select now() - interval '1 day' - n * interval '6 hours' as at) t;
  insert into app.email_templates (key, name, subject, text) values ('weekly', 'Weekly', 'This week', 'There is something new.');
  insert into app.campaigns (channel, name, message, audience, status, created_at, scheduled_at, started_at, finished_at)
  select 'email', 'Mail ' || n, '{"template_key": "weekly", "category": "news", "track": true}', '{"all": true}', 'sent', t.at, t.at, t.at, t.at + interval '1 hour'
    from generate_series(1, 200) n, lateral (select now() - interval '1 day' - n * interval '60 hours' as at) t;
  insert into app.webhooks (event_name, target_url, secret_id) values ('song_deleted', 'https://hooks.example/trellis', internal.new_id());
  insert into app.webhook_secrets (id, webhook_id, secret_sealed) select w.secret_id, w.id, 'sealed' from app.webhooks w;
  insert into app.xp_boosts (name, multiplier, starts_at, ends_at) values ('Weekend', 2, now() - interval '9 days', now() - interval '7 days');
  insert into app.flags (key, name, value_type, off_value, default_value) values ('dark', 'Dark', 'boolean', 'false', 'true')`

/** As the statements of scale_fill.ts, and after them. */
export const areaRows: readonly (readonly [name: string, sql: string])[] = [
  [
    'rows of a collection',
    `insert into collections.notes (user_id, created_at, updated_at, title, rank)
     select p.id, t.at, t.at, 'Note ' || md5(p.n::text), p.n % 1000
       from bench.people p, lateral (select now() - p.n * interval '1 second' as at) t where p.n <= $1::int`,
  ],
  [
    'assets',
    `insert into app.media_assets (key, filename, mime_type, status, source, size_bytes, object_version, upload_version, upload_expires_at, folder_id,
                                   uploaded_by, committed_at, created_at)
     select 'photos/' || p.n || '.png', 'Photo ' || md5(p.n::text) || '.png', case p.n % 3 when 0 then 'image/jpeg' else 'image/png' end,
            case when p.n % 20 = 7 then 'pending' else 'committed' end, 'upload', 1000 + p.n % 5000, 'v1', 'u1', now() + interval '1 hour',
            case when p.n % 10 = 1 then f.ids[1 + p.n / 10 % 100] end, p.id, case when p.n % 20 <> 7 then t.at end, t.at
       from (select array_agg(id) as ids from app.media_folders) f, bench.people p, lateral (select now() - p.n * interval '1 second' as at) t
      where p.n <= $1::int`,
  ],
  [
    'sums of these',
    `insert into app.media_totals (registered_bytes, stored_bytes, objects)
     select sum(a.size_bytes), sum(a.size_bytes) filter (where a.status = 'committed'), count(*) filter (where a.status = 'committed')
       from app.media_assets a where $1::int > 0`,
  ],
  [
    'a catalog',
    `insert into app.media_catalogs (slug, name, asset_ids)
     select 'gallery', 'Gallery', array(select a.id from bench.people p join app.media_assets a on a.uploaded_by = p.id where p.n <= 100 and a.status = 'committed')
      where $1::int > 0`,
  ],
  [
    'jobs of media',
    `insert into app.media_jobs (asset_id, version, operations, status, created_at, started_at, finished_at)
     select a.id, 'v1', '[{"type": "thumbnail"}]', case when p.n % 100 = 2 then 'failed' else 'succeeded' end, a.created_at, a.created_at, a.created_at
       from bench.people p join app.media_assets a on a.uploaded_by = p.id where p.n <= $1::int and p.n % 2 = 0`,
  ],
  [
    'deliveries of a campaign',
    `insert into app.campaign_deliveries (channel, queue_id, campaign_id, app_user_id, status, due_at, sent_at, received_at, opened_at, created_at)
     select 'push', c.id, c.id, p.id, case p.n % 10 when 0 then 'failed' when 1 then 'opened' when 2 then 'opened' else 'sent' end, c.started_at, c.started_at,
            c.started_at, case when p.n % 10 in (1, 2) then c.started_at + interval '1 hour' end, c.started_at
       from bench.people p, (select k.* from app.campaigns k where k.channel = 'push' and k.status = 'sent' order by k.created_at desc limit 1) c where p.n <= $1::int`,
  ],
  [
    'deliveries of a campaign of mail',
    `insert into app.campaign_deliveries (channel, queue_id, campaign_id, app_user_id, status, due_at, sent_at, opened_at, created_at)
     select 'email', c.id, c.id, p.id, case p.n % 20 when 0 then 'failed' when 2 then 'opened' else 'sent' end, c.started_at, c.started_at,
            case when p.n % 20 = 2 then c.started_at + interval '1 hour' end, c.started_at
       from bench.people p, (select k.* from app.campaigns k where k.channel = 'email' order by k.created_at desc limit 1) c
      where p.n <= $1::int and p.n % 2 = 0`,
  ],
  [
    'counts of deliveries',
    `insert into app.campaign_counts (source_id, hour, variant, targeted, sent, failed, opened)
     select d.campaign_id, h.hour, '', count(*), count(*) filter (where d.status <> 'failed'), count(*) filter (where d.status = 'failed'),
            count(*) filter (where d.status = 'opened')
       from app.campaign_deliveries d, lateral (values ('-infinity'::timestamptz), (date_trunc('hour', d.sent_at))) h (hour) where $1::int > 0 group by 1, 2`,
  ],
  [
    'deliveries of single messages',
    `insert into app.campaign_deliveries (channel, queue_id, app_user_id, message, status, due_at, sent_at, created_at)
     select 'push', '00000000-0000-0000-0000-000000000000', p.id, '{"title": "Hello", "body": "A friend wrote."}', 'sent', t.at, t.at, t.at
       from bench.people p, lateral (select now() - p.n * interval '2 seconds' as at) t where p.n <= $1::int`,
  ],
  [
    'inboxes',
    `insert into app.push_inbox_items (app_user_id, delivery_id, title, body, is_read, created_at, expires_at)
     select d.app_user_id, d.id, 'News', 'There is something new.', d.status = 'opened', d.sent_at, d.sent_at + interval '30 days'
       from app.campaign_deliveries d where d.channel = 'push' and $1::int > 0`,
  ],
  [
    'preferences of push',
    `insert into app.push_preferences (app_user_id, categories) select p.id, '{"news": false}' from bench.people p where p.n <= $1::int / 10`,
  ],
  [
    'mail',
    `insert into app.email_messages (app_user_id, to_address, subject, template_key, template_version, category, status, attempts, sent_at, created_at)
     select p.id, 'user' || p.n || '@mail.example', 'This week', 'weekly', 1, 'news',
            case p.n % 50 when 7 then 'bounced' when 8 then 'failed' else 'delivered' end, 1, t.at, t.at
       from bench.people p, lateral (select now() - p.n * interval '2 seconds' as at) t where p.n <= $1::int`,
  ],
  [
    'suppressed addresses',
    `insert into app.email_suppressions (address, reason, created_at)
     select 'user' || p.n || '@mail.example', case p.n % 4 when 0 then 'bounce' else 'unsubscribe' end, now() - p.n * interval '2 seconds'
       from bench.people p where p.n <= $1::int and p.n % 2 = 0`,
  ],
  [
    'preferences of mail',
    `insert into app.email_preferences (app_user_id, categories) select p.id, '{"news": false}' from bench.people p where p.n <= $1::int / 10`,
  ],
  [
    'deliveries of a webhook',
    `insert into app.webhook_deliveries (id, webhook_id, secret_id, event_id, event_name, payload, status, attempts, created_at, settled_at)
     select internal.new_id(), w.id, w.secret_id, internal.new_id(), w.event_name, '{}', case when p.n % 100 = 7 then 'failed' else 'delivered' end, 1, t.at, t.at
       from bench.people p, app.webhooks w, lateral (select now() - p.n * interval '2 seconds' as at) t where p.n <= $1::int`,
  ],
  [
    'their attempts',
    `insert into app.webhook_attempts (delivery_id, n, at, status_code, duration_ms) select d.id, 1, d.created_at, 200, 20 from app.webhook_deliveries d where $1::int > 0`,
  ],
  [
    'subscriptions',
    `insert into app.subscriptions (app_user_id, source_ref, product_id, store, environment, period_type, entitlement_ids, purchase_date, expiration_date,
                                    last_event_at, created_at)
     select p.id, 'tx-' || p.n, 'monthly', 'app_store', 'production', 'normal', '{pro}', t.at, t.at + interval '30 days', t.at, t.at
       from bench.people p, lateral (select now() - p.n * interval '5 seconds' as at) t where p.n <= $1::int / 10`,
  ],
  [
    'users of a flag',
    `with v as (insert into app.flag_values (flag_id, value_key, value) select f.id, 'true', 'true' from app.flags f returning flag_id, value_key),
          c as (insert into app.flag_counts (flag_id, value_key, day, evaluations, users)
                select v.flag_id, v.value_key, current_date - d, $1::int, $1::int from v, generate_series(0, 29) d)
     insert into app.flag_users (flag_id, value_key, app_user_id, last_day)
     select v.flag_id, v.value_key, p.id, current_date - p.n % 60 from bench.people p, v where p.n <= $1::int`,
  ],
  [
    'the trail of administrators',
    `insert into app.audit_events (id, scope, position, occurred_at, actor, action, target_type, target_id, status)
     select internal.new_id(), '00000000-0000-0000-0000-000000000000', nextval('app.audit_positions'), t.at, '{"type": "developer", "id": null, "label": null}', 'users.update', 'users',
            p.id::text, 200
       from bench.people p, lateral (select now() - p.n * interval '1 millisecond' as at) t where p.n <= $1::int / 5 order by p.n desc`,
  ],
]
