// Others on the same tables of the same Postgres, each in the way that its documentation shows.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from '#server/root.ts'
import { freePort } from '#test/support/process.ts'
import { asAdmin, type Installation, type Scenario } from './installation.ts'
import { binary, tokenOf } from './postgrest.ts'

export type Request = {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** So many of these, one after the other, do what one of the others does. */
  readonly parts?: number
}
export type Peer = {
  readonly name: string
  readonly pid: number
  readonly version: string
  readonly requests: Readonly<Record<string, Request>>
  /** Removes what was inserted, where that is not in the table of all. */
  tidy?(): Promise<unknown>
  end(): Promise<void>
}

/** What all contestants read and write. */
export type Notes = {
  readonly id: string
  readonly before: string
  readonly row: object
  readonly rows: readonly object[]
}

/** Roles of their own, under the same policy as ours. */
export const shareNotes = ({ cluster }: Installation, { database }: Scenario, password: string) =>
  asAdmin(
    cluster,
    database,
    `create role web_anon nologin;
     create role web_user nologin;
     create role web_authenticator login noinherit password '${password}';
     grant web_anon, web_user to web_authenticator;
     grant connect on database "${database}" to web_authenticator;
     create schema web;
     grant usage on schema collections, web, internal to web_user;
     grant usage on schema collections, web to web_anon;
     create function web.user_id() returns uuid language sql stable
       return (nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub')::uuid;
     create policy "web users read their own notes" on collections.notes for select to web_user using (user_id = (select web.user_id()));
     create policy "web users add their own notes" on collections.notes for insert to web_user with check (user_id = (select web.user_id()));
     grant select, insert on collections.notes to web_user;
     grant execute on function internal.new_id, internal.now, internal.user_id, web.user_id to web_user`,
  )

const untilAnswers = async (peer: Peer, said: () => string) => {
  for (const [what, { url, method, headers, body }] of Object.entries(peer.requests)) {
    for (let tries = 0; ; tries += 1) {
      const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }) }).catch(() => null)
      const text = (await response?.text()) ?? ''
      if (response && response.status < 300 && !text.includes('"errors"')) break
      if (tries > 150) throw new Error(`${peer.name}, ${what}: ${response?.status} ${text.slice(0, 400)}\n${said()}`)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}

/** Waits until the process answers each of its requests well. */
export const started = async (child: ChildProcess, peer: Omit<Peer, 'end' | 'pid'>, folder?: string): Promise<Peer> => {
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (said = (said + chunk).slice(-2000)))
  const ended = once(child, 'exit')
  const whole: Peer = {
    ...peer,
    pid: child.pid ?? 0,
    async end() {
      if (child.exitCode === null) child.kill('SIGTERM')
      await ended
      if (folder) await rm(folder, { recursive: true, force: true })
    },
  }
  await untilAnswers(whole, () => said).catch(async (error) => {
    await whole.end()
    throw error
  })
  return whole
}

export const startPostgrestOnNotes = async (
  scenario: Scenario,
  notes: Notes,
  password: string,
): Promise<Peer | null> => {
  const found = binary()
  if (!found) return null
  const secret = randomBytes(32).toString('hex')
  const folder = await mkdtemp(join(tmpdir(), 'trellis-postgrest-'))
  const port = await freePort()
  const { host, port: postgresPort } = scenario.target
  await writeFile(
    join(folder, 'postgrest.conf'),
    [
      `db-uri = "postgres://web_authenticator:${password}@/${scenario.database}?host=${encodeURIComponent(host)}&port=${postgresPort}"`,
      'db-schemas = "collections"',
      'db-anon-role = "web_anon"',
      'db-pool = 10',
      'db-aggregates-enabled = true',
      `jwt-secret = "${secret}"`,
      'server-host = "127.0.0.1"',
      `server-port = ${port}`,
    ].join('\n'),
    { mode: 0o600 },
  )
  const child = spawn(found.path, [join(folder, 'postgrest.conf')], {
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const userId = scenario.users[0]?.userId ?? ''
  const headers = { authorization: `Bearer ${tokenOf(secret, userId)}` }
  const url = `http://127.0.0.1:${port}/notes`
  const get = (query: string, more = {}): Request => ({
    url: `${url}?${query}`,
    method: 'GET',
    headers: { ...headers, ...more },
  })
  const post = (body: unknown): Request => ({
    url,
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', prefer: 'return=representation' },
    body: JSON.stringify(body),
  })
  const live = 'deleted_at=is.null'
  return started(
    child,
    {
      name: 'PostgREST',
      version: found.version,
      requests: {
        get: get(`id=eq.${notes.id}&${live}`, { accept: 'application/vnd.pgrst.object+json' }),
        list: get(`${live}&created_at=lt.${notes.before}&order=created_at.desc,id.desc&limit=50`),
        filtered: get(`${live}&rank=gte.500&done=is.false&order=created_at.desc,id.desc&limit=50`),
        insert: post({ ...notes.row, user_id: userId }),
        batch: post(notes.rows.map((row) => ({ ...row, user_id: userId }))),
        aggregate: get(`${live}&select=done,count(),rank.sum()&order=done`),
      },
    },
    folder,
  )
}

export const peers = join(root, 'bench/peers')

export const startPostgraphileOnNotes = async (
  scenario: Scenario,
  notes: Notes,
  password: string,
): Promise<Peer | null> => {
  if (!existsSync(join(peers, 'node_modules/postgraphile'))) return null
  const port = await freePort()
  const { host, port: postgresPort } = scenario.target
  const userId = scenario.users[0]?.userId ?? ''
  const child = spawn(process.execPath, [join(peers, 'postgraphile.mjs')], {
    cwd: peers,
    env: {
      PATH: process.env['PATH'],
      NODE_ENV: 'production',
      GRAPHILE_ENV: 'production',
      PORT: String(port),
      USER_ID: userId,
      DSN: `postgres://web_authenticator:${password}@/${scenario.database}?host=${encodeURIComponent(host)}&port=${postgresPort}`,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const fields = 'rowId userId createdAt updatedAt deletedAt title body rank done tags meta due'
  const query = (text: string, variables = {}): Request => ({
    url: `http://127.0.0.1:${port}/graphql`,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: text, variables }),
  })
  return started(child, {
    name: 'PostGraphile',
    version: '5.1.5',
    requests: {
      get: query(`query ($id: UUID!) { noteByRowId(rowId: $id) { ${fields} } }`, { id: notes.id }),
      list: query(
        `{ allNotes(first: 50, orderBy: [CREATED_AT_DESC]) { nodes { ${fields} } pageInfo { endCursor hasNextPage } } }`,
      ),
      insert: query(`mutation ($note: NoteInput!) { createNote(input: { note: $note }) { note { ${fields} } } }`, {
        note: { ...notes.row, userId },
      }),
    },
  })
}
