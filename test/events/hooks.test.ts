import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'

/*
 * An area as docs/events.md says to write one: points for events, a level at every third point, and an event for each level, which
 * gives a point again. It stands at place 35 of the pipeline, and exists only here.
 */
const harness = await startHarness()
const project = await harness.project()

beforeAll(() =>
  project.sql(`
    create table app.test_points (app_user_id uuid primary key references app.users on delete cascade, points int not null, history int not null);
    create function internal.on_events__35_test_points(events app.engagement_events[]) returns void
    language plpgsql volatile as $$
    declare
      users uuid[];
      effects json[];
      levels uuid[];
    begin
      if not internal.event_hooks_may_run()
         or not exists (select from unnest(on_events__35_test_points.events) i where i.event_name in ('scored', 'svc.test.level')) then
        return;
      end if;
      with gained as (
        select i.app_user_id, count(*)::int as points, count(*) filter (where i.is_historical)::int as history
          from unnest(on_events__35_test_points.events) i
         where i.event_name in ('scored', 'svc.test.level')
         group by i.app_user_id
         order by i.app_user_id
      ), stored as (
        insert into app.test_points as p select g.* from gained g order by g.app_user_id
        on conflict (app_user_id) do update set points = p.points + excluded.points, history = p.history + excluded.history
        returning p.app_user_id, p.points
      )
      select array_agg(s.app_user_id), array_agg(json_build_object('app_user_id', s.app_user_id, 'key', 'points', 'points', s.points)),
             array_agg(s.app_user_id) filter (where s.points / 3 > (s.points - g.points) / 3)
        into users, effects, levels
        from stored s
        join gained g on g.app_user_id = s.app_user_id;
      perform internal.add_effects('leaderboards', effects);
      perform internal.emit_many(levels, array(select 'svc.test.level' from unnest(levels)), array(select '{"by": "points"}'::jsonb from unnest(levels)));
    end $$;
    select ops.functions_loaded()`),
)
afterAll(() =>
  project.sql(
    'drop function internal.on_events__35_test_points; select ops.functions_loaded(); drop table app.test_points',
  ),
)

const points = async (userId: string) =>
  (await project.sql('select points, history from app.test_points where app_user_id = $1', [userId]))[0]
const levels = (userId: string) =>
  project.sql(
    `select is_historical from app.engagement_events where app_user_id = $1 and event_name = 'svc.test.level' and source = 'system'`,
    [userId],
  )

describe('a hook of an area', () => {
  test('applies its changes, reports them as effects, and its own events are processed again, to a fixed point', async () => {
    const user = await project.user()
    const one = await user.post('/client/events', { event_name: 'scored' })
    expect(one.data.effects).toEqual({ leaderboards: [{ key: 'points', points: 1 }] })
    await user.post('/client/events', { event_name: 'scored' })
    // the third point is a level, whose event is a fourth point; the last word is the effect
    const third = await user.post('/client/events', { event_name: 'scored' })
    expect(third.data.effects).toEqual({ leaderboards: [{ key: 'points', points: 4 }] })
    expect(await levels(user.id)).toHaveLength(1)
    const seen = (await project.admin.get(`/events/${third.data.event.id}`)).data.effects
    expect(seen.events.map(({ event_name }: any) => event_name)).toEqual(['svc.test.level'])
  })

  test('runs once for a batch over many users', async () => {
    const users = await Promise.all(Array.from({ length: 5 }, () => project.user()))
    const events = users.flatMap(({ id }) =>
      Array.from({ length: 3 }, () => ({ event_name: 'scored', app_user_id: id })),
    )
    const { data } = await project.server.post('/client/events', { events, include_effects: true })
    expect(data.effects.leaderboards).toHaveLength(5)
    for (const { id } of users) {
      expect(await points(id)).toEqual({ points: 4, history: 0 })
      expect(await levels(id)).toHaveLength(1)
    }
    // five levels came in one statement
    const counted = await project.sql(
      `select count(distinct received_at)::int as count from app.engagement_events where event_name = 'svc.test.level' and app_user_id = any ($1)`,
      [users.map(({ id }) => id)],
    )
    expect(counted).toEqual([{ count: 1 }])
  })

  test('learns that events are history, and so is what it emits: it is not sent on', async () => {
    const hook = await project.admin.post('/webhooks', { event_name: 'svc.test.level', target_url: 'https://1.1.1.1/' })
    expect(hook.status).toBe(201)
    const user = await project.user()
    const events = Array.from({ length: 3 }, () => ({
      event_name: 'scored',
      app_user_id: user.id,
      occurred_at: '2020-01-01T00:00:00Z',
    }))
    const sent = () => project.sql('select from app.webhook_deliveries where webhook_id = $1', [hook.data.id])
    expect((await project.server.post('/client/events', { events, historical: true })).status).toBe(201)
    expect(await points(user.id)).toEqual({ points: 4, history: 4 })
    expect(await levels(user.id)).toEqual([{ is_historical: true }])
    expect(await sent()).toEqual([])
    // the next call is the present again, on the same connection too
    for (let n = 0; n < 3; n += 1) await user.post('/client/events', { event_name: 'scored' })
    expect(await levels(user.id)).toEqual([{ is_historical: true }, { is_historical: false }])
    expect(await sent()).toHaveLength(1)
  })

  test('that feeds itself ends after five rounds; what comes last is stored and counted, and moves nothing', async () => {
    await project.sql(`
      create function internal.tg_test_forever() returns trigger language plpgsql security definer set search_path = '' as $$
      begin
        if internal.event_hooks_may_run() then
          perform internal.emit_many(array_agg(i.app_user_id), array_agg('svc.test.again'::text), array_agg('{}'::jsonb))
             from inserted i where i.event_name in ('starts', 'svc.test.again');
        end if;
        return null;
      end $$;
      create trigger tg_engagement_events__36_test after insert on app.engagement_events
        referencing new table as inserted for each statement execute function internal.tg_test_forever()`)
    const users = [await project.user(), await project.user()]
    const events = users.map(({ id }) => ({ event_name: 'starts', app_user_id: id }))
    const answer = await project.server.post('/client/events', { events })
    await project.sql('drop function internal.tg_test_forever cascade')
    expect(answer.status).toBe(201)
    for (const { id } of users) {
      const rows = await project.sql(
        `select count(*)::int as stored, (select sum(count)::int from app.user_event_counters where app_user_id = $1 and event_name = 'svc.test.again') as counted
           from app.engagement_events where app_user_id = $1 and event_name = 'svc.test.again'`,
        [id],
      )
      expect(rows).toEqual([{ stored: 5, counted: 5 }])
    }
  })
})

test('emit_many takes times and lists that go together, and nothing for nobody', async () => {
  const user = await project.user()
  await project.sql(
    `select internal.emit_many(array[$1::uuid, $1], array['svc.test.a', 'svc.test.b'], array['{"n": 1}'::jsonb, null],
                               array['2026-01-01T00:00:00Z'::timestamptz, null])`,
    [user.id],
  )
  await project.sql('select internal.emit_many(null, null, null)')
  const rows = await project.sql(
    `select event_name, properties, occurred_at = '2026-01-01T00:00:00Z' as is_then, occurred_at = received_at as is_now
       from app.engagement_events where app_user_id = $1 and event_name like 'svc.test.%' order by event_name`,
    [user.id],
  )
  expect(rows).toEqual([
    { event_name: 'svc.test.a', properties: { n: 1 }, is_then: true, is_now: false },
    { event_name: 'svc.test.b', properties: {}, is_then: false, is_now: true },
  ])
  for (const role of ['app_user', 'app_server', 'app_admin', 'app_worker'] as const)
    await expect(project.as(role, {}, 'select internal.emit_many(null, null, null)')).rejects.toThrow(
      /permission denied/,
    )
})

describe('effects', () => {
  const one = '00000000-0000-4000-8000-000000000001'
  const other = '00000000-0000-4000-8000-000000000002'
  const noted = async (times: number, answer: string) => {
    await project.sql(`
      create or replace function internal.test_effects() returns json language plpgsql as $$
      begin
        perform internal.collect_effects();
        for n in 1 .. ${times} loop
          perform internal.add_effects('streaks', array[
            json_build_object('app_user_id', '${one}', 'key', 'a', 'n', n), json_build_object('app_user_id', '${one}', 'key', 'b' || n % 2, 'n', n)]);
          perform internal.add_effect('xp', json_build_object('app_user_id', '${one}', 'total', n));
          perform internal.add_effect('challenges', json_build_object('app_user_id', '${other}', 'id', 'c', 'n', n));
        end loop;
        return ${answer};
      end $$`)
    const [{ effects }] = await project.sql('select internal.test_effects() as effects')
    await project.sql('drop function internal.test_effects')
    return effects
  }

  test('of one user: each thing once, as it was said last, and without the user', async () => {
    const answer = `internal.effects_json('${one}')`
    expect(await noted(0, answer)).toEqual({})
    expect(await noted(1, answer)).toEqual({
      streaks: [
        { key: 'a', n: 1 },
        { key: 'b1', n: 1 },
      ],
      xp: { total: 1 },
    })
    expect(await noted(3, answer)).toEqual({
      streaks: [
        { key: 'b0', n: 2 },
        { key: 'a', n: 3 },
        { key: 'b1', n: 3 },
      ],
      xp: { total: 3 },
    })
    expect((await noted(500, answer)).xp).toEqual({ total: 500 })
  })

  test('of all users: each names its user', async () => {
    expect(await noted(2, 'internal.effects_json()')).toEqual({
      streaks: [
        { app_user_id: one, key: 'b1', n: 1 },
        { app_user_id: one, key: 'a', n: 2 },
        { app_user_id: one, key: 'b0', n: 2 },
      ],
      xp: [{ app_user_id: one, total: 2 }],
      challenges: [{ app_user_id: other, id: 'c', n: 2 }],
    })
  })

  test('are not noted where the answer does not show them', async () => {
    expect(
      (
        await project.sql(
          `select internal.add_effect('xp', '{"total": 1}'), current_setting('app.effects', true) as effects`,
        )
      )[0].effects ?? '',
    ).toBe('')
  })
})
