// Parse Server on the same Postgres: a class of the same columns and as many rows, read and written over REST by one user's session.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '#test/support/process.ts'
import { asAdmin, type Installation, type Scenario } from './installation.ts'
import { type Notes, type Peer, peers, type Request, started } from './note_peers.ts'

const database = 'bench_parse'
/** What the REST guide says of a batch. */
const mostInBatch = 50

const untilHealthy = async (url: string, child: ChildProcess) => {
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (said = (said + chunk).slice(-2000)))
  for (let tries = 0; ; tries += 1) {
    const response = await fetch(`${url}/health`).catch(() => null)
    const { status } = response?.ok ? ((await response.json()) as { status: string }) : { status: '' }
    if (status === 'ok') return
    if (tries > 300 || child.exitCode !== null) throw new Error(`it does not answer: ${said}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** Rows of the same lengths and in the same order of time, dealt out to as many owners; the first owner is the one who asks. */
const fill = (owner: string, rows: number, owners: number) => `
  insert into "_User" ("objectId", "createdAt", "updatedAt", username, _rperm, _wperm)
  select 'o' || lpad(n::text, 9, '0'), now(), now(), 'owner ' || n, array['*'], array['o' || lpad(n::text, 9, '0')]
    from generate_series(1, ${owners - 1}) as n;
  insert into "Note" ("objectId", "createdAt", "updatedAt", owner, title, body, rank, done, tags, meta, due, _rperm, _wperm)
  select 'n' || lpad(n::text, 9, '0'), t.at, t.at, o.id, 'note ' || n, md5(n::text) || ' ' || md5((n * 7)::text), n % 1000, n % 3 = 0,
         jsonb_build_array('t' || n % 5000, 'u' || n % 7), jsonb_build_object('k', n % 5000), t.at + interval '1 day', array[o.id], array[o.id]
    from generate_series(1, ${rows}) as n,
         lateral (select '2026-01-01T00:00:00Z'::timestamptz + n * interval '10 seconds' as at,
                         n % ${owners} as turn) as t,
         lateral (select case t.turn when 0 then '${owner}' else 'o' || lpad(t.turn::text, 9, '0') end as id) as o;
  create index on "Note" (owner, "createdAt" desc);
  create index on "Note" (rank);
  create index on "Note" (title);
  create index on "Note" (due)`

export const startParseOnNotes = async (
  { cluster }: Installation,
  { target }: Scenario,
  notes: Notes,
  { rows, owners, password }: { readonly rows: number; readonly owners: number; readonly password: string },
): Promise<Peer | null> => {
  if (!existsSync(join(peers, 'node_modules/parse-server'))) return null
  await asAdmin(cluster, 'postgres', `create role bench_parse login password '${password}'`)
  await asAdmin(cluster, 'postgres', `create database ${database} owner bench_parse`)
  const run = <T extends Record<string, unknown>>(text: string) => asAdmin<T>(cluster, database, text)
  const port = await freePort()
  const appId = 'bench'
  const child = spawn(process.execPath, [join(peers, 'parse.mjs')], {
    cwd: peers,
    env: {
      PATH: process.env['PATH'],
      NODE_ENV: 'production',
      PORT: String(port),
      PARSE_SERVER_LOGS_FOLDER: 'null',
      DATABASE_HOST: target.host,
      DATABASE_PORT: String(target.port),
      DATABASE: database,
      DATABASE_USER: 'bench_parse',
      DATABASE_PASSWORD: password,
      APP_ID: appId,
      MASTER_KEY: randomBytes(24).toString('hex'),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const url = `http://127.0.0.1:${port}/parse`
  const key = { 'x-parse-application-id': appId, 'content-type': 'application/json' }
  try {
    await untilHealthy(url, child)
    const signedUp = await fetch(`${url}/users`, {
      method: 'POST',
      headers: { ...key, 'x-parse-revocable-session': '1' },
      body: JSON.stringify({ username: 'the one who asks', password: randomBytes(16).toString('hex') }),
    })
    const { objectId: owner, sessionToken } = (await signedUp.json()) as { objectId: string; sessionToken: string }
    await run(fill(owner, rows, owners))
    await run('vacuum (analyze)')
    const peer = {
      name: 'Parse Server',
      version: '9.10.0',
      requests: await requestsOf(url, { ...key, 'x-parse-session-token': sessionToken }, owner, notes, run),
    }
    const running = await started(child, peer)
    return { ...running, tidy: () => run(`delete from "Note" where owner = '${owner}' and title = 'a new note'`) }
  } catch (error) {
    child.kill('SIGTERM')
    throw error
  }
}

const requestsOf = async (
  url: string,
  headers: Readonly<Record<string, string>>,
  owner: string,
  notes: Notes,
  run: <T extends Record<string, unknown>>(text: string) => Promise<T[]>,
): Promise<Record<string, Request>> => {
  const [found] = await run<{ id: string; before: Date }>(
    `select "objectId" as id, "createdAt" as before from "Note" where owner = '${owner}' order by "createdAt" desc offset 10 limit 1`,
  )
  const mine = { owner: { __type: 'Pointer', className: '_User', objectId: owner } }
  const find = (where: object): Request => ({
    url: `${url}/classes/Note?${new URLSearchParams({ where: JSON.stringify({ ...mine, ...where }), order: '-createdAt', limit: '50' })}`,
    method: 'GET',
    headers,
  })
  const post = (path: string, body: object): Request => ({
    url: url + path,
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  const own = (row: object) => ({ ...row, ...mine, ACL: { [owner]: { read: true, write: true } } })
  return {
    get: { url: `${url}/classes/Note/${found?.id}`, method: 'GET', headers },
    list: find({ createdAt: { $lt: { __type: 'Date', iso: found?.before.toISOString() } } }),
    filtered: find({ rank: { $gte: 500 }, done: false }),
    insert: post('/classes/Note', own(notes.row)),
    batch: {
      ...post('/batch', {
        requests: notes.rows
          .slice(0, mostInBatch)
          .map((row) => ({ method: 'POST', path: '/parse/classes/Note', body: own(row) })),
      }),
      parts: notes.rows.length / mostInBatch,
    },
  }
}
