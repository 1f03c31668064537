// What must be true of a project when the soak is over, from what its users were answered.
import { createHash } from 'node:crypto'
import type pg from 'pg'
import { calendarOf, expected, type Life, next } from '#test/support/streak_lives.ts'
import type { Caller } from './caller.ts'
import { adminOf, type Person, type SoakProject } from './project.ts'

/** How many of each kind were looked at, and what was wrong. */
export type Truths = { readonly checked: Map<string, number>; readonly wrong: string[] }

export const createTruths = (): Truths => ({ checked: new Map(), wrong: [] })

export const isTrue = (
  { checked, wrong }: Truths,
  kind: string,
  found: unknown,
  wanted: unknown,
  where: string,
  count = 1,
) => {
  checked.set(kind, (checked.get(kind) ?? 0) + count)
  const [is, should] = [JSON.stringify(found), JSON.stringify(wanted)]
  if (is !== should && wrong.length < 50) wrong.push(`${kind}: ${where} has ${is}, not ${should}`)
}

const uuidv5 = (namespace: string, name: string): string => {
  const digest = createHash('sha1')
    .update(Buffer.from(namespace.replaceAll('-', ''), 'hex'))
    .update(name)
    .digest()
  digest[6] = ((digest[6] ?? 0) & 0x0f) | 0x50
  digest[8] = ((digest[8] ?? 0) & 0x3f) | 0x80
  return digest.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** Freezes that went to periods that have passed since the last qualified one. */
const usedBy = (life: Life, last: string | null, freezes: number): number => {
  const calendar = calendarOf(life)
  let used = 0
  for (let start = last; start !== null && used < freezes; used += 1) {
    start = next(life.rules, start)
    if (calendar.deadline(start, life.now) > life.now) break
  }
  return used
}

const checkPerson = async (caller: Caller, truths: Truths, project: SoakProject, person: Person): Promise<void> => {
  const headers = { 'x-api-key': project.made.serverKey, 'x-on-behalf-of': person.id }
  const get = async (path: string) => (await caller.insist('GET', `/v1/client${path}`, undefined, headers)).body
  const where = `user ${person.id} of ${project.made.projectId}`
  const check = (kind: string, found: unknown, wanted: unknown) => isTrue(truths, kind, found, wanted, where)

  const streak = (await get('/streaks/daily')).data
  if (person.practised.length > 0) {
    const now = Date.now()
    const life = { rules: project.rules, zone: 'UTC', moves: [], events: person.practised, pauses: [], gifts: [], now }
    const { count, longest, status, ...chain } = expected(life)
    check(
      'streaks',
      [streak.current_count, streak.longest_count, streak.freezes_remaining, streak.status],
      [status === 'broken' ? 0 : count, longest, chain.freezes - usedBy(life, chain.lastPeriod, chain.freezes), status],
    )
  }
  check('totals of XP', (await get('/xp')).data.total, 10 * person.practised.length)
  const balances = (await get('/currencies')).data as { code: string; balance: number }[]
  check('balances', balances.find(({ code }) => code === 'COINS')?.balance, person.credited)
  const own = (await get('/leaderboards/top/me')).data
  if (person.best !== null) check('scores', Number(own.score), person.best)
  for (const { id, title, isDeleted } of person.rows) {
    const answer = await get(`/collections/notes/${id}`)
    check('rows', answer.data?.title ?? answer.error?.code, isDeleted ? 'NOT_FOUND' : title)
  }
  for (const { id, hash } of person.media) {
    const { storage_url } = (await get(`/media/${id}`)).data
    const bytes = Buffer.from(await (await fetch(storage_url)).arrayBuffer())
    check('files', createHash('sha256').update(bytes).digest('hex'), hash)
  }
}

/** `keys` are the idempotency keys that the project's receiver was sent. */
export const checkProject = async (
  caller: Caller,
  truths: Truths,
  project: SoakProject,
  tenant: pg.Client,
  keys: ReadonlySet<string>,
): Promise<void> => {
  const where = project.made.projectId
  const check = (kind: string, found: unknown, wanted: unknown, count = 1) =>
    isTrue(truths, kind, found, wanted, where, count)
  for (const person of project.people) await checkPerson(caller, truths, project, person)
  const one = async (sql: string, values: unknown[] = []) =>
    Number((await tenant.query<{ n: string }>(`select (${sql}) as n`, values)).rows[0]?.n)
  const messages = project.people.flatMap((person) => person.messages)
  check(
    'messages',
    await one('select count(*) from app.messages m where m.id = any($1::uuid[])', [messages]),
    messages.length,
    messages.length,
  )
  const { rows } = await tenant.query<{ id: string }>('select w.id from app.webhooks w')
  const subscription = rows[0]?.id ?? ''
  const wanted = new Set(project.precious.map((event) => uuidv5(subscription, event)))
  check(
    'deliveries',
    [...wanted].filter((key) => !keys.has(key)),
    [],
    wanted.size,
  )
  check(
    'receivers that heard of nothing else',
    [...keys].filter((key) => !wanted.has(key)),
    [],
  )
  check(
    'ledgers',
    await one(
      `select count(*) from (select b.balance, (select coalesce(sum(t.amount), 0) from app.currency_transactions t
                                                 where t.app_user_id = b.app_user_id and t.currency_code = b.currency_code) as summed from app.currency_balances b) x
        where x.balance <> x.summed`,
    ),
    0,
  )
  check(
    'outboxes without work that failed for good',
    await one('select count(*) from app.outbox o where o.failed_at is not null'),
    0,
  )
  const trail = await caller.insist('GET', `${adminOf(project)}/audit-events/verify`, undefined, project.made.developer)
  check('audit trails', trail.body.data?.verified ?? trail.body, true)
}
