// npm run bench:stores: a purchase beside the rows of the two ledgers that it writes, by the functions that every area writes them with.
import { ask } from '#test/support/process.ts'
import type { Called, CallerCommand, Way } from './support/caller.ts'
import type { Child } from './support/child.ts'
import { requireProc } from './support/cpu.ts'
import { asAdmin, createScenario, type Installation, install, type Scenario } from './support/installation.ts'
import { figure, medianOf, medianRatio, table } from './support/numbers.ts'
import { type Aim, aimLine, circumstances, publish, say } from './support/results.ts'

const isShort = process.argv.includes('--short')
const [rounds, seconds] = isShort ? [2, 1] : [5, 1]
const concurrencies = [1, 8]

type Contestant = { readonly name: string; readonly way: Way }
type Round = { readonly perSecond: number; readonly p50: number }

/** A store with an offer without limits and one with a stock, users with coins, and functions to compare with. */
const fill = ({ cluster }: Installation, { database, users }: Scenario) =>
  asAdmin(
    cluster,
    database,
    `insert into app.currencies (code, name, max_balance) values ('COINS', 'Coins', 9000000000000);
     insert into app.catalog_items (key, name, item_type) values ('potion', 'Potion', 'consumable');
     insert into app.stores (key, name) values ('main', 'Main');
     insert into app.store_offers (store_id, key, catalog_item_id, stock_total)
     select s.id, o.key, i.id, o.stock from app.stores s, app.catalog_items i,
       (values ('free', null), ('stock', 1000000000)) o (key, stock);
     insert into app.store_offer_prices (offer_id, currency_code, price) select id, 'COINS', 10 from app.store_offers;
     do $$
     declare
       one uuid;
     begin
       foreach one in array '{${users.map(({ userId }) => userId).join(',')}}'::uuid[] loop
         perform internal.currency_transact_many(one, '[{"currency_code": "COINS", "amount": 2000000000}]', 'bench', 'admin',
                                                 internal.new_id()::text);
       end loop;
     end $$;
     create function api.bench_ledgers() returns api.reply language plpgsql volatile security definer set search_path = '' as $$
     declare
       me constant uuid := internal.user_id();
       c app.currencies;
       item app.catalog_items;
       source constant text := internal.new_id()::text;
     begin
       perform internal.lock_users(array[me]);
       select k.* into c from app.currencies k where k.code = 'COINS';
       select i.* into item from app.catalog_items i where i.key = 'potion';
       perform internal.currency_apply(me, c, -10, 'bench', 'purchase', source);
       perform internal.inventory_give(me, item, 1, null, 'bench', 'purchase', source);
       return internal.reply(200, 'true');
     end $$;
     create function api.bench_purchase(offer_key text) returns api.reply language plpgsql volatile security definer set search_path = '' as $$
     begin
       -- the limit of 30 a minute stays, and is counted, but never reached
       update app.rate_limits r set count = 0 where r.key = 'store purchases ' || internal.user_id();
       return api.store_purchase('main', 'COINS', 10, offer_key => bench_purchase.offer_key);
     end $$;
     grant execute on function api.bench_ledgers, api.bench_purchase to app_user`,
  )

const call = (name: string, args: Record<string, unknown>, readOnly: boolean): Way => ({
  kind: 'call',
  name,
  args,
  readOnly,
})

const ledgers = 'the rows of both ledgers'
const purchases = ['a purchase', 'a purchase with a stock'] as const
const contestants: readonly Contestant[] = [
  { name: ledgers, way: call('bench_ledgers', {}, false) },
  { name: purchases[0], way: call('bench_purchase', { offer_key: 'free' }, false) },
  { name: purchases[1], way: call('bench_purchase', { offer_key: 'stock' }, false) },
  { name: 'the store as a user sees it', way: call('store_get', { id_or_key: 'main' }, true) },
]

const measure = async (child: Child): Promise<Map<string, Round[]>> => {
  const figures = new Map<string, Round[]>()
  for (let round = 0; round <= rounds; round += 1) {
    for (const concurrency of concurrencies) {
      for (const { name, way } of contestants) {
        const command = { kind: 'run', way, concurrency, seconds } satisfies CallerCommand
        const { perSecond, p50 } = await child.ask<Called>(command)
        const key = `${name} ${concurrency}`
        if (round > 0) figures.set(key, [...(figures.get(key) ?? []), { perSecond, p50 }])
      }
    }
    say(`round ${round} of ${rounds}`)
  }
  return figures
}

const report = (figures: Map<string, Round[]>): { text: string; aims: Aim[] } => {
  const of = (name: string, concurrency: number) => figures.get(`${name} ${concurrency}`) ?? []
  const times = (name: string, concurrency: number) =>
    medianRatio(
      of(ledgers, concurrency).map(({ perSecond }) => perSecond),
      of(name, concurrency).map(({ perSecond }) => perSecond),
    )
  const rows = contestants.map(({ name }) => [
    name,
    ...concurrencies.flatMap((concurrency) => [
      figure(medianOf(of(name, concurrency), ({ perSecond }) => perSecond)),
      figure(medianOf(of(name, concurrency), ({ p50 }) => p50)),
      figure(times(name, concurrency)),
    ]),
  ])
  const aims = concurrencies.flatMap((concurrency) =>
    purchases.map((what): Aim => {
      const cost = times(what, concurrency)
      const text = `${what} at ${concurrency}: ${figure(cost)} times its ledger rows (aim: at most 3)`
      return { text, isMet: cost <= 3 }
    }),
  )
  const head = ['', ...concurrencies.flatMap((c) => [`c=${c} a second`, 'p50 ms', 'times the rows'])]
  return { text: table(head, rows), aims }
}

const main = async () => {
  requireProc()
  const installation = await install()
  let child: Child | undefined
  try {
    const scenario = await createScenario(installation, 8)
    await fill(installation, scenario)
    child = await scenario.caller()
    // what is queued is seen when somebody writes through the server: calls of the bench go past it
    const writes = setInterval(() => {
      void ask(scenario.server.url, 'POST', '/v1/client/events', { name: 'tick' }, scenario.users[0]?.headers)
    }, 200)
    const { text, aims } = report(await measure(child).finally(() => clearInterval(writes)))
    const notes = `Calls of \`database.call\`, without HTTP, committed with fsync, of eight users. The rows are a debit and a grant by
the functions of their ledgers, with their events; a purchase also checks the offer, counts the attempt and the unit, writes its own row and event, and answers
with stacks and balances. Ratios are of the times, round by round, and their median.`
    const parts = [
      '## bench:stores',
      await circumstances('npm run bench:stores', { Postgres: installation.postgresVersion }),
      notes,
      text,
      aims.map(aimLine).join('\n'),
    ]
    await publish({ name: 'bench:stores', isShort, text: parts.join('\n\n') })
  } finally {
    await child?.end()
    await installation.end()
  }
}

await main()
