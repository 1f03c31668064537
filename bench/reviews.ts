// npm run bench:reviews: a page of reviews with its summary beside a plain aggregate, writes of many users, and votes.
import { type Asked, closedLoop, type Looped } from './support/closed_loop.ts'
import { requireProc } from './support/cpu.ts'
import { asAdmin, createScenario, install } from './support/installation.ts'
import { figure, table } from './support/numbers.ts'
import { type Aim, aimLine, circumstances, publish, say, versionOf } from './support/results.ts'

const isShort = process.argv.includes('--short')
const [reviews, calls, writers] = isShort ? [10_000, 30, 8] : [100_000, 200, 20]

const main = async () => {
  requireProc()
  const installation = await install()
  try {
    const scenario = await createScenario(installation, writers)
    const sql = <T extends Record<string, unknown>>(text: string, values: unknown[] = []) =>
      asAdmin<T>(installation.cluster, scenario.database, text, values)
    await sql(
      `with made as (insert into app.users (display_name) select 'Reader ' || n from generate_series(1, $1::int) n returning id)
       insert into app.reviews (app_user_id, subject_type, subject_id, rating, title, body, status, helpful_count, published_at, created_at)
       select m.id, 'app', $2, 1 + random() * 4, 'A title', repeat('Some words. ', 20), 'published', 0, now(),
              now() - random() * interval '300 days'
         from made m`,
      [reviews, scenario.projectId],
    )
    await sql('vacuum analyze app.reviews')
    await sql('vacuum analyze app.users')
    say(`${reviews} reviews of one subject`)
    const user = (n: number) => scenario.users[n % writers]?.headers ?? {}
    const page = (query: string) => (): Asked => ({
      path: `/v1/client/reviews?subject_type=app${query}`,
      headers: user(0),
    })
    const reads = {
      'a page of 20, newest': page('&limit=20'),
      'a page of 50, newest': page('&limit=50'),
      'a page of 20, most helpful': page('&limit=20&sort=helpful'),
      'a page of 20, best': page('&limit=20&sort=rating'),
      'a page of 20 with one star, most helpful': page('&limit=20&sort=helpful&rating=1'),
    }
    const found = new Map<string, Looped>()
    for (const [name, next] of Object.entries(reads)) {
      await closedLoop(scenario.server.url, next, 200, { callers: 1, seconds: 5, most: 20 })
      found.set(name, await closedLoop(scenario.server.url, next, 200, { callers: 1, seconds: 6, most: calls }))
    }
    const plain: number[] = []
    for (let n = 0; n < 7; n += 1) {
      const [row] = await sql<{ 'QUERY PLAN': readonly { 'Execution Time': number }[] }>(
        `explain (analyze, format json) select count(*), avg(rating) from app.reviews
          where subject_type = 'app' and subject_id = '${scenario.projectId}' and status = 'published'`,
      )
      plain.push(row?.['QUERY PLAN'][0]?.['Execution Time'] ?? 0)
    }
    const aggregate = plain.sort((a, b) => a - b)[3] ?? 0
    // one review of each writer, written again and again: each takes the row of sums
    const put = (n: number): Asked => ({
      path: '/v1/client/reviews',
      method: 'PUT',
      headers: { ...user(n), 'content-type': 'application/json' },
      body: JSON.stringify({ subject_type: 'app', rating: 1 + (Math.floor(n / writers) % 5), body: `Take ${n}` }),
    })
    await Promise.all(
      scenario.users.map((_, n) =>
        closedLoop(scenario.server.url, () => put(n), 201, { callers: 1, seconds: 5, most: 1 }),
      ),
    )
    const writes: Looped[] = []
    for (let from = writers; from < 12 * writers; from += 4 * writers) {
      await sql('delete from app.rate_limits')
      writes.push(
        await closedLoop(scenario.server.url, (n) => put(from + n), 200, {
          callers: 8,
          seconds: 20,
          most: 4 * writers,
        }),
      )
    }
    await sql('delete from app.rate_limits')
    const alone = await closedLoop(scenario.server.url, (n) => put(20 * writers + n), 200, {
      callers: 1,
      seconds: 20,
      most: 4 * writers,
    })
    const [wrong] = await sql<{ n: number }>(
      `select count(*)::int as n from app.review_sums s
        where s.stars_1 + s.stars_2 + s.stars_3 + s.stars_4 + s.stars_5
              <> (select count(*) from app.reviews r where r.subject_id = s.subject_id and r.status = 'published')`,
    )
    const first = found.get('a page of 20, newest')
    const slowest = Math.max(...[...found.values()].map(({ p50 }) => p50))
    const perSecond = Math.max(...writes.map((one) => one.perSecond))
    const aims: Aim[] = [
      {
        text: `a page with its summary takes ${figure(first?.p50 ?? 0)} ms at p50, ${figure(first?.p99 ?? 0)} ms at p99, of ${reviews.toLocaleString('en')} reviews; the slowest order ${figure(slowest)} ms (aim: under 5)`,
        isMet: slowest < 5,
      },
      {
        text: `a plain aggregate of the same subject takes ${figure(aggregate)} ms in the database; the sums are one row`,
        isMet: aggregate > 0,
      },
      {
        text: `a PUT takes ${figure(alone.p50)} ms (aim: under 15)`,
        isMet: alone.p50 < 15,
      },
      {
        text: `8 callers write ${figure(perSecond)} reviews of one subject a second (aim: 200)`,
        isMet: perSecond >= 200,
        floor: 'each waits at the row of sums for the commits of those before it, which wait for the disk',
      },
      { text: `${wrong?.n} sums differ from a plain aggregate afterwards`, isMet: wrong?.n === 0 },
    ]
    const text = [
      '## bench:reviews',
      await circumstances('npm run bench:reviews', {
        ...{ Postgres: installation.postgresVersion, undici: await versionOf('undici') },
      }),
      `${reviews.toLocaleString('en')} reviews of one subject; one caller reads.`,
      table(
        ['a read', 'p50 ms', 'p99 ms'],
        [...found].map(([name, looped]) => [name, figure(looped.p50), figure(looped.p99)]),
      ),
      aims.map(aimLine).join('\n'),
    ].join('\n\n')
    await publish({ name: 'bench:reviews', isShort, text, aims })
  } finally {
    await installation.end()
  }
}

await main()
