// PostgREST on the synced collections: it is asked for what was made after a time, as an app without sync would.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '#test/support/process.ts'
import { asAdmin, type Installation, type Scenario } from './installation.ts'
import { type Peer, shareNotes, started } from './note_peers.ts'
import { binary, tokenOf } from './postgrest.ts'
import type { Device } from './sync_requests.ts'

export type Reader = Pick<Peer, 'pid' | 'version' | 'end'> & {
  /** How many rows of a user were made after a time. */
  newer(device: Device, since?: string): Promise<number>
  /** All rows of the collection `whole`, in pages as large as those of a pull. */
  whole(device: Device): Promise<number>
}

/** Null where PostgREST is not installed. */
export const startReader = async (installation: Installation, scenario: Scenario): Promise<Reader | null> => {
  const found = binary()
  if (!found) return null
  const [password, secret] = [randomBytes(24).toString('base64url'), randomBytes(32).toString('hex')]
  await shareNotes(installation, scenario, password)
  await asAdmin(
    installation.cluster,
    scenario.database,
    `create policy "web users read their own" on collections.whole for select to web_user using (user_id = (select web.user_id()));
     grant select on collections.whole to web_user`,
  )
  const folder = await mkdtemp(join(tmpdir(), 'trellis-postgrest-'))
  const port = await freePort()
  const { host, port: postgresPort } = scenario.target
  const lines = [
    `db-uri = "postgres://web_authenticator:${password}@/${scenario.database}?host=${encodeURIComponent(host)}&port=${postgresPort}"`,
    'db-schemas = "collections"',
    'db-anon-role = "web_anon"',
    'db-pool = 10',
    `jwt-secret = "${secret}"`,
    'server-host = "127.0.0.1"',
    `server-port = ${port}`,
  ]
  await writeFile(join(folder, 'postgrest.conf'), lines.join('\n'), { mode: 0o600 })
  const child = spawn(found.path, [join(folder, 'postgrest.conf')], {
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const tokens = new Map<string, string>()
  const headersOf = (userId: string) => {
    const token = tokens.get(userId) ?? tokenOf(secret, userId)
    tokens.set(userId, token)
    return { authorization: `Bearer ${token}` }
  }
  const urlOf = (collection: string, since: string) =>
    `http://127.0.0.1:${port}/${collection}?deleted_at=is.null&created_at=gt.${since}&order=created_at,id&limit=5000`
  const read = async (collection: string, { userId }: Device, since: string) => {
    const answer = await fetch(urlOf(collection, since), { headers: headersOf(userId) })
    if (answer.status !== 200) throw new Error(`PostgREST: ${answer.status} ${await answer.text()}`)
    return (await answer.json()) as { created_at: string }[]
  }
  const ready = {
    url: urlOf('notes', '2100-01-01'),
    method: 'GET',
    headers: headersOf(scenario.users[0]?.userId ?? ''),
  }
  const { pid, version, end } = await started(
    child,
    { name: 'PostgREST', version: found.version, requests: { ready: { ...ready, method: 'GET' } } },
    folder,
  )
  return {
    pid,
    version,
    end,
    newer: async (device, since = device.since) => (await read('notes', device, since)).length,
    async whole(device) {
      for (let [sum, since] = [0, '-infinity']; ; ) {
        const rows = await read('whole', device, since)
        sum += rows.length
        if (rows.length < 5000) return sum
        // with the offset of its zone, whose plus is a space in a query
        since = encodeURIComponent(rows.at(-1)?.created_at ?? '')
      }
    },
  }
}
