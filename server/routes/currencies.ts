import { z } from 'zod'
import { administrator, endUser, serverForUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { idempotency } from '#server/http/idempotency.ts'
import { answer } from '#server/http/interface.ts'
import { asUserSignIn, perSubject, takeLimits } from '#server/http/limits.ts'
import { area, group, type HandlerContext, route } from '#server/http/route.ts'
import {
  between,
  Cursor,
  cursorPage,
  daily,
  data,
  IncludeUser,
  JsonObject,
  Limit,
  Line,
  SmallJson,
  Text,
  Time,
  Uuid,
  withUser,
} from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'

const billions = 2_000_000_000
const Code = z.string().regex(/^[A-Z][A-Z0-9_]{1,15}$/, 'must match ^[A-Z][A-Z0-9_]{1,15}$')

const Regen = z.object({
  amount: between(1, billions),
  every_seconds: between(1, 31_536_000),
  cap: between(1, Number.MAX_SAFE_INTEGER),
})
const Rules = {
  name: Line(200, 1),
  icon_url: Text(2000).nullable(),
  initial_grant: between(0, billions),
  max_balance: between(1, Number.MAX_SAFE_INTEGER),
  client_spendable: z.boolean(),
  regen: Regen.nullable(),
  expiry_days: between(1, 3650).nullable(),
  is_active: z.boolean(),
}

const sourceTypes = ['admin', 'reward', 'store', 'purchase', 'spend', 'regen', 'expiry', 'refund', 'merge', 'transfer']
const Transaction = answer('currency_transaction_json', {
  currency_code: Code,
  kind: z.enum(['credit', 'debit']),
  source_type: z.enum(sourceTypes),
  metadata: JsonObject,
})
const Moved = z.strictObject({ transaction: Transaction, balance: z.int() })
const Balances = z.record(Code, z.int())
const Adjusted = z.strictObject({ transactions: z.array(Transaction), balances: Balances })
const Balance = z.strictObject({
  code: Code,
  name: z.string(),
  icon_url: z.string().nullable(),
  balance: z.int(),
  next_regen_at: Time.optional(),
  expiring: z.strictObject({ amount: z.int(), at: Time }).optional(),
})
const Stats = z.strictObject({
  currency_code: Code,
  minted: z.int(),
  burned: z.int(),
  circulating: z.int(),
  holders: z.int(),
  is_estimate: z.boolean(),
  margin: z.int(),
  top_holders: z.array(z.strictObject({ app_user_id: Uuid, display_name: z.string(), balance: z.int() })),
  reasons: z.array(z.strictObject({ reason: z.string(), minted: z.int(), burned: z.int(), transactions: z.int() })),
})
const Proof = answer('currency_check_json', {
  finished_at: Time,
  ok: z.boolean(),
  mismatches: z.array(
    z.strictObject({
      app_user_id: Uuid,
      currency_code: Code,
      balance: z.int(),
      ledger: z.int(),
      expiring: z.int(),
    }),
  ),
})

const Metadata = SmallJson(8192)
const Reason = Text(200, 1)
const amount = between(1, billions)
const Adjustments = z
  .array(
    z.object({
      currency_code: z.string(),
      amount: between(-billions, billions).refine((value) => value !== 0, 'must not be 0'),
    }),
  )
  .min(1, 'must have 1 to 10 items')
  .max(10, 'must have 1 to 10 items')
const ExpiresAt = z.string().max(40, 'must be an ISO 8601 time').meta({ format: 'date-time' })

const byCode = { code: z.string() }
const Place = { cursor: Cursor, limit: Limit() }
const takesKey = 'Accepts an Idempotency-Key, which is stored permanently by user and route.'

/** 60 a minute for each user, from any caller. */
const spend = async (context: HandlerContext) => {
  const args = idempotency(context)
  const { userId } = context.resolved.claims
  await takeLimits(asUserSignIn(context), perSubject('spend', String(userId), [60, 'minute']), 'RATE_LIMITED')
  return context.call('currency_spend', { ...context.params, ...context.body, ...args })
}
const keyed = (call: string) => (context: HandlerContext) =>
  context.call(call, { ...context.params, ...context.body, ...idempotency(context) })
const adjust = (context: HandlerContext) =>
  context.call('currencies_adjust', { ...context.body, ...idempotency(context) })
const reverse = (context: HandlerContext) =>
  context.call('currency_transaction_reverse', {
    transaction_id: context.params['transactionId'],
    ...idempotency(context),
  })

const currencyForm: Form = {
  Basics: {
    name: true,
    code: ['Code', 'Capital letters, digits and _, such as `COINS`. It never changes.', { from: 'name' }],
    icon_url: true,
  },
  Balances: {
    initial_grant: ['Starting balance', 'What every user has at first.'],
    max_balance: ['Highest balance', 'Credits above it are refused.'],
    client_spendable: ['Apps may spend', 'A server acting for the user always may.'],
  },
  Time: {
    regen: ['Regeneration', 'Fills a balance up by itself, as the energy of a game.', { unset: 'None' }],
    expiry_days: [
      'Days until credits expire',
      'Of credits without an end of their own; purchased ones never expire.',
      { unset: 'They never expire' },
    ],
  },
  Status: { is_active: ['Active', 'Switched off, users do not see it and balances cannot change.'] },
}

export const currencies = area({
  stem: 'currencies',
  title: 'Currencies',
  part: 'Economy',
  about: 'Virtual currencies: balances, ledger, spending.',
  words: {
    'regen.amount': ['Amount', 'How much is added each time.'],
    'regen.every_seconds': ['Every', 'Seconds from one addition to the next.'],
    'regen.cap': ['Up to', 'At this balance regeneration stops.'],
    adjustments: ['Changes', 'Of up to ten currencies, all or nothing.'],
    'adjustments.amount': ['Amount', 'How much is credited; a negative number debits.'],
    amount: ['Amount', 'How much, a whole number.'],
  },
  routes: [
    ...group('/client/currencies', endUser, [
      route('GET /', "The caller's balances", {
        call: 'currencies_list',
        description: 'Regeneration and expiry are computed for the current time.',
        replies: { 200: data(z.array(Balance)) },
      }),
      route('GET /:code/transactions', "The caller's ledger of a currency, newest first", {
        call: 'currency_transactions',
        query: Place,
        replies: { 200: cursorPage(Transaction) },
      }),
      route('POST /:code/spend', "Spend the caller's currency", {
        handle: spend,
        calls: ['currency_spend'],
        description: `Apps may spend only currencies that are \`client_spendable\`, a server key on behalf of the user any currency. ${takesKey}`,
        body: z.object({ amount, reason: Reason, metadata: Metadata.optional() }),
        example: { amount: 50, reason: 'hint' },
        replies: { 200: data(Moved), 201: data(Moved) },
      }),
      route('POST /:code/credit', 'Credit a user, by a server key on behalf of them', {
        handle: keyed('currency_credit'),
        calls: ['currency_credit'],
        caller: serverForUser,
        description: takesKey,
        body: z.object({
          amount,
          reason: Reason,
          metadata: Metadata.optional(),
          expires_at: ExpiresAt.optional(),
        }),
        example: { amount: 100, reason: 'level_finished' },
        replies: { 200: data(Moved), 201: data(Moved) },
      }),
    ]),
    ...group('/admin/projects/:projectId', administrator, [
      ...definitions('currency', {
        form: currencyForm,
        path: '/currencies',
        id: byCode,
        fixed: { code: Code },
        fields: Rules,
        required: ['code', 'name'],
        refusals: { delete: { 409: ['CURRENCY_IN_USE'] } },
        example: {
          create: {
            code: 'ENERGY',
            name: 'Energy',
            initial_grant: 5,
            regen: { amount: 1, every_seconds: 600, cap: 5 },
          },
          update: { client_spendable: true },
        },
        summaries: {
          create: 'Define a currency; at most 100',
          list: 'Currencies, newest first',
          get: 'A currency',
          update: 'Change a currency',
          delete: 'Delete a currency that nobody ever had',
        },
      }),
      route('GET /currencies/integrity', 'The newest check that every balance is the sum of its ledger', {
        call: 'currencies_integrity',
        description: 'Runs every night. Null before the first; lists the first hundred mismatches.',
        replies: { 200: data(Proof.nullable()) },
      }),
      route('POST /currencies/transactions', "Change a user's balances, all or none", {
        handle: adjust,
        calls: ['currencies_adjust'],
        description: `Amounts are signed. The results are ordered by code. ${takesKey}`,
        body: z.object({
          app_user_id: Uuid,
          adjustments: Adjustments,
          reason: Reason,
          metadata: Metadata.optional(),
          expires_at: ExpiresAt.optional(),
        }),
        example: {
          app_user_id: '018f3f5e-0000-7000-8000-000000000000',
          adjustments: [{ currency_code: 'ENERGY', amount: 5 }],
          reason: 'support',
        },
        replies: { 200: data(Adjusted), 201: data(Adjusted) },
      }),
      route('GET /currencies/transactions', 'The ledger, newest first', {
        call: 'currency_transactions_all',
        query: {
          user_id: Uuid.optional(),
          currency_code: z.string().optional(),
          reason: z.string().optional(),
          ...IncludeUser,
          ...Place,
        },
        replies: { 200: cursorPage(withUser(Transaction)) },
      }),
      route('POST /currencies/transactions/:transactionId/reverse', 'Reverse a transaction by another one, once', {
        handle: reverse,
        description: takesKey,
        replies: { 200: data(Moved), 201: data(Moved) },
        refusals: {
          400: ['VALIDATION_ERROR'],
          409: ['ALREADY_REVERSED', 'BALANCE_LIMIT_EXCEEDED', 'CONFLICT', 'INSUFFICIENT_FUNDS'],
        },
      }),
      route('GET /currencies/:code/stats', 'Minted, burned and circulating, the largest holders, sums by reason', {
        call: 'currency_stats',
        stale: true,
        description:
          'Of many users the sums are estimates from a sample: then `is_estimate` is true, and `circulating` is within `margin` in 95 of 100 samples.',
        replies: { 200: data(Stats) },
      }),
      route('GET /currencies/:code/daily', 'What was granted and spent of a currency on each day', {
        call: 'currency_daily',
        description:
          'Both dates are included; the last 30 days by default, at most 400. By the ledger: time-based changes since a user’s last write are not in it yet.',
        ...daily('granted', 'spent', 'users'),
      }),
      route('GET /users/:userId/balances', "A user's balances, `{CODE: n}`", {
        call: 'user_balances',
        replies: { 200: data(Balances) },
      }),
    ]),
  ],
})
