import { describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

const harness = await startHarness()
const users = 20_000
// more than a request reads row by row, with neighbours alike: what happens to a user depends on n / 50
const project = await harness.project()
await project.sql(`
  do $do$ begin
    alter table app.engagement_events disable trigger user;
    alter table app.leaderboard_entries disable trigger user;
    insert into app.users (display_name) select 'U' from generate_series(1, ${users});
    create table public.people as select u.id, row_number() over (order by u.id)::int as n from app.users u;
    insert into app.xp_rules (key, name, event_name, amount) values ('lesson', 'Lesson', 'lesson', 10);
    insert into app.streak_definitions (key, name, qualifying_event) values ('daily', 'Daily', 'lesson');
    insert into app.challenges (name, start_at, end_at, goal_type, event_name, goal_value)
    values ('Alone', now() - interval '1 day', now() + interval '4 days', 'event_count', 'lesson', 3);
    insert into app.challenges (name, start_at, end_at, goal_type, event_name, goal_value, team_mode)
    values ('Teams', now() - interval '1 day', now() + interval '4 days', 'event_count', 'lesson', 9, 'group');
    insert into app.engagement_events (id, app_user_id, event_name, properties, occurred_at, received_at, source)
    select gen_random_uuid(), p.id, 'lesson', '{}', t.at, t.at, 'server'
      from public.people p
     cross join lateral generate_series(1, p.n / 50 % 5) k
     cross join lateral (select now() - interval '2 days' - k * interval '6 hours' as at) t;
    insert into app.user_event_counters (app_user_id, event_name, day, count)
    select e.app_user_id, e.event_name, (e.occurred_at at time zone 'UTC')::date, count(*) from app.engagement_events e group by 1, 2, 3;
    insert into app.xp_totals (app_user_id, total) select p.id, 10 * (p.n / 50 % 5) from public.people p;
    insert into app.xp_transactions (app_user_id, amount, total_after, source, source_id, rule_key, requested, occurred_at, counted_at, created_at)
    select e.app_user_id, 10, 10, 'event', e.id::text, 'lesson', 10, e.occurred_at, e.occurred_at, e.occurred_at from app.engagement_events e;
    insert into app.user_streaks (app_user_id, streak_definition_id, freezes_initial, current_count, longest_count, started_on, last_period, covered_through,
                                  freezes, first_qualified_at, last_qualified_at)
    select p.id, d.id, 0, 3, 5, current_date - 30, case when p.n / 50 % 4 = 0 then current_date + 1 else current_date - 20 end,
           case when p.n / 50 % 4 = 0 then current_date + 1 else current_date - 20 end, 0, now() - interval '9 days', now()
      from public.people p, app.streak_definitions d where p.n % 2 = 0;
    insert into app.currencies (code, name) values ('COINS', 'Coins');
    insert into app.currency_balances (app_user_id, currency_code, balance) select p.id, 'COINS', p.n / 50 % 4 * 10 from public.people p;
    insert into app.currency_transactions (app_user_id, currency_code, amount, balance_after, reason, source_type, source_id)
    select p.id, 'COINS', m.amount, 0, m.reason, 'admin', m.reason
      from public.people p
     cross join lateral (values (p.n / 50 % 4 * 10 + 5, 'given'), (-5, 'spent')) as m (amount, reason)
     where p.n / 50 % 4 > 0;
    insert into app.leaderboards (key, name, source, scoring) values ('best', 'Best', '{"type": "manual"}', 'best');
    insert into app.leaderboard_runs (leaderboard_id, run_key) select b.id, 'all' from app.leaderboards b;
    insert into app.leaderboard_entries (run_id, app_user_id, score, place, reached_at, biggest_step)
    select r.id, p.id, s.score, -s.score, now(), case when p.n = 9000 then 5000 else p.n % 7 end
      from public.people p, app.leaderboard_runs r, lateral (select case when p.n % 4000 = 1 then 100000 + p.n else 500 + p.n % 100 end as score) s;
    insert into app.groups (name) select 'G' || n from generate_series(1, ${users} / 4) n;
    insert into app.group_members (group_id, app_user_id, role)
    select g.id, p.id, 'member' from public.people p join (select id, row_number() over (order by id)::int as n from app.groups) g on g.n = (p.n - 1) / 4 + 1;
    alter table app.app_sessions disable trigger user;
    insert into app.app_sessions (app_user_id, started_at, last_seen_at, ended_at, end_reason)
    select p.id, t.at, t.at + k * interval '1 minute', t.at + k * interval '1 minute', 'client'
      from public.people p cross join lateral generate_series(1, p.n / 50 % 3) k
     cross join lateral (select now() - interval '20 hours' - k * interval '1 day' as at) t;
    alter table app.app_sessions enable trigger user;
    alter table app.users disable trigger user;
    update app.users u set last_seen_at = now() - case when p.n / 50 % 3 = 0 then interval '99 days' else interval '40 hours' end from public.people p where p.id = u.id;
    alter table app.users enable trigger user;
    insert into app.push_tokens (app_user_id, token, platform) select p.id, 'token-' || p.n, 'ios' from public.people p where p.n / 50 % 4 = 1;
    insert into app.campaigns (channel, name, message, audience) values ('push', 'All', '{"title": "News", "body": "New"}', '{"all": true}');
    alter table app.engagement_events enable trigger user;
    alter table app.leaderboard_entries enable trigger user;
  end $do$`)
await project.sql('analyze')

/** The same figures read in full, and from a sample of users. */
const both = async (call: (affordable: number) => string) => {
  const answer = async (affordable: number) => {
    const [row] = await project.as('app_admin', { 'app.caller': 'developer' }, `select ${call(affordable)} as answer`)
    return row?.answer
  }
  return { exact: await answer(10_000_000), estimate: await answer(0) }
}

const expectNear = (exact: any, estimate: any, field: string) => {
  expect(exact).toMatchObject({ is_estimate: false, margin: 0 })
  expect(estimate.is_estimate).toBe(true)
  expect(estimate.margin).toBeGreaterThan(0)
  expect(estimate.margin).toBeLessThan(exact[field] / 2)
  expect(Math.abs(estimate[field] - exact[field])).toBeLessThan(2.5 * estimate.margin)
  // a part of the users was read, and scaled
  expect(estimate[field]).not.toBe(exact[field])
}

describe('of many users an estimate answers what all rows would', () => {
  test('statistics of XP', async () => {
    const { exact, estimate } = await both((affordable) => `internal.xp_figures(${affordable})`)
    expect(exact).toMatchObject({
      total_awarded_7d: 400_000,
      by_rule: [{ rule_key: 'lesson', users: 16_000, awards: 40_000 }],
    })
    expectNear(exact, estimate, 'total_awarded_7d')
    const [rule] = estimate.by_rule
    expect(Math.abs(rule.users - 16_000)).toBeLessThan(1600)
    expect(rule.total).toBe(estimate.total_awarded_7d)
    const levels = estimate.level_distribution.reduce((sum: number, level: { users: number }) => sum + level.users, 0)
    expect(Math.abs(levels - users)).toBeLessThan(1000)
  })

  test('the simulation of a rule of XP, as if nothing had been given', async () => {
    const { exact, estimate } = await both(
      (affordable) => `internal.xp_simulation((select id from app.xp_rules), now() - interval '9 days', ${affordable})`,
    )
    expect(exact).toMatchObject({ users: 16_000, awards: 40_000, total: 400_000, per_user: { max: 40 } })
    expectNear(exact, estimate, 'users')
    expect(Math.abs(estimate.total - 400_000)).toBeLessThan(40_000)
    expect(estimate.per_user.max).toBe(40)
    expect(Math.abs(estimate.per_user.median - exact.per_user.median)).toBeLessThanOrEqual(10)
  })

  test.each([
    ['Alone', 8000],
    // four who came together: a team has nine of them from three each on, and at the edges of fifty
    ['Teams', null],
  ])('the simulation of a challenge: %s', async (name, expected) => {
    const { exact, estimate } = await both(
      (affordable) =>
        `internal.challenge_simulation((select id from app.challenges where name = '${name}'), ${affordable})`,
    )
    expect(exact.expected_completions).toBe(expected ?? exact.expected_completions)
    expect(exact.expected_completions).toBeGreaterThan(4000)
    expectNear(exact, estimate, 'expected_completions')
    expect(Math.abs(estimate.rate - exact.rate)).toBeLessThan(0.1)
  })

  test('figures of a currency', async () => {
    const { exact, estimate } = await both((affordable) => `internal.currency_figures('COINS', ${affordable})`)
    expect(exact).toMatchObject({ circulating: 300_000, holders: 15_000, minted: 375_000, burned: 75_000 })
    expect(exact.reasons).toEqual([
      { reason: 'given', minted: 375_000, burned: 0, transactions: 15_000 },
      { reason: 'spent', minted: 0, burned: 75_000, transactions: 15_000 },
    ])
    expectNear(exact, estimate, 'circulating')
    for (const field of ['minted', 'burned', 'holders'])
      expect(Math.abs(estimate[field] / exact[field] - 1)).toBeLessThan(0.2)
    expect(estimate.reasons.map(({ reason }: { reason: string }) => reason)).toEqual(['given', 'spent'])
    expect(estimate.top_holders).toEqual(exact.top_holders)
  })

  test('statistics of app sessions', async () => {
    const { exact, estimate } = await both(
      (affordable) =>
        `(select to_json(f) from internal.app_sessions_figures(now() - interval '7 days', ${affordable}) f)`,
    )
    expect(exact).toMatchObject({ users: 13_301, sessions: 19_951, average: 79.999, median: 60 })
    expectNear(exact, estimate, 'users')
    expect(Math.abs(estimate.sessions / exact.sessions - 1)).toBeLessThan(0.2)
    expect(Math.abs(estimate.average / 80 - 1)).toBeLessThan(0.2)
    expect(estimate.median).toBe(60)
  })

  test('whom a campaign would reach', async () => {
    const reached = async (affordable: number) => {
      const [row] = await project.sql<{ answer: any }>(
        'select internal.campaign_preview((select c from app.campaigns c), null, $1) as answer',
        [affordable],
      )
      return row?.answer
    }
    const [exact, estimate] = [await reached(10_000_000), await reached(0)]
    expect(exact).toMatchObject({ is_estimate: false, margin: 0 })
    expect(exact).toMatchObject({ audience_count: users, devices: 5000, by_platform: { ios: 5000, android: 0 } })
    expect(exact.skipped.no_token).toBe(users - 5000)
    expect(estimate).toMatchObject({ is_estimate: true, rendered: exact.rendered })
    expect(Math.abs(estimate.audience_count - users)).toBeLessThanOrEqual(2.5 * estimate.margin)
    expect(Math.abs(estimate.devices - 5000)).toBeLessThan(1000)
    expect(estimate.devices).not.toBe(5000)
    expect(Math.abs(estimate.skipped.no_token + estimate.devices - estimate.audience_count)).toBeLessThan(5)
  })

  test('statistics, simulation and lists of a streak', async () => {
    const d = `(select d from app.streak_definitions d where d.key = 'daily')`
    const figures = await both((affordable) => `internal.streak_figures(${d}, ${affordable})`)
    expect(figures.exact.active).toBe(2500)
    expectNear(figures.exact, figures.estimate, 'active')
    const simulation = await both(
      (affordable) => `internal.streak_simulation(${d}, ${d}, now() - interval '9 days', ${affordable})`,
    )
    expect(simulation.exact.users).toBe(16_000)
    expectNear(simulation.exact, simulation.estimate, 'users')
    expect(simulation.estimate.broken_before).toBe(simulation.estimate.broken_after)
    const list = async (page_offset: number, status = 'active') =>
      both(
        (affordable) =>
          `(select json_build_object('users', (select json_agg(u ->> 'app_user_id') from json_array_elements(p.users) u), 'total', p.total)
              from internal.streak_users_of_status(${d}, '${status}', ${page_offset}, 30, ${affordable}, '1 minute') p)`,
      )
    for (const page_offset of [0, 1000]) {
      const { exact, estimate } = await list(page_offset)
      expect(exact.users).toHaveLength(30)
      expect(estimate.users).toEqual(exact.users)
      expect(exact.total).toBe(2500)
      expect(Math.abs(estimate.total - 2500)).toBeLessThan(500)
    }
    // all were read, and counted
    const last = await list(2490)
    expect(last.exact.users).toHaveLength(10)
    expect(last.estimate).toEqual(last.exact)
    const none = await list(0, 'frozen')
    expect(none.estimate).toEqual({ users: null, total: 0 })
  })

  test('a list of a status leaves nobody out whose zone, grace or travel is at the edge of its dates', async () => {
    await project.sql(`
      do $do$ begin
        insert into app.streak_definitions (key, name, qualifying_event, grace_hours) values ('edge', 'Edge', 'lesson', 48);
        alter table app.users disable trigger user;
        update app.users u
           set timezone = (array['Pacific/Kiritimati', 'Etc/GMT+12', 'UTC', 'Asia/Kolkata', 'America/Los_Angeles'])[p.n % 5 + 1]
          from public.people p where p.id = u.id and p.n <= 1200;
        alter table app.users enable trigger user;
        insert into app.streak_timezones (app_user_id, moved_at, from_zone, to_zone)
        select p.id, now() - interval '20 hours', 'Etc/GMT+12', (array['Pacific/Kiritimati', 'Etc/GMT+12', 'UTC', 'Asia/Kolkata', 'America/Los_Angeles'])[p.n % 5 + 1]
          from public.people p where p.n <= 300;
        insert into app.user_streaks (app_user_id, streak_definition_id, freezes_initial, current_count, longest_count, started_on, last_period, covered_through,
                                      freezes, first_qualified_at, last_qualified_at)
        select p.id, d.id, 0, 3, 5, current_date - 40, t.last, t.last + case when p.n % 3 = 0 then 1 else 0 end, 0, now() - interval '9 days', now()
          from public.people p
          join app.streak_definitions d on d.key = 'edge'
         cross join lateral (select current_date + 1 - p.n / 5 % 12 as last) t
         where p.n <= 1200;
      end $do$`)
    const d = `(select d from app.streak_definitions d where d.key = 'edge')`
    const list = async (status: string, affordable: number) => {
      const [row] = await project.as(
        'app_admin',
        { 'app.caller': 'developer' },
        `select json_build_object('users', (select json_agg(u ->> 'app_user_id') from json_array_elements(p.users) u), 'total', p.total) as answer
           from internal.streak_users_of_status(${d}, '${status}', 0, 2000, ${affordable}, '1 minute') p`,
      )
      return row?.answer as { users: string[] | null; total: number }
    }
    let found = 0
    for (const status of ['active', 'at_risk', 'frozen', 'broken']) {
      const exact = await list(status, 10_000_000)
      found += exact.total
      // neither where the candidates are few, nor where they are read one batch after the other
      expect(await list(status, 1199)).toEqual(exact)
      expect(await list(status, 0)).toEqual(exact)
      if (status !== 'frozen') expect(exact.total).toBeGreaterThan(50)
    }
    expect(found).toBe(1200)
  })

  test('odd entries of a board: a sample says what is usual, and every entry is compared with it', async () => {
    const { exact, estimate } = await both(
      (affordable) =>
        `to_json(internal.leaderboard_anomalies((select b from app.leaderboards b), 'current', 0, 50, ${affordable}))`,
    )
    const found = (answer: any) => {
      const body = typeof answer.body === 'string' ? JSON.parse(answer.body) : answer.body
      return body.data.map((odd: any) => [odd.entry.app_user_id, odd.reasons])
    }
    expect(found(exact)).toHaveLength(6)
    expect(found(estimate)).toEqual(found(exact))
  })
})

test('where all users or a sample are read, the sample is a set that is hashed, not a list that each row is compared with', async () => {
  // = any ($1) of ten thousand users costs that many comparisons a row in the generic plan, which Postgres may take from the sixth call in a connection on
  const compared = await project.sql(`
    select p.proname from pg_proc p
     where p.prosrc ~ '(is null|is_estimate|everybody) or [a-z]+\\.(app_user_id|id) = any \\('`)
  expect(compared).toEqual([])
})
