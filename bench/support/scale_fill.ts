// A project of any size: definitions of every kind, and the rows that so many users have left behind, written by SQL alone.
import type { Client } from 'pg'
import { areaDefinitions, areaRows } from './scale_areas.ts'

export const eventsPerUser = 10
/** Days that the events of a project are spread over. */
const days = 60

const definitions = `
  insert into app.xp_rules (key, name, event_name, amount) values ('lesson', 'Lesson', 'lesson_completed', 10);
  insert into app.streak_definitions (key, name, qualifying_event) values ('daily', 'Daily', 'lesson_completed');
  insert into app.challenges (name, start_at, end_at, goal_type, event_name, goal_value)
  values ('Marathon', now() - interval '30 days', now() + interval '30 days', 'event_count', 'lesson_completed', 100);
  insert into app.achievements (key, name, criteria)
  values ('six-lessons', 'Six lessons', '{"type": "event_count", "event_name": "lesson_completed", "target_value": 6}');
  insert into app.leaderboards (key, name, source, scoring, client_writable) values ('lessons', 'Lessons', '{"type": "manual"}', 'sum', true);
  insert into app.leaderboard_runs (leaderboard_id, run_key) select b.id, 'all' from app.leaderboards b;
  insert into app.currencies (code, name) values ('COINS', 'Coins');
  insert into app.catalog_items (key, name, item_type) values ('potion', 'Potion', 'consumable');
  insert into app.onboarding_flows (name, steps) values ('Welcome', '[{"id": "goal", "type": "question", "title": "Goal", "description": null, "config": {}, "skippable": false, "segment_id": null}]');
  insert into app.segments (key, name, kind) values ('chosen', 'Chosen', 'static');
  insert into app.referral_codes (code) values ('SPRING-24');
  insert into app.roles (key, name, permissions) values ('editor', 'Editor', '{articles.edit}');
  insert into app.groups (name) select 'Group ' || n from generate_series(1, 1000) n;
  insert into app.event_definitions (event_name) values ('lesson_completed');
  insert into app.ai_prompts (name, provider, model, system_prompt, budget_usd) values ('tutor', 'openai', 'gpt-4o-mini', 'Help.', 1000000);
  -- or the worker would give the achievement meanwhile to those of whom there are events already
  delete from app.outbox`

/** Statements that write the rows of $1 users, in order, each with what it writes. They run without triggers: whatever these would keep is written too. */
const rows: readonly (readonly [name: string, sql: string])[] = [
  [
    'users',
    `insert into app.users (id, display_name, email, external_id, anonymous_id, properties, timezone, created_at, first_seen_at, last_seen_at)
     select uuidv7(-interval '400 days' + n * interval '20 seconds'),
            initcap(a.word) || ' ' || initcap(w.word), case when n % 2 = 0 then 'user' || n || '@' || w.word || '.example' end,
            case when n % 3 = 0 then 'ext-' || md5(n::text) end, 'anon_' || md5((-n)::text),
            jsonb_build_object('plan', case n % 10 when 0 then 'pro' else 'free' end, 'level', n % 50, 'country', 'C' || n % 200,
                               'note', repeat('x', 60)),
            case n % 3 when 0 then 'Europe/Berlin' when 1 then 'America/New_York' end,
            now() - interval '400 days' + n * interval '20 seconds', now() - interval '400 days' + n * interval '20 seconds',
            -- a session sets it: see app sessions
            now() - interval '55 minutes' - n * interval '3 seconds'
       from generate_series(1, $1::int) n
       join app.name_words a on a.kind = 'adjective' and a.position = n % (select count(*) from app.name_words where kind = 'adjective')
       join app.name_words w on w.kind = 'noun' and w.position = n / 7 % (select count(*) from app.name_words where kind = 'noun')`,
  ],
  [
    'their numbers',
    `create table bench.people as select u.id, row_number() over (order by u.created_at, u.id)::int as n from app.users u limit $1::int`,
  ],
  ['an index of these', 'create unique index on bench.people (n)'],
  [
    'events',
    `insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source)
     select uuidv7(t.at - clock_timestamp()), p.id,
            -- half of the users opened the app twice
            case e.i / $1::int when 0 then 'app_opened' when 1 then case e.i % 2 when 0 then 'app_opened' else 'song_played' end when 2 then 'song_played' when 3 then 'purchase_made' else 'lesson_completed' end,
            jsonb_build_object('lesson', e.i % 100, 'score', e.i % 1000), t.at, t.at, 'client'
       from generate_series(0, $1::int * ${eventsPerUser} - 1) e (i)
      cross join lateral (select now() - interval '${days} days' + interval '${days} days' * (e.i::float8 / ($1::int * ${eventsPerUser})) as at) t
       join bench.people p on p.n = e.i::bigint * 7919 % $1::bigint + 1`,
  ],
  [
    'counters of events',
    `insert into app.user_event_counters (app_user_id, event_name, day, count)
     select e.app_user_id, e.event_name, (e.occurred_at at time zone 'UTC')::date, count(*) from app.engagement_events e where $1::int > 0 and e.source = 'client' group by 1, 2, 3`,
  ],
  [
    'XP totals',
    `insert into app.xp_totals (app_user_id, total) select p.id, 60 + p.n % 7 from bench.people p where p.n <= $1::int`,
  ],
  [
    'XP ledger',
    `insert into app.xp_transactions (app_user_id, amount, total_after, source, source_id, rule_key, requested, occurred_at, counted_at, created_at)
     select p.id, 10, 10 * k, 'event', p.n || '-' || k, 'lesson', 10, t.at, t.at, t.at
       from generate_series(1, 3) k, bench.people p, lateral (select now() - (k * 5 + p.n % 5) * interval '1 day' as at) t
      where p.n <= $1::int`,
  ],
  [
    'streaks',
    `insert into app.user_streaks (app_user_id, streak_definition_id, freezes_initial, current_count, longest_count, started_on, last_period,
                                   covered_through, freezes, first_qualified_at, last_qualified_at)
     select p.id, d.id, 0, 3, 5, current_date - 3, current_date - 1, current_date, 0, now() - interval '9 days', now() - interval '1 day'
       from bench.people p, app.streak_definitions d where p.n <= $1::int / 2`,
  ],
  [
    'achievements',
    `insert into app.user_achievements (app_user_id, achievement_id, unlocked_at, source)
     select p.id, a.id, now() - p.n % 90 * interval '1 hour', 'criteria' from bench.people p, app.achievements a where p.n <= $1::int / 3`,
  ],
  [
    'participants of a challenge',
    `insert into app.challenge_participants (challenge_id, app_user_id, joined_at, progress)
     select c.id, p.id, now() - interval '9 days', p.n % 90 from bench.people p, app.challenges c where p.n <= $1::int / 4`,
  ],
  [
    'entries of a leaderboard',
    `insert into app.leaderboard_entries (run_id, app_user_id, score, place, reached_at, submissions)
     select r.id, p.id, s.score, -s.score, now() - p.n * interval '1 millisecond', 1
       from bench.people p, app.leaderboard_runs r, lateral (select p.n::bigint * 104729 % 30000 as score) s where p.n <= $1::int`,
  ],
  [
    'changes of ranks, which a trigger would have written',
    `insert into app.leaderboard_changes (run_id, place, at, whose, n) select e.run_id, e.place, e.reached_at, e.app_user_id, 1
       from app.leaderboard_entries e where $1::int > 0`,
  ],
  ['ranks', 'select internal.leaderboard_fold(r.id) from app.leaderboard_runs r where $1::int > 0'],
  [
    'balances',
    `insert into app.currency_balances (app_user_id, currency_code, balance) select p.id, 'COINS', 50 from bench.people p where p.n <= $1::int`,
  ],
  [
    'ledger of currencies',
    `insert into app.currency_transactions (app_user_id, currency_code, amount, balance_after, reason, source_type, source_id, created_at)
     select p.id, 'COINS', 50, 50, 'start', 'admin', 'start', now() - p.n % 60 * interval '1 day' from bench.people p where p.n <= $1::int`,
  ],
  [
    'inventory',
    `insert into app.inventory_stacks (app_user_id, catalog_item_id, quantity, source_type, source_id, created_at)
     select p.id, i.id, 2, 'admin', 'start', now() - p.n * interval '1 second' from bench.people p, app.catalog_items i where p.n <= $1::int / 2`,
  ],
  [
    'entitlements',
    `insert into app.entitlement_grants (app_user_id, entitlement_id, source, source_ref, store, period_type, purchase_date)
     select p.id, 'pro', 'promotional', 'start', 'promotional', 'normal', now() from bench.people p where p.n <= $1::int / 10`,
  ],
  [
    'onboarding',
    `insert into app.onboarding_progress (app_user_id, flow_id, status, completed_at) select p.id, f.id, 'completed', now() from bench.people p, app.onboarding_flows f
      where p.n <= $1::int / 2`,
  ],
  [
    'push tokens',
    `insert into app.push_tokens (app_user_id, token, platform) select p.id, 'token-' || p.n, case p.n % 2 when 0 then 'ios' else 'android' end from bench.people p
      where p.n <= $1::int / 4`,
  ],
  [
    'app sessions',
    `insert into app.app_sessions (app_user_id, started_at, last_seen_at, ended_at, end_reason)
     select p.id, t.at, t.at + interval '5 minutes', t.at + interval '5 minutes', 'client'
       from bench.people p, lateral (select now() - interval '1 hour' - p.n * interval '3 seconds' as at) t where p.n <= $1::int`,
  ],
  [
    'members of a segment',
    `insert into app.segment_members (segment_id, app_user_id, entered_at) select s.id, p.id, now() - p.n * interval '1 second' from bench.people p, app.segments s
      where p.n <= $1::int / 4`,
  ],
  [
    'members of groups',
    `insert into app.group_members (group_id, app_user_id, role, joined_at)
     select g.id, p.id, case when p.n <= 1000 then 'admin' else 'member' end, now() - p.n * interval '1 second' from (select id, row_number() over (order by id) as n from app.groups) g join bench.people p on p.n % 1000 + 1 = g.n
      where p.n <= least($1::int, 50000)`,
  ],
  [
    'sizes of groups',
    'update app.groups g set member_count = (select count(*) from app.group_members m where m.group_id = g.id) where $1::int > 0',
  ],
  [
    'claims of a referral code',
    `insert into app.referral_claims (code_id, code, claimer_id, is_personal, state, reward_referrer, reward_referee, rewarded_at, claimed_at)
     select c.id, c.code, p.id, false, 'rewarded', '{}', '{}', now(), now() - p.n * interval '1 second' from bench.people p, app.referral_codes c
      where p.n <= $1::int / 20`,
  ],
  [
    'assignments of a role',
    `insert into app.role_assignments (role_id, app_user_id, created_at) select r.id, p.id, now() - p.n * interval '1 second' from bench.people p, app.roles r
      where p.n <= $1::int / 10`,
  ],
  [
    'friendships',
    `insert into app.friendships (user_a, user_b, status, requested_by, requested_at, responded_at)
     select least(p.id, q.id), greatest(p.id, q.id), case when k < 3 then 'accepted' else 'pending' end, p.id, t.at, case when k < 3 then t.at + interval '1 hour' end
       from generate_series(1, 3) k, bench.people p join bench.people q on true,
            lateral (select now() - interval '2 hours' - p.n * interval '5 seconds' as at) t
      where p.n <= $1::int and q.n = p.n + k`,
  ],
  [
    'blocks',
    `insert into app.blocks (blocker, blocked, created_at) select p.id, q.id, now() - p.n * interval '1 second'
       from bench.people p join bench.people q on q.n = p.n + 5 where p.n <= $1::int and p.n % 10 = 1`,
  ],
  [
    'codes of friends',
    `insert into app.friend_codes (app_user_id, code)
     select p.id, translate(lpad(to_hex(p.n), 8, '0'), '0123456789abcdef', 'ABCDEFGHJKMNPQRS') from bench.people p where p.n <= $1::int`,
  ],
  [
    'their conversations',
    `create table bench.talks as
     select internal.new_id() as id, p.n, p.id as a, q.id as b, now() - p.n * interval '1 minute' as at
       from bench.people p join bench.people q on q.n = p.n + 1 where p.n % 2 = 1 and p.n < $1::int`,
  ],
  [
    'conversations',
    `insert into app.conversations (id, type, direct_key, message_count, top_level_count, last_activity_at, created_at, updated_at)
     select t.id, 'direct', sha256(convert_to(least(t.a, t.b) || ',' || greatest(t.a, t.b), 'UTF8')), 4, 4, t.at, t.at - interval '1 hour', t.at from bench.talks t where $1::int > 0`,
  ],
  [
    'participants of conversations',
    `insert into app.conversation_participants (conversation_id, app_user_id, peer_id, joined_at, last_read_at, last_activity_at, unread_count)
     select t.id, case k when 1 then t.a else t.b end, case k when 1 then t.b else t.a end, t.at - interval '1 hour', t.at - interval '5 seconds', t.at, 1
       from bench.talks t, generate_series(1, 2) k where $1::int > 0`,
  ],
  [
    'messages',
    `insert into app.messages (id, conversation_id, sender_id, body, created_at)
     select internal.new_id(), t.id, case k % 2 when 1 then t.a else t.b end, 'Message ' || k || ' of ' || md5(t.n::text) || ' about lessons', t.at - (4 - k) * interval '10 seconds'
       from bench.talks t, generate_series(1, 4) k where $1::int > 0`,
  ],
  [
    'reactions',
    `insert into app.message_reactions (message_id, emoji, app_user_id) select m.id, '+1', t.b
       from bench.talks t join app.messages m on m.conversation_id = t.id and m.sender_id = t.a where $1::int > 0`,
  ],
  [
    'items of moderation',
    `insert into app.moderation_items (subject_type, subject_id, subject_user_id, source, reasons, report_count, status, created_at)
     select 'user', p.id, p.id, 'report', '{"spam": 1}', 1, (array['pending', 'pending', 'approved', 'escalated'])[1 + p.n / 20 % 4], now() - p.n * interval '1 second'
       from bench.people p where p.n <= $1::int and p.n % 20 = 0`,
  ],
  [
    'reports',
    `insert into app.moderation_reports (reporter_id, item_id, subject_type, subject_id, reason, created_at)
     select p.id, i.id, 'user', i.subject_user_id, 'spam', i.created_at
       from app.moderation_items i join bench.people q on q.id = i.subject_user_id join bench.people p on p.n = q.n - 19 where $1::int > 0`,
  ],
  [
    'levels of trust',
    `insert into app.moderation_trust_levels (app_user_id, trust_level, created_at) select p.id, 'trusted', now() - p.n * interval '1 second' from bench.people p
      where p.n <= $1::int / 10`,
  ],
  [
    'entries of feeds',
    `insert into app.feed_entries (actor_id, action, group_id, metadata, created_at)
     select p.id, 'lesson.shared', case when k = 3 then m.group_id end, '{"score": 7}', now() - (k * $1::int + p.n) * interval '1 second'
       from generate_series(1, 3) k, bench.people p left join app.group_members m on m.app_user_id = p.id where p.n <= $1::int`,
  ],
  [
    'counts of these',
    `insert into app.feed_counts (actor_key, is_home, group_key, action, entries, last_at)
     select internal.feed_key(f.actor_id), f.is_home, internal.feed_key(f.group_id), f.action, count(*), max(f.created_at) from app.feed_entries f where $1::int > 0 group by 1, 2, 3, 4`,
  ],
  ['totals of these', 'select internal.feed_totals_begin() where $1::int > 0'],
  [
    'calls of a prompt',
    `insert into app.ai_invocations (kind, prompt_id, prompt, version, provider, model, app_user_id, status, input_usd, output_usd, input_tokens, output_tokens, cost_usd,
                                     created_at, expires_at, finished_at)
     select 'invoke', q.id, q.name, 1, q.provider, q.model, p.id, 'succeeded', 0.15, 0.6, 200, 100, 0.00009, t.at, t.at + interval '15 minutes', t.at + interval '2 seconds'
       from app.ai_prompts q, bench.people p cross join lateral (select now() - p.n * interval '7 seconds' as at) t where p.n <= $1::int / 4`,
  ],
  [
    'what they cost',
    `insert into app.ai_prompt_days (prompt_id, day, spend_usd, calls)
     select i.prompt_id, (i.created_at at time zone 'UTC')::date, sum(i.cost_usd), count(*) from app.ai_invocations i where $1::int > 0 group by 1, 2`,
  ],
  [
    'invites to groups',
    `insert into app.group_invites (group_id, code, created_by, max_uses, expires_at)
     select distinct on (m.group_id) m.group_id, translate(left(md5(m.group_id::text), 12), '0123456789abcdef', 'ABCDEFGHJKMNPQRS'), m.app_user_id, 10, now() + interval '7 days'
       from app.group_members m where $1::int > 0 order by m.group_id, m.joined_at desc`,
  ],
]

/** Tables whose indexes are made after their rows, at a fraction of the cost. Keys and unique constraints stay. */
const filledBare = [
  'app.users',
  'app.engagement_events',
  'app.leaderboard_entries',
  'app.xp_transactions',
  'app.currency_transactions',
  'app.friendships',
  'app.messages',
  'app.feed_entries',
  'app.app_sessions',
  'app.media_assets',
  'app.campaign_deliveries',
  'app.push_inbox_items',
  'app.email_messages',
  'app.webhook_deliveries',
  'app.ai_invocations',
]

const indexesOf = `
  select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as made
    from pg_catalog.pg_index i
   where i.indrelid = $1::regclass and not exists (select from pg_catalog.pg_constraint c where c.conindid = i.indexrelid)`

/** Fills an empty project. `admin` is a superuser's connection to its database; tells how long each part takes. */
export const fillProject = async (admin: Client, users: number, tell: (line: string) => void): Promise<void> => {
  const timed = async (name: string, work: () => Promise<unknown>) => {
    const began = performance.now()
    await work()
    tell(`${users}: ${name}, ${Math.round(performance.now() - began)} ms`)
  }
  await admin.query('create schema if not exists bench')
  await admin.query(`${areaDefinitions};${definitions}`)
  for (const ago of [days, days / 2])
    await admin.query('select internal.make_event_partition((now() - make_interval(days => $1))::date)', [ago])
  await admin.query(
    `set session_replication_role = 'replica'; set synchronous_commit = off; set maintenance_work_mem = '512MB'; set jit = off`,
  )
  const bare: { name: string; made: string }[] = []
  for (const table of filledBare) bare.push(...(await admin.query(indexesOf, [table])).rows)
  for (const { name } of bare) await admin.query(`drop index ${name}`)
  for (const [name, sql] of [...rows, ...areaRows])
    await timed(name, () => admin.query(sql, sql.includes('$1') ? [users] : []))
  for (const { name, made } of bare) await timed(name, () => admin.query(made.replace(' ON ONLY ', ' ON ')))
  await admin.query(`set session_replication_role = 'origin'`)
  await timed('counters', async () => {
    await admin.query('delete from app.row_counters')
    await admin.query('select internal.counters_begin()')
  })
  // as the daily task does: without it every event of the month would be counted when somebody asks what the project uses
  await timed('days that are over', () => admin.query('select internal.usage_close(internal.utc_day(now()) - 1, null)'))
  await timed('vacuum', () => admin.query('vacuum analyze'))
}
