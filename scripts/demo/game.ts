/** A season of a game: a league that ends, coins earned and spent, the last of a stock, reviews with a moderator. */
import { createPlayer, item, type Player, send, type World } from './player.ts'
import { createAsk, DemoError, developerAndProject, print, until } from './world.ts'

const price = 20
const coinsOf = (amount: number) => ({ currencies: [{ currency_code: 'COINS', amount }] })

/** Ends the demo where the story is not as it is told. */
const expectThat = (isSo: boolean, what: string) => {
  if (!isSo) throw new DemoError(what)
}

const defineGame = async ({ ask, admin, developer }: World) => {
  const make = <T>(path: string, body: unknown, method = 'POST') =>
    ask<T>(method, `${admin}/${path}`, body, developer, true)
  print('\n3. She defines the game: a lesson gives 10 XP, levels give coins, XP are the points of a weekly league.')
  await make('currencies', { code: 'COINS', name: 'Coins' })
  await make('xp/rules', { key: 'lesson', name: 'Lesson', event_name: 'lesson_completed', amount: 10 })
  const levels = [
    { level: 1, xp_required: 0 },
    { level: 2, xp_required: 30, reward: coinsOf(20) },
    { level: 3, xp_required: 60, reward: coinsOf(30) },
  ]
  await make('xp/levels', { levels }, 'PUT')
  const tiers = [
    { key: 'bronze', name: 'Bronze', promote_count: 2 },
    { key: 'silver', name: 'Silver', promote_count: 2, relegate_count: 1 },
    { key: 'gold', name: 'Gold', relegate_count: 1 },
  ]
  const rewards = [{ tier_key: 'silver', from_rank: 1, to_rank: 2, reward: coinsOf(10) }]
  const league = { key: 'weekly', name: 'Weekly league', tiers, rewards }
  const { id: leagueId } = await make<{ id: string }>('leagues', league)
  print('   level 2 at 30 XP: 20 coins; level 3 at 60 XP: 30 coins')
  print('   bronze, silver, gold; of silver the first two go up and get 10 coins, the last one goes down')

  print(
    '\n4. And a shop: two pieces of one thing, which only its buyers review, with a word that a moderator looks at.',
  )
  await make('catalog', { key: item, name: 'The sound of a concert grand', item_type: 'durable' })
  const { id: storeId } = await make<{ id: string }>('stores', { key: 'shop', name: 'Shop' })
  const prices = [{ currency_code: 'COINS', price }]
  await make('stores/shop/offers', { key: item, catalog_item_key: item, prices, stock_total: 2 })
  await make('reviews/settings', { reviews_require_purchase: true }, 'PUT')
  const config = { words: ['casino'], applies_to: ['review'], action: 'queue' }
  await make('moderation/rules', { name: 'No casinos', rule_type: 'keyword', config })
  print(`   ${price} coins, 2 in stock; a review with "casino" waits for a moderator`)
  return { leagueId, storeId }
}

type Players = Readonly<Record<'mia' | 'ben' | 'cleo' | 'dan' | 'eve', Player>>

const playSeason = async (world: World, { mia, ben, cleo, dan, eve }: Players) => {
  print('\n5. Five players, whom she puts into silver, play. Each answer to an event says what it moved.')
  await eve.play(1)
  await dan.play(2)
  await mia.play(2)
  await cleo.play(3)
  await ben.play(4)
  print('   And later in the week:')
  await dan.play(1)
  await cleo.play(1)
  await ben.play(2)
  const last = await mia.play(5)
  expectThat(last.rank === 1 && last.points === 70 && last.zone === 'promotion', 'Mia does not lead the cohort.')

  print('\n6. The season ends. A week is long, so she ends it by hand.')
  const before = [await mia.coins(), await ben.coins()]
  const { url, ask, admin, developer } = world
  const closed = await send<{ key: string }>(url, 'POST', `${admin}/leagues/weekly/close-run`, developer, {})
  type Run = { key: string; is_settled: boolean; members: number }
  const run = await until('The settling of the season', async () => {
    const runs = await ask<Run[]>('GET', `${admin}/leagues/weekly/runs`, undefined, developer, true)
    return runs.find(({ key, is_settled }) => key === closed.data.key && is_settled)
  })
  print(`   ${run.key}, ${run.members} members: each has one result, and the rewards are given.`)
  const results: string[] = []
  for (const player of [mia, ben, cleo, dan, eve]) {
    const { last_result: result } = await player.mine()
    if (!result) throw new DemoError(`${player.name} has no result.`)
    results.push(result.result)
    print(`   ${result.rank}. ${player.name.padEnd(5)} ${result.result}: ${result.tier_from} -> ${result.tier_to}`)
  }
  expectThat(String(results) === 'promoted,promoted,stayed,stayed,relegated', 'The results are not those of the ranks.')
  const after = [await mia.coins(), await ben.coins()]
  print(`   Mia ${before[0]} -> ${after[0]} coins, Ben ${before[1]} -> ${after[1]} coins`)
  expectThat(String(after) === String(before.map((coins) => coins + 10)), 'The league did not reward its first two.')
  print('   The next season begins where the result leads, without points:')
  const next = await eve.play(1)
  expectThat(next.tier === 'bronze' && next.points === 10, 'The next season does not begin in bronze.')
}

type Shop = { readonly offers: readonly { remaining_stock: number; reason: string | null }[] }
type Bought = { readonly balances: Readonly<Record<string, number>> }

/** Of the two who meet at the last one, who has it and who has not. */
const buy = async ({ mia, cleo, dan }: Players) => {
  const purchase = { offer_key: item, currency_code: 'COINS', expected_price: price }
  const offer = async () => (await dan.read<Shop>('stores/shop')).offers[0]
  const stock = async () => (await offer())?.remaining_stock
  print('\n7. Mia buys one of the two for 20 coins.')
  const before = [await mia.coins(), await stock()]
  const { status } = await mia.send<Bought>('POST', 'stores/shop/purchase', purchase)
  const after = [await mia.coins(), await stock()]
  print(`   Mia ${before[0]} -> ${after[0]} coins, stock ${before[1]} -> ${after[1]}`)
  expectThat(status === 201 && String(after) === '40,1', 'Mia has not bought one of two for 20 coins.')

  print('\n8. Cleo and Dan, with 20 coins each, buy the last one at the same moment.')
  const rivals = [cleo, dan]
  const had = await Promise.all(rivals.map((player) => player.coins()))
  const answers = await Promise.all(
    rivals.map((player) => player.send<Bought>('POST', 'stores/shop/purchase', purchase)),
  )
  const has = await Promise.all(rivals.map((player) => player.coins()))
  for (const [n, player] of rivals.entries()) {
    const owned = await player.owned()
    print(`   ${player.name.padEnd(5)} ${answers[n]?.code ?? 'has it'}: ${had[n]} -> ${has[n]} coins, owns ${owned}`)
    expectThat(owned === (answers[n]?.status === 201 ? 1 : 0), `${player.name} does not own what was bought.`)
  }
  const left = await offer()
  print(`   stock 1 -> ${left?.remaining_stock}, the shop says ${left?.reason}`)
  const codes = answers.map(({ status, code }) => code ?? status).sort()
  expectThat(String(codes) === '201,OUT_OF_STOCK', `Not exactly one of the two has the last one: ${codes}.`)
  expectThat(String([...has].sort()) === '0,20' && left?.remaining_stock === 0, 'Coins or stock are not as bought.')
  return answers[0]?.status === 201 ? { winner: cleo, loser: dan } : { winner: dan, loser: cleo }
}

type Summary = { readonly average: number | null; readonly count: number }
type Review = { readonly id: string; readonly status: string }
type Queued = { readonly id: string; readonly subject_id: string; readonly snapshot: { readonly text?: string } }

const review = async (world: World, mia: Player, winner: Player, loser: Player) => {
  const { url, ask, admin, developer } = world
  const summaryOf = `reviews?subject_type=catalog_item&subject_id=${item}`
  const summary = async () => {
    const { average, count } = await loser.summary<Summary>(summaryOf)
    return count === 0 ? 'no review' : `${average} stars (${count} review${count === 1 ? '' : 's'})`
  }
  const write = (player: Player, rating: number, body: string) =>
    player.send<Review>('PUT', 'reviews', { subject_type: 'catalog_item', subject_id: item, rating, body })
  const none = await summary()

  print('\n9. Mia reviews what she bought; who has not bought it cannot.')
  const first = await write(mia, 5, 'Warm and clear.')
  const refused = await write(loser, 1, 'Sold out!')
  const one = await summary()
  print(`   Mia: ${first.data.status}; ${loser.name}: ${refused.code}; summary ${none} -> ${one}`)
  expectThat(first.data.status === 'published' && refused.code === 'NOT_ELIGIBLE', 'The first reviews are not as told.')

  print(`\n10. ${winner.name} writes the word that a rule catches. The review waits, and the summary stays.`)
  const caught = await write(winner, 2, 'Like a piano in a casino.')
  const waiting = await summary()
  print(`   ${winner.name}: ${caught.data.status}; summary ${one} -> ${waiting}`)
  expectThat(caught.data.status === 'pending' && waiting === one, 'The review does not wait.')

  print('\n11. The developer finds it in her queue, has nothing against it, and approves it.')
  const queue = await ask<Queued[]>('GET', `${admin}/moderation/queue?status=pending`, undefined, developer, true)
  const queued = queue.find(({ subject_id }) => subject_id === caught.data.id)
  if (!queued) throw new DemoError('The review is not in the queue.')
  print(`   "${queued.snapshot.text}"`)
  await send(url, 'POST', `${admin}/moderation/queue/${queued.id}/approve`, developer, { note: 'A fair comparison' })
  const both = await summary()
  print(`   summary ${waiting} -> ${both}`)
  expectThat(both === '3.5 stars (2 reviews)', 'The summary did not change.')
}

export const runGame = async (url: string): Promise<void> => {
  const ask = createAsk(url)
  const { developer, admin, clientKey } = await developerAndProject(ask)
  const world = { url, ask, admin, developer }
  const { leagueId, storeId } = await defineGame(world)
  const join = (name: string) => createPlayer(world, clientKey, name)
  const [mia, ben, cleo] = [await join('Mia'), await join('Ben'), await join('Cleo')]
  const players = { mia, ben, cleo, dan: await join('Dan'), eve: await join('Eve') }
  await playSeason(world, players)
  const { winner, loser } = await buy(players)
  await review(world, mia, winner, loser)
  print('\n12. Where she sees all this in her console, while this server runs:')
  const pages = {
    'the league': `leagues/${leagueId}`,
    'the shop': `stores/${storeId}`,
    'what was bought': 'stores/purchases',
    'coins, row by row': 'currencies/ledger',
    'the reviews': 'reviews',
    'what she approved': 'moderation?status=approved',
  }
  for (const [what, page] of Object.entries(pages))
    print(`   ${what.padEnd(18)} ${url}/console/projects/${admin.split('/').at(-1)}/${page}`)
}
