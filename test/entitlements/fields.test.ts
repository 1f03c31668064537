import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { day, startRestores } from '#test/support/restores.ts'
import { subscriptionOf } from '#test/support/revenuecat.ts'
import { sized } from '#test/support/sized.ts'

/** Whatever stands in a field of a provider's event or answer, nobody has access for longer than it honestly says. */
const { provider, project, harness, now, someone, restore } = await startRestores()

const purchases = ['INITIAL_PURCHASE', 'RENEWAL', 'NON_RENEWING_PURCHASE', 'TEMPORARY_ENTITLEMENT_GRANT']
const kinds = [
  ...[...purchases, 'CANCELLATION', 'UNCANCELLATION', 'BILLING_ISSUE', 'SUBSCRIPTION_PAUSED', 'SUBSCRIPTION_EXTENDED'],
  ...['REFUND_REVERSED', 'EXPIRATION', 'PRODUCT_CHANGE', 'TRANSFER'],
]
/** Fields that say for how long, and whom and what an event is about; with the kinds that are tried with them. */
const decisive: Readonly<Record<string, readonly string[]>> = {
  expiration_at_ms: kinds,
  event_timestamp_ms: kinds,
  purchased_at_ms: purchases,
  period_type: purchases,
  entitlement_ids: purchases,
  grace_period_expiration_at_ms: ['BILLING_ISSUE'],
  price: ['CANCELLATION'],
  cancel_reason: ['CANCELLATION'],
}
const others = Object.fromEntries(
  [
    ...['product_id', 'store', 'environment', 'original_transaction_id', 'transaction_id', 'app_user_id', 'aliases'],
    ...['type', 'id', 'transferred_from', 'transferred_to'],
  ].map((field) => [field, field.startsWith('transferred') ? ['TRANSFER'] : ['INITIAL_PURCHASE', 'RENEWAL']]),
)
const absent = Symbol('absent')
const soon = now() + 5 * day
const values = [
  // absent, another type, seconds and milliseconds in digits, microseconds
  ...[absent, null, 'x', true, -1, 1e308, Math.floor(soon / 1000), String(soon), soon * 1000, [soon]],
  ...['', 'NaN', 'x'.repeat(3000), '\u0001', 0, 1, -soon, now() - 3000 * day, String(Math.floor(soon / 1000))],
  ...[soon + 300 * 365 * day, [], ['x', 1, null, { a: 1 }], { soon }],
].slice(0, sized(10, 100)) as readonly unknown[]

/** The end that a value says, if it says one: milliseconds, as a number or in digits. */
const endIn = (value: unknown): number | null => {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  return typeof number === 'number' && number >= 1e11 && number <= 253402300799999 ? number : null
}
const isPurchase = (type: unknown) => purchases.includes(String(type))

/** Until when anybody may have access by a purchase whose end was known before, or not, and by an event about it. */
const honestEnd = (event: Record<string, unknown>, known: number | null): number => {
  const said = [endIn(event['expiration_at_ms'])]
  if (event['type'] === 'BILLING_ISSUE') said.push(endIn(event['grace_period_expiration_at_ms']))
  const isSilent = event['expiration_at_ms'] === undefined || event['expiration_at_ms'] === null
  if (isSilent && isPurchase(event['type'])) {
    if (event['type'] === 'NON_RENEWING_PURCHASE' || event['period_type'] === 'PROMOTIONAL') return Infinity
    if (event['type'] === 'TEMPORARY_ENTITLEMENT_GRANT') said.push((endIn(event['event_timestamp_ms']) ?? now()) + day)
  }
  return Math.max(known ?? 0, ...said.map((end) => end ?? 0))
}

type Case = { event: Record<string, unknown>; ref: string; field: string; known: number | null }
const casesOf = (
  users: readonly string[],
  tried: Readonly<Record<string, readonly string[]>>,
  known: number | null,
): Case[] =>
  Object.entries(tried)
    .flatMap(([field, kinds]) => kinds.flatMap((type) => values.map((value) => ({ field, type, value }))))
    .map(({ field, type, value }, n) => {
      const ref = randomUUID()
      const user = users[n % users.length]
      const event: Record<string, unknown> = {
        ...{ id: randomUUID(), type, event_timestamp_ms: now() - 1000, app_user_id: user, aliases: [user] },
        ...{ original_transaction_id: ref, transaction_id: ref, product_id: 'monthly', store: 'APP_STORE' },
        ...{ period_type: 'NORMAL', environment: 'PRODUCTION', entitlement_ids: ['premium'], price: 4.99 },
        ...{ purchased_at_ms: now() - 1000, expiration_at_ms: now() + 3 * day },
        ...{ transferred_from: [user], transferred_to: [user] },
      }
      if (value === absent) delete event[field]
      else event[field] = value
      return { event, ref, field, known }
    })

const outcomes = ['applied', 'waiting', 'unknown_user', 'without_effect', 'duplicate', 'malformed']

/** Takes in all these events, each of a purchase of its own, which is known to end at a time or not at all. */
const ingest = async (cases: readonly Case[]) => {
  const before = cases.flatMap(({ ref, known, event }) =>
    known === null
      ? []
      : [
          {
            ...{ id: randomUUID(), type: 'INITIAL_PURCHASE', event_timestamp_ms: now() - 40 * day },
            ...{ app_user_id: (event['aliases'] as string[] | undefined)?.[0], original_transaction_id: ref },
            ...{ entitlement_ids: ['premium'], expiration_at_ms: known, period_type: 'NORMAL' },
          },
        ],
  )
  const rows = await project.sql(
    `select e.n::int, internal.subscription_ingest(e.value) as outcome
       from set_config('app.caller', 'worker', true) a, jsonb_array_elements($1) with ordinality e (value, n) order by e.n`,
    [JSON.stringify([...before, ...cases.map(({ event }) => event)]).replaceAll('\\u0000', '')],
  )
  return rows.slice(before.length).map(({ outcome }) => outcome as string)
}

test.each([
  ['of a purchase that nobody knew', { ...decisive, ...others }, null],
  ['of a purchase that has ended', decisive, now() - 10 * day],
] as const)(
  'events %s: no field with any value gives access for longer than it says',
  {
    timeout: 120_000,
  },
  async (_what, tried, known) => {
    // of many users: what one has is read for each event
    const users = (
      await project.sql(`insert into app.users (display_name) select 'A' from generate_series(1, 40) returning id`)
    ).map(({ id }) => id as string)
    const cases = casesOf(users, tried, known)
    const found = await ingest(cases)
    expect(found.filter((outcome) => !outcomes.includes(outcome))).toEqual([])
    const ends = new Map(
      (
        await project.sql(
          `select source_ref, max(extract(epoch from internal.grant_end(g)) * 1000)::float as until
           from app.entitlement_grants g where app_user_id = any ($1) group by 1`,
          [users],
        )
      ).map(({ source_ref, until }) => [source_ref as string, Number(until)]),
    )
    const wrong = cases
      .map(({ event, ref, field }, n) => ({
        until: ends.get(ref) ?? 0,
        most: honestEnd(event, known),
        event,
        field,
        outcome: found[n],
      }))
      .filter(({ until, most }) => until > most + 1)
      .map(({ until, most, event, field, outcome }) => [event['type'], field, event[field], until, most, outcome])
    expect(wrong).toEqual([])
    // events without an identifier are not of one purchase
    const nameless = await project.sql(
      `select from app.subscriptions where source_ref in ('', 'null', '[]', '{}', 'true')`,
    )
    expect(nameless).toEqual([])
    // what decides about access and cannot be understood is marked
    const marked = cases.filter(({ event, field }, n) => {
      const value = event[field]
      const isOdd = field === 'expiration_at_ms' && value !== undefined && value !== null && endIn(value) === null
      return isOdd && isPurchase(event['type']) && found[n] !== 'malformed'
    })
    expect(marked).toEqual([])
  },
)

test('the reported renewals: without an end, with one in digits, and after a refund', async () => {
  const user = await someone()
  const entitled = async () =>
    (await user.get('/client/entitlements')).data.map((each: any) => [each.is_active, each.expiration_date])
  const ref = randomUUID()
  const tell = async (type: string, daysAgo: number, more: object) =>
    (
      await ingest([
        {
          event: {
            ...{ id: randomUUID(), type, event_timestamp_ms: now() - daysAgo * day, app_user_id: user.id },
            ...{ original_transaction_id: ref, entitlement_ids: ['pro'], period_type: 'NORMAL', ...more },
          },
          ...{ ref, field: '', known: null },
        },
      ])
    )[0]
  const at = (days: number) => now() + days * day
  const iso = (time: number) => new Date(time).toISOString()
  const [first, later] = [at(-10), at(-5)]
  expect(await tell('RENEWAL', 41, {})).toBe('malformed')
  expect(await entitled()).toEqual([])
  expect(await tell('INITIAL_PURCHASE', 40, { expiration_at_ms: first })).toBe('applied')
  expect(await entitled()).toEqual([[false, iso(first)]])
  expect(await tell('RENEWAL', 9, {})).toBe('malformed')
  expect(await entitled()).toEqual([[false, iso(first)]])
  expect(await tell('RENEWAL', 8, { expiration_at_ms: String(later) })).toBe('applied')
  expect(await entitled()).toEqual([[false, iso(later)]])
  expect(await tell('CANCELLATION', 7, {})).toBe('applied')
  expect(await entitled()).toEqual([[false, iso(later)]])
  const paid = at(20)
  await tell('RENEWAL', 6, { expiration_at_ms: paid })
  expect(await entitled()).toEqual([[true, iso(paid)]])
  // the price of a refund may come in digits; a renewal that says no end does not take it back
  expect(await tell('CANCELLATION', 5, { price: '-4.99' })).toBe('applied')
  expect((await entitled())[0][0]).toBe(false)
  await tell('RENEWAL', 4, {})
  expect((await entitled())[0][0]).toBe(false)
  // an event of years to come is folded now: what ends the subscription afterwards ends it
  expect(await tell('RENEWAL', -4000, { expiration_at_ms: paid })).toBe('malformed')
  expect((await entitled())[0][0]).toBe(true)
  harness.advance(60)
  await tell('EXPIRATION', 0, { expiration_at_ms: at(0) })
  expect((await entitled())[0][0]).toBe(false)
})

test('answers to a restore: no field with any value gives access for longer than it says', {
  timeout: 120_000,
}, async () => {
  const times = ['starts_at', 'current_period_starts_at', 'current_period_ends_at', 'ends_at']
  const others = ['gives_access', 'auto_renewal_status', 'status', 'store', 'environment', 'entitlements', 'product_id']
  const wrong: unknown[] = []
  for (const field of [...times, ...others, 'both ends'])
    for (const value of field === 'both ends' || times.includes(field) ? values : [absent, null, 'x', 5]) {
      const user = await someone()
      const end = now() + 3 * day
      const answer: Record<string, unknown> = subscriptionOf(randomUUID(), ['premium'], end)
      for (const name of field === 'both ends' ? ['current_period_ends_at', 'ends_at'] : [field]) {
        if (value === absent) delete answer[name]
        else answer[name] = value
      }
      provider.customers.set(user.id, { subscriptions: [answer] })
      const { status, data } = await restore(user)
      const said = [answer['ends_at'] ?? answer['current_period_ends_at']].map(endIn)
      const most = Math.max(...said.map((each) => each ?? 0), field.includes('end') ? 0 : end)
      const until = (data?.entitlements ?? []).map(({ expiration_date }: any) =>
        expiration_date === null ? Infinity : Date.parse(expiration_date),
      )
      if (![200, 502].includes(status) || Math.max(0, ...until.filter((each: number) => each > now())) > most)
        wrong.push([field, value, status, until, most])
      provider.customers.clear()
    }
  expect(wrong).toEqual([])
})
