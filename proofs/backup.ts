// Random work on five projects, a backup in the middle of it, everything killed, and a restore into an empty folder: again and again. What was answered before the
// backup is there, down to the last byte and unit; what was sent after it is not.
import { createHash, randomBytes, randomInt, randomUUID } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { missing, run } from '#test/support/backups.ts'
import {
  ask,
  createTestProject,
  endPrograms,
  type ServerProcess,
  startServer,
  temporaryFolder,
} from '#test/support/process.ts'
import { say } from '../bench/support/results.ts'
import { type Claim, report } from './support/page.ts'

const rounds = 5
const projects = 5

type Story = Awaited<ReturnType<typeof createTestProject>>
type Medium = { readonly id: string; readonly hash: string }
/** What one project was answered, in the phase of its beginning and end. */
type Phase = { readonly events: string[]; readonly media: Medium[]; readonly credits: string[] }
const phase = (): Phase => ({ events: [], media: [], credits: [] })

const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

const storeMedium = async (url: string, { user }: Story): Promise<Medium | null> => {
  const bytes = randomBytes(randomInt(1_000, 400_000))
  const type = 'application/octet-stream'
  const made = await ask(
    url,
    'POST',
    '/v1/client/media/upload',
    { filename: 'a', mime_type: type, size_bytes: bytes.length },
    user,
  )
  if (made.status !== 201) return null
  const put = await fetch(made.body.upload_url, {
    method: 'PUT',
    body: new Uint8Array(bytes),
    headers: { 'content-type': type },
  })
  const { id } = made.body.data
  const done = put.ok && (await ask(url, 'POST', '/v1/client/media/commit', { upload_id: id, asset_id: id }, user))
  return done && done.status === 200 ? { id, hash: hashOf(bytes) } : null
}

const makeCurrency = async (url: string, { projectId, developer }: Story): Promise<void> => {
  const made = await ask(
    url,
    'POST',
    `/v1/admin/projects/${projectId}/currencies`,
    { code: 'COINS', name: 'Coins' },
    developer,
  )
  if (made.status !== 201) throw new Error(JSON.stringify(made.body))
}

/** The status of a credit: 201, or 200 where its key has been used. */
const credit = async (url: string, { serverKey, userId }: Story, key: string): Promise<number> => {
  const headers = { 'x-api-key': serverKey, 'x-on-behalf-of': userId, 'idempotency-key': key }
  return (await ask(url, 'POST', '/v1/client/currencies/COINS/credit', { amount: 7, reason: 'proof' }, headers)).status
}

/** Works until the server is gone. A piece of work counts for a phase when it began and ended in it. */
const work = async (url: string, story: Story, current: () => Phase): Promise<void> => {
  for (;;) {
    const during = current()
    const is = () => during === current()
    try {
      const kind = randomInt(10)
      if (kind === 0) {
        const medium = await storeMedium(url, story)
        if (medium && is()) during.media.push(medium)
      } else if (kind < 3) {
        const key = randomUUID()
        if ((await credit(url, story, key)) === 201 && is()) during.credits.push(key)
      } else {
        const id = randomUUID()
        const { status } = await ask(url, 'POST', '/v1/client/events', { event_name: 'counted', id }, story.user)
        if (status === 201 && is()) during.events.push(id)
      }
    } catch {
      return
    }
  }
}

const sizeOf = async (folder: string): Promise<number> => {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const sizes = await Promise.all(
    entries.filter((entry) => entry.isFile()).map((entry) => stat(join(entry.parentPath, entry.name))),
  )
  return sizes.reduce((sum, { size }) => sum + size, 0)
}

const found = {
  events: 0,
  credits: 0,
  media: 0,
  lost: 0,
  late: 0,
  lateThere: 0,
  backups: [] as number[],
  restores: [] as number[],
}
let sizes = ''
let server: ServerProcess = await startServer({ DATA_DIR: join(await temporaryFolder(), 'first') })
const stories: Story[] = []
for (let count = 0; count < projects; count += 1) {
  const story = await createTestProject(server.url)
  await makeCurrency(server.url, story)
  stories.push(story)
}

/** One round goes on where the one before was restored. */
const round = async (number: number): Promise<void> => {
  const phasesOf = () => new Map(stories.map((story) => [story, phase()]))
  const [before, during, after] = [phasesOf(), phasesOf(), phasesOf()]
  let phases = before
  const { url } = server
  const working = stories.flatMap((story) => [1, 2].map(() => work(url, story, () => phases.get(story) as Phase)))
  const enough = (of: Map<Story, Phase>, count: number) =>
    [...of.values()].every(({ events }) => events.length >= count)
  while (!enough(before, 60)) await new Promise((resolve) => setTimeout(resolve, 20))
  const file = join(await temporaryFolder(), 'backup')
  const began = performance.now()
  phases = during
  const made = await run('backup', { DATA_DIR: server.dataDir }, '--to', file)
  phases = after
  if (made.code !== 0) throw new Error(made.output)
  found.backups.push((performance.now() - began) / 1000)
  while (!enough(after, 20)) await new Promise((resolve) => setTimeout(resolve, 20))
  server.child.kill('SIGKILL')
  await Promise.all(working)
  sizes = `${((await sizeOf(server.dataDir)) / 1e6).toFixed(0)} MB of data make a backup of ${((await stat(file)).size / 1e6).toFixed(0)} MB`

  const dataDir = join(await temporaryFolder(), 'restored')
  const restoring = performance.now()
  const restored = await run('restore', { DATA_DIR: dataDir }, '--from', file)
  if (restored.code !== 0) throw new Error(restored.output)
  found.restores.push((performance.now() - restoring) / 1000)
  // the killed one's Postgres would stay
  const former = await startServer({ DATA_DIR: server.dataDir })
  former.child.kill('SIGTERM')
  await former.ended
  server = await startServer({ DATA_DIR: dataDir })
  for (const story of stories) {
    const [early, late] = [before.get(story) as Phase, after.get(story) as Phase]
    found.events += early.events.length
    found.lost += await missing(server.url, story.user, early.events)
    found.late += late.events.length
    found.lateThere += late.events.length - (await missing(server.url, story.user, late.events))
    for (const { id, hash } of early.media) {
      const { body } = await ask(server.url, 'GET', `/v1/client/media/${id}`, undefined, story.user)
      const bytes = await fetch(body.data.storage_url).then((response) => response.bytes())
      found.media += 1
      if (hashOf(bytes) !== hash) found.lost += 1
    }
    for (const { id } of late.media) {
      found.late += 1
      if ((await ask(server.url, 'GET', `/v1/client/media/${id}`, undefined, story.user)).status !== 404)
        found.lateThere += 1
    }
    for (const key of early.credits) {
      found.credits += 1
      if ((await credit(server.url, story, key)) !== 200) found.lost += 1
    }
    for (const key of late.credits) {
      found.late += 1
      if ((await credit(server.url, story, key)) !== 201) found.lateThere += 1
    }
  }
  say(`round ${number} of ${rounds}: ${JSON.stringify(found)}`)
}

try {
  for (let number = 1; number <= rounds; number += 1) await round(number)
  const list = (values: readonly number[]) => `${values.map((value) => value.toFixed(1)).join(', ')} s`
  const claims: Claim[] = [
    {
      text: `what was answered before the backup began is there after ${rounds} restores: ${found.events} events, ${found.credits} credits of a currency and ${found.media} files to the last byte, ${found.lost} lost`,
      holds: found.lost === 0 && found.events > 0 && found.credits > 0 && found.media > 0,
    },
    {
      text: `what was sent after the backup had ended is not: ${found.late - found.lateThere} of ${found.late}`,
      holds: found.lateThere === 0 && found.late > 0,
    },
  ]
  const more = `${projects} projects were at work meanwhile, ten callers at once; each round goes on with what was restored. ${sizes}. Backups took ${list(found.backups)}, restores ${list(found.restores)}.`
  await report('proof:backup', {}, claims, more)
} finally {
  await endPrograms()
}
