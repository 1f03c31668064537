import fc from 'fast-check'

/*
 * Random histories of one project: what administrators define and change, and what users do, as statements. The ids that a history
 * chooses are fixed, so that two databases in which it happened can be compared.
 */
export const fixed = (kind: number, n: number) =>
  `00000000-0000-4000-8000-${kind.toString(16).padStart(4, '0')}${n.toString(16).padStart(8, '0')}`
const userId = (n: number) => fixed(1, n)
const literal = (value: unknown) =>
  `'${(typeof value === 'string' ? value : JSON.stringify(value)).replaceAll("'", "''")}'`

export type Step = {
  readonly what: string
  readonly sql: string
  /** Who calls; a server key where nothing is said. */
  readonly caller?: 'user' | 'developer' | 'worker'
  readonly user?: string
  readonly advance?: number
}

/** Few values, and one of them mostly, so that definitions and users meet the same events again and again. */
const names = ['read', 'read', 'read', 'read', 'won', 'paid'] as const
const name = fc.constantFrom(...names)
/** 0 and 1 have friends, among each other and in the crowd; 2 and 3 have none until a history makes some. */
const user = fc.constantFrom(0, 0, 1, 2, 2, 3)

const maybe = <T>(value: fc.Arbitrary<T>, weight = 1) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight, arbitrary: value })

const filter = fc.constantFrom(
  { field: 'n', op: 'gt', value: 2 },
  { field: 'kind', op: 'eq', value: 'a' },
  { all: [{ field: 'n', op: 'gte', value: 1 }] },
)
const reward = fc.constantFrom({ xp: 40 }, { freezes: [{ streak_key: 'streak-0', amount: 1 }] }, {})
/** 0 to 2 are static, 3 and 4 dynamic: by the events of a user, and by XP. */
const segment = (n: number) => fixed(7, n)
/** Hours from the start of the history, which is a noon. */
const hours = (from: number, to: number) => fc.integer({ min: from, max: to })
export const start = Date.parse('2026-03-27T12:00:00Z')
const at = (hour: number) => new Date(start + hour * 3_600_000).toISOString()

type Row = Record<string, unknown>
type Kind = {
  readonly table: string
  readonly code: number
  readonly row: fc.Arbitrary<Row>
  readonly change: fc.Arbitrary<Row>
}

const amounts = fc.oneof(
  fc.integer({ min: 1, max: 60 }).map((amount) => ({ amount })),
  fc.constantFrom(1, 2.5).map((multiplier) => ({ amount_property: 'n', multiplier })),
)
const window = fc.tuple(maybe(hours(-60, 10)), maybe(hours(12, 90))).map(([from, to]) => ({
  ...(from === undefined ? {} : { starts_at: at(from) }),
  ...(to === undefined ? {} : { ends_at: at(to) }),
}))

const kinds: readonly Kind[] = [
  {
    table: 'xp_rules',
    code: 2,
    row: fc
      .tuple(
        amounts,
        window,
        fc.record({
          event_name: name,
          event_filter: maybe(filter),
          max_per_event: maybe(fc.constant(20)),
          max_per_day: maybe(fc.constant(70)),
          max_total: maybe(fc.constant(150)),
          cooldown_seconds: maybe(fc.constantFrom(0, 3600)),
        }),
      )
      .map((parts) => Object.assign({}, ...parts)),
    change: fc.oneof(fc.record({ event_name: name }), fc.record({ max_per_day: fc.constantFrom(null, 30) })),
  },
  {
    table: 'xp_boosts',
    code: 3,
    row: fc.record({
      multiplier: fc.constantFrom(0.5, 2),
      starts_at: hours(-10, 10).map(at),
      segment_id: maybe(fc.nat(4).map(segment)),
    }),
    change: fc.record({ multiplier: fc.constantFrom(1, 3) }),
  },
  {
    table: 'streak_definitions',
    code: 4,
    row: fc
      .tuple(
        fc.constantFrom<Row>({}, {}, { timezone_mode: 'fixed', timezone: 'Asia/Tokyo' }),
        fc.record({
          qualifying_event: name,
          event_filter: maybe(filter),
          period: fc.constantFrom('day', 'day', 'week'),
          min_count: fc.constantFrom(1, 1, 2),
          grace_hours: fc.constantFrom(0, 0, 12),
          freezes_initial: fc.constantFrom(0, 1),
          freeze_earn_every: fc.constantFrom(0, 2),
          milestones: fc.constantFrom([], [{ count: 2, reward: { xp: 30 } }], [{ count: 3, reward: {} }]),
        }),
      )
      .map((parts) => Object.assign({}, ...parts)),
    change: fc.oneof(fc.record({ qualifying_event: name }), fc.record({ min_count: fc.constantFrom(1, 2) })),
  },
  {
    table: 'achievements',
    code: 5,
    row: fc.record({
      xp_reward: fc.constantFrom(0, 25),
      criteria: fc.oneof(
        fc.record({ type: fc.constant('event_count'), event_name: name, target_value: fc.integer({ min: 1, max: 6 }) }),
        fc.record({
          type: fc.constant('event_count'),
          event_name: name,
          target_value: fc.constantFrom(2, 4),
          event_filter: filter,
        }),
        fc.record({
          type: fc.constant('event_count'),
          event_name: name,
          target_value: fc.constant(3),
          since: hours(-30, 20).map(at),
        }),
        fc.record({ type: fc.constant('xp_threshold'), target_value: fc.constantFrom(30, 120) }),
        fc.record({ type: fc.constant('streak_length'), target_value: fc.constantFrom(1, 3) }),
        fc.record({
          type: fc.constant('event_count'),
          event_name: fc.constantFrom('svc.level.reached', 'svc.xp.awarded'),
          target_value: fc.constant(2),
        }),
      ),
    }),
    change: fc.record({
      criteria: fc.record({
        type: fc.constant('event_count'),
        event_name: name,
        target_value: fc.integer({ min: 1, max: 6 }),
      }),
    }),
  },
  {
    table: 'challenges',
    code: 6,
    row: fc
      .tuple(
        fc.oneof<fc.Arbitrary<Row>[]>(
          fc.record({ goal_type: fc.constant('event_count'), event_name: name }),
          fc.record({ goal_type: fc.constant('event_count'), event_name: name }),
          fc.constant({ goal_type: 'xp_earned' }),
          fc.constant({ goal_type: 'streak_maintained' }),
        ),
        fc.record({
          start_at: hours(-50, 10).map(at),
          end_at: hours(11, 80).map(at),
          goal_value: fc.constantFrom(1, 3, 8, 60),
          reward_xp: fc.constantFrom(0, 15),
          reward: fc.option(reward),
          segment_id: maybe(fc.nat(4).map(segment)),
          team_mode: fc.constantFrom('none', 'none', 'none', 'group'),
        }),
      )
      .map((parts) => Object.assign({}, ...parts)),
    change: fc.oneof(fc.record({ goal_value: fc.constantFrom(2, 5) }), fc.record({ end_at: hours(11, 80).map(at) })),
  },
  {
    table: 'leaderboards',
    code: 8,
    row: fc
      .tuple(
        fc.oneof<fc.Arbitrary<Row>[]>(
          fc.record({
            type: fc.constant('event'),
            event_name: name,
            value_property: maybe(fc.constant('n')),
            filter: maybe(filter),
          }),
          fc.record({ type: fc.constant('event'), event_name: name }),
          fc.constant({ type: 'xp' }),
          fc.constant({ type: 'streak', streak_key: 'streak_definitions-0' }),
        ),
        fc.record({
          scoring: fc.constantFrom('best', 'sum', 'last', 'count'),
          sort: fc.constantFrom('desc', 'desc', 'asc'),
          period: fc.constantFrom('all_time', 'daily', 'weekly'),
          timezone: fc.constantFrom('UTC', 'America/New_York'),
          segment_id: maybe(fc.nat(4).map(segment)),
          min_score: maybe(fc.constant(1)),
          max_score: maybe(fc.constant(6)),
        }),
      )
      .map(([source, rest]) => ({ source: JSON.parse(JSON.stringify(source)), ...rest })),
    change: fc.record({ max_score: fc.constantFrom(3, null) }),
  },
  {
    table: 'webhooks',
    code: 9,
    row: fc.record({
      event_name: fc.constantFrom('read', 'svc.xp.awarded', 'svc.streak.started', 'svc.challenge.completed'),
      target_url: fc.constant('https://example.org/'),
      filter: maybe(filter),
      status: fc.constantFrom('active', 'active', 'disabled'),
    }),
    change: fc.record({ status: fc.constantFrom('active', 'disabled', 'degraded') }),
  },
]

const keyed = new Set(['xp_rules', 'streak_definitions', 'achievements', 'leaderboards'])
const defined = (row: Row): Row => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined))

const define = (kind: Kind, n: number, row: Row): Step => {
  const full = defined({
    id: fixed(kind.code, n),
    ...(keyed.has(kind.table) ? { key: `${kind.table}-${n}` } : {}),
    ...(kind.table === 'webhooks' ? { secret_id: fixed(10, n) } : { name: `${kind.table} ${n}` }),
    ...row,
  })
  const columns = Object.keys(full).join(', ')
  return {
    what: `define ${kind.table} ${n}`,
    sql: `insert into app.${kind.table} (${columns}) select ${columns} from jsonb_populate_record(null::app.${kind.table}, ${literal(full)})
          on conflict do nothing`,
  }
}
const change = (kind: Kind, n: number, row: Row): Step => {
  const columns = Object.keys(row).join(', ')
  return {
    what: `change ${kind.table} ${n}`,
    sql: `update app.${kind.table} set (${columns}) = (select ${columns} from jsonb_populate_record(null::app.${kind.table}, ${literal(row)}))
           where id = '${fixed(kind.code, n)}'`,
  }
}
const slot = fc.nat(2)
const definitionStep = fc.constantFrom(...kinds).chain((kind) =>
  fc.oneof(
    { weight: 8, arbitrary: fc.tuple(slot, kind.row).map(([n, row]) => define(kind, n, row)) },
    { weight: 2, arbitrary: fc.tuple(slot, kind.change).map(([n, row]) => change(kind, n, row)) },
    {
      weight: 2,
      arbitrary: fc
        .tuple(slot, fc.boolean())
        .map(([n, is_active]) =>
          change(kind, n, kind.table === 'webhooks' ? { status: is_active ? 'active' : 'disabled' } : { is_active }),
        ),
    },
    {
      weight: 1,
      arbitrary: slot.map((n) => ({
        what: `delete ${kind.table} ${n}`,
        sql: `delete from app.${kind.table} where id = '${fixed(kind.code, n)}'`,
      })),
    },
  ),
)

const properties = fc.record({ n: fc.integer({ min: 0, max: 7 }), kind: fc.constantFrom('a', 'b') })
/** Seconds before now: mostly none, now and then hours, days, or the future that clocks are set to. */
const age = fc.oneof(
  { weight: 6, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.constantFrom(-120, 60, 3600, 7200) },
  { weight: 2, arbitrary: fc.integer({ min: 5, max: 70 }).map((n) => n * 3600) },
)
const item = fc.record({ user, event_name: name, properties, age, id: maybe(fc.nat(20)) })
type Item = { user: number; event_name: string; properties: Row; age: number; id: number | undefined }
const body = (one: Item) => ({
  event_name: one.event_name,
  app_user_id: userId(one.user),
  properties: one.properties,
  ...(one.id === undefined ? {} : { id: fixed(11, one.id) }),
  age: one.age,
})
/** The time of an event is told when the step runs, by the clock of the history. */
const post = (event: Row) =>
  `select r.status, r.body::text from api.events_post((select json_strip_nulls(${'$'}body) ) ) r`.replace(
    'json_strip_nulls($body)',
    `internal_test.aged(${literal(event)}::jsonb)`,
  )

const single = fc.tuple(item, fc.boolean(), fc.nat(15)).map(
  ([one, isUser, chance]): Step => ({
    what: `event ${one.event_name} of ${one.user}`,
    sql: post(chance === 0 && !isUser ? { ...body(one), historical: true } : body(one)),
    ...(isUser ? { caller: 'user' as const, user: userId(one.user) } : {}),
  }),
)
const batch = fc.tuple(fc.array(item, { minLength: 1, maxLength: 12 }), fc.boolean(), fc.nat(6)).map(
  ([items, include_effects, chance]): Step => ({
    what: `batch of ${items.length}`,
    sql: post({ events: items.map(body), include_effects, ...(chance === 0 ? { historical: true } : {}) }),
  }),
)

const zones = ['Europe/Berlin', 'Pacific/Auckland', 'UTC'] as const
const others: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(user, fc.constantFrom(...zones)).map(([n, zone]) => ({
    what: `zone of ${n}`,
    sql: `update app.users set timezone = '${zone}' where id = '${userId(n)}'`,
  })),
  fc.tuple(user, fc.integer({ min: -50, max: 90 })).map(([n, amount]) => ({
    what: `grant ${amount} to ${n}`,
    sql: `select internal.xp_adjust('${userId(n)}', ${amount === 0 ? 1 : amount}, null, 'grant', null)`,
    caller: 'developer' as const,
  })),
  fc.tuple(user, slot).map(([n, streak]) => ({
    what: `freeze for ${n}`,
    sql: `select internal.streak_give_freezes('${userId(n)}', d, 1, 'admin', null) from app.streak_definitions d where d.id = '${fixed(4, streak)}'`,
  })),
  fc.tuple(user, slot).map(([n, streak]) => ({
    what: `pause of ${n}`,
    sql: `select status, body::text from api.streak_user_pause('${fixed(4, streak)}', '${userId(n)}',
            (internal.now() + interval '1 day')::date, (internal.now() + interval '3 days')::date)`,
    caller: 'developer' as const,
  })),
  fc.tuple(user, fc.nat(2), fc.boolean()).map(([n, one, isIn]) => ({
    what: `segment ${one} of ${n}`,
    sql: isIn
      ? `insert into app.segment_members (segment_id, app_user_id) values ('${segment(one)}', '${userId(n)}') on conflict do nothing`
      : `delete from app.segment_members where (segment_id, app_user_id) = ('${segment(one)}', '${userId(n)}')`,
  })),
  fc.tuple(user, fc.nat(1), fc.boolean()).map(([n, group, isIn]) => ({
    what: `group ${group} of ${n}`,
    sql: isIn
      ? `insert into app.group_members (group_id, app_user_id) values ('${fixed(12, group)}', '${userId(n)}') on conflict do nothing`
      : `delete from app.group_members where (group_id, app_user_id) = ('${fixed(12, group)}', '${userId(n)}')`,
  })),
  fc.tuple(user, user).map(([a, b]) => ({
    what: `friends ${a} ${b}`,
    sql: `insert into app.friendships (user_a, user_b, status, requested_by, responded_at)
          select '${userId(Math.min(a, b))}', '${userId(Math.max(a, b))}', 'accepted', '${userId(a)}', internal.now() where ${a} <> ${b} on conflict do nothing`,
  })),
  fc.tuple(user, fc.boolean()).map(([n, isBanned]) => ({
    what: `ban of ${n}`,
    sql: `update app.users set is_banned = ${isBanned} where id = '${userId(n)}'`,
  })),
  fc.tuple(user, slot).map(([n, challenge]) => ({
    what: `${n} leaves challenge`,
    sql: `update app.challenge_participants set status = 'left' where (app_user_id, challenge_id) = ('${userId(n)}', '${fixed(6, challenge)}') and status = 'in_progress'`,
  })),
  fc.tuple(user, slot).map(([n, achievement]) => ({
    what: `revoke of ${n}`,
    sql: `update app.user_achievements set revoked_at = internal.now() where (app_user_id, achievement_id) = ('${userId(n)}', '${fixed(5, achievement)}')`,
  })),
  // of those whom nobody signs in as: they go
  fc.tuple(user, fc.integer({ min: 3, max: 9 })).map(([n, other]) => ({
    what: `merge of ${other} into ${n}`,
    sql: `select internal.users_merge('${userId(n)}', '${userId(other)}')::text where ${n} <> ${other}`,
    caller: 'user' as const,
    user: userId(n),
  })),
  fc.tuple(user, user, name, maybe(fc.constant(20))).map(([n, referrer, event, within]) => ({
    what: `claim of ${n} that waits for ${event}`,
    // claims take the event of the defaults
    sql: `insert into app.referral_defaults (qualify_event) values ('${event}') on conflict (id) do update set qualify_event = excluded.qualify_event;
          insert into app.referral_claims (claimer_id, referrer_id, is_personal, reward_referrer, reward_referee, qualify_event, qualify_by)
          select '${userId(n)}'::uuid, '${userId(referrer)}'::uuid, false, '{"xp": 5}'::jsonb, '{}'::jsonb, '${event}', ${within === undefined ? 'null::timestamptz' : `internal.now() + interval '${within} hours'`}
           where ${n} <> ${referrer}`,
  })),
  fc.tuple(fc.nat(1), name, fc.boolean()).map(([n, event, isOn]) => ({
    what: `flag ${n} guarded by ${event}`,
    sql: `insert into app.flags as f (id, key, name, value_type, off_value, default_value, ramp)
          values ('${fixed(13, n)}', 'flag-${n}', 'Flag', 'boolean', 'false', 'false', jsonb_build_object('ends_at', internal.iso(internal.now() + interval '20 hours'),
                  'guardrail', jsonb_build_object('event_name', '${event}', 'max_rate', 0.5, 'min_users', 1)))
          on conflict (id) do update set ramp = ${isOn ? 'excluded.ramp' : 'null'}`,
  })),
  // all or nothing stays in the log: which ids a share keeps is chance
  fc
    .tuple(
      name,
      fc.constantFrom(0, 1),
      fc.constantFrom('active', 'active', 'blocked'),
      maybe(fc.constant({ required: ['kind'], properties: { n: { maximum: 4 } } })),
    )
    .map(([event, rate, status, schema]) => ({
      what: `definition of ${event}: ${status}, sampled ${rate}`,
      sql: `select r.status from api.event_definition_put('${event}', null, '${status}', ${schema === undefined ? 'null' : literal(schema)}::json, ${rate}) r`,
      caller: 'developer' as const,
    })),
  fc.constantFrom('read', 'won', 'paid').map((event) => ({
    what: `no definition of ${event}`,
    sql: `delete from app.event_definitions where event_name = '${event}'`,
  })),
  fc.constantFrom([], [2, 100], [2, 40, 90]).map((levels) => ({
    what: 'levels',
    sql: `delete from app.xp_levels where level > 1; insert into app.xp_levels (level, xp_required, reward)
          select n + 1, required, case n when 2 then '{"xp": 5}'::jsonb end from unnest('{${levels.join(',')}}'::int[]) with ordinality as l (required, n)`,
  })),
)

const clock = fc
  .constantFrom(30, 600, 3600, 5 * 3600, 13 * 3600, 24 * 3600, 49 * 3600)
  .map((advance): Step => ({ what: `+${advance} s`, sql: 'select', advance }))

/** The users, segments and groups of every history, beside many who fill the boards. */
export const beginning = `
  insert into app.users (id, display_name, timezone)
  select ('00000000-0000-4000-8000-0001' || lpad(to_hex(n), 8, '0'))::uuid, 'user ' || n, case n when 1 then 'Europe/Berlin' when 2 then 'America/New_York' end
    from generate_series(0, 20) n;
  insert into app.segments (id, key, name, kind)
  select ('00000000-0000-4000-8000-0007' || lpad(to_hex(n), 8, '0'))::uuid, 'segment-' || n, 'Segment', 'static' from generate_series(0, 2) n;
  insert into app.segments (id, key, name, kind, rules) values
    ('${segment(3)}', 'segment-3', 'Segment', 'dynamic', '{"source": "event", "event_name": "read", "measure": "count", "op": "gte", "value": 2}'),
    ('${segment(4)}', 'segment-4', 'Segment', 'dynamic', '{"source": "xp", "op": "gte", "value": 50}');
  insert into app.friendships (user_a, user_b, status, requested_by, responded_at)
  select '${userId(0)}'::uuid, ('00000000-0000-4000-8000-0001' || lpad(to_hex(n), 8, '0'))::uuid, 'accepted', '${userId(0)}'::uuid, internal.now() from unnest('{1,5,6,7,8}'::int[]) n
  union all
  select '${userId(1)}'::uuid, ('00000000-0000-4000-8000-0001' || lpad(to_hex(n), 8, '0'))::uuid, 'accepted', '${userId(1)}'::uuid, internal.now() from unnest('{9,10,11}'::int[]) n;
  insert into app.segment_members (segment_id, app_user_id) values ('${segment(0)}', '${userId(0)}'), ('${segment(0)}', '${userId(1)}');
  insert into app.groups (id, name) select ('00000000-0000-4000-8000-000c' || lpad(to_hex(n), 8, '0'))::uuid, 'Group' from generate_series(0, 1) n;
  create schema internal_test;
  create function internal_test.aged(event jsonb) returns json language sql stable as $$
    select case when event ? 'events' then jsonb_set(event, '{events}', (select jsonb_agg(internal_test.aged(e.value)) from jsonb_array_elements(event -> 'events') e))
                when event -> 'age' = '0' then event - 'age'
                else event - 'age' || jsonb_build_object('occurred_at', internal.iso(internal.now() - make_interval(secs => (event ->> 'age')::int))) end::json
  $$`
/** Others on the boards: a batch of many, so that there are ten best whom somebody may join. */
const crowd: fc.Arbitrary<Step> = fc
  .tuple(
    fc.array(fc.record({ user: fc.integer({ min: 0, max: 20 }), n: fc.nat(7) }), {
      minLength: 10,
      maxLength: 40,
      size: 'max',
    }),
    fc.boolean(),
  )
  .map(([events, include_effects]) => ({
    what: 'crowd',
    sql: post({
      include_effects,
      events: events.map(({ user: who, n }) => ({
        event_name: 'read',
        app_user_id: userId(who),
        properties: { n, kind: 'a' },
        age: 0,
      })),
    }),
  }))

const life: fc.Arbitrary<Step> = fc.oneof(
  { weight: 24, arbitrary: single },
  { weight: 8, arbitrary: batch },
  { weight: 2, arbitrary: crowd },
  { weight: 4, arbitrary: clock },
  { weight: 3, arbitrary: definitionStep },
  { weight: 3, arbitrary: others },
)
export const history = fc
  .tuple(
    fc.array(
      fc.constantFrom(...kinds).chain((kind) => fc.tuple(slot, kind.row).map(([n, row]) => define(kind, n, row))),
      { minLength: 1, maxLength: 14, size: 'max' },
    ),
    fc.option(crowd),
    // long ones: arrays are short by default, and most happens to users who did something before
    fc.array(life, { minLength: 5, maxLength: 90, size: 'max' }),
  )
  .map(([definitions, first, steps]) => [...definitions, ...(first ? [first] : []), ...steps])
