// What stands in a data folder of a release, made once by that release and checked by every later one.
import { createHash, randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { installedBinaries } from '#fleet/embedded/binaries.ts'
import { download, run, uploadFile } from '#test/support/backups.ts'
import { ask as askOnce, createTestProject, endServer, startServer, temporaryFolder } from '#test/support/process.ts'

export type Kept = {
  readonly version: string
  /** The major version of Postgres that made the cluster. */
  readonly postgres: string
  readonly secretsKey: string
  readonly projectId: string
  readonly clientKey: string
  readonly serverKey: string
  readonly user: { readonly id: string; readonly email: string; readonly password: string }
  readonly asset: { readonly id: string; readonly hash: string }
  /** The answers to `reads` of this user. */
  readonly answers: Readonly<Record<string, unknown>>
}

/** As an SDK asks: again, for half a minute, while the project is being migrated. */
const ask = async (...args: Parameters<typeof askOnce>): ReturnType<typeof askOnce> => {
  for (let left = 100; ; left -= 1) {
    const answer = await askOnce(...args)
    if (answer.body?.error?.code !== 'TENANT_MIGRATION_PENDING' || left === 0) return answer
    await sleep(300)
  }
}

const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

type Read = { readonly path: string; readonly of: (data: any) => unknown }

/** What no time that passes changes. */
const reads: Readonly<Record<string, Read>> = {
  profile: { path: '/users/me', of: ({ id, email, display_name }) => [id, email, display_name] },
  notes: { path: '/collections/notes?order=title', of: (rows: any[]) => rows.map(({ id, title }) => [id, title]) },
  experience: { path: '/xp', of: ({ total }) => total },
  streak: { path: '/streaks/daily', of: ({ longest_count }) => longest_count },
  balance: { path: '/currencies', of: (rows: any[]) => rows.map(({ code, balance }) => [code, balance]) },
  score: { path: '/leaderboards/top/me', of: ({ score, rank }) => [Number(score), rank] },
  achievements: { path: '/achievements', of: (rows: any[]) => rows.map(({ key, unlocked_at }) => [key, unlocked_at]) },
  flag: { path: '/flags/dark', of: ({ value }) => value },
}

const sessionOf = async (url: string, { clientKey, user }: Pick<Kept, 'clientKey' | 'user'>) => {
  const key = { 'x-api-key': clientKey }
  const { email, password } = user
  const { status, body } = await ask(url, 'POST', '/v1/client/auth/email/login', { email, password }, key)
  if (status !== 200) throw new Error(`sign-in: ${JSON.stringify(body)}`)
  return { ...key, authorization: `Bearer ${body.data.session_token}` }
}

const answersOf = async (url: string, headers: Record<string, string>) => {
  const found: Record<string, unknown> = {}
  for (const [name, { path, of }] of Object.entries(reads)) {
    const { status, body } = await ask(url, 'GET', `/v1/client${path}`, undefined, headers)
    found[name] = status === 200 ? of(body.data) : body.error
  }
  return found
}

/** A project with something of every kind that a user has, on a server that has nothing yet. */
const fillRelease = async (url: string, release: Pick<Kept, 'version' | 'postgres' | 'secretsKey'>): Promise<Kept> => {
  const story = await createTestProject(url)
  const root = `/v1/admin/projects/${story.projectId}`
  const post = async (path: string, body: object, headers: Record<string, string>) => {
    const answer = await ask(url, 'POST', path, body, headers)
    if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer.body)}`)
    return answer.body.data
  }
  const define = (path: string, body: object) => post(root + path, body, story.developer)
  await define('/streaks', { key: 'daily', name: 'Daily', qualifying_event: 'practised', period: 'day' })
  await define('/xp/rules', { key: 'practice', name: 'Practice', event_name: 'practised', amount: 10 })
  const criteria = { type: 'event_count', event_name: 'practised', target_value: 3 }
  await define('/achievements', { key: 'three', name: 'Three', criteria })
  await define('/currencies', { code: 'COINS', name: 'Coins' })
  await define('/leaderboards', { key: 'top', name: 'Top', scoring: 'best', client_writable: true })
  await define('/flags', { key: 'dark', name: 'Dark', value_type: 'boolean', off_value: false, default_value: true })
  await define('/segments', {
    key: 'keen',
    name: 'Keen',
    rules: { source: 'event', event_name: 'practised', measure: 'count', op: 'gte', value: 3 },
  })
  await define('/collections', {
    name: 'notes',
    read_policy: 'owner',
    columns: [{ name: 'title', type: 'text', unique: true }],
  })

  const email = 'user@example.org'
  const password = randomBytes(12).toString('base64url')
  const key = { 'x-api-key': story.key['x-api-key'] }
  const made = await post('/v1/client/auth/email/signup', { email, password, display_name: 'Somebody' }, key)
  const user = { id: made.user.id as string, email, password }
  const headers = { ...key, authorization: `Bearer ${made.session_token}` }
  for (let n = 0; n < 5; n += 1) await post('/v1/client/events', { event_name: 'practised' }, headers)
  for (const title of ['first', 'second', 'third']) await post('/v1/client/collections/notes', { title }, headers)
  await post('/v1/client/leaderboards/top/scores', { score: 25 }, headers)
  const server = { 'x-api-key': story.serverKey, 'x-on-behalf-of': user.id, 'idempotency-key': 'release' }
  await post('/v1/client/currencies/COINS/credit', { amount: 7, reason: 'release' }, server)
  const bytes = randomBytes(2_000)
  const id = await uploadFile(url, { ...story, user: headers }, bytes)
  const kept = { ...release, projectId: story.projectId, clientKey: key['x-api-key'], serverKey: story.serverKey, user }
  return {
    ...kept,
    asset: { id, hash: hashOf(bytes) },
    answers: await answersOf(url, await sessionOf(url, kept)),
  }
}

/** What this server answers about it, beside what was answered then; and whether it takes more. */
export const readRelease = async (url: string, kept: Kept) => {
  const headers = await sessionOf(url, kept)
  const bytes = await download(url, { user: headers } as never, kept.asset.id)
  const before = await answersOf(url, headers)
  const post = async (path: string, body: object) => (await ask(url, 'POST', `/v1/client${path}`, body, headers)).status
  const taken = {
    note: await post('/collections/notes', { title: 'a later one' }),
    sameNote: await post('/collections/notes', { title: 'first' }),
    event: await post('/events', { event_name: 'practised' }),
    credit: (
      await ask(
        url,
        'POST',
        '/v1/client/currencies/COINS/credit',
        { amount: 7, reason: 'release' },
        { 'x-api-key': kept.serverKey, 'x-on-behalf-of': kept.user.id, 'idempotency-key': 'release' },
      )
    ).status,
  }
  const after = await answersOf(url, headers)
  return { before, taken, after, hash: bytes && hashOf(bytes) }
}

export const filesOfRelease = (folder: string) => ({
  data: join(folder, 'data.tar.zst'),
  kept: join(folder, 'data.json'),
})

/** Writes what this program keeps of a release: the backup of a data folder, and what it answered. */
export const makeRelease = async (folder: string, version: string) => {
  const postgres = (await installedBinaries(process.platform, process.arch)).version.split('.')[0] ?? ''
  const secretsKey = randomBytes(32).toString('base64')
  const server = await startServer({ DATA_DIR: join(await temporaryFolder(), 'data'), SECRETS_KEY: secretsKey })
  if (server.child.exitCode !== null) throw new Error(server.output())
  const kept = await fillRelease(server.url, { version, postgres, secretsKey })
  await endServer(server)
  const files = filesOfRelease(folder)
  const made = await run('backup', { DATA_DIR: server.dataDir, SECRETS_KEY: secretsKey }, '--to', files.data)
  if (made.code !== 0) throw new Error(made.output)
  await writeFile(files.kept, `${JSON.stringify(kept, null, 2)}\n`)
  return files
}
