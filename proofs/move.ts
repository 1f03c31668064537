// A project moves to another server and back while apps write to it, through two server processes: nothing that was answered is lost, nothing is there
// twice, and nobody waits longer than three seconds.
import { setTimeout as sleep } from 'node:timers/promises'
import { databaseOf, startLoad, startTwoServers } from '#test/support/moving.ts'
import { createTestProject, endPrograms } from '#test/support/process.ts'
import { say } from '../bench/support/results.ts'
import { report } from './support/page.ts'

const rounds = 2
const { server, cluster, sql, other } = await startTwoServers({ WEB_CONCURRENCY: '2' })
const project = await createTestProject(server.url)
const database = databaseOf(project)
const [version] = await sql<{ v: string }>('own', 'postgres', `select current_setting('server_version') as v`)
const load = startLoad(server.url, project, 8)
await sleep(3000)
const codes: number[] = []
const pauses: number[] = []
for (let round = 0; round < rounds; round += 1) {
  for (const name of ['second', 'own']) {
    const moved = await cluster('move', project.projectId, name)
    say(moved.out + moved.err)
    codes.push(moved.code)
    pauses.push(Number(/([\d.]+) s of it not served/.exec(moved.out)?.[1] ?? Number.NaN))
    await sleep(1000)
  }
}
await load.stop()
const rows = (
  await sql<{ id: string }>('own', database, `select id from app.engagement_events where event_name = 'moved'`)
).map(({ id }) => id)
const there = new Set(rows)
const lost = load.accepted.filter((id) => !there.has(id))
const strange = load.refusals.filter(({ status, retryAfter }) => status !== 503 || !retryAfter)
await endPrograms()
await other.stop()
await report('proof:move', { Postgres: version?.v ?? '' }, [
  {
    text: `${codes.length} moves under load end well; the project was not served for ${pauses.map((pause) => `${pause} s`).join(', ')}`,
    holds: codes.every((code) => code === 0) && pauses.every((pause) => pause < 3),
  },
  {
    text: `of ${load.accepted.length} events that were answered with 201, ${lost.length} are missing and ${rows.length - there.size} are there twice`,
    holds: load.accepted.length > 0 && lost.length === 0 && rows.length === there.size,
  },
  {
    text: `what was refused meanwhile, ${load.refusals.length} times, was 503 with Retry-After; the longest time without an answer of 201 was ${(load.pauseMs / 1000).toFixed(2)} s`,
    holds: strange.length === 0,
  },
])
process.exit()
