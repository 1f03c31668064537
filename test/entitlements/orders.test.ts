import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { startHarness } from '#test/support/harness.ts'
import { sized } from '#test/support/sized.ts'

/** Purchase histories give the same state in whatever order their events arrive, and however often each of them does. */
const harness = await startHarness({ env: { LOG_LEVEL: 'silent' } })
const project = await harness.project()
const hour = 3_600_000

type Event = Record<string, unknown> & { readonly id: string; readonly event_timestamp_ms: number }

const kinds = [
  ...[
    'INITIAL_PURCHASE',
    'RENEWAL',
    'RENEWAL',
    'CANCELLATION',
    'UNCANCELLATION',
    'BILLING_ISSUE',
    'SUBSCRIPTION_PAUSED',
  ],
  ...['SUBSCRIPTION_EXTENDED', 'REFUND_REVERSED', 'EXPIRATION', 'PRODUCT_CHANGE', 'NON_RENEWING_PURCHASE', 'TRANSFER'],
] as const

/** One event of one of two purchases, or a transfer between three users. Several may have the same time. */
const step = fc.record({
  kind: fc.constantFrom(...kinds),
  purchase: fc.integer({ min: 0, max: 1 }),
  at: fc.integer({ min: 1, max: 12 }),
  length: fc.integer({ min: 1, max: 30 }),
  from: fc.integer({ min: 0, max: 2 }),
  to: fc.integer({ min: 0, max: 2 }),
  isRefund: fc.boolean(),
  isTrial: fc.boolean(),
  keys: fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 2 }),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
const history = fc.array(step, { minLength: 1, maxLength: 9 })
/** A history, an order to send it in, and which of its events come twice. */
const sent = history.chain((steps) =>
  fc.record({
    steps: fc.constant(steps),
    order: fc.shuffledSubarray(
      steps.map((_, index) => index),
      { minLength: steps.length, maxLength: steps.length },
    ),
    again: fc.subarray(steps.map((_, index) => index)),
  }),
)

/** The same history for users of its own; ids of events keep their order. */
const eventsOf = (steps: readonly Step[], users: readonly string[], start: number) => {
  const prefix = randomUUID()
  return steps.map((of, index): Event => {
    const at = start + of.at * hour
    const common = { id: `${prefix}-${String(index).padStart(3, '0')}`, event_timestamp_ms: at }
    if (of.kind === 'TRANSFER')
      return { ...common, type: 'TRANSFER', transferred_from: [users[of.from]], transferred_to: [users[of.to]] }
    return {
      ...common,
      type: of.kind,
      // each purchase is made by one customer
      app_user_id: users[of.purchase],
      original_transaction_id: `${prefix}-purchase-${of.purchase}`,
      entitlement_ids: of.keys,
      product_id: `product-${of.length}`,
      period_type: of.isTrial ? 'TRIAL' : 'NORMAL',
      store: 'APP_STORE',
      environment: 'PRODUCTION',
      purchased_at_ms: at,
      expiration_at_ms: of.kind === 'NON_RENEWING_PURCHASE' ? null : at + of.length * hour,
      grace_period_expiration_at_ms: at + 2 * of.length * hour,
      ...(of.isRefund && of.kind === 'CANCELLATION' ? { price: -1 } : {}),
    }
  })
}

const ingest = async (event: Event, now: string) => {
  const [{ outcome }] = await project.sql(
    `select internal.subscription_ingest($1) as outcome from set_config('app.caller', 'worker', true) a, set_config('app.clock', $2, true) b`,
    [JSON.stringify(event), now],
  )
  return outcome as string
}

/** Everything that follows from the events, without ids and without the times of the writes. */
const stateOf = async (users: readonly string[], prefix: string) => {
  const [{ state }] = await project.sql(
    `select jsonb_build_object(
       'subscriptions', (select jsonb_agg(to_jsonb(s) - '{id,source_ref,created_at,updated_at}'::text[]
                                          || jsonb_build_object('app_user_id', array_position($1::uuid[], s.app_user_id), 'ref', right(s.source_ref, 1))
                                          order by s.source_ref)
                           from app.subscriptions s where s.source_ref like $2 || '%'),
       'grants', (select jsonb_agg(to_jsonb(g) - '{id,source_ref,created_at,updated_at}'::text[]
                                   || jsonb_build_object('app_user_id', array_position($1::uuid[], g.app_user_id), 'ref', right(g.source_ref, 1))
                                   order by array_position($1::uuid[], g.app_user_id), g.entitlement_id, g.source_ref)
                    from app.entitlement_grants g where g.app_user_id = any ($1) and internal.grant_end(g) > g.purchase_date),
       'emitted', (select jsonb_agg(e.event_name order by e.event_name)
                     from app.engagement_events e
                    where e.app_user_id = any ($1) and e.event_name like 'svc.subscription.%')) as state`,
    [users, prefix],
  )
  return state as Record<string, unknown>
}

const someone = async () => {
  const made = await project.sql(
    `insert into app.users (display_name) select 'x' from generate_series(1, 3) returning id`,
  )
  return made.map(({ id }) => id as string)
}

test('any order and any repetition of a history give the state of its ordered telling', async () => {
  const start = Date.parse('2026-11-10T00:00:00Z')
  const now = '2026-11-11T00:00:00Z'
  let moved = 0
  await fc.assert(
    fc.asyncProperty(sent, async ({ steps, order, again }) => {
      const [orderly, shuffled] = [await someone(), await someone()]
      const told = eventsOf(steps, orderly, start)
      const inTime = [...told].sort((a, b) => a.event_timestamp_ms - b.event_timestamp_ms)
      for (const event of inTime) await ingest(event, now)
      const retold = eventsOf(steps, shuffled, start)
      for (const index of order) await ingest(retold[index]!, now)
      for (const index of again) expect(await ingest(retold[index]!, now)).toBe('duplicate')
      const [left, right] = [
        await stateOf(orderly, told[0]!.id.slice(0, 36)),
        await stateOf(shuffled, retold[0]!.id.slice(0, 36)),
      ]
      expect(right).toEqual(left)
      if (JSON.stringify(left).includes('"app_user_id":3')) moved += 1
    }),
    {
      numRuns: sized(60, 1000),
    },
  )
  expect(moved).toBeGreaterThan(0)
})

test('events that are processed at once give it too', async () => {
  const now = '2026-11-11T00:00:00Z'
  /** As the worker, which runs a task again after a deadlock or a conflict. */
  const worker = async (event: Event): Promise<string> => {
    try {
      return await ingest(event, now)
    } catch (error) {
      if (!['40001', '40P01'].includes((error as { code?: string }).code ?? '')) throw error
      return worker(event)
    }
  }
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      const [orderly, racing] = [await someone(), await someone()]
      const told = eventsOf(steps, orderly, Date.parse('2026-11-10T00:00:00Z'))
      for (const event of told) await ingest(event, now)
      const retold = eventsOf(steps, racing, Date.parse('2026-11-10T00:00:00Z'))
      await Promise.all([...retold, ...retold].map(worker))
      const prefix = (events: readonly Event[]) => events[0]!.id.slice(0, 36)
      expect(await stateOf(racing, prefix(retold))).toEqual(await stateOf(orderly, prefix(told)))
    }),
    { numRuns: sized(25, 500) },
  )
})
