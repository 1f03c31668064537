// Events posted over HTTP, one by one, with answers that show effects: on the short path, and on the path of sets beside it.
import { tenantName } from '#server/database/names.ts'
import { createTestProject, endServer } from '#test/support/process.ts'
import { asAdmin, type Installation } from './installation.ts'
import { figure, medianOf, medianRatio, table } from './numbers.ts'
import { type Aim, say } from './results.ts'

const paths = ['short', 'set'] as const
const concurrencies = [1, 8] as const
/** How many times the path of sets: with several callers both record together what arrives at once. */
const wanted = { 1: 1.8, 8: 1.2 } as const
type Contestant = {
  readonly path: (typeof paths)[number]
  readonly serverKey: string
  readonly userIds: readonly string[]
}
type Round = { readonly perSecond: number }

const contestant = async (
  { cluster }: Installation,
  url: string,
  prepare: string,
  path: Contestant['path'],
): Promise<Contestant> => {
  const { projectId, serverKey } = await createTestProject(url)
  const database = tenantName('trellis', projectId)
  await asAdmin(cluster, database, prepare)
  await asAdmin(cluster, database, 'select bench.keep(10)')
  await asAdmin(cluster, database, `alter database "${database}" set app.event_path = '${path}'`)
  // connections that are open do not have the setting
  await asAdmin(
    cluster,
    database,
    `select pg_terminate_backend(a.pid) from pg_stat_activity a where a.datname = current_database() and a.pid <> pg_backend_pid()`,
  )
  const users = await asAdmin<{ id: string }>(cluster, database, 'select p.id from bench.people p order by p.place')
  return { path, serverKey, userIds: users.map(({ id }) => id) }
}

const post = async (url: string, { serverKey }: Contestant, userId: string): Promise<void> => {
  const answer = await fetch(`${url}/v1/client/events`, {
    method: 'POST',
    headers: { 'x-api-key': serverKey, 'content-type': 'application/json' },
    body: JSON.stringify({ event_name: 'lesson_completed', app_user_id: userId, properties: { lesson: 3 } }),
  })
  const { data } = (await answer.json()) as { data?: { effects?: object } }
  if (answer.status !== 201 || !data?.effects) throw new Error(`an event was answered ${answer.status}`)
}

/** Callers each post for users of their own, so that none waits for another's user. */
const turn = async (url: string, who: Contestant, callers: number, seconds: number): Promise<Round> => {
  const ends = performance.now() + seconds * 1000
  const began = performance.now()
  let posted = 0
  const call = async (caller: number) => {
    for (let n = caller; performance.now() < ends; n += callers) {
      await post(url, who, who.userIds[n % who.userIds.length] ?? '')
      posted += 1
    }
  }
  await Promise.all(Array.from({ length: callers }, (_, caller) => call(caller)))
  return { perSecond: (posted * 1000) / (performance.now() - began) }
}

export const measurePosts = async (
  installation: Installation,
  prepare: string,
  rounds: number,
  seconds: number,
): Promise<{ text: string; aims: Aim[] }> => {
  const server = await installation.serve({ GENERAL_RATE_LIMITS: 'off' })
  const contestants: Contestant[] = []
  for (const path of paths) contestants.push(await contestant(installation, server.url, prepare, path))
  const figures = new Map<string, Round[]>()
  for (let round = 0; round <= rounds; round += 1) {
    for (const callers of concurrencies)
      for (const who of contestants) {
        const taken = await turn(server.url, who, callers, seconds)
        const key = `${who.path} ${callers}`
        if (round > 0) figures.set(key, [...(figures.get(key) ?? []), taken])
      }
    say(`round ${round} of ${rounds} over HTTP`)
  }
  await endServer(server)
  const of = (path: string, callers: number) => figures.get(`${path} ${callers}`) ?? []
  const part = ({ perSecond }: Round) => perSecond
  const times = (callers: number) => medianRatio(of('short', callers).map(part), of('set', callers).map(part))
  return {
    text: table(
      [
        'single events over HTTP, 10 definitions, effects',
        ...concurrencies.map((callers) => `${callers} callers, a second`),
      ],
      [
        ['short path', ...concurrencies.map((callers) => figure(medianOf(of('short', callers), part)))],
        ['path of sets', ...concurrencies.map((callers) => figure(medianOf(of('set', callers), part)))],
        ['times', ...concurrencies.map((callers) => figure(times(callers)))],
      ],
    ),
    aims: concurrencies.map((callers) => ({
      text: `over HTTP with ${callers} callers the short path answers ${figure(times(callers))} times as many events a second as the path of sets (aim: at least ${wanted[callers]})`,
      isMet: times(callers) >= wanted[callers],
    })),
  }
}
